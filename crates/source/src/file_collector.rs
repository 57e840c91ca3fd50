//! Collects the manifests of a folder, by kubectl's rules for `-f` and `-R` (upstream:
//! `ExpandPathsToFileVisitors`).
//!
//! One walk for commits and disks; [`Tree`] lists and loads for each. The walk stops at the limits
//! below, whatever a repository contains. Not here: resolving a path to its folder (`git`, `disk`),
//! and detecting folders that must be rendered first (`unrendered`).

use std::collections::{HashMap, HashSet};

use super::tree::{ContentId, Entry, Item, Tree};
use super::unrendered::{Renderer, Unrendered};
use super::{Error, FILE_LIMIT, Read, Warning};
use daemonset::model::ManifestFile;

#[cfg(test)]
mod tests;

/// Limits of a walk.
#[derive(Clone, Copy)]
struct Limits {
    /// Manifest files searched.
    files: usize,
    /// Files and folders of any kind listed. A commit of a few hundred bytes can contain billions.
    entries: usize,
    /// Total bytes kept.
    bytes: usize,
    /// Total bytes searched. Packed, they may be a thousandth of that.
    searched_bytes: usize,
    /// Depth of nested folders.
    depth: usize,
    /// Symbolic links whose target is looked up; any more may lead to folders. Each look-up may read
    /// large folders.
    links: usize,
}

const LIMITS: Limits = Limits {
    files: 100_000,
    entries: 5_000_000,
    bytes: 256 << 20,
    searched_bytes: 4 << 30,
    depth: 256,
    links: 1_000,
};

/// How a file or content was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// The user has named it: it is also kept if it is unwanted.
    Named,
    /// It was found in a folder or a commit, or rendered.
    Found,
}

/// The result of searching a file.
#[derive(Clone, Debug)]
enum Searched {
    Wanted(Vec<u8>),
    Unwanted {
        is_lfs_pointer: bool,
        /// The content, if the file was named.
        named: Option<Vec<u8>>,
    },
    /// Wanted and too large to keep, or too large to search.
    TooLarge,
}

/// `true` if kubectl reads a file of this name from a folder.
pub(super) fn is_manifest_name(name: &str) -> bool {
    [".yaml", ".yml", ".json"].into_iter().any(|extension| name.ends_with(extension))
}

/// Collects the files that the walks find, within the limits.
pub(super) struct FileCollector<'w> {
    wanted: &'w dyn Fn(&[u8]) -> bool,
    limits: Limits,
    found: Read,
    seen: HashSet<String>,
    /// Files that are not kept, by content id: a commit may contain one file in a million places.
    known: HashMap<ContentId, Searched>,
    warned: HashSet<Warning>,
    entries: usize,
    kept_bytes: usize,
    searched_bytes: usize,
    links: usize,
}

/// A folder that is still to be walked.
struct Pending<F> {
    folder: F,
    path: String,
    depth: usize,
    /// Index of the unrendered folder that contains it.
    within: Option<usize>,
}

impl<'w> FileCollector<'w> {
    pub(super) fn new(wanted: &'w dyn Fn(&[u8]) -> bool) -> Self {
        Self {
            wanted,
            limits: LIMITS,
            found: Read::default(),
            seen: HashSet::new(),
            known: HashMap::new(),
            warned: HashSet::new(),
            entries: 0,
            kept_bytes: 0,
            searched_bytes: 0,
            links: 0,
        }
    }

    /// Adds a file, unless it was added before.
    pub(super) fn file<T: Tree>(
        &mut self,
        tree: &T,
        file: &T::File,
        path: &str,
        reached: Reached,
    ) -> Result<(), Error> {
        if self.seen.insert(tree.identity(file, path)) {
            let searched = self.search(tree, file, path, reached)?;
            self.add(path, searched)?;
        }
        Ok(())
    }

    /// Adds content that was read elsewhere.
    pub(super) fn content(
        &mut self,
        path: &str,
        bytes: Vec<u8>,
        reached: Reached,
    ) -> Result<(), Error> {
        let searched = self.search_bytes(bytes, reached);
        self.add(path, searched)
    }

    fn add(&mut self, path: &str, searched: Searched) -> Result<(), Error> {
        let limit = self.limits.files;
        if self.files_seen() >= limit {
            return Err(Error::TooManyFiles { limit });
        }
        match searched {
            Searched::Wanted(bytes) => {
                self.count_bytes(bytes.len())?;
                if is_lfs_pointer(&bytes) {
                    self.warn(Warning::LfsPointer { path: path.to_owned() });
                }
                self.found.files.push(ManifestFile { path: path.into(), bytes });
            }
            Searched::Unwanted { is_lfs_pointer, named } => {
                if is_lfs_pointer {
                    self.warn(Warning::LfsPointer { path: path.to_owned() });
                }
                if let Some(bytes) = named {
                    self.count_bytes(bytes.len())?;
                    self.found.named.push(ManifestFile { path: path.into(), bytes });
                }
                self.found.unwanted += 1;
            }
            Searched::TooLarge => {
                return Err(Error::TooLarge { path: path.to_owned(), limit: FILE_LIMIT });
            }
        }
        Ok(())
    }

    /// Searches a file, once for equal content.
    fn search<T: Tree>(
        &mut self,
        tree: &T,
        file: &T::File,
        path: &str,
        reached: Reached,
    ) -> Result<Searched, Error> {
        let id = tree.content_id(file);
        if let Some(searched) = id.and_then(|id| self.known.get(&id)) {
            return Ok(searched.clone());
        }
        let searched = match tree.load(file, path) {
            Ok(bytes) => {
                self.searched_bytes += bytes.len();
                self.search_bytes(bytes, reached)
            }
            Err(Error::TooLarge { .. }) => Searched::TooLarge,
            Err(error) => return Err(error),
        };
        let limit = self.limits.searched_bytes;
        if self.searched_bytes > limit {
            return Err(Error::TooMuchToSearch { limit });
        }
        match (&searched, id) {
            // Kept files are counted each time.
            (Searched::Wanted(_), _) | (_, None) => {}
            (_, Some(id)) => drop(self.known.insert(id, searched.clone())),
        }
        Ok(searched)
    }

    fn search_bytes(&self, bytes: Vec<u8>, reached: Reached) -> Searched {
        if !(self.wanted)(&bytes) {
            let is_lfs_pointer = is_lfs_pointer(&bytes);
            // Of a pointer, the warning says enough.
            let is_named = reached == Reached::Named;
            let is_kept = is_named && !is_lfs_pointer && bytes.len() <= FILE_LIMIT;
            Searched::Unwanted { is_lfs_pointer, named: is_kept.then_some(bytes) }
        } else if bytes.len() > FILE_LIMIT {
            Searched::TooLarge
        } else {
            Searched::Wanted(bytes)
        }
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
            let limit = self.limits.depth;
            if next.depth > limit {
                return Err(Error::TooDeep { path: next.path, limit });
            }
            let mut entries = tree.list(&next.folder, &next.path)?;
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            self.count_entries(entries.len())?;
            if next.within.is_none() {
                next.within =
                    Renderer::of(&entries).map(|renderer| self.unrendered(renderer, &next.path));
            }
            let below = self.entries(tree, entries, &next)?;
            // Skipped files of an unrendered folder are counted with all sub-folders.
            if recursive || next.within.is_some() {
                pending.extend(below.into_iter().rev());
            } else {
                for it in below {
                    self.warn(Warning::SubFolder { path: it.path });
                }
            }
        }
        Ok(())
    }

    /// The collected files; an error if `place` contains no manifest file at all.
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

    /// Adds a folder's files; returns its sub-folders.
    fn entries<T: Tree>(
        &mut self,
        tree: &T,
        entries: Vec<Entry<T>>,
        above: &Pending<T::Folder>,
    ) -> Result<Vec<Pending<T::Folder>>, Error> {
        let mut below = Vec::new();
        for entry in entries {
            let is_manifest = is_manifest_name(&entry.name);
            let path = || join(&above.path, &entry.name);
            match (entry.item, above.within) {
                (Item::Folder(folder), within) => {
                    below.push(Pending { folder, path: path(), depth: above.depth + 1, within });
                }
                (Item::File(file), None) if is_manifest => {
                    self.file(tree, &file, &path(), Reached::Found)?;
                }
                (Item::File(file), Some(index)) if is_manifest => {
                    self.file_left_out(tree, &file, &path(), index)?;
                }
                (Item::Symlink(link), None) => {
                    if is_manifest || self.may_lead_to_folder(tree, &link, &path()) {
                        self.warn(Warning::Symlink { path: path() });
                    }
                }
                (Item::Special, None) if is_manifest => {
                    self.warn(Warning::Special { path: path() });
                }
                (Item::Submodule, None) => self.warn(Warning::Submodule { path: path() }),
                (Item::File(_) | Item::Symlink(_) | Item::Special | Item::Submodule, _) => {}
            }
        }
        Ok(below)
    }

    /// Whether what a link leads to may be a folder of manifests, which is not read.
    fn may_lead_to_folder<T: Tree>(&mut self, tree: &T, link: &T::File, path: &str) -> bool {
        self.links += 1;
        self.links > self.limits.links || tree.may_lead_to_folder(link, path)
    }

    /// Adds a wanted file to its unrendered folder. One that is too large is not an error: it would
    /// not have been read anyway.
    fn file_left_out<T: Tree>(
        &mut self,
        tree: &T,
        file: &T::File,
        path: &str,
        index: usize,
    ) -> Result<(), Error> {
        let Searched::Wanted(bytes) = self.search(tree, file, path, Reached::Found)? else {
            return Ok(());
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

    fn warn(&mut self, warning: Warning) {
        if self.warned.insert(warning.clone()) {
            self.found.warnings.push(warning);
        }
    }

    fn files_seen(&self) -> usize {
        self.found.files.len() + self.found.unwanted
    }

    fn count_entries(&mut self, more: usize) -> Result<(), Error> {
        self.entries += more;
        let limit = self.limits.entries;
        if self.entries > limit { Err(Error::TooManyEntries { limit }) } else { Ok(()) }
    }

    fn count_bytes(&mut self, more: usize) -> Result<(), Error> {
        self.kept_bytes += more;
        let limit = self.limits.bytes;
        if self.kept_bytes > limit { Err(Error::TooMuch { limit }) } else { Ok(()) }
    }
}

/// The path of an entry of a folder; the top has an empty path.
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
