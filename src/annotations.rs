//! Annotations of a CI system: errors of manifests on the lines of the files, and rollouts that wait.
//!
//! Only this file prints commands of a CI system. Text of a manifest is only data in them: its
//! control characters are escaped, and then it is escaped by the rules of the CI system.

use std::fmt::Write as _;

use clap::ValueEnum;

use super::error::Error;
use daemonset::model::{DaemonSetKey, Place};
use render::neutral;

/// The most errors that are annotated; GitHub shows ten per step.
const MOST: usize = 10;

/// The CI system that shows the annotations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Annotations {
    /// Workflow commands of GitHub Actions, also for Forgejo and Gitea
    Github,
}

impl Annotations {
    /// One line for each error of a manifest; empty for other errors.
    pub(super) fn of(self, error: &Error) -> String {
        let Error::Manifest(errors) = error else { return String::new() };
        match self {
            Self::Github => errors.iter().take(MOST).filter_map(github).collect(),
        }
    }
}

impl Annotations {
    /// One line for a rollout that waits: a warning if a person has to act.
    pub(super) fn wait(self, daemon_set: &DaemonSetKey, words: &str, needs_person: bool) -> String {
        match self {
            Self::Github => {
                let level = if needs_person { "warning" } else { "notice" };
                let title = escaped(&neutral::line(&daemon_set.to_string()), &[':', ',']);
                let message = escaped(&neutral::line(words), &[]);
                format!("::{level} title={title}::{message}\n")
            }
        }
    }
}

/// `::error file=PATH,line=LINE,col=COLUMN::MESSAGE`.
fn github(error: &manifest::Error) -> Option<String> {
    let Place { path, line, column } = error.place()?;
    let path = escaped(&neutral::line(path), &[':', ',']);
    // The message begins with the place already.
    let (said, at) = (error.to_string(), format!("{}: ", error.place()?));
    let message = escaped(&neutral::text(said.strip_prefix(&at).unwrap_or(&said)), &[]);
    Some(format!("::error file={path},line={line},col={column}::{message}\n"))
}

/// Escaped for workflow commands: characters that end a line or a property become `%XX`.
fn escaped(text: &str, besides: &[char]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '%' | '\r' | '\n') || besides.contains(&c) {
            let _ = write!(escaped, "%{:02X}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::model::ManifestFile;
    use manifest::{FieldValidation, Options};

    fn annotated(path: &str, text: &str) -> String {
        let file = ManifestFile { path: path.into(), bytes: text.as_bytes().to_vec() };
        let options = Options {
            default_namespace: "default".into(),
            validate: FieldValidation::Strict,
            policies: None,
            every_file: false,
            not_objects: manifest::NotObjects::Reject,
        };
        let errors = manifest::read(&[file], &options).unwrap_err();
        Annotations::Github.of(&Error::Manifest(errors))
    }

    #[test]
    fn errors_are_annotated_at_their_place() {
        let text =
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: a}\nspec:\n  selector: 3\n";
        assert_eq!(
            annotated("a.yaml", text),
            "::error file=a.yaml,line=5,col=13::spec.selector: must be a mapping, not a number\n"
        );
        assert_eq!(Annotations::Github.of(&Error::Declined), "");
    }

    #[test]
    fn a_wait_is_a_notice_and_an_approval_a_warning() {
        let key = DaemonSetKey::new("log", "agent");
        let of = |words, person| Annotations::Github.wait(&key, words, person);
        assert_eq!(of("step a soaks", false), "::notice title=log/agent::step a soaks\n");
        assert_eq!(of("step a", true), "::warning title=log/agent::step a\n");
        assert_eq!(of("a\n::error::b", false).lines().count(), 1);
    }

    #[test]
    fn content_injects_no_commands() {
        let path = "a,line=9::x\n::warning::y%.yaml";
        let text = "kind: DaemonSet\napiVersion: \"apps/v0\\n::error::z%0A\"\n";
        assert_eq!(
            annotated(path, text),
            "::error file=a%2Cline=9%3A%3Ax\\n%3A%3Awarning%3A%3Ay%25.yaml,line=1,col=1::DaemonSet of \
             apps/v0%0A\\u{3a}:error::z%250A, which servers no longer support; use apps/v1\n"
        );
    }
}
