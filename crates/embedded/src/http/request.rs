//! One request: parses it, calls the verbs, and converts their result to an answer.

use std::sync::Arc;

use http::header::{CONTENT_TYPE, USER_AGENT};
use http::request;
use jiff::Timestamp;
use json_patch::PatchOperation;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::answer::Answer;
use super::route::{self, Objects, Query, Route, method_not_allowed};
use super::shared::{Shared, State};
use super::watch::Watching;
use crate::rules::{Attributes, Rules};
use crate::verbs::{
    DeleteOptions, ListOptions, Patch, Propagation, Verbs, WriteOptions, no_manager,
};
use crate::{Kind, Part, Reason, Selector, Status, Target};
use daemonset::model::Uid;

/// The version of Kubernetes that is simulated.
const VERSION: &str = "v1.36.3";

/// A parsed request.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) verb: &'static str,
    pub(super) route: Route,
    method: http::Method,
    query: Query,
    media_type: String,
    manager: String,
    pub(super) body: Vec<u8>,
    user: String,
}

impl Incoming {
    /// Parses a request's head.
    ///
    /// # Errors
    /// 404 for paths that are not served, 405 for methods that objects do not have.
    pub(super) fn read(head: &request::Parts, body: Vec<u8>, user: &str) -> Result<Self, Status> {
        let route = route::route(head.uri.path())?;
        let query = Query::of(head.uri.query().unwrap_or_default());
        let verb = match &route {
            Route::Objects(objects) => {
                route::verb(&head.method, objects, &query).ok_or_else(method_not_allowed)?
            }
            Route::AccessReview => "create",
            Route::Version => "get",
        };
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let media_type = text(CONTENT_TYPE).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_owned();
        // Upstream: `managerOrUserAgent`.
        let agent = text(USER_AGENT).unwrap_or_default();
        let manager = match query.get("fieldManager") {
            "" => agent.split('/').next().unwrap_or_default(),
            manager => manager,
        };
        let manager = manager.to_owned();
        let (method, user) = (head.method.clone(), user.to_owned());
        Ok(Self { verb, route, method, query, media_type, manager, body, user })
    }

    pub(super) fn is_dry_run(&self) -> bool {
        self.query.get("dryRun") == "All"
    }

    /// Executes the request.
    ///
    /// # Errors
    /// The status of the failed request.
    pub(super) fn answer(
        &self,
        shared: &Arc<Shared>,
        state: &mut State,
        now: Timestamp,
    ) -> Result<Answer, Status> {
        match &self.route {
            Route::Version => {
                let (major, minor) = ("1", "36");
                let version = json!({"major": major, "minor": minor, "gitVersion": VERSION});
                Ok(Answer::json(200, version.to_string()))
            }
            Route::AccessReview => self.review(&state.rules),
            Route::Objects(objects) => {
                let wanted = objects.attributes(self.verb);
                state.rules.check(&self.user, objects.kind, &wanted)?;
                if self.verb == "watch" {
                    let cuts = state.cuts;
                    let begun = Watching::begin(shared, &state.store, objects, &self.query, cuts);
                    return begun.map(Answer::stream);
                }
                let dry_run = self.is_dry_run() || self.options_of_body()?.is_dry_run();
                let options = WriteOptions { manager: &self.manager, dry_run };
                self.act(objects, state.store.verbs_with(now, options))
            }
        }
    }

    fn act(&self, objects: &Objects, verbs: Verbs<'_>) -> Result<Answer, Status> {
        match (self.verb, objects.subresource.as_str()) {
            ("list", "") => self.list(objects, &verbs),
            ("get", "" | "status") => Ok(verbs.get(target(objects)?).into()),
            ("create", "") if objects.name.is_empty() => self.create(objects, verbs),
            ("update", "" | "status") => self.update(objects, verbs),
            ("patch", "" | "status") => self.patch(objects, verbs),
            ("delete", "") => self.delete(objects, verbs),
            ("create", "binding") if objects.kind == Kind::Pod => self.bind(objects, verbs),
            ("create", "") => Err(method_not_allowed()),
            ("deletecollection", _) => Err(Status::not_implemented("the deletion of collections")),
            (verb, "") => Err(Status::not_implemented(format!("{verb} of {}", objects.resource()))),
            (_, _) => Err(route::no_such_path()),
        }
    }

    fn list(&self, objects: &Objects, verbs: &Verbs<'_>) -> Result<Answer, Status> {
        let query = &self.query;
        if !matches!(query.get("resourceVersion"), "" | "0") {
            return Err(Status::not_implemented("lists of a `resourceVersion`"));
        }
        let (labels, fields) = (query.get("labelSelector"), query.get("fieldSelector"));
        let options = ListOptions {
            selector: Selector::parse(objects.kind, labels, fields)?,
            limit: number(query, "limit")?.and_then(|n| n.try_into().ok()).unwrap_or_default(),
            token: query.get("continue").to_owned(),
        };
        let namespace = Some(objects.namespace.as_str()).filter(|it| !it.is_empty());
        let page = verbs.list(objects.kind, namespace, &options)?;
        Ok(Answer::page(objects.kind, &page))
    }

    fn create(&self, objects: &Objects, mut verbs: Verbs<'_>) -> Result<Answer, Status> {
        let object = self.object(objects.kind)?;
        let created = verbs.create(objects.kind, &objects.namespace, object)?;
        Ok(Answer::object(201, &created))
    }

    fn update(&self, objects: &Objects, mut verbs: Verbs<'_>) -> Result<Answer, Status> {
        let object = self.object(objects.kind)?;
        Ok(verbs.update(target(objects)?, object).into())
    }

    fn patch(&self, objects: &Objects, mut verbs: Verbs<'_>) -> Result<Answer, Status> {
        let target = target(objects)?;
        match self.media_type.as_str() {
            "application/merge-patch+json" => {
                let patch: Value = self.decoded()?;
                Ok(verbs.patch(target, Patch::Merge(&patch)).into())
            }
            "application/json-patch+json" => {
                let patch: Vec<PatchOperation> = self.decoded()?;
                Ok(verbs.patch(target, Patch::Json(&patch)).into())
            }
            "application/apply-patch+yaml" if target.part == Part::Main => {
                if self.query.get("fieldManager").is_empty() {
                    return Err(no_manager());
                }
                let applied: Value = self.decoded()?;
                let (object, created) = verbs.apply(target, &applied, self.query.is("force"))?;
                Ok(Answer::object(if created { 201 } else { 200 }, &object))
            }
            other => Err(unsupported(other)),
        }
    }

    fn delete(&self, objects: &Objects, mut verbs: Verbs<'_>) -> Result<Answer, Status> {
        let sent = self.options_of_body()?;
        let grace_seconds = match sent.grace_period_seconds {
            Some(seconds) => Some(seconds),
            None => number(&self.query, "gracePeriodSeconds")?,
        };
        let word = sent.propagation_policy.as_deref();
        let word = word.or(Some(self.query.get("propagationPolicy")).filter(|it| !it.is_empty()));
        let preconditions = sent.preconditions.unwrap_or_default();
        let options = DeleteOptions {
            uid: preconditions.uid,
            resource_version: preconditions.resource_version,
            grace_seconds,
            propagation: word.map(propagation).transpose()?,
        };
        verbs.delete(target(objects)?, &options).map(|deleted| Answer::deleted(&deleted))
    }

    fn bind(&self, objects: &Objects, mut verbs: Verbs<'_>) -> Result<Answer, Status> {
        let binding: Value = self.decoded()?;
        let node = binding["target"]["name"].as_str().unwrap_or_default();
        verbs.bind(&objects.namespace, &objects.name, node)?;
        let success = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
        });
        Ok(Answer::json(201, success.to_string()))
    }

    fn review(&self, rules: &Rules) -> Result<Answer, Status> {
        if self.method != http::Method::POST {
            return Err(method_not_allowed());
        }
        let mut review: Value = self.decoded()?;
        let attributes = &review["spec"]["resourceAttributes"];
        let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
        let resource = match text("subresource").as_str() {
            "" => text("resource"),
            subresource => format!("{}/{subresource}", text("resource")),
        };
        let wanted = Attributes {
            verb: text("verb"),
            group: text("group"),
            resource,
            namespace: text("namespace"),
            name: text("name"),
        };
        review["status"] = json!({"allowed": rules.permit(&self.user, &wanted)});
        review["metadata"] = json!({});
        Ok(Answer::json(201, review.to_string()))
    }

    /// The object in the body, of this kind.
    fn object(&self, kind: Kind) -> Result<Value, Status> {
        if !matches!(self.media_type.as_str(), "application/json" | "") {
            return Err(unsupported(&self.media_type));
        }
        let object: Value = self.decoded()?;
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (version, word) = (text("apiVersion"), text("kind"));
        let is = |own: &str, text: &str| text.is_empty() || own == text;
        if is(kind.as_str(), word) && is(kind.api_version(), version) {
            self.check_fields(kind, &object)?;
            return Ok(object);
        }
        let internal = match kind.group().name() {
            "" => "core",
            group => group.split('.').next().unwrap_or_default(),
        };
        let short = version.rsplit('/').next().unwrap_or_default();
        let reason = match Kind::of(version, word) {
            Some(_) => {
                format!("converting ({short}.{word}) to ({internal}.{kind}): unknown conversion")
            }
            None => format!("no kind {word:?} is registered for version {version:?}"),
        };
        let why = format!("{word} in version {short:?} cannot be handled as a {kind}: {reason}");
        Err(Status::bad_request(why))
    }

    /// Rejects unknown fields if requested; kinds other than DaemonSet have no field table here,
    /// and keep all fields.
    fn check_fields(&self, kind: Kind, object: &Value) -> Result<(), Status> {
        if kind != Kind::DaemonSet || self.query.get("fieldValidation") != "Strict" {
            return Ok(());
        }
        let unknown = manifest::unknown_fields(object.clone());
        if unknown.is_empty() {
            return Ok(());
        }
        let fields: Vec<String> =
            unknown.iter().map(|path| format!("unknown field {path:?}")).collect();
        let why = format!(
            "{kind} in version \"v1\" cannot be handled as a {kind}: strict decoding error: {}",
            fields.join(", ")
        );
        Err(Status::bad_request(why))
    }

    /// Options in the body of a delete.
    fn options_of_body(&self) -> Result<WireDeleteOptions, Status> {
        if self.verb != "delete" || self.body.is_empty() {
            return Ok(WireDeleteOptions::default());
        }
        self.decoded()
    }

    fn decoded<T: DeserializeOwned>(&self) -> Result<T, Status> {
        let decoded = serde_json::from_slice(&self.body);
        decoded.map_err(|error| {
            Status::bad_request(format!("the body of the request cannot be read: {error}"))
        })
    }
}

/// The body of a delete (upstream: `metav1.DeleteOptions`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireDeleteOptions {
    preconditions: Option<Preconditions>,
    grace_period_seconds: Option<i64>,
    propagation_policy: Option<String>,
    dry_run: Vec<String>,
}

impl WireDeleteOptions {
    fn is_dry_run(&self) -> bool {
        self.dry_run.iter().any(|word| word == "All")
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Preconditions {
    uid: Option<Uid>,
    resource_version: Option<String>,
}

fn propagation(word: &str) -> Result<Propagation, Status> {
    match word {
        "Orphan" => Ok(Propagation::Orphan),
        "Background" => Ok(Propagation::Background),
        "Foreground" => Ok(Propagation::Foreground),
        _unknown => {
            let why = format!("{word:?} is not a propagationPolicy");
            Err(Status::new(Reason::Invalid, why))
        }
    }
}

fn target(objects: &Objects) -> Result<Target<'_>, Status> {
    let Objects { kind, namespace, name, subresource } = objects;
    let target = Target::new(*kind, namespace, name);
    match subresource.as_str() {
        "" => Ok(target),
        "status" if kind.has_status() => Ok(target.status()),
        _ => Err(route::no_such_path()),
    }
}

fn number(query: &Query, key: &str) -> Result<Option<i64>, Status> {
    let text = query.get(key);
    if text.is_empty() {
        return Ok(None);
    }
    let number = text.parse();
    number.map(Some).map_err(|_| {
        Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
    })
}

fn unsupported(media_type: &str) -> Status {
    let why = format!("the embedded cluster does not read bodies of the type {media_type:?}");
    Status::new(Reason::UnsupportedMediaType, why)
}
