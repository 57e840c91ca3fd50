//! Finds the DaemonSets, policies and namespaces in files, and counts all other objects.
//!
//! Lists are expanded as kubectl does it (upstream: `decodeToList`: whatever has `items` is a
//! list). Not here: decoding a DaemonSet (`daemon_set`).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use daemonset::model::{ManifestFile, NamespaceName, Place};

use super::documents::{self, BadSeparator, Document};
use super::encoding;
use super::error::{Error, Limit, MAX_DOCUMENTS, MAX_FILE_BYTES, Seen};
use super::mentions::is_read;
use super::tree::{Data, Mark, Node};
use super::warning::Warning;
use super::yaml::{self, DuplicateKey, Tree, YamlError, YamlProblem};

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
    /// Namespaces that the files create.
    pub(super) namespaces: BTreeSet<NamespaceName>,
    pub(super) seen: Seen,
    pub(super) warnings: Vec<Warning>,
    pub(super) errors: Vec<Error>,
}

/// Parses the files that mention a kind that is read, or every file.
pub(super) fn collect(files: &[ManifestFile], every_file: bool) -> Objects {
    let mut objects = Objects::default();
    objects.seen.files = files.len();
    for file in files.iter().filter(|file| every_file || is_read(&file.bytes)) {
        objects.seen.parsed += 1;
        FileReader { path: &file.path, objects: &mut objects }.read(&file.bytes);
    }
    objects
}

struct FileReader<'f> {
    path: &'f Arc<str>,
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
                Err(BadSeparator { at }) => {
                    let place = self.place(at);
                    let message = "only a comment may follow `---` on its line".to_owned();
                    self.objects.errors.push(Error::Syntax { place, message });
                }
            }
        }
    }

    fn document(&mut self, document: &Document<'_>, alias_weight: &mut usize) {
        match yaml::parse(document, alias_weight) {
            Ok(None) => {}
            Ok(Some(Tree { root, duplicates })) => {
                self.warn_of_duplicates(duplicates);
                self.object(root, None);
            }
            Err(YamlError { at, problem: YamlProblem::Limit(limit) }) => self.limit(at, limit),
            Err(YamlError { at, problem: YamlProblem::Syntax(message) }) => {
                let place = self.place(at);
                self.objects.errors.push(Error::Syntax { place, message });
            }
        }
    }

    fn warn_of_duplicates(&mut self, duplicates: Vec<DuplicateKey>) {
        for DuplicateKey { key, at, first } in duplicates {
            let place = self.place(at);
            let first_line = first.line;
            self.objects.warnings.push(Warning::DuplicateKey { place, key, first_line });
        }
    }

    /// Classifies one object. Items of a typed list may omit `apiVersion` and `kind`, which are
    /// then given by `inferred`.
    fn object(&mut self, node: Rc<Node>, inferred: Option<(&str, &str)>) {
        if matches!(&node.data, Data::Scalar(value) if value.is_null()) {
            return;
        }
        let (version, kind) = match (node.text("apiVersion"), node.text("kind"), inferred) {
            (None, None, Some((version, kind))) => (Some(version), Some(kind)),
            (version, kind, _) => (version, kind),
        };
        if let Some(Data::List(items)) = node.get("items").map(|items| &items.data) {
            let item_kind = kind.and_then(|kind| kind.strip_suffix("List"));
            let inferred = version.zip(item_kind.filter(|kind| !kind.is_empty()));
            for item in items {
                self.object(Rc::clone(item), inferred);
            }
            return;
        }
        let place = self.place(node.at);
        let Some(kind) = kind else {
            self.objects.seen.without_kind += 1;
            return self.objects.warnings.push(Warning::NotAnObject { place });
        };
        match (kind, version, version.and_then(group)) {
            ("DaemonSet", None, _) => {
                self.objects.errors.push(Error::Incomplete { place, missing: "apiVersion" });
            }
            ("DaemonSet", Some("apps/v1"), _) => {
                let path = Arc::clone(self.path);
                self.objects.daemon_sets.push(Found { path, node });
            }
            ("DaemonSet", Some(version), Some("apps" | "extensions") | None) => {
                let api_version = version.to_owned();
                self.objects.errors.push(Error::OldVersion { place, api_version });
            }
            ("RolloutPolicy", _, Some("ds-plan.dev") | None) => {
                let path = Arc::clone(self.path);
                self.objects.policies.push(Found { path, node });
            }
            ("DaemonSet" | "RolloutPolicy", _, Some(group)) => {
                count(&mut self.objects.seen.other_kinds, format!("{kind}.{group}"));
            }
            (kind, Some("apps/v1"), _) if kind.eq_ignore_ascii_case("DaemonSet") => {
                let kind = kind.to_owned();
                self.objects.errors.push(Error::KindCase { place, kind });
            }
            (kind, version, _) => {
                if (kind, version) == ("Namespace", Some("v1")) {
                    let name = node.get("metadata").and_then(|metadata| metadata.text("name"));
                    self.objects.namespaces.extend(name.map(NamespaceName::from));
                }
                count(&mut self.objects.seen.other_kinds, kind.to_owned());
            }
        }
    }
}

const START: Mark = Mark { line: 1, column: 1 };

/// The group of an `apiVersion`; `None` for the core group.
fn group(api_version: &str) -> Option<&str> {
    api_version.split_once('/').map(|(group, _)| group)
}

fn count(kinds: &mut BTreeMap<String, usize>, kind: String) {
    *kinds.entry(kind).or_default() += 1;
}
