//! Errors of finding policies where the command line says that they are.

use std::path::PathBuf;

/// The reason why there is no policy where one was expected.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PolicyError {
    /// A file that `--policy` names has none.
    #[error("no RolloutPolicy in {file}{}", at(revision.as_deref()))]
    NoneIn {
        /// The file.
        file: String,
        /// The revision at which it was read, with `--policy-from`.
        revision: Option<String>,
    },
    /// A file that `--policy` names is not in the revision of `--policy-from`.
    #[error("{}, which --policy names, is not in revision `{revision}`", file.display())]
    NotIn {
        /// The file.
        file: PathBuf,
        /// The revision.
        revision: String,
    },
    /// `--policy-from` names a revision without policies.
    #[error("no RolloutPolicy in revision `{revision}`{}", below(paths))]
    NoneAt {
        /// The revision.
        revision: String,
        /// The paths of `--path`; none for the whole repository.
        paths: Vec<PathBuf>,
    },
    /// The policies at another revision are invalid.
    #[error("the policies at revision `{revision}` are invalid\n{errors}")]
    InvalidAt {
        /// The revision that `--base` or `--policy-from` names.
        revision: String,
        /// Their errors.
        errors: manifest::Errors,
    },
}

fn at(revision: Option<&str>) -> String {
    revision.map(|revision| format!(" at revision `{revision}`")).unwrap_or_default()
}

/// ` below deploy, charts`, or an empty string for the whole repository.
fn below(paths: &[PathBuf]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    format!(" below {}", paths.join(", "))
}
