//! The objects of one commit, as a tree of folders and files.

use std::path::{Component, Path, PathBuf};

use git2::{ErrorCode, ObjectType, Odb, Oid, Repository, TreeEntry};

use super::file_collector::{FileCollector, Reached, join};
use super::tree::{ContentId, Entry, Item, SEARCH_LIMIT, Tree};
use super::{Error, FILE_LIMIT, revision, shown};

/// Maximum number of links that follow each other (Linux: `MAXSYMLINKS`).
const MOST_HOPS: u32 = 40;

/// The objects of one commit.
pub(super) struct Objects<'r> {
    repository: &'r Repository,
    odb: Odb<'r>,
    /// The commit's top folder.
    pub(super) top: Oid,
    /// Name for messages.
    revision: String,
}

impl<'r> Objects<'r> {
    pub(super) fn new(
        repository: &'r Repository,
        commit: &git2::Commit<'_>,
        revision: &str,
    ) -> Result<Self, Error> {
        let odb = repository.odb().map_err(|source| Error::ObjectCorrupt {
            path: String::new(),
            source: source.into(),
        })?;
        let revision = revision::printable(revision);
        Ok(Self { repository, odb, top: commit.tree_id(), revision })
    }

    /// The item at a path from the top; `None` if there is none.
    pub(super) fn find(&self, path: &Path) -> Result<Option<Item<Self>>, Error> {
        let mut item = Item::Folder(self.top);
        let mut walked = String::new();
        for name in path {
            let name = name.as_encoded_bytes();
            if name.contains(&0) {
                return Ok(None); // git2 panics on it
            }
            match item {
                Item::Folder(id) => {
                    let tree = self.tree(id, &walked)?;
                    let Some(entry) = tree.get_name_bytes(name) else { return Ok(None) };
                    walked = join(&walked, &shown::name(name));
                    item = item_of(&entry, &walked)?;
                }
                Item::File(_) | Item::Special => return Ok(None),
                Item::Symlink(_) => return Err(Error::PathIsSymlink { path: walked }),
                Item::Submodule => return Err(Error::PathIsSubmodule { path: walked }),
            }
        }
        Ok(Some(item))
    }

    pub(super) fn no_such_path(&self, path: &Path, given: &Path) -> Error {
        let from_top =
            given.is_relative() && given != path && matches!(self.find(given), Ok(Some(_)));
        Error::PathNotInRevision {
            path: shown::path(path),
            revision: self.revision.clone(),
            from_top: from_top.then(|| shown::path(given)),
        }
    }

    pub(super) fn collect(
        &self,
        item: &Item<Self>,
        path: &Path,
        collector: &mut FileCollector,
    ) -> Result<(), Error> {
        let path = shown::path(path);
        match item {
            Item::Folder(id) => collector.folder(self, *id, &path, true),
            Item::File(id) => collector.file(self, id, &path, Reached::Found),
            Item::Symlink(_) => Err(Error::PathIsSymlink { path }),
            Item::Submodule => Err(Error::PathIsSubmodule { path }),
            Item::Special => Err(Error::Special { path }),
        }
    }

    /// Whether a link leads to a folder or submodule of the commit. One that leads out of the commit does
    /// not.
    fn leads_to_folder(&self, link: Oid, path: &Path, hops: u32) -> bool {
        let Some(hops) = hops.checked_sub(1) else { return false };
        let Ok(object) = self.odb.read(link) else { return true };
        let Some(target) = target_of(object.data(), path) else { return false };
        match self.find(&target) {
            // An error: it is behind another link, or cannot be read.
            Ok(Some(Item::Folder(_) | Item::Submodule)) | Err(_) => true,
            Ok(Some(Item::Symlink(next))) => self.leads_to_folder(next, &target, hops),
            Ok(Some(Item::File(_) | Item::Special) | None) => false,
        }
    }

    fn tree(&self, id: Oid, path: &str) -> Result<git2::Tree<'r>, Error> {
        self.repository.find_tree(id).map_err(|source| self.not_read(path, source))
    }

    fn not_read(&self, path: &str, source: git2::Error) -> Error {
        let path = path.to_owned();
        match source.code() {
            ErrorCode::NotFound => {
                Error::ObjectMissing { path, partial: is_partial(self.repository) }
            }
            _ => Error::ObjectCorrupt { path, source: source.into() },
        }
    }
}

impl Tree for Objects<'_> {
    type Folder = Oid;
    type File = Oid;

    fn list(&self, folder: &Oid, path: &str) -> Result<Vec<Entry<Self>>, Error> {
        let tree = self.tree(*folder, path)?;
        let entries = tree.iter().map(|entry| {
            let name = shown::name(entry.name_bytes());
            let path = join(path, &name);
            if is_forbidden(entry.name_bytes()) {
                return Err(Error::ForbiddenEntry { path });
            }
            Ok(Entry { item: item_of(&entry, &path)?, name })
        });
        entries.collect()
    }

    fn load(&self, file: &Oid, path: &str) -> Result<Vec<u8>, Error> {
        let not_read = |source| self.not_read(path, source);
        let (size, _) = self.odb.read_header(*file).map_err(not_read)?;
        if size > SEARCH_LIMIT {
            return Err(Error::TooLarge { path: path.to_owned(), limit: FILE_LIMIT });
        }
        let object = self.odb.read(*file).map_err(not_read)?;
        match object.kind() {
            ObjectType::Blob => Ok(object.data().to_vec()),
            ObjectType::Any | ObjectType::Commit | ObjectType::Tree | ObjectType::Tag => {
                Err(not_read(git2::Error::from_str("the object is not a file")))
            }
        }
    }

    fn identity(&self, _file: &Oid, path: &str) -> String {
        path.to_owned()
    }

    fn content_id(&self, file: &Oid) -> Option<ContentId> {
        file.as_bytes().try_into().ok()
    }

    fn may_lead_to_folder(&self, link: &Oid, path: &str) -> bool {
        // An escaped name is not the one that git knows.
        path.contains('\\') || self.leads_to_folder(*link, Path::new(path), MOST_HOPS)
    }
}

fn item_of<'r>(entry: &TreeEntry<'_>, path: &str) -> Result<Item<Objects<'r>>, Error> {
    const SYMLINK: i32 = 0o120_000;
    const KIND: i32 = 0o170_000;
    match entry.kind() {
        Some(ObjectType::Tree) => Ok(Item::Folder(entry.id())),
        Some(ObjectType::Commit) => Ok(Item::Submodule),
        Some(ObjectType::Blob) if entry.filemode_raw() & KIND == SYMLINK => {
            Ok(Item::Symlink(entry.id()))
        }
        Some(ObjectType::Blob) => Ok(Item::File(entry.id())),
        Some(ObjectType::Tag | ObjectType::Any) | None => {
            Err(Error::ForbiddenEntry { path: path.to_owned() })
        }
    }
}

/// The path from the top to which the content of a link leads; `None` if it leads out of the commit.
fn target_of(content: &[u8], link: &Path) -> Option<PathBuf> {
    let content = std::str::from_utf8(content).ok()?;
    let mut target = link.parent()?.to_owned();
    for component in Path::new(content).components() {
        match component {
            Component::Normal(name) => target.push(name),
            Component::CurDir => {}
            Component::ParentDir => target.pop().then_some(())?,
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(target)
}

/// Names that git refuses to check out (upstream: `verify_path`). Reading their objects is
/// harmless, but a commit that contains one was made to deceive.
fn is_forbidden(name: &[u8]) -> bool {
    matches!(name, b"" | b"." | b"..") || name.eq_ignore_ascii_case(b".git") || name.contains(&b'/')
}

/// `true` for a partial clone (`--filter`), which left objects on the server.
fn is_partial(repository: &Repository) -> bool {
    let Ok(config) = repository.config() else { return false };
    let Ok(mut entries) = config.entries(Some(r"^remote\..*\.promisor$")) else { return false };
    entries.next().is_some()
}
