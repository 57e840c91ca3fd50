//! A program as a check: exit status 0 is a pass, 1 a fail.
//!
//! It is started without a shell, from an absolute folder of `PATH` or from a path below the
//! current folder, with an environment of three variables. When it has ended, or takes too long, the
//! programs that it started end too.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use host::search_path;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

use super::problem::Problem;
use super::quoted::quoted;
use daemonset::model::{CheckQuestion, CheckResponse};

/// Bytes of the output that are kept; the rest is read and dropped.
const KEPT: usize = 4 << 10;
/// How long output may still come after the program has ended.
const AFTER: Duration = Duration::from_millis(200);

/// Where programs are.
#[derive(Clone, Debug)]
pub struct Commands {
    /// `$PATH`, of which only absolute folders count.
    pub path: OsString,
    /// The folder in which they run, and in which relative paths start.
    pub folder: PathBuf,
    /// Whether a relative path is run: the policies are those of that folder.
    pub runs_files: bool,
}

impl Commands {
    /// Runs a program to its end.
    pub(crate) async fn ask(
        &self,
        words: &[String],
        question: &CheckQuestion,
        limit: Duration,
    ) -> Result<CheckResponse, Problem> {
        let (name, arguments) =
            words.split_first().map_or(("", &[][..]), |(name, rest)| (name, rest));
        let file = self.find(name)?;
        let not_started = |error: std::io::Error| Problem::NotStarted {
            program: quoted(name),
            reason: quoted(&error.to_string()),
        };
        let mut child = self.command(&file, arguments, question).spawn().map_err(not_started)?;
        let group = Group::of(&child);
        let ended = tokio::time::timeout(limit, end(&mut child)).await;
        drop(group);
        let (status, output) = ended
            .map_err(|_| Problem::SlowProgram { program: quoted(name), limit })?
            .map_err(not_started)?;
        let output = last_line(&output);
        let is_expected = match status.code() {
            Some(0) => true,
            Some(1) => false,
            Some(_) | None => {
                let (program, status) = (quoted(name), status.to_string());
                return Err(Problem::ExitStatus { program, status, output });
            }
        };
        let detail = format!("exit status {}{output}", i32::from(!is_expected));
        Ok(CheckResponse::Sample { at: question.until, is_expected, detail })
    }

    /// The file of a program.
    fn find(&self, name: &str) -> Result<PathBuf, Problem> {
        let path = Path::new(name);
        if !name.contains('/') {
            let found = search_path::find(&self.path, name);
            return found.ok_or(Problem::NoProgram { program: quoted(name) });
        }
        let stays = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(stays) {
            return Err(Problem::ProgramPath { program: quoted(name) });
        }
        if !self.runs_files {
            return Err(Problem::OtherSource { program: quoted(name) });
        }
        Ok(self.folder.join(path))
    }

    fn command(&self, file: &Path, arguments: &[String], question: &CheckQuestion) -> Command {
        let mut command = Command::new(file);
        command
            .args(arguments)
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", search_path::absolute(&self.path))
            .env("DAEMONSET_NAMESPACE", question.daemon_set.namespace.as_str())
            .env("DAEMONSET_NAME", question.daemon_set.name.as_str())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command
    }
}

/// A program and those that it started. Dropping it ends them.
struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self { leader: leader.and_then(rustix::process::Pid::from_raw) }
    }

    #[cfg(not(unix))]
    fn of(_: &Child) -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // An error means that none is left.
            let _ = rustix::process::kill_process_group(leader, rustix::process::Signal::KILL);
        }
    }
}

/// Waits for the end of a program; returns its status and the beginning of its output.
async fn end(child: &mut Child) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let mut kept = (Vec::new(), Vec::new());
    let status = {
        let reading = async { tokio::join!(read(stdout, &mut kept.0), read(stderr, &mut kept.1)) };
        tokio::pin!(reading);
        let mut all_read = false;
        let status = loop {
            tokio::select! {
                biased;
                status = child.wait() => break status?,
                _ = &mut reading, if !all_read => all_read = true,
            }
        };
        if !all_read {
            // What it started may keep its output open.
            let _ = tokio::time::timeout(AFTER, reading).await;
        }
        status
    };
    let (stdout, stderr) = kept;
    Ok((status, if stdout.is_empty() { stderr } else { stdout }))
}

/// Reads a stream to its end; keeps the beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut stream) = stream else { return };
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut buffer).await {
        let room = KEPT - kept.len();
        kept.extend_from_slice(&buffer[..length.min(room)]);
    }
}

/// The last line of an output, after a colon; nothing if there is none.
fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.map(|line| format!(": {}", quoted(line))).unwrap_or_default()
}

#[cfg(all(test, unix))]
mod tests;
