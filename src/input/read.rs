//! Reads the files that the flags of the source name, now or at another commit.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::error::Error;
use crate::flags::SourceFlags;
use crate::shell::Shell;
use daemonset::model::ManifestFile;
use host::search_path;
use source::{
    Environment, FETCH_TIMEOUT, Git, GitRequest, Instead, KUSTOMIZE_TIMEOUT, Kustomize, Request,
};

/// Reads the source at another commit. Several paths are read one by one: a path that the pull
/// request adds is empty there, and must not hide the policies in the other paths.
pub(super) fn read_instead(
    flags: &SourceFlags,
    instead: impl Fn() -> Instead,
    every_file: bool,
    shell: &Shell,
) -> Result<source::Read, Error> {
    if flags.path.len() < 2 {
        let request = request(flags, Some(instead()));
        let read = read_source(&request, every_file, shell);
        return or_nothing(read, flags);
    }
    let mut whole = source::Read::default();
    for path in &flags.path {
        let only = SourceFlags { path: vec![path.clone()], ..flags.clone() };
        let request = request(&only, Some(instead()));
        let read = read_source(&request, every_file, shell);
        let read = or_nothing(read, flags)?;
        let is_new = |file: &ManifestFile| whole.files.iter().all(|it| it.path != file.path);
        let new: Vec<ManifestFile> = read.files.into_iter().filter(is_new).collect();
        whole.files.extend(new);
        whole.origin.commit = whole.origin.commit.or(read.origin.commit);
    }
    Ok(whole)
}

/// The files that were read at another commit; none if the pull request adds the folder, or its
/// first kustomization.
pub(super) fn or_nothing(
    read: Result<source::Read, Error>,
    flags: &SourceFlags,
) -> Result<source::Read, Error> {
    match read {
        Err(Error::Source(
            source::Error::PathNotInRevision { .. } | source::Error::NoManifests { .. },
        )) => Ok(source::Read::default()),
        Err(Error::Source(source::Error::Kustomize(
            source::KustomizeError::NotAKustomization { .. },
        ))) if flags.kustomize.is_some() => Ok(source::Read::default()),
        read => read,
    }
}

pub(super) fn read_source(
    request: &Request,
    every_file: bool,
    shell: &Shell,
) -> Result<source::Read, Error> {
    read_and_count(request, every_file, &mut BTreeMap::new(), shell)
}

/// As [`read_source`]; also adds the objects of the files that are not parsed to `kinds`.
pub(super) fn read_and_count(
    request: &Request,
    every_file: bool,
    kinds: &mut BTreeMap<String, usize>,
    shell: &Shell,
) -> Result<source::Read, Error> {
    let kinds = RefCell::new(kinds);
    let wanted = |bytes: &[u8]| {
        let wanted = every_file || manifest::is_read(bytes);
        if !wanted {
            manifest::count_kinds(bytes, &mut kinds.borrow_mut());
        }
        wanted || manifest::has_namespace(bytes)
    };
    let mut environment = Environment {
        current_dir: shell.current_dir.clone(),
        cache_dir: shell.cache_dir(),
        stdin: &mut std::io::stdin().lock(),
        streams: shell.streams.clone(),
        git: git(shell),
        kustomize: kustomize(shell),
    };
    Ok(source::read(request, &wanted, &mut environment)?)
}

pub(super) fn request(flags: &SourceFlags, instead: Option<Instead>) -> Request {
    let SourceFlags {
        repo,
        rev,
        path,
        kustomize,
        allow_kustomize: _, // checked by clap
        filename,
        recursive,
        policy: _,
        policy_from: _,
        validate: _,
        managed_by: _,
        require_ref,
    } = flags.clone();
    if filename.is_empty() {
        return Request::Git(GitRequest {
            repository: repo,
            revision: rev,
            instead,
            paths: path,
            kustomize,
            require_ref,
        });
    }
    Request::Files { names: filename.into_iter().map(Into::into).collect(), recursive }
}

fn git(shell: &Shell) -> Git {
    let mut environment = shell.environment.clone();
    // Programs that git starts are searched in the same folders.
    let search = shell.variable("PATH").map(search_path::absolute).unwrap_or_default();
    let program = search_path::find(&search, "git");
    environment.insert("PATH".into(), search);
    Git {
        // Starting git then fails with an error that names it.
        program: program.map_or_else(|| "/nowhere/git".into(), Into::into),
        environment: environment.into_iter().collect(),
        terminal: shell.terminal,
        timeout: FETCH_TIMEOUT,
    }
}

fn kustomize(shell: &Shell) -> Kustomize {
    Kustomize {
        search: shell.variable("PATH").map(Into::into),
        timeout: KUSTOMIZE_TIMEOUT,
        parse: |bytes| manifest::single_document(bytes).map_err(|error| error.to_string()),
    }
}
