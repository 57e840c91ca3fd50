//! Plain files, folders and standard input, with the rules of kubectl's `-f` and `-R`.
//!
//! A name given by the user may be a symbolic link and have any extension, as with kubectl. The
//! content of a folder is treated more strictly than by kubectl: links in it are not followed, so
//! reading cannot leave the folder. Nothing is opened that could block, except standard input and
//! pipes of the shell (`-f <(helm template …)`), which are open already.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::file_collector::{FileCollector, Reached};
use super::tree::{ContentId, Entry, Item, SEARCH_LIMIT, Tree};
use super::{Environment, Error, FILE_LIMIT, FileName, Origin, Read, STANDARD_INPUT};
use super::{location, shown};

#[cfg(test)]
mod tests;

/// Standard input as a path; `-` is the same.
const STDIN: &str = "/dev/stdin";

/// Reads the named files and folders, in that order.
pub(super) fn read(
    names: &[FileName],
    recursive: bool,
    wanted: &dyn Fn(&[u8]) -> bool,
    environment: &mut Environment<'_>,
) -> Result<Read, Error> {
    if names.iter().filter(|name| **name == FileName::StandardInput).count() > 1 {
        return Err(Error::StandardInputTwice);
    }
    let mut collector = FileCollector::new(wanted);
    for name in names {
        match name {
            FileName::StandardInput => {
                let Environment { stdin, streams, .. } = &mut *environment;
                let bytes = streams
                    .content(Path::new(STDIN), || read_bounded(&mut **stdin, STANDARD_INPUT))?;
                collector.content(STANDARD_INPUT, bytes, Reached::Named)?;
            }
            FileName::Path(path) => {
                named(path, recursive, &mut collector, environment)?;
            }
        }
    }
    let paths: Vec<_> = names.iter().map(printable).collect();
    let mut found = collector.finish(|| format!("`{}`", paths.join("`, `")))?;
    found.origin = Origin { paths, ..Origin::default() };
    Ok(found)
}

fn printable(name: &FileName) -> String {
    match name {
        FileName::StandardInput => "-".to_owned(),
        FileName::Path(path) => shown::path(path),
    }
}

fn named(
    given: &Path,
    recursive: bool,
    collector: &mut FileCollector<'_>,
    environment: &Environment<'_>,
) -> Result<(), Error> {
    if given.as_os_str().is_empty() {
        return Err(Error::EmptyPath);
    }
    let path = shown::path(given);
    let full = environment.current_dir.join(given);
    let kind = fs::metadata(&full).map_err(|source| not_found(given, source))?;
    if kind.is_dir() {
        let folder = full.canonicalize().map_err(|source| not_read(&path, source))?;
        collector.folder(&Disk, folder, folder_name(&path), recursive)
    } else if kind.is_file() {
        let file = full.canonicalize().map_err(|source| not_read(&path, source))?;
        collector.file(&Disk, &file, &path, Reached::Named)
    } else if is_open_already(given) {
        let bytes = environment.streams.content(given, || {
            let stream = fs::File::open(&full).map_err(|source| not_read(&path, source))?;
            read_bounded(stream, &path)
        })?;
        collector.content(&path, bytes, Reached::Named)
    } else {
        Err(Error::Special { path })
    }
}

/// The prefix of the paths of a folder's files: `dir/` contains `dir/a.yaml`, and `.` contains
/// `a.yaml`.
fn folder_name(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => "/",
        "." => "",
        name => name,
    }
}

/// `true` if the path is a descriptor of this process, so that opening it cannot block.
fn is_open_already(path: &Path) -> bool {
    path == Path::new(STDIN) || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd")
}

fn not_found(given: &Path, source: io::Error) -> Error {
    let path = shown::path(given);
    let url = given.to_str().filter(|text| text.contains("://"));
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => match url {
            Some(url) => Error::UrlAsFile { url: location::printable(url) },
            None => Error::NotFound { path },
        },
        _ => Error::Unreadable { path, source },
    }
}

fn not_read(path: &str, source: io::Error) -> Error {
    Error::Unreadable { path: path.to_owned(), source }
}

fn read_bounded(stream: impl io::Read, path: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(SEARCH_LIMIT).unwrap_or(u64::MAX);
    stream.take(limit + 1).read_to_end(&mut bytes).map_err(|source| not_read(path, source))?;
    if bytes.len() > SEARCH_LIMIT {
        return Err(Error::TooLarge { path: path.to_owned(), limit: FILE_LIMIT });
    }
    Ok(bytes)
}

/// The disk, below folders whose paths are free of links.
struct Disk;

impl Tree for Disk {
    type Folder = PathBuf;
    type File = PathBuf;

    fn list(&self, folder: &PathBuf, path: &str) -> Result<Vec<Entry<Self>>, Error> {
        let not_read = |source| not_read(if path.is_empty() { "." } else { path }, source);
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder).map_err(not_read)? {
            let entry = entry.map_err(not_read)?;
            let kind = entry.file_type().map_err(not_read)?;
            let item = if kind.is_symlink() {
                Item::Symlink(entry.path())
            } else if kind.is_dir() {
                Item::Folder(entry.path())
            } else if kind.is_file() {
                Item::File(entry.path())
            } else {
                Item::Special
            };
            let name = shown::name(entry.file_name().as_encoded_bytes());
            entries.push(Entry { name, item });
        }
        Ok(entries)
    }

    fn load(&self, file: &PathBuf, path: &str) -> Result<Vec<u8>, Error> {
        let stream = fs::File::open(file).map_err(|source| not_read(path, source))?;
        read_bounded(stream, path)
    }

    fn identity(&self, file: &PathBuf, _path: &str) -> String {
        shown::path(file)
    }

    fn content_id(&self, _file: &PathBuf) -> Option<ContentId> {
        None
    }

    fn may_lead_to_folder(&self, link: &PathBuf, _path: &str) -> bool {
        match fs::metadata(link) {
            Ok(target) => target.is_dir(),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}
