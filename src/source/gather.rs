//! Which files of a folder are manifests, by kubectl's rules for `-f` and `-R`
//! (upstream: `ExpandPathsToFileVisitors`).
//!
//! One walk for commits and disks; [`Tree`] says how each lists and loads. It stops at the bounds
//! below, whatever a repository holds. Not here: how a path finds its folder
//! (`git`, `disk`), and which folders must be rendered first (`unrendered`).

use std::collections::HashSet;

use super::unrendered::{Renderer, Unrendered};
use super::{Error, FILE_LIMIT, Read, Warning};
use crate::model::ManifestFile;

/// A file up to this size is searched for whether it is wanted; repositories hold large lock files
/// and API descriptions that nobody asked about.
pub(super) const SEARCH_LIMIT: usize = 64 << 20;

/// How much a walk takes in before it refuses to go on.
#[derive(Clone, Copy)]
struct Limits {
    /// Manifest files looked at.
    files: usize,
    /// Files and folders of any kind listed. A commit of a few hundred bytes can stand for billions.
    entries: usize,
    /// Bytes kept altogether.
    bytes: usize,
    /// Folders within folders.
    depth: usize,
}

const LIMITS: Limits = Limits { files: 100_000, entries: 5_000_000, bytes: 256 << 20, depth: 256 };

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
    limits: Limits,
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
        Self {
            wanted,
            limits: LIMITS,
            found: Read::default(),
            seen: HashSet::new(),
            entries: 0,
            kept_bytes: 0,
        }
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
        let limit = self.limits.files;
        if self.files_seen() >= limit {
            return Err(Error::TooManyFiles { limit });
        }
        if is_lfs_pointer(&bytes) {
            self.warn(Warning::LfsPointer { path: path.to_owned() });
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
                (Item::File(file), None) if is_manifest => self.file(tree, &file, &path())?,
                (Item::File(file), Some(index)) if is_manifest => {
                    self.file_left_out(tree, &file, &path(), index)?;
                }
                (Item::Symlink, None) if is_manifest => {
                    self.warn(Warning::Symlink { path: path() });
                }
                (Item::Special, None) if is_manifest => {
                    self.warn(Warning::Special { path: path() });
                }
                (Item::Submodule, None) => self.warn(Warning::Submodule { path: path() }),
                (Item::File(_) | Item::Symlink | Item::Special | Item::Submodule, _) => {}
            }
        }
        Ok(below)
    }

    /// Adds a file of an unrendered folder to it, if it is wanted. One that is too large is not a
    /// reason to stop: it would not have been read anyway.
    fn file_left_out<T: Tree>(
        &mut self,
        tree: &T,
        file: &T::File,
        path: &str,
        index: usize,
    ) -> Result<(), Error> {
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

    fn warn(&mut self, warning: Warning) {
        if !self.found.warnings.contains(&warning) {
            self.found.warnings.push(warning);
        }
    }

    fn files_seen(&self) -> usize {
        self.found.files.len() + self.found.passed_over
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders whose contents are written `a.yaml sub/ b.yml@link`, by the folder's path.
    struct Sketch(Vec<(&'static str, &'static str)>);

    impl Tree for Sketch {
        type Folder = String;
        type File = String;

        fn list(&self, folder: &String, _path: &str) -> Result<Vec<Entry<Self>>, Error> {
            let listed = self.0.iter().find(|(path, _)| path == folder);
            let names = listed.map_or("", |(_, names)| names).split_whitespace();
            Ok(names.map(|name| Self::entry(folder, name)).collect())
        }

        fn load(&self, file: &String, path: &str) -> Result<Vec<u8>, Error> {
            match file.as_str() {
                "huge.yaml" => Err(Error::TooLarge { path: path.to_owned(), limit: FILE_LIMIT }),
                "large.yaml" => Ok(vec![b'x'; FILE_LIMIT + 1]),
                "large-wanted.yaml" => Ok(b"wanted".repeat(FILE_LIMIT / 6 + 1)),
                "other.yaml" => Ok(b"something else".to_vec()),
                "lfs.yaml" => {
                    Ok(b"version https://git-lfs.github.com/spec/v1\noid wanted".to_vec())
                }
                _ => Ok(b"wanted".to_vec()),
            }
        }

        fn identity(&self, _file: &String, path: &str) -> String {
            path.to_owned()
        }
    }

    impl Sketch {
        fn entry(folder: &str, name: &str) -> Entry<Self> {
            let (name, kind) = name.split_once('@').unwrap_or((name, "file"));
            let (name, item) = match (name.strip_suffix('/'), kind) {
                (Some(name), _) => (name, Item::Folder(join(folder, name))),
                (None, "link") => (name, Item::Symlink),
                (None, "module") => (name, Item::Submodule),
                (None, "pipe") => (name, Item::Special),
                (None, _) => (name, Item::File(name.to_owned())),
            };
            Entry { name: name.to_owned(), item }
        }
    }

    fn wanted(bytes: &[u8]) -> bool {
        bytes.windows(6).any(|six| six == b"wanted")
    }

    fn walk(tree: Vec<(&'static str, &'static str)>, limits: Limits) -> Result<Read, Error> {
        let mut gather = Gather { limits, ..Gather::new(&wanted) };
        gather.folder(&Sketch(tree), String::new(), "", true)?;
        gather.finish(|| "the sketch".to_owned())
    }

    fn paths(files: &[ManifestFile]) -> Vec<&str> {
        files.iter().map(|file| file.path.as_ref()).collect()
    }

    #[test]
    fn only_manifest_names_are_read_in_order() {
        let tree = vec![
            ("", "b.yaml sub/ a.yml c.json README.md x.YAML y.yaml.bak .yaml"),
            ("sub", "d.yaml deeper/"),
            ("sub/deeper", "e.json"),
        ];
        let read = walk(tree, LIMITS).unwrap();
        let expected = [".yaml", "a.yml", "b.yaml", "c.json", "sub/d.yaml", "sub/deeper/e.json"];
        assert_eq!(paths(&read.files), expected);
    }

    #[test]
    fn without_recursion_only_the_folder_itself() {
        let tree = Sketch(vec![("", "a.yaml sub/"), ("sub", "b.yaml")]);
        let mut gather = Gather::new(&wanted);
        gather.folder(&tree, String::new(), "", false).unwrap();
        let read = gather.finish(String::new).unwrap();
        assert_eq!(paths(&read.files), ["a.yaml"]);
    }

    #[test]
    fn folders_that_need_rendering_are_left_out_whole() {
        for (marker, renderer) in [
            ("Chart.yaml", Renderer::Helm),
            ("kustomization.yaml", Renderer::Kustomize),
            ("kustomization.yml", Renderer::Kustomize),
            ("Kustomization", Renderer::Kustomize),
            ("Chart.yaml@link", Renderer::Helm),
        ] {
            let inside: &'static str =
                Box::leak(format!("{marker} a.yaml huge.yaml large.yaml l.yaml@link sub/").into());
            let tree = vec![
                ("", "app/ z.yaml"),
                ("app", inside),
                // A kustomization inside does not count twice.
                ("app/sub", "b.yaml other.yaml kustomization.yaml"),
            ];
            let read = walk(tree, LIMITS).unwrap();
            assert_eq!(paths(&read.files), ["z.yaml"], "{marker}");
            let [folder] = read.unrendered.as_slice() else { panic!("{marker}: one folder") };
            assert_eq!((folder.renderer, folder.path.as_ref()), (renderer, "app"), "{marker}");
            let left_out = paths(&folder.files);
            assert!(left_out.contains(&"app/a.yaml"), "{marker}: {left_out:?}");
            assert!(left_out.contains(&"app/sub/b.yaml"), "{marker}: {left_out:?}");
            assert!(!left_out.contains(&"app/sub/other.yaml"), "{marker}: {left_out:?}");
            assert_eq!(read.warnings, [], "{marker}");
        }
    }

    #[test]
    fn a_folder_named_twice_is_left_out_once() {
        let tree = Sketch(vec![("", "Chart.yaml a.yaml")]);
        let mut gather = Gather::new(&wanted);
        gather.folder(&tree, String::new(), "", true).unwrap();
        gather.folder(&tree, String::new(), "", true).unwrap();
        let read = gather.finish(String::new).unwrap();
        assert_eq!(read.unrendered.len(), 1);
        assert_eq!(read.unrendered[0].path.as_ref(), ".");
    }

    #[test]
    fn what_is_not_followed_is_warned_about() {
        let tree =
            vec![("", "a.yaml l.yaml@link folder@link vendor@module p.yaml@pipe socket@pipe")];
        let read = walk(tree, LIMITS).unwrap();
        let expected = [
            Warning::Symlink { path: "l.yaml".into() },
            Warning::Special { path: "p.yaml".into() },
            Warning::Submodule { path: "vendor".into() },
        ];
        assert_eq!(read.warnings, expected);
        let texts: Vec<_> = read.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "`l.yaml` is a symbolic link and was not read",
                "`p.yaml` is not a regular file and was not read",
                "`vendor` is a submodule and was not read",
            ]
        );
    }

    #[test]
    fn a_file_that_was_seen_is_not_read_again() {
        let tree = Sketch(vec![("", "a.yaml b.yaml")]);
        let mut gather = Gather::new(&wanted);
        gather.file(&tree, &"a.yaml".to_owned(), "a.yaml").unwrap();
        gather.folder(&tree, String::new(), "", true).unwrap();
        let read = gather.finish(String::new).unwrap();
        assert_eq!(paths(&read.files), ["a.yaml", "b.yaml"]);
    }

    #[test]
    fn unwanted_files_are_counted_however_large() {
        let read = walk(vec![("", "other.yaml large.yaml")], LIMITS).unwrap();
        assert_eq!((read.passed_over, read.files.len()), (2, 0));
    }

    #[test]
    fn a_pointer_is_not_its_content() {
        let read = walk(vec![("", "lfs.yaml")], LIMITS).unwrap();
        assert_eq!(read.warnings, [Warning::LfsPointer { path: "lfs.yaml".into() }]);
    }

    #[test]
    fn bounds_end_the_walk() {
        for (case, tree, limits, expected) in [
            (
                "a wanted file",
                vec![("", "large-wanted.yaml")],
                LIMITS,
                "`large-wanted.yaml` is larger than 3 MiB",
            ),
            (
                "a file too large to search",
                vec![("", "huge.yaml")],
                LIMITS,
                "`huge.yaml` is larger than 3 MiB",
            ),
            (
                "files, wanted or not",
                vec![("", "a.yaml b.yaml other.yaml")],
                Limits { files: 2, ..LIMITS },
                "more than 2 manifest files",
            ),
            (
                "entries of any kind",
                vec![("", "a.yaml b/"), ("b", "c d")],
                Limits { entries: 3, ..LIMITS },
                "more than 3 files and folders",
            ),
            (
                "bytes, those left out included",
                vec![("", "a.yaml b/"), ("b", "Chart.yaml")],
                Limits { bytes: 11, ..LIMITS },
                "manifests of more than 0 MiB altogether",
            ),
            (
                "depth",
                vec![("", "a/"), ("a", "b/"), ("a/b", "c/")],
                Limits { depth: 2, ..LIMITS },
                "`a/b/c` is nested more than 2 folders deep",
            ),
            (
                "nothing",
                vec![("", "README.md l.yaml@link")],
                LIMITS,
                "no .yaml, .yml or .json file in the sketch; symbolic links were not followed",
            ),
        ] {
            assert_eq!(walk(tree, limits).unwrap_err().to_string(), expected, "{case}");
        }
    }
}
