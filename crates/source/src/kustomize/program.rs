//! Runs the user's kustomize, or kubectl, on a folder that was checked: with a minimal environment,
//! no programs to call, unreachable proxies, and limits on time, memory and output.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use crate::error::KustomizeError;
use crate::{Error, Kustomize, child, shown};
use host::search_path;

/// Memory limit in KiB. Memory that Go only reserves does not count (`RLIMIT_DATA`).
const MEMORY: &str = "524288";
/// Output limit, in blocks of 512 bytes.
const OUTPUT_BLOCKS: &str = "65536";
/// Output limit, in bytes.
pub(super) const OUTPUT_LIMIT: usize = 32 << 20;
/// Number of its last lines that are quoted.
const QUOTED_LINES: usize = 4;
/// Shell script that sets the limits and then runs the program.
const LIMITED: &str = "ulimit -d \"$1\" && ulimit -f \"$2\" && shift 2 && exec \"$@\"";
/// An address that nothing listens on, as proxy for requests that the checks missed.
const NOWHERE: &str = "http://127.0.0.1:9";

/// A rendering program and its arguments.
struct Renderer {
    program: PathBuf,
    arguments: &'static [&'static str],
}

/// Renders `folder`, which is in `sandbox`; `name` is for messages.
pub(super) fn render(
    settings: &Kustomize,
    sandbox: &Path,
    folder: &Path,
    name: &str,
) -> Result<Vec<u8>, Error> {
    let Renderer { program, arguments } = find(settings)?;
    let failed =
        |source| Error::from(KustomizeError::Start { program: shown::path(&program), source });
    let home = sandbox.join("home");
    fs::create_dir(&home).map_err(failed)?;
    let output = || tempfile::tempfile_in(sandbox);
    let (mut stdout, mut stderr) = output().and_then(|out| Ok((out, output()?))).map_err(failed)?;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", LIMITED, "sh", MEMORY, OUTPUT_BLOCKS])
        .arg(&program)
        .args(arguments)
        .arg(folder)
        .current_dir(folder)
        .env_clear()
        .envs([("HOME", &home), ("TMPDIR", &home)])
        .envs([("PATH", ""), ("GIT_ALLOW_PROTOCOL", ""), ("GOMEMLIMIT", "384MiB")])
        .envs(["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].map(|proxy| (proxy, NOWHERE)))
        .stdin(Stdio::null())
        .stdout(stdout.try_clone().map_err(failed)?)
        .stderr(stderr.try_clone().map_err(failed)?);
    let started = command.spawn().map_err(failed)?;
    let Some(status) = child::wait(started, settings.timeout).map_err(failed)? else {
        let after = settings.timeout;
        return Err(Error::from(KustomizeError::Timeout { folder: name.to_owned(), after }));
    };
    let rendered = read_back(&mut stdout).map_err(failed)?;
    if status.success() {
        return Ok(rendered);
    }
    if rendered.len() >= OUTPUT_LIMIT {
        return Err(Error::from(KustomizeError::Output {
            folder: name.to_owned(),
            limit: OUTPUT_LIMIT,
        }));
    }
    let message = String::from_utf8_lossy(&read_back(&mut stderr).map_err(failed)?).into_owned();
    Err(Error::from(KustomizeError::Failed {
        folder: name.to_owned(),
        output: quoted(&message, sandbox, status),
    }))
}

/// `kustomize` if it is installed, otherwise `kubectl`, which has it built in.
fn find(settings: &Kustomize) -> Result<Renderer, Error> {
    let path: &OsStr = settings.search.as_deref().unwrap_or_default();
    let renderers: [(&str, &[&str]); 2] = [("kustomize", &["build"]), ("kubectl", &["kustomize"])];
    let found = renderers.into_iter().find_map(|(name, arguments)| {
        let program = search_path::find(path, name)?;
        Some(Renderer { program, arguments })
    });
    found.ok_or(Error::from(KustomizeError::Missing))
}

fn read_back(file: &mut File) -> io::Result<Vec<u8>> {
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The last lines of its output, joined to one line that is safe to print, without the path of the
/// temporary folder.
fn quoted(message: &str, sandbox: &Path, status: ExitStatus) -> String {
    let ours = sandbox.to_string_lossy().into_owned();
    let message = message.replace(&format!("{ours}/tree/"), "").replace(&ours, "");
    let lines: Vec<_> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let no_memory = ["out of memory", "cannot allocate memory"];
    let is_panic = lines.iter().any(|line| no_memory.iter().any(|words| line.contains(words)));
    if is_panic {
        return "it needs more than 512 MiB of memory".to_owned();
    }
    match &lines[lines.len().saturating_sub(QUOTED_LINES)..] {
        [] => status.to_string(),
        last => shown::line(last.join("; ").as_bytes()),
    }
}
