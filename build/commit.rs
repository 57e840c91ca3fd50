//! The commit that a program is built from.

use std::path::Path;
use std::process::Command;

/// Number of characters of a commit id that the version shows.
const SHOWN: usize = 12;

/// The commit that `cargo package` recorded in `.cargo_vcs_info.json`.
pub(crate) fn of_package(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    short(rest.split('"').nth(1)?)
}

/// The commit that is checked out, if `folder` is the root of a git repository. A source archive
/// inside of another repository is not.
pub(crate) fn of_repository(folder: &Path) -> Option<String> {
    let root = git(folder, &["rev-parse", "--show-toplevel"])?;
    let is_root = Path::new(&root).canonicalize().ok()? == folder.canonicalize().ok()?;
    short(&git(folder, &["rev-parse", "HEAD"]).filter(|_| is_root)?)
}

/// The file that changes with each commit and checkout.
pub(crate) fn log_of_head(folder: &Path) -> Option<String> {
    git(folder, &["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"])
}

/// The start of a commit id; `None` if it is none.
pub(crate) fn short(id: &str) -> Option<String> {
    let is_id = id.len() >= SHOWN && id.chars().all(|c| c.is_ascii_hexdigit());
    is_id.then(|| id[..SHOWN].to_owned())
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned())
}
