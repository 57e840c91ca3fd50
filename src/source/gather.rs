//! Which files of a folder are manifests, by kubectl's rules for `-f` and `-R`
//! (upstream: `ExpandPathsToFileVisitors`), and which folders must be rendered first.
//!
//! One walk for commits and disks; [`Tree`] says how each lists and loads. It stops at the bounds
//! below, whatever a repository holds. Not here: how a path finds its folder (`git`, `disk`).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::{Error, FILE_LIMIT, Read, Warning};
use crate::model::ManifestFile;

/// A file up to this size is searched for whether it is wanted; repositories hold large lock files
/// and API descriptions that nobody asked about.
pub(super) const SEARCH_LIMIT: usize = 64 << 20;
const FILES: usize = 100_000;
const ENTRIES: usize = 5_000_000;
const KEPT_BYTES: usize = 256 << 20;
const DEPTH: usize = 256;

/// A folder whose files are not whole objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrendered {
    /// What makes whole objects of it.
    pub renderer: Renderer,
    /// The folder, `.` for the top.
    pub path: Arc<str>,
    /// Its wanted files, sub-folders included, so that the caller can tell what is left out.
    pub files: Vec<ManifestFile>,
}

/// What makes whole objects of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renderer {
    /// There is a `Chart.yaml`: templates are not YAML.
    Helm,
    /// There is a kustomization: patches are not whole objects.
    Kustomize,
}

impl Renderer {
    fn of<T: Tree>(entries: &[Entry<T>]) -> Option<Self> {
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        if has("Chart.yaml") {
            Some(Self::Helm)
        } else if ["kustomization.yaml", "kustomization.yml", "Kustomization"].into_iter().any(has)
        {
            Some(Self::Kustomize)
        } else {
            None
        }
    }
}

impl Unrendered {
    /// A shell command that prints the folder's whole objects.
    pub fn render_command(&self) -> String {
        // A name from a repository must not become a command of the person who pastes this.
        let folder = shlex::try_quote(&self.path).unwrap_or_else(|_| "FOLDER".into());
        match self.renderer {
            Renderer::Helm => format!("helm template {folder}"),
            Renderer::Kustomize => format!("kubectl kustomize {folder}"),
        }
    }
}

impl fmt::Display for Unrendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.renderer {
            Renderer::Helm => "a Helm chart",
            Renderer::Kustomize => "a kustomization",
        };
        write!(f, "`{}` is {what} and was not read", self.path)
    }
}

/// Something that has folders: a commit or a disk.
pub(super) trait Tree {
    /// How it refers to a folder.
    type Folder;
    /// How it refers to a file.
    type File;
    /// A folder's entries in any order. The path is for errors.
    fn list(&self, folder: &Self::Folder, path: &str) -> Result<Vec<Entry<Self>>, Error>;
    /// A file's bytes, or [`Error::TooLarge`] beyond [`SEARCH_LIMIT`].
    fn load(&self, file: &Self::File, path: &str) -> Result<Vec<u8>, Error>;
    /// Two paths to one file have the same identity.
    fn identity(&self, file: &Self::File, path: &str) -> String;
}

/// An entry of a folder.
pub(super) struct Entry<T: Tree + ?Sized> {
    /// Its name, as [`shown`](super::shown::name).
    pub(super) name: String,
    /// What it is.
    pub(super) item: Item<T>,
}

/// What an entry is.
pub(super) enum Item<T: Tree + ?Sized> {
    /// A folder.
    Folder(T::Folder),
    /// A regular file.
    File(T::File),
    /// A symbolic link.
    Symlink,
    /// A submodule.
    Submodule,
    /// A pipe, socket or device.
    Special,
}

/// Whether kubectl reads a file of this name from a folder.
pub(super) fn is_manifest_name(name: &str) -> bool {
    [".yaml", ".yml", ".json"].into_iter().any(|extension| name.ends_with(extension))
}

/// Collects what the walks find, within the bounds.
pub(super) struct Gather<'w> {
    wanted: &'w dyn Fn(&[u8]) -> bool,
    found: Read,
    seen: HashSet<String>,
    entries: usize,
    kept_bytes: usize,
}

/// A folder that the walk has yet to look into.
struct Pending<F> {
    folder: F,
    path: String,
    depth: usize,
    /// The unrendered folder above it.
    within: Option<usize>,
}

impl<'w> Gather<'w> {
    pub(super) fn new(wanted: &'w dyn Fn(&[u8]) -> bool) -> Self {
        Self { wanted, found: Read::default(), seen: HashSet::new(), entries: 0, kept_bytes: 0 }
    }

    /// Adds a file, unless it was added before.
    pub(super) fn file<T: Tree>(
        &mut self,
        tree: &T,
        file: &T::File,
        path: &str,
    ) -> Result<(), Error> {
        if self.seen.insert(tree.identity(file, path)) {
            let bytes = tree.load(file, path)?;
            self.content(path, bytes)?;
        }
        Ok(())
    }

    /// Adds what was read from somewhere.
    pub(super) fn content(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), Error> {
        if self.files_seen() >= FILES {
            return Err(Error::TooManyFiles { limit: FILES });
        }
        if is_lfs_pointer(&bytes) {
            self.found.warnings.push(Warning::LfsPointer { path: path.to_owned() });
        }
        if !(self.wanted)(&bytes) {
            self.found.passed_over += 1;
            return Ok(());
        }
        if bytes.len() > FILE_LIMIT {
            return Err(Error::TooLarge { path: path.to_owned(), limit: FILE_LIMIT });
        }
        self.count_bytes(bytes.len())?;
        self.found.files.push(ManifestFile { path: path.into(), bytes });
        Ok(())
    }

    /// Adds a folder's manifests; with `recursive`, those of its sub-folders too.
    pub(super) fn folder<T: Tree>(
        &mut self,
        tree: &T,
        folder: T::Folder,
        path: &str,
        recursive: bool,
    ) -> Result<(), Error> {
        let top = Pending { folder, path: path.to_owned(), depth: 0, within: None };
        let mut pending = vec![top];
        while let Some(mut next) = pending.pop() {
            if next.depth > DEPTH {
                return Err(Error::TooDeep { path: next.path, limit: DEPTH });
            }
            let mut entries = tree.list(&next.folder, &next.path)?;
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            self.count_entries(entries.len())?;
            if next.within.is_none() {
                next.within =
                    Renderer::of(&entries).map(|renderer| self.unrendered(renderer, &next.path));
            }
            let mut below = Vec::new();
            for entry in entries {
                let path = join(&next.path, &entry.name);
                match entry.item {
                    Item::Folder(folder) => {
                        let depth = next.depth + 1;
                        below.push(Pending { folder, path, depth, within: next.within });
                    }
                    Item::File(file) => self.entry(tree, &file, &path, next.within)?,
                    Item::Symlink | Item::Submodule | Item::Special => {
                        if next.within.is_none() {
                            self.warn_not_read(&entry.item, path);
                        }
                    }
                }
            }
            // What an unrendered folder leaves out is counted to its bottom.
            if recursive || next.within.is_some() {
                pending.extend(below.into_iter().rev());
            }
        }
        Ok(())
    }

    /// What was found; an error if nothing was even looked at in `place`.
    pub(super) fn finish(mut self, place: impl FnOnce() -> String) -> Result<Read, Error> {
        let mut folders = HashSet::new();
        self.found.unrendered.retain(|folder| folders.insert(folder.path.clone()));
        if self.files_seen() == 0 && self.found.unrendered.is_empty() {
            let links = self.found.warnings.iter();
            let not_followed = links.filter(|w| matches!(w, Warning::Symlink { .. })).count();
            return Err(Error::NoManifests { place: place(), not_followed });
        }
        Ok(self.found)
    }

    fn entry<T: Tree>(
        &mut self,
        tree: &T,
        file: &T::File,
        path: &str,
        within: Option<usize>,
    ) -> Result<(), Error> {
        if !is_manifest_name(path) {
            return Ok(());
        }
        let Some(index) = within else { return self.file(tree, file, path) };
        let bytes = match tree.load(file, path) {
            Ok(bytes) if bytes.len() <= FILE_LIMIT && (self.wanted)(&bytes) => bytes,
            Ok(_) | Err(Error::TooLarge { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        self.count_bytes(bytes.len())?;
        self.found.unrendered[index].files.push(ManifestFile { path: path.into(), bytes });
        Ok(())
    }

    fn unrendered(&mut self, renderer: Renderer, path: &str) -> usize {
        let path = if path.is_empty() { "." } else { path };
        let folder = Unrendered { renderer, path: path.into(), files: Vec::new() };
        self.found.unrendered.push(folder);
        self.found.unrendered.len() - 1
    }

    fn warn_not_read<T: Tree>(&mut self, item: &Item<T>, path: String) {
        let warning = match item {
            Item::Symlink if is_manifest_name(&path) => Warning::Symlink { path },
            Item::Special if is_manifest_name(&path) => Warning::Special { path },
            Item::Submodule => Warning::Submodule { path },
            Item::Symlink | Item::Special | Item::Folder(_) | Item::File(_) => return,
        };
        if !self.found.warnings.contains(&warning) {
            self.found.warnings.push(warning);
        }
    }

    fn files_seen(&self) -> usize {
        self.found.files.len() + self.found.passed_over
    }

    fn count_entries(&mut self, more: usize) -> Result<(), Error> {
        self.entries += more;
        let fits = self.entries <= ENTRIES;
        fits.then_some(()).ok_or(Error::TooManyEntries { limit: ENTRIES })
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), Error> {
        self.kept_bytes += more;
        let fits = self.kept_bytes <= KEPT_BYTES;
        fits.then_some(()).ok_or(Error::TooMuch { limit: KEPT_BYTES })
    }
}

/// A path below a folder; the top has no name of its own.
pub(super) fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        "/" => format!("/{name}"),
        _ => format!("{folder}/{name}"),
    }
}

/// The first line of the pointer format of Git LFS; real pointers are below 1 KiB.
fn is_lfs_pointer(bytes: &[u8]) -> bool {
    bytes.len() < 1024 && bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}
