//! Manifests of one commit, read from git's objects: no checkout, hooks, filters or attributes.
//!
//! A path is looked up name by name in the commit's trees, so it cannot leave them, and a symbolic
//! link or a submodule on the way is an error. Not here: the choice of a folder's
//! files (`file_collector`), resolving revision expressions (`revision`), fetching a URL (`fetch`).
//!
//! `git2` reads the objects, built without its network features, so that it needs only a C
//! compiler. URLs are fetched by the user's own `git`, with the user's credentials and proxies,
//! into a cache folder.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use git2::Repository;

use super::fetch::{self, Fetched};
use super::file_collector::{FileCollector, Reached};
use super::kustomize::{self, Rendered};
use super::location::{self, Location};
use super::objects::Objects;
use super::reference;
use super::repository::{self, Found, Worktree};
use super::revision;
use super::shown;
use super::worktree;
use super::{Commit, Environment, Error, GitRequest, Instead, Kustomize, Origin, Read};
use crate::error::RevisionError;

#[cfg(test)]
mod tests;

/// Reads one commit.
pub(super) fn read(
    request: &GitRequest,
    wanted: &dyn Fn(&[u8]) -> bool,
    environment: &Environment<'_>,
) -> Result<Read, Error> {
    let given = request.repository.as_deref().unwrap_or(OsStr::new("."));
    match Location::parse(given, &environment.current_dir)? {
        Location::Folder(folder) => {
            let opened = Opened::open(&folder)?;
            let commit = match &request.instead {
                None => opened.resolve(request.revision())?,
                Some(Instead::Tip(name)) => {
                    revision::resolve_branch(&opened.repository, name, &opened.name)?
                }
                Some(Instead::MergeBase(other)) => {
                    let commit = opened.resolve(request.revision())?;
                    let names = (request.revision(), opened.name.as_str());
                    revision::merge_base(&opened.repository, &commit, other, names)?
                }
            };
            if let Some(reference) = &request.require_ref {
                reference::require(&opened.repository, &commit, reference, &opened.name)?;
            }
            opened.read(&commit, request, wanted, &environment.kustomize)
        }
        Location::Remote(remote) => {
            let revision = match &request.instead {
                None => request.revision(),
                Some(Instead::Tip(name)) => name,
                Some(Instead::MergeBase(_)) => {
                    return Err(Error::from(RevisionError::MergeBaseOfUrl { url: remote.shown }));
                }
            };
            let Fetched { repository, commit, lock } =
                fetch::fetch(&remote, (revision, request.require_ref.as_ref()), environment)?;
            let (name, origin) = (remote.shown.clone(), Some(remote.shown));
            let (worktree, prefix) = (Worktree::None, PathBuf::new());
            let opened = Opened { repository, worktree, name, origin, prefix };
            let commit = opened.resolve(&commit.to_string())?;
            let found = opened.read(&commit, request, wanted, &environment.kustomize);
            // From here on, another run may change the cached copy.
            drop(lock);
            found
        }
    }
}

impl GitRequest {
    fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("HEAD")
    }
}

/// A local repository, and the folder to which paths are relative.
struct Opened {
    repository: Repository,
    worktree: Worktree,
    /// Name for messages.
    name: String,
    /// Origin for provenance.
    origin: Option<String>,
    /// The folder to which paths are relative, from the top.
    prefix: PathBuf,
}

impl Opened {
    fn open(folder: &Path) -> Result<Self, Error> {
        let name = shown::path(folder);
        if !folder.exists() {
            return Err(Error::NotFound { path: name });
        }
        if folder.is_file() && !folder.ends_with(".git") {
            return Err(Error::RepositoryIsFile { path: name });
        }
        let Found { repository, worktree } = repository::open(folder)?;
        let prefix = prefix(&repository, &worktree, folder);
        let top = || shown::path(&top(&repository, &worktree));
        let origin = origin_url(&repository).unwrap_or_else(top);
        Ok(Self { repository, worktree, name, origin: Some(origin), prefix })
    }

    fn resolve(&self, revision: &str) -> Result<git2::Commit<'_>, Error> {
        revision::resolve(&self.repository, revision, &self.name)
    }

    fn read(
        &self,
        commit: &git2::Commit<'_>,
        request: &GitRequest,
        wanted: &dyn Fn(&[u8]) -> bool,
        settings: &Kustomize,
    ) -> Result<Read, Error> {
        let objects = Objects::new(&self.repository, commit, request.revision())?;
        if let Some(folder) = &request.kustomize {
            return self.rendered(&objects, commit, folder, wanted, settings);
        }
        let mut collector = FileCollector::new(wanted);
        let mut paths = Vec::new();
        for given in &request.paths {
            let path = self.path_from_top(given)?;
            let item = objects.find(&path)?.ok_or_else(|| objects.no_such_path(&path, given))?;
            objects.collect(&item, &path, &mut collector)?;
            paths.push(path);
        }
        if paths.is_empty() {
            collector.folder(&objects, commit.tree_id(), "", true)?;
        }
        let place = || format!("revision `{}`", revision::printable(request.revision()));
        let mut found = collector.finish(place)?;
        found.files.sort_by(|one, other| one.path.cmp(&other.path));
        found.warnings.extend(worktree::difference(
            &self.repository,
            &self.worktree,
            objects.top,
            &paths,
        ));
        found.origin = self.origin(commit, &paths);
        Ok(found)
    }

    /// Renders a folder of the commit with kustomize.
    fn rendered(
        &self,
        objects: &Objects<'_>,
        commit: &git2::Commit<'_>,
        given: &Path,
        wanted: &dyn Fn(&[u8]) -> bool,
        settings: &Kustomize,
    ) -> Result<Read, Error> {
        let folder = self.path_from_top(given)?;
        if objects.find(&folder)?.is_none() {
            return Err(objects.no_such_path(&folder, given));
        }
        let Rendered { bytes, files } = kustomize::render(objects, &folder, settings)?;
        let mut collector = FileCollector::new(wanted);
        let name = format!("{} (rendered)", from_top(&folder));
        collector.content(&name, kustomize::only(&bytes, wanted), Reached::Found)?;
        let mut found = collector.finish(|| format!("`{name}`"))?;
        found.warnings.extend(worktree::difference(
            &self.repository,
            &self.worktree,
            objects.top,
            &files,
        ));
        found.origin = self.origin(commit, &[folder]);
        Ok(found)
    }

    /// Converts a path as given to one from the top of the repository. Names are taken literally:
    /// `a/..` is the parent of `a` even where `a` is a link.
    fn path_from_top(&self, given: &Path) -> Result<PathBuf, Error> {
        let outside = || Error::PathOutside { path: shown::path(given) };
        if given.as_os_str().is_empty() {
            return Err(Error::EmptyPath);
        }
        let (mut top, rest) = if given.is_absolute() {
            let rest = self.worktree.folder().and_then(|folder| inside(folder, given));
            (PathBuf::new(), rest.ok_or_else(outside)?)
        } else {
            (self.prefix.clone(), given)
        };
        for component in rest.components() {
            match component {
                Component::Normal(name) => top.push(name),
                Component::CurDir => {}
                Component::ParentDir => top.pop().then_some(()).ok_or_else(outside)?,
                Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(top)
    }

    fn origin(&self, commit: &git2::Commit<'_>, paths: &[PathBuf]) -> Origin {
        Origin {
            repository: self.origin.clone(),
            commit: Some(Commit {
                id: commit.id().to_string(),
                subject: shown::line(commit.summary_bytes().unwrap_or_default()),
            }),
            paths: paths.iter().map(|path| from_top(path)).collect(),
        }
    }
}

/// A path from the top for messages; the top itself is `.`.
fn from_top(path: &Path) -> String {
    if path.as_os_str().is_empty() { ".".to_owned() } else { shown::path(path) }
}

/// The rest of an absolute path below the working tree's folder. The path to that folder may
/// contain links (`/tmp` often is one); links inside of it are not followed.
fn inside<'p>(workdir: &Path, path: &'p Path) -> Option<&'p Path> {
    let workdir = workdir.canonicalize().ok()?;
    let same = |folder: &&Path| folder.canonicalize().is_ok_and(|folder| folder == workdir);
    path.strip_prefix(path.ancestors().find(same)?).ok()
}

/// The folder of the working tree, or of the repository when it has none.
fn top(repository: &Repository, worktree: &Worktree) -> PathBuf {
    // Rebuilt from its components to drop a trailing slash.
    worktree.folder().unwrap_or_else(|| repository.path()).components().collect()
}

/// The URL of the remote `origin`.
fn origin_url(repository: &Repository) -> Option<String> {
    let remote = repository.find_remote("origin").ok()?;
    remote.url().ok().map(location::printable)
}

/// The folder `start` relative to the top of the working tree; empty for the top, for a bare
/// repository and inside the `.git` folder.
fn prefix(repository: &Repository, worktree: &Worktree, start: &Path) -> PathBuf {
    let top = worktree.folder().and_then(|folder| folder.canonicalize().ok());
    let inside = repository.path().canonicalize().ok();
    let (Some(top), Some(inside), Ok(start)) = (top, inside, start.canonicalize()) else {
        return PathBuf::new();
    };
    if start.starts_with(inside) {
        return PathBuf::new();
    }
    start.strip_prefix(top).map(Path::to_path_buf).unwrap_or_default()
}
