//! `ds-apply`: starts the executable `ds-plan` of its own folder under the name `ds-apply`. Both
//! programs are the same code, which is installed once.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    launcher::main()
}

/// Elsewhere a process cannot be replaced by another program, so the code is linked twice.
#[cfg(not(unix))]
fn main() -> ExitCode {
    ds_plan::ds_apply().into()
}

#[cfg(unix)]
mod launcher {
    use std::ffi::OsStr;
    use std::os::unix::process::CommandExt as _;
    use std::path::{Path, PathBuf};
    use std::process::{Command, ExitCode};
    use std::{env, io};

    /// Replaces this process, so that signals, standard streams and the exit status are those of
    /// the program. Returns only if that fails.
    #[expect(clippy::print_stderr, reason = "the printer is part of the program")]
    pub(super) fn main() -> ExitCode {
        let mut arguments = env::args_os();
        let called = arguments.next();
        let failure = match program() {
            Ok(program) => {
                let mut command = Command::new(&program);
                command.arg0(name(called.as_deref())).args(arguments);
                format!("cannot start {}: {}", program.display(), command.exec())
            }
            Err(error) => format!("cannot find the folder of ds-apply: {error}"),
        };
        eprintln!("error: {failure}");
        eprintln!("  ds-apply needs the file ds-plan in its own folder: install both");
        ExitCode::FAILURE
    }

    /// The executable next to this one, links resolved.
    fn program() -> io::Result<PathBuf> {
        Ok(env::current_exe()?.canonicalize()?.with_file_name("ds-plan"))
    }

    /// The name to start it by: that of the kubectl plugin, if kubectl has called.
    fn name(called: Option<&OsStr>) -> &'static str {
        match called.map(Path::new).and_then(Path::file_name).and_then(OsStr::to_str) {
            Some("kubectl-ds_apply") => "kubectl-ds_apply",
            _ => "ds-apply",
        }
    }
}
