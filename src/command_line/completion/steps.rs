//! Completion of the steps that can be approved, from the policies of the source.

use std::ffi::OsStr;

use clap::{ArgMatches, Command, FromArgMatches};
use clap_complete::CompletionCandidate;

use super::{beginning_with, in_time, words};
use crate::flags::name::GivenName;
use crate::flags::{GlobalFlags, NarrowFlags, SourceFlags};
use crate::input::{self, Desired, Reading, Selection};
use crate::printer::Printer;
use crate::shell::Shell;
use daemonset::model::NamespaceName;

/// The steps of the DaemonSet on the line that need an approval.
pub(super) fn to_approve(line: fn() -> Command, current: &OsStr) -> Vec<CompletionCandidate> {
    let names = in_time(move || {
        let matches = line().ignore_errors(true).try_get_matches_from(words()).ok()?;
        let (_, matches) = matches.subcommand()?;
        read(matches)
    });
    beginning_with(current, names)
}

fn read(matches: &ArgMatches) -> Option<Vec<String>> {
    let shell = Shell::of_process(Printer::silent()).ok()?;
    let global = GlobalFlags::from_arg_matches(matches).ok()?;
    let name = matches.get_one::<GivenName>("name")?;
    // That of the kubeconfig's context would need another file.
    let default_namespace = global.namespace.clone().unwrap_or(NamespaceName::from("default"));
    let namespace = global.namespace.as_ref();
    let narrow = NarrowFlags { names: vec![name.clone()], selector: None };
    let place = crate::error::Place::Manifests;
    let selection = Selection::of(&narrow, namespace, &default_namespace, place).ok()?;
    let flags = &SourceFlags::from_arg_matches(matches).ok()?;
    let reading = Reading { flags, base: None, every_file: false, default_namespace };
    let Desired { daemon_sets, .. } = input::desired(reading, &selection, &shell).ok()?;
    let policy = daemon_sets.first()?.policy.as_ref()?;
    let steps = policy.spec.steps.iter().filter(|step| step.approve);
    Some(steps.map(|step| step.name.clone()).collect())
}
