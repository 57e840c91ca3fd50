//! Renders a folder of a commit with kustomize.
//!
//! Kustomize reads any file and any URL that a kustomization names, so it never gets the original:
//! the kustomizations that can be reached from the folder are read first, everything other than a
//! path to a file in the commit is rejected (`fields`), and the fields that were understood are
//! written again into an empty folder, together with the files that they name. Links are not
//! followed. Then the installed program runs there, with limits (`program`). Not here: parsing
//! YAML, which the caller provides.
//!
//! The check and the program cannot disagree, because the program never reads the YAML of the
//! repository, which it might read differently: it gets what the check understood, as JSON. Folders
//! are counted as often as they will be rendered, because two lines per folder double the work. The
//! program runs under `ulimit`, without environment.

mod fields;
pub(super) mod problem;
mod program;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use git2::Oid;
use serde_json::Value;

use self::problem::{DEEPEST, Problem};
use super::file_collector::join;
use super::objects::Objects;
use super::tree::{Item, Tree};
use super::unrendered::KUSTOMIZATION_NAMES;
use super::{Error, FILE_LIMIT, Kustomize, shown};
use crate::error::KustomizeError;
use fields::Want;

/// Limit of the files that are written.
const MOST_FILES: usize = 10_000;
/// Limit of their total size, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// Limit of rendered folders, counted each time that another folder names them: a dozen folders of
/// a dozen lines can request billions.
const MOST_RENDERED: usize = 1_000;
/// The content of one folder and of everything that it names.
#[derive(Default)]
struct Collected {
    /// Files to write, by path from the top.
    files: BTreeMap<String, Vec<u8>>,
    bytes: usize,
    /// Number of renderings for each visited folder, itself included.
    weights: BTreeMap<String, usize>,
    /// Folders on the path to the current one, to detect cycles.
    open: BTreeSet<String>,
}

/// The rendered output of a folder.
pub(super) struct Rendered {
    /// Output of the program.
    pub(super) bytes: Vec<u8>,
    /// Paths of the input files, from the top.
    pub(super) files: Vec<PathBuf>,
}

/// Renders the folder at `path`, from the top of the commit.
pub(super) fn render(
    objects: &Objects<'_>,
    path: &Path,
    settings: &Kustomize,
) -> Result<Rendered, Error> {
    let folder = path.to_str().ok_or_else(|| {
        Error::from(KustomizeError::NotAKustomization { path: shown::path(path) })
    })?;
    let mut collected = Collected::default();
    let collector = Collector { objects, settings };
    collector.folder(folder, &mut collected)?;
    let world = tempfile::tempdir().map_err(not_written)?;
    let tree = world.path().join("tree");
    for (path, bytes) in &collected.files {
        let file = tree.join(path);
        let above = file.parent().unwrap_or(&tree);
        fs::create_dir_all(above).and_then(|()| fs::write(&file, bytes)).map_err(not_written)?;
    }
    let bytes = program::render(settings, world.path(), &tree.join(folder), &shown::path(path))?;
    Ok(Rendered { bytes, files: collected.files.into_keys().map(PathBuf::from).collect() })
}

/// Keeps the wanted documents of `rendered` at their original lines.
///
/// Kustomize writes each object as one document without a line `---` in it.
pub(super) fn only(rendered: &[u8], wanted: &dyn Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut lines = rendered.split_inclusive(|byte| *byte == b'\n').peekable();
    let mut document: Vec<u8> = Vec::new();
    while let Some(line) = lines.next() {
        let is_separator = line == b"---\n";
        if !is_separator {
            document.extend_from_slice(line);
        }
        if is_separator || lines.peek().is_none() {
            let blank = !wanted(&document);
            let line_breaks = document.iter().filter(|byte| **byte == b'\n');
            kept.extend(if blank { line_breaks.copied().collect() } else { document.clone() });
            document.clear();
            if is_separator {
                kept.extend_from_slice(line);
            }
        }
    }
    kept
}

fn not_written(source: std::io::Error) -> Error {
    Error::from(KustomizeError::Start { program: "kustomize".to_owned(), source })
}

struct Collector<'a> {
    objects: &'a Objects<'a>,
    settings: &'a Kustomize,
}

impl Collector<'_> {
    /// Collects the kustomization in `folder` and what it names; returns its weight.
    fn folder(&self, folder: &str, collected: &mut Collected) -> Result<usize, Error> {
        if let Some(weight) = collected.weights.get(folder) {
            return Ok(*weight);
        }
        let (path, mut value) = self.kustomization(folder)?;
        let refuse = |problem| Error::from(KustomizeError::Problem { path: shown(&path), problem });
        if !collected.open.insert(folder.to_owned()) {
            return Err(refuse(Problem::Cycle { folder: shown::name(folder.as_bytes()) }));
        }
        if collected.open.len() > DEEPEST {
            return Err(refuse(Problem::TooMany { limit: MOST_RENDERED }));
        }
        let Value::Object(kustomization) = &mut value else {
            return Err(refuse(Problem::Syntax("not a mapping".to_owned())));
        };
        self.inline_patches(kustomization, &refuse)?;
        let mut weight = 1_usize;
        fields::visit_paths(kustomization, &refuse, &mut |given, want, field| {
            let (relative, target) = resolve(folder, given, field, &refuse)?;
            match (self.item(&target, given, field, want, &refuse)?, want) {
                (Found::File(file), Want::File | Want::Either) => {
                    // The original must not replace the kustomization that was written.
                    if KUSTOMIZATION_NAMES
                        .iter()
                        .any(|name| target.rsplit('/').next() == Some(name))
                    {
                        let (path, field) = (shown(given), field.to_owned());
                        return Err(refuse(Problem::AsFile { path, field }));
                    }
                    if !collected.files.contains_key(&target) {
                        let bytes = self.objects.load(&file, &target)?;
                        collected.add(target, bytes)?;
                    }
                }
                (Found::Folder, Want::Folder | Want::Either) => {
                    weight = weight.saturating_add(self.folder(&target, collected)?);
                }
                (Found::File(_), Want::Folder) | (Found::Folder, Want::File) => {
                    return Err(refuse(not_there(given, field, want)));
                }
            }
            Ok(relative)
        })?;
        if weight > MOST_RENDERED {
            return Err(refuse(Problem::TooMany { limit: MOST_RENDERED }));
        }
        // Written as JSON, which is YAML that every parser reads alike.
        collected.add(path, value.to_string().into_bytes())?;
        collected.open.remove(folder);
        collected.weights.insert(folder.to_owned(), weight);
        Ok(weight)
    }

    /// The only kustomization in `folder`: its path and content.
    fn kustomization(&self, folder: &str) -> Result<(String, Value), Error> {
        let mut found = None;
        for name in KUSTOMIZATION_NAMES {
            let path = join(folder, name);
            match self.objects.find(Path::new(&path))? {
                Some(Item::File(file)) if found.is_none() => {
                    let bytes = self.objects.load(&file, &path)?;
                    found = Some((path, bytes));
                }
                Some(Item::File(_)) => {
                    return Err(Error::from(KustomizeError::NotAKustomization {
                        path: shown(folder),
                    }));
                }
                Some(Item::Symlink(_)) => return Err(Error::PathIsSymlink { path: shown(&path) }),
                Some(Item::Folder(_) | Item::Submodule | Item::Special) | None => {}
            }
        }
        let (path, bytes) = found.ok_or_else(|| {
            Error::from(KustomizeError::NotAKustomization { path: shown(folder) })
        })?;
        if bytes.len() > FILE_LIMIT {
            return Err(Error::TooLarge { path: shown(&path), limit: FILE_LIMIT });
        }
        let value = (self.settings.parse)(&bytes).map_err(|message| {
            Error::from(KustomizeError::Problem {
                path: shown(&path),
                problem: Problem::Syntax(message),
            })
        })?;
        Ok((path, value))
    }

    /// `patchesStrategicMerge` contains paths and inline patches. An inline patch gets a leading
    /// comment, so that it cannot be taken for a path or a URL; paths are checked like those of
    /// `patches`.
    fn inline_patches(
        &self,
        kustomization: &mut serde_json::Map<String, Value>,
        refuse: &dyn Fn(Problem) -> Error,
    ) -> Result<(), Error> {
        let Some(given) = kustomization.remove("patchesStrategicMerge") else { return Ok(()) };
        let unexpected =
            || refuse(Problem::Unexpected { field: "patchesStrategicMerge".to_owned() });
        let Value::Array(given) = given else { return Err(unexpected()) };
        let mut patches = Vec::new();
        let mut inline = Vec::new();
        for element in given {
            let Value::String(text) = element else { return Err(unexpected()) };
            match (self.settings.parse)(text.as_bytes()) {
                Ok(Value::Object(_)) => inline.push(Value::from(format!("# a patch\n{text}"))),
                _ => patches.push(serde_json::json!({ "path": text })),
            }
        }
        if !inline.is_empty() {
            kustomization.insert("patchesStrategicMerge".to_owned(), inline.into());
        }
        if !patches.is_empty() {
            match kustomization.entry("patches").or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(all) => all.extend(patches),
                _ => return Err(unexpected()),
            }
        }
        Ok(())
    }

    /// The item at `target`; links and submodules are rejected.
    fn item(
        &self,
        target: &str,
        given: &str,
        field: &str,
        want: Want,
        refuse: &dyn Fn(Problem) -> Error,
    ) -> Result<Found, Error> {
        match self.objects.find(Path::new(target))? {
            Some(Item::File(file)) => Ok(Found::File(file)),
            Some(Item::Folder(_)) => Ok(Found::Folder),
            Some(Item::Symlink(_)) => Err(Error::PathIsSymlink { path: shown(target) }),
            Some(Item::Submodule) => Err(Error::PathIsSubmodule { path: shown(target) }),
            Some(Item::Special) | None => Err(refuse(not_there(given, field, want))),
        }
    }
}

enum Found {
    File(Oid),
    Folder,
}

impl Collected {
    fn add(&mut self, path: String, bytes: Vec<u8>) -> Result<(), Error> {
        let length = bytes.len();
        if self.files.insert(path, bytes).is_none() {
            self.bytes += length;
        }
        if self.files.len() > MOST_FILES {
            return Err(Error::TooManyFiles { limit: MOST_FILES });
        }
        if self.bytes > MOST_BYTES { Err(Error::TooMuch { limit: MOST_BYTES }) } else { Ok(()) }
    }
}

/// Resolves a path named in `folder`: once normalised for the kustomization, and once from the top.
fn resolve(
    folder: &str,
    given: &str,
    field: &str,
    refuse: &dyn Fn(Problem) -> Error,
) -> Result<(String, String), Error> {
    let (path, field) = (shown(given), field.to_owned());
    let odd = |c: char| c.is_control() || matches!(c, ':' | '\\' | '?' | '#' | '*' | '$' | '%');
    if given.is_empty() || given.starts_with(['/', '~']) || given.contains(odd) {
        return Err(refuse(Problem::NotRelative { path, field }));
    }
    let mut target: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    let mut relative: Vec<&str> = vec!["."];
    for part in given.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if target.pop().is_none() {
                    return Err(refuse(Problem::Outside { path, field }));
                }
                relative.push(part);
            }
            name => {
                target.push(name);
                relative.push(name);
            }
        }
    }
    Ok((relative.join("/"), target.join("/")))
}

fn not_there(given: &str, field: &str, want: Want) -> Problem {
    let want = match want {
        Want::File => "a file",
        Want::Folder => "a folder",
        Want::Either => "a file or folder",
    };
    Problem::NotThere { path: shown(given), field: field.to_owned(), want }
}

fn shown(text: &str) -> String {
    let text = if text.is_empty() { "." } else { text };
    shown::name(text.as_bytes())
}
