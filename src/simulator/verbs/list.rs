//! All objects of a kind, page by page, as they are or were (upstream: `limit`, `continue`,
//! `resourceVersion`, `resourceVersionMatch`).

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Verbs;
use crate::simulator::selector::Selector;
use crate::simulator::{Cause, Expired, Kind, Object, Reason, Status, Store};

/// What to list.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Which objects.
    pub selector: Selector,
    /// How many at a time; 0 is all of them.
    pub limit: usize,
    /// Where the page before ended; empty for the first.
    pub token: String,
    /// The version that is wanted; empty for the newest.
    pub version: String,
    /// `Exact`, `NotOlderThan`, or empty.
    pub version_match: String,
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects.
    pub items: Vec<Arc<Object>>,
    /// Of which moment they are.
    pub version: u64,
    /// Where the next page begins; empty when there is none.
    pub token: String,
    /// How many there are after this page, if that can be told.
    pub remaining: Option<usize>,
}

/// Where a page begins, and of which moment it is.
struct Start {
    version: u64,
    /// The key of the last object before it.
    after: Option<String>,
}

impl Verbs<'_> {
    /// One page of the objects of a kind, of one namespace or of all.
    ///
    /// # Errors
    /// 410 when the moment of the first page is forgotten, 400 for options that make no sense.
    pub fn list(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Page, Status> {
        list(self.store, kind, namespace, options)
    }
}

/// The same of a store.
pub(in crate::simulator) fn list(
    store: &Store,
    kind: Kind,
    namespace: Option<&str>,
    options: &ListOptions,
) -> Result<Page, Status> {
    check(options)?;
    let start = start(store, options)?;
    let after = |key: &str| start.after.as_ref().is_none_or(|after| key > after.as_str());
    let wanted =
        |object: &&Arc<Object>| after(object.key().as_str()) && options.selector.selects(object);
    let room = if options.limit == 0 { usize::MAX } else { options.limit };
    let (mut items, more): (Vec<Arc<Object>>, usize) = if start.version == store.version() {
        take(store.objects(kind, namespace).filter(wanted), room)
    } else {
        let then = store.objects_as_of(kind, namespace, start.version);
        let then = then.map_err(|_: Expired| expired_token(store, &start, options))?;
        take(then.values().filter(wanted), room)
    };
    items.shrink_to_fit();
    let token = match items.last() {
        Some(last) if more > 0 => token(start.version, last.key().as_str()),
        _ => String::new(),
    };
    // What is not selected is not counted, and the server does not count what it would not.
    let countable = more > 0 && options.selector.is_everything();
    let remaining = countable.then_some(more);
    Ok(Page { items, version: start.version, token, remaining })
}

/// The first `room` of them, and how many more there are.
fn take<'o>(
    mut objects: impl Iterator<Item = &'o Arc<Object>>,
    room: usize,
) -> (Vec<Arc<Object>>, usize) {
    let items = objects.by_ref().take(room).map(Arc::clone).collect();
    (items, objects.count())
}

/// (upstream: `ValidateListOptions`)
fn check(options: &ListOptions) -> Result<(), Status> {
    let ListOptions { token, version, version_match, .. } = options;
    let cause = |reason, message: &str| Cause {
        reason,
        message: message.to_owned(),
        field: "resourceVersionMatch".to_owned(),
    };
    let forbidden = |why: &str| {
        vec![cause("FieldValueForbidden", &format!("Forbidden: resourceVersionMatch {why}"))]
    };
    let causes = match version_match.as_str() {
        "" => return Ok(()),
        _ if version.is_empty() => forbidden("is forbidden unless resourceVersion is provided"),
        _ if !token.is_empty() => forbidden("is forbidden when continue is provided"),
        "Exact" if version == "0" => forbidden("\"exact\" is forbidden for resourceVersion \"0\""),
        "Exact" | "NotOlderThan" => return Ok(()),
        unknown => vec![cause(
            "FieldValueNotSupported",
            &format!(
                "Unsupported value: {unknown:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
            ),
        )],
    };
    Err(Status::invalid_options("ListOptions", &causes))
}

fn start(store: &Store, options: &ListOptions) -> Result<Start, Status> {
    let ListOptions { token, version, version_match, .. } = options;
    if !token.is_empty() {
        if !version.is_empty() && version != "0" {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Status::bad_request(why));
        }
        return read_token(token).ok_or_else(|| {
            let why = "continue key is not valid: illegal base64 data at input byte 0";
            Status::bad_request(format!("invalid continue token: {why}"))
        });
    }
    if version.is_empty() || version == "0" {
        return Ok(Start { version: store.version(), after: None });
    }
    let wanted = version.parse::<u64>().map_err(|_| {
        let Status { message, .. } = unparsable_version(version);
        Status::bad_request(format!("invalid resource version: {message}"))
    })?;
    if wanted > store.version() {
        return Err(too_large(wanted, store.version()));
    }
    let version = if version_match == "Exact" { wanted } else { store.version() };
    Ok(Start { version, after: None })
}

/// A version that nobody has made yet (upstream: `NewTooLargeResourceVersionError`).
fn too_large(wanted: u64, newest: u64) -> Status {
    let why = format!("Too large resource version: {wanted}, current: {newest}");
    let cause = Cause {
        reason: "ResourceVersionTooLarge",
        message: "Too large resource version".to_owned(),
        field: String::new(),
    };
    Status::new(Reason::Timeout, format!("Timeout: {why}")).because(&[cause]).retry_after(1)
}

fn token(version: u64, last: &str) -> String {
    // The next key that could be.
    let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": format!("{last}\0")});
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(token: &str) -> Option<Start> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
    let token: Value = serde_json::from_slice(&bytes).ok()?;
    let start = token["start"].as_str()?;
    Some(Start {
        version: token["rv"].as_u64()?,
        after: Some(start.strip_suffix('\0').unwrap_or(start).to_owned()),
    })
}

fn expired_token(store: &Store, start: &Start, options: &ListOptions) -> Status {
    if options.token.is_empty() {
        return too_old(start.version, store.version());
    }
    Status::new(
        Reason::Expired,
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted \
         between the time the first chunk was returned and now may show up in the list.",
    )
}

/// What is no version is the server's own fault to upstream.
pub(in crate::simulator) fn unparsable_version(version: &str) -> Status {
    let why = format!(
        "resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: \
         invalid syntax"
    );
    Status::new(Reason::Unknown, why)
}

/// A version that is forgotten.
pub(in crate::simulator) fn too_old(wanted: u64, oldest: u64) -> Status {
    Status::new(Reason::Expired, format!("too old resource version: {wanted} ({oldest})"))
}
