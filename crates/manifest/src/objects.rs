//! Finds the DaemonSets, policies and namespaces in files, and counts all other objects.
//!
//! Lists are expanded as kubectl does it (upstream: `decodeToList`: whatever has `items` is a
//! list), and documents that are not objects are rejected as it rejects them, if the files were
//! named. Not here: decoding a DaemonSet (`daemon_set`).

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use daemonset::model::{ManifestFile, NamespaceName, Place};

use super::documents::{self, Document, Rejected};
use super::encoding;
use super::error::{
    Error, JsonKind, Limit, ListProblem, MAX_DOCUMENTS, MAX_FILE_BYTES, Missing, NotAnObject, Seen,
};
use super::mentions::has_namespace;
use super::tree::{Data, Mark, Node};
use super::warning::Warning;
use super::yaml::{self, DuplicateKey, Tree, YamlError, YamlProblem};

/// The treatment of documents that are not Kubernetes objects: no mapping, or without `apiVersion`
/// or `kind`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotObjects {
    /// They are errors, as with kubectl: for files that the user has named.
    #[default]
    Reject,
    /// They are skipped with a warning: a repository has other YAML files too.
    Skip,
}

/// The API group of the project's own objects.
const OWN_GROUP: &str = "ds-plan.dev";
/// The kinds of that group: one for each file in `schemas`.
pub(super) const OWN_KINDS: [&str; 11] = [
    POLICY_KIND,
    "CheckAnswers",
    "CheckReport",
    "Diff",
    "Drift",
    "Explanation",
    "Faults",
    "History",
    "Plan",
    "RunEvent",
    "Status",
];
/// The kind of a policy.
const POLICY_KIND: &str = "RolloutPolicy";

/// A DaemonSet of `apps/v1` or a `RolloutPolicy`, not yet decoded.
#[derive(Debug)]
pub(super) struct Found {
    /// Path of the file.
    pub(super) path: Arc<str>,
    pub(super) node: Rc<Node>,
}

/// The objects in the files.
#[derive(Debug, Default)]
pub(super) struct Objects {
    pub(super) daemon_sets: Vec<Found>,
    pub(super) policies: Vec<Found>,
    /// Namespaces that the files create, and where.
    pub(super) namespaces: BTreeMap<NamespaceName, Place>,
    pub(super) seen: Seen,
    pub(super) warnings: Vec<Warning>,
    pub(super) errors: Vec<Error>,
}

/// Parses the files that `is_parsed` selects by their bytes.
pub(super) fn collect(
    files: &[ManifestFile],
    is_parsed: impl Fn(&[u8]) -> bool,
    not_objects: NotObjects,
) -> Objects {
    let mut objects = Objects::default();
    objects.seen.files = files.len();
    for ManifestFile { path, bytes } in files {
        if is_parsed(bytes) {
            objects.seen.parsed += 1;
            FileReader { path, not_objects, objects: &mut objects }.read(bytes);
        } else if has_namespace(bytes) {
            objects.namespaces.extend(namespaces_in(path, bytes));
        }
    }
    objects
}

/// The namespaces that a file creates which is not parsed otherwise. Its errors do not matter.
fn namespaces_in(path: &Arc<str>, bytes: &[u8]) -> BTreeMap<NamespaceName, Place> {
    let mut objects = Objects::default();
    FileReader { path, not_objects: NotObjects::Skip, objects: &mut objects }.read(bytes);
    objects.namespaces
}

struct FileReader<'f> {
    path: &'f Arc<str>,
    not_objects: NotObjects,
    objects: &'f mut Objects,
}

impl FileReader<'_> {
    fn place(&self, at: Mark) -> Place {
        Place { path: Arc::clone(self.path), line: at.line, column: at.column }
    }

    fn limit(&mut self, at: Mark, limit: Limit) {
        let place = self.place(at);
        self.objects.errors.push(Error::Limit { place, limit });
    }

    fn read(&mut self, bytes: &[u8]) {
        if bytes.len() > MAX_FILE_BYTES {
            return self.limit(START, Limit::FileSize { bytes: bytes.len() });
        }
        let text = match encoding::decode(bytes) {
            Ok(text) => text,
            Err((at, problem)) => {
                let place = self.place(at);
                return self.objects.errors.push(Error::Encoding { place, problem });
            }
        };
        let documents = documents::split(&text);
        if documents.len() > MAX_DOCUMENTS {
            return self.limit(START, Limit::Documents);
        }
        let mut alias_weight = 0;
        for document in documents {
            match document {
                Ok(document) => self.document(&document, &mut alias_weight),
                Err(Rejected { at, why }) => {
                    let place = self.place(at);
                    let message = why.to_string();
                    self.objects.errors.push(Error::Syntax { place, message });
                }
            }
        }
    }

    fn document(&mut self, document: &Document<'_>, alias_weight: &mut usize) {
        match yaml::parse(document, alias_weight) {
            Ok(None) => {}
            Ok(Some(Tree { root, duplicates })) => {
                let policies = self.objects.policies.len();
                self.object(&root, None);
                let is_policy =
                    self.objects.policies.len() > policies && root.get("items").is_none();
                self.duplicates(duplicates, is_policy);
            }
            Err(YamlError { at, problem: YamlProblem::Limit(limit) }) => self.limit(at, limit),
            Err(YamlError { at, problem: YamlProblem::Syntax(message) }) => {
                let place = self.place(at);
                self.objects.errors.push(Error::Syntax { place, message });
            }
        }
    }

    /// Duplicate keys are warnings, as in kubectl. In a policy they are errors: one of two limits
    /// would have no effect.
    fn duplicates(&mut self, duplicates: Vec<DuplicateKey>, is_policy: bool) {
        for DuplicateKey { key, at, first } in duplicates {
            let place = self.place(at);
            let first_line = first.line;
            if is_policy {
                let message = format!("key `{key}` is already on line {first_line}");
                self.objects.errors.push(Error::Policy { place, path: String::new(), message });
            } else {
                self.objects.warnings.push(Warning::DuplicateKey { place, key, first_line });
            }
        }
    }

    /// Classifies one document, or one item of a `list`.
    fn object(&mut self, node: &Rc<Node>, list: Option<&List<'_>>) {
        if list.is_none() && matches!(&node.data, Data::Scalar(value) if value.is_null()) {
            return;
        }
        let Data::Map(_) = &node.data else {
            let problem = NotAnObject::Kind(JsonKind::of(&node.to_value()));
            return self.not_an_object(node.at, problem, list);
        };
        // Items of a typed list may omit both.
        let inferred = list.and_then(List::of_items);
        let (version, kind) = match (node.text("apiVersion"), node.text("kind"), inferred) {
            (None, None, Some((version, kind))) => (Some(version), Some(kind)),
            (version, kind, _) => (version, kind.filter(|kind| !kind.is_empty())),
        };
        if let Some(items) = node.get("items") {
            return self.items(node.at, items, &List { version, kind }, list);
        }
        match (version, kind) {
            (Some(version), Some(kind)) => self.typed(node, version, kind, list),
            (None, Some("DaemonSet" | POLICY_KIND)) | (Some("apps/v1"), None) => {
                self.incomplete(node.at, Missing::of(version, kind));
            }
            (Some(version), None) if group(version).is_some_and(is_own) => {
                self.incomplete(node.at, Missing::Kind);
            }
            (None, _) | (_, None) => {
                let problem = NotAnObject::Missing(Missing::of(version, kind));
                self.not_an_object(node.at, problem, list);
            }
        }
    }

    fn incomplete(&mut self, at: Mark, missing: Missing) {
        let place = self.place(at);
        self.objects.errors.push(Error::Incomplete { place, missing });
    }

    /// An error where kubectl reads every document: in files that were named, and in lists that
    /// are expanded.
    fn not_an_object(&mut self, at: Mark, problem: NotAnObject, list: Option<&List<'_>>) {
        let place = self.place(at);
        match list {
            Some(list) if !list.is_expanded() => {}
            None if self.not_objects == NotObjects::Skip => {
                self.objects.seen.not_objects += 1;
                self.objects.warnings.push(Warning::NotAnObject { place });
            }
            Some(_) | None => self.objects.errors.push(Error::NotAnObject { place, problem }),
        }
    }

    /// Expands `items`, which make a list of any object (upstream: `FlattenListVisitor`). Lists
    /// that the server may not have are searched only for what must not be missed.
    fn items(&mut self, at: Mark, items: &Node, list: &List<'_>, around: Option<&List<'_>>) {
        let is_list = matches!(items.data, Data::List(_));
        let problem = if around.is_some_and(List::is_expanded) {
            Some(ListProblem::Nested)
        } else if let Some(kind @ ("DaemonSet" | POLICY_KIND)) = list.kind {
            Some(ListProblem::Named { kind: kind.to_owned() })
        } else {
            (list.is_expanded() && !is_list).then_some(ListProblem::NoItems)
        };
        if let Some(problem) = problem {
            let place = self.place(at);
            return self.objects.errors.push(Error::List { place, problem });
        }
        if list.version.is_none() || list.kind.is_none() {
            let problem = NotAnObject::Missing(Missing::of(list.version, list.kind));
            self.not_an_object(at, problem, around);
        } else if !list.is_expanded() && (!is_list || list.of_items().is_none()) {
            count(&mut self.objects.seen.other_kinds, list.kind.unwrap_or_default().to_owned());
        }
        if let Data::List(items) = &items.data {
            for item in items {
                self.object(item, Some(list));
            }
        }
    }

    fn typed(&mut self, node: &Rc<Node>, version: &str, kind: &str, list: Option<&List<'_>>) {
        let place = self.place(node.at);
        let is_read = matches!(kind, "DaemonSet" | POLICY_KIND);
        if let Some(list) = list.filter(|list| is_read && !list.may_hold(version, kind)) {
            let problem = ListProblem::Elsewhere { kind: kind.to_owned(), list: list.to_string() };
            return self.objects.errors.push(Error::List { place, problem });
        }
        let found = || Found { path: Arc::clone(self.path), node: Rc::clone(node) };
        match (kind, version, group(version)) {
            ("List" | "DaemonSetList", "v1" | "apps/v1", _) => {
                let problem = ListProblem::NoItems;
                self.objects.errors.push(Error::List { place, problem });
            }
            ("DaemonSet", "apps/v1", _) => {
                let found = found();
                self.objects.daemon_sets.push(found);
            }
            ("DaemonSet", version, Some("apps" | "extensions") | None) => {
                let api_version = version.to_owned();
                self.objects.errors.push(Error::OldVersion { place, api_version });
            }
            (POLICY_KIND, _, group) if group.is_none_or(is_own) => {
                let found = found();
                self.objects.policies.push(found);
            }
            (kind, _, Some(group)) if is_own(group) && !OWN_KINDS.contains(&kind) => {
                self.objects.errors.push(unknown_kind(place, kind));
            }
            ("DaemonSet" | POLICY_KIND, _, Some(group)) => {
                count(&mut self.objects.seen.other_kinds, format!("{kind}.{group}"));
            }
            (kind, "apps/v1", _) if kind.eq_ignore_ascii_case("DaemonSet") => {
                let kind = kind.to_owned();
                self.objects.errors.push(Error::KindCase { place, kind });
            }
            (kind, version, _) => {
                if (kind, version) == ("Namespace", "v1") {
                    let name = node.get("metadata").and_then(|metadata| metadata.text("name"));
                    let named = name.map(|name| (NamespaceName::from(name), place));
                    self.objects.namespaces.extend(named);
                }
                count(&mut self.objects.seen.other_kinds, kind.to_owned());
            }
        }
    }
}

/// An object with `items`.
struct List<'n> {
    version: Option<&'n str>,
    kind: Option<&'n str>,
}

impl<'n> List<'n> {
    /// `true` for lists that every server has. kubectl also expands the lists of other kinds that
    /// its server has, but no manifest is written that way.
    fn is_expanded(&self) -> bool {
        matches!(
            (self.version, self.kind),
            (Some("v1" | "apps/v1"), Some("List")) | (Some("apps/v1"), Some("DaemonSetList"))
        )
    }

    /// The version and kind of items that name neither.
    fn of_items(&self) -> Option<(&'n str, &'n str)> {
        let kind = self.kind?.strip_suffix("List").filter(|kind| !kind.is_empty())?;
        Some((self.version?, kind))
    }

    fn may_hold(&self, version: &str, kind: &str) -> bool {
        self.is_expanded() && self.of_items().is_none_or(|items| items == (version, kind))
    }
}

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.version, self.kind) {
            (Some(version), Some(kind)) => write!(f, "a {kind} of {version}"),
            (None, Some(kind)) => write!(f, "a {kind} without apiVersion"),
            (_, None) => f.write_str("a list without kind"),
        }
    }
}

const START: Mark = Mark { line: 1, column: 1 };

/// The group of an `apiVersion`; `None` for the core group.
fn group(api_version: &str) -> Option<&str> {
    api_version.split_once('/').map(|(group, _)| group)
}

/// Whether an API group is the project's own. Another case of it is refused where it is decoded.
fn is_own(group: &str) -> bool {
    group.eq_ignore_ascii_case(OWN_GROUP)
}

/// An error for an object of the project's own group: a policy that is skipped would have no
/// effect.
fn unknown_kind(place: Place, kind: &str) -> Error {
    let in_another_case = OWN_KINDS.into_iter().find(|known| known.eq_ignore_ascii_case(kind));
    let expected = in_another_case.unwrap_or(POLICY_KIND);
    Error::UnknownKind { place, kind: kind.to_owned(), expected }
}

fn count(kinds: &mut BTreeMap<String, usize>, kind: String) {
    *kinds.entry(kind).or_default() += 1;
}
