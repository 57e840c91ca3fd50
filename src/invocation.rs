//! The name by which the user called the program: it selects the program, and help and hints use it.
//!
//! Both programs are one executable. A link `kubectl-ds_plan` on `PATH` makes `ds-plan` available as
//! `kubectl ds-plan`.

use std::ffi::OsStr;
use std::path::Path;

/// The way in which a program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Invocation {
    /// By its own name, or any name other than that of a kubectl plugin.
    Directly,
    /// By kubectl, as a plugin (upstream: `HandlePluginCommand`; dashes of the command are
    /// underscores in the file's name).
    ByKubectl,
}

/// One of the programs that the executable contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    DsPlan,
    DsApply,
}

impl Program {
    /// `ds-apply` if the executable was called by that name or by that of its kubectl plugin.
    pub(crate) fn of(program: Option<&OsStr>) -> Self {
        match stem(program) {
            Some("ds-apply" | "kubectl-ds_apply") => Self::DsApply,
            Some(_) | None => Self::DsPlan,
        }
    }
}

/// The file name without `.exe`.
fn stem(program: Option<&OsStr>) -> Option<&str> {
    program.and_then(|program| Path::new(program).file_stem()).and_then(OsStr::to_str)
}

/// The programs; the hints of one can name the other.
const PROGRAMS: [&str; 2] = ["ds-plan", "ds-apply"];

impl Invocation {
    /// Detected from the first word of the command line.
    pub(super) fn of(program: Option<&OsStr>) -> Self {
        match stem(program) {
            Some("kubectl-ds_plan" | "kubectl-ds_apply") => Self::ByKubectl,
            Some(_) | None => Self::Directly,
        }
    }

    /// The command to type for the program `name`.
    pub(super) fn name(self, name: &str) -> String {
        match self {
            Self::Directly => name.to_owned(),
            Self::ByKubectl => format!("kubectl {name}"),
        }
    }

    /// `words` with the commands in them as the user has to type them: a program name after a
    /// backtick, a pipe or `<(`.
    pub(super) fn with_called_name(self, words: &str) -> String {
        let mut spoken = words.to_owned();
        for program in PROGRAMS {
            for before in ["`", "| ", "<("] {
                let typed = format!("{before}{}", self.name(program));
                spoken = spoken.replace(&format!("{before}{program}"), &typed);
            }
        }
        spoken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubectl_plugin_is_detected_by_its_file_name() {
        for (program, want) in [
            ("ds-plan", Invocation::Directly),
            ("/usr/local/bin/ds-plan", Invocation::Directly),
            ("/home/me/.krew/bin/kubectl-ds_plan", Invocation::ByKubectl),
            ("kubectl-ds_apply.exe", Invocation::ByKubectl),
            ("kubectl-other", Invocation::Directly),
        ] {
            assert_eq!(Invocation::of(Some(OsStr::new(program))), want, "{program}");
        }
        assert_eq!(Invocation::of(None), Invocation::Directly);
    }

    #[test]
    fn the_program_is_selected_by_its_file_name() {
        for (program, want) in [
            ("ds-plan", Program::DsPlan),
            ("/usr/local/bin/ds-apply", Program::DsApply),
            ("kubectl-ds_apply", Program::DsApply),
            ("kubectl-ds_plan", Program::DsPlan),
            ("ds-apply.exe", Program::DsApply),
            ("anything-else", Program::DsPlan),
        ] {
            assert_eq!(Program::of(Some(OsStr::new(program))), want, "{program}");
        }
    }

    #[test]
    fn hints_name_the_command_to_type() {
        for (words, want) in [
            ("name the files: `ds-plan -f DIR`", "name the files: `kubectl ds-plan -f DIR`"),
            ("`helm template x | ds-plan -f -`", "`helm template x | kubectl ds-plan -f -`"),
            ("`ds-apply FILE`", "`kubectl ds-apply FILE`"),
            ("ds-plan.dev/v1alpha1", "ds-plan.dev/v1alpha1"),
            ("`kubectl ds-plan -f`", "`kubectl ds-plan -f`"),
        ] {
            assert_eq!(Invocation::ByKubectl.with_called_name(words), want);
            assert_eq!(Invocation::Directly.with_called_name(words), words);
        }
    }
}
