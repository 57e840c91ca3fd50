//! The name by which the user called the program; help and hints use that name.
//!
//! A link `kubectl-ds_plan` on `PATH` makes the program available as `kubectl ds-plan`.

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

/// The programs; the hints of one can name the other.
const PROGRAMS: [&str; 2] = ["ds-plan", "ds-apply"];

impl Invocation {
    /// Detected from the first word of the command line.
    pub(super) fn of(program: Option<&OsStr>) -> Self {
        let name = program.and_then(|program| Path::new(program).file_stem());
        match name.and_then(OsStr::to_str) {
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
    pub(super) fn speak(self, words: &str) -> String {
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
    fn hints_name_the_command_to_type() {
        for (words, want) in [
            ("name the files: `ds-plan -f DIR`", "name the files: `kubectl ds-plan -f DIR`"),
            ("`helm template x | ds-plan -f -`", "`helm template x | kubectl ds-plan -f -`"),
            ("`ds-apply FILE`", "`kubectl ds-apply FILE`"),
            ("ds-plan.dev/v1alpha1", "ds-plan.dev/v1alpha1"),
            ("`kubectl ds-plan -f`", "`kubectl ds-plan -f`"),
        ] {
            assert_eq!(Invocation::ByKubectl.speak(words), want);
            assert_eq!(Invocation::Directly.speak(words), words);
        }
    }
}
