//! By which name the user called the program, so that help and advice speak of that name.
//!
//! As `kubectl-ds_plan` on `PATH`, a link is enough, the program is `kubectl ds-plan`.

use std::ffi::OsStr;
use std::path::Path;

/// How one of the programs was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Called {
    /// By its own name, or any other.
    Directly,
    /// By kubectl, as its plugin (upstream: `HandlePluginCommand`; dashes of the command are
    /// underscores in the file's name).
    ByKubectl,
}

/// The programs, which name each other in their advice.
const PROGRAMS: [&str; 2] = ["ds-plan", "ds-apply"];

impl Called {
    /// From the first word of the command line.
    pub(super) fn of(program: Option<&OsStr>) -> Self {
        let name = program.and_then(|program| Path::new(program).file_stem());
        match name.and_then(OsStr::to_str) {
            Some("kubectl-ds_plan" | "kubectl-ds_apply") => Self::ByKubectl,
            Some(_) | None => Self::Directly,
        }
    }

    /// What to type for the program `name`.
    pub(super) fn name(self, name: &str) -> String {
        match self {
            Self::Directly => name.to_owned(),
            Self::ByKubectl => format!("kubectl {name}"),
        }
    }

    /// `words` of ours, with the commands in them as the user has to type them: those that begin a
    /// quotation, or stand behind a pipe.
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
    fn a_plugin_of_kubectl_goes_by_its_files_name() {
        for (program, want) in [
            ("ds-plan", Called::Directly),
            ("/usr/local/bin/ds-plan", Called::Directly),
            ("/home/me/.krew/bin/kubectl-ds_plan", Called::ByKubectl),
            ("kubectl-ds_apply.exe", Called::ByKubectl),
            ("kubectl-other", Called::Directly),
        ] {
            assert_eq!(Called::of(Some(OsStr::new(program))), want, "{program}");
        }
        assert_eq!(Called::of(None), Called::Directly);
    }

    #[test]
    fn advice_names_what_is_to_be_typed() {
        for (words, want) in [
            ("name the files: `ds-plan -f DIR`", "name the files: `kubectl ds-plan -f DIR`"),
            ("`helm template x | ds-plan -f -`", "`helm template x | kubectl ds-plan -f -`"),
            ("`ds-apply FILE`", "`kubectl ds-apply FILE`"),
            ("ds-plan.dev/v1alpha1", "ds-plan.dev/v1alpha1"),
            ("`kubectl ds-plan -f`", "`kubectl ds-plan -f`"),
        ] {
            assert_eq!(Called::ByKubectl.speak(words), want);
            assert_eq!(Called::Directly.speak(words), words);
        }
    }
}
