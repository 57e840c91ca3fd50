//! A source with folders, which one walk reads (`file_collector`).

use super::Error;

/// Size limit of a file that is searched for wanted content; repositories contain large lock files
/// and API descriptions that are not manifests.
pub(super) const SEARCH_LIMIT: usize = 64 << 20;

/// A source with folders: a commit or a disk.
pub(super) trait Tree {
    /// Reference to a folder.
    type Folder;
    /// Reference to a file.
    type File;
    /// A folder's entries in any order. The path is for errors.
    fn list(&self, folder: &Self::Folder, path: &str) -> Result<Vec<Entry<Self>>, Error>;
    /// A file's bytes, or [`Error::TooLarge`] beyond [`SEARCH_LIMIT`].
    fn load(&self, file: &Self::File, path: &str) -> Result<Vec<u8>, Error>;
    /// Two paths to one file have the same identity.
    fn identity(&self, file: &Self::File, path: &str) -> String;
    /// An id shared by files of equal content, if it is known without reading them.
    fn content_id(&self, file: &Self::File) -> Option<ContentId>;
    /// Whether the symbolic link at this path leads to a folder, or may do so. Nothing behind it is
    /// read, and a commit does not contain what is outside of it.
    fn may_lead_to_folder(&self, link: &Self::File, path: &str) -> bool;
}

/// An object's id in git.
pub(super) type ContentId = [u8; 20];

/// An entry of a folder.
pub(super) struct Entry<T: Tree + ?Sized> {
    /// Name of the entry, as [`shown`](super::shown::name).
    pub(super) name: String,
    /// Type of the entry.
    pub(super) item: Item<T>,
}

/// Type of an entry.
pub(super) enum Item<T: Tree + ?Sized> {
    /// A folder.
    Folder(T::Folder),
    /// A regular file.
    File(T::File),
    /// A symbolic link.
    Symlink(T::File),
    /// A submodule.
    Submodule,
    /// A pipe, socket or device.
    Special,
}
