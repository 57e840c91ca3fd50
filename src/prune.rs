//! `--source-id` and `--prune`: the id of a source on the DaemonSets that it applies, and the
//! conditions for deleting those that it no longer contains.
//!
//! A DaemonSet is "not in the source" only if the whole source was read. Not here: the plan of a
//! deletion (`plan`).

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::error::Error;
use super::flags::{NarrowFlags, heading};
use super::input::Desired;
use cluster::Scope;
use daemonset::model::{Cascade, DaemonSetKey, DesiredDaemonSet, NamespaceName};
use planner::annotations::{
    SOURCE_ID_ANNOTATION, SOURCE_PATHS_ANNOTATION, SOURCE_REPOSITORY_ANNOTATION,
};
use planner::plan::{Prune, SourceInfo, Warning, source_paths, source_repository};

/// The longest id, in characters.
const LONGEST_ID: usize = 253;

/// Codes of warnings about skipped parts of a source, which may contain DaemonSets.
const UNREAD: [&str; 6] =
    ["notRendered", "symbolicLink", "submodule", "subFolder", "specialFile", "lfsPointer"];

/// The flags for the id of the source, and for deleting DaemonSets that it no longer contains.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct PruneFlags {
    /// Mark applied DaemonSets with this id (annotation `ds-plan.dev/source-id`); use one id for
    /// each source
    #[arg(long, value_name = "ID", help_heading = heading::SOURCE, value_parser = source_id)]
    source_id: Option<String>,

    /// Delete DaemonSets that carry the --source-id and are not in the source any more
    ///
    /// They are deleted last, after everything else has succeeded. The whole source must be read,
    /// and DaemonSets of all namespaces are read.
    #[arg(long, help_heading = heading::SOURCE, requires = "source_id")]
    prune: bool,

    /// Also delete in this namespace, in which the source no longer has anything; repeatable
    ///
    /// In other namespaces than those of the source, the --source-id is ignored: any user who may
    /// write DaemonSets there could have set it.
    #[arg(long = "prune-namespace", value_name = "NAMESPACE", help_heading = heading::SOURCE)]
    #[arg(requires = "prune")]
    namespaces: Vec<NamespaceName>,

    /// Pods of the deleted DaemonSets: `background` deletes them all at once, `orphan` keeps them
    #[arg(long, value_name = "MODE", default_value = "background", requires = "prune")]
    #[arg(help_heading = heading::SOURCE)]
    cascade: CascadeFlag,
}

/// `--cascade`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum CascadeFlag {
    #[default]
    Background,
    Orphan,
}

impl PruneFlags {
    /// Only the source id, without pruning.
    pub(super) fn marking(source_id: Option<String>) -> Self {
        Self { source_id, ..Self::default() }
    }

    /// The flags as a saved plan records them.
    pub(super) fn of_plan(source: &SourceInfo) -> Self {
        let SourceInfo { id, prune, prune_namespaces, .. } = source;
        Self {
            source_id: id.clone(),
            prune: prune.is_some(),
            namespaces: prune_namespaces.iter().cloned().collect(),
            cascade: match prune {
                Some(Cascade::Orphan) => CascadeFlag::Orphan,
                Some(Cascade::Background) | None => CascadeFlag::Background,
            },
        }
    }

    /// Refuses to prune if only a part of the source is selected.
    ///
    /// # Errors
    /// `--prune` together with names, a selector or a namespace.
    pub(super) fn refuse_narrowed(
        &self,
        narrow: &NarrowFlags,
        namespace: Option<&NamespaceName>,
    ) -> Result<(), Error> {
        let NarrowFlags { names, selector } = narrow;
        let narrowed = !names.is_empty() || selector.is_some() || namespace.is_some();
        if self.prune && narrowed { Err(Error::PruneNarrowed) } else { Ok(()) }
    }

    /// Whether every file of the source is parsed, even without the word DaemonSet: a skipped file
    /// could contain a DaemonSet that would be deleted.
    pub(super) fn every_file(&self) -> bool {
        self.prune
    }

    /// The namespaces to read. With `--prune` all of them, to find every DaemonSet of the source.
    pub(super) fn scope(&self, desired: &[DesiredDaemonSet]) -> Scope {
        if self.prune {
            return Scope::All;
        }
        let own = desired.iter().map(|one| &one.key);
        // A budget is shared across namespaces.
        let policies = desired.iter().filter_map(|one| one.policy.as_ref());
        let sharing = policies.filter(|policy| policy.spec.shared_budget.is_some());
        let siblings = sharing.flat_map(|policy| &policy.spec.selects.names);
        Scope::Namespaces(own.chain(siblings).map(|key| key.namespace.clone()).collect())
    }

    /// Annotates all DaemonSets of the source with its id.
    ///
    /// # Errors
    /// With `--prune`, a part of the source was skipped.
    pub(super) fn mark(&self, desired: &mut Desired) -> Result<(), Error> {
        let Some(id) = &self.source_id else { return Ok(()) };
        if self.prune {
            refuse_unread(&desired.warnings)?;
        }
        desired.source.id = Some(id.clone());
        desired.source.prune = self.prune.then_some(self.cascade());
        if self.prune {
            let named = self.namespaces.iter().chain(desired.namespaces.keys()).cloned();
            desired.source.prune_namespaces = named.collect();
        }
        let paths = source_paths(&desired.source);
        let repository = source_repository(&desired.source);
        // Also those that are not selected: they are planned, too, where others come `after` them.
        for one in desired.daemon_sets.iter_mut().chain(&mut desired.others) {
            annotate(one, SOURCE_ID_ANNOTATION, id);
            annotate(one, SOURCE_PATHS_ANNOTATION, &paths);
            if let Some(repository) = &repository {
                annotate(one, SOURCE_REPOSITORY_ANNOTATION, repository);
            }
        }
        Ok(())
    }

    /// The input of a plan for pruning; `declared` is the whole source.
    pub(super) fn of<'a>(
        &'a self,
        declared: &'a BTreeSet<DaemonSetKey>,
        namespaces: &'a BTreeSet<NamespaceName>,
    ) -> Option<Prune<'a>> {
        let id = self.source_id.as_deref().filter(|_| self.prune)?;
        Some(Prune { id, cascade: self.cascade(), declared, namespaces })
    }

    fn cascade(&self) -> Cascade {
        match self.cascade {
            CascadeFlag::Background => Cascade::Background,
            CascadeFlag::Orphan => Cascade::Orphan,
        }
    }
}

fn refuse_unread(warnings: &[Warning]) -> Result<(), Error> {
    let unread = warnings.iter().filter(|warning| UNREAD.contains(&warning.code.as_str()));
    let unread: Vec<String> = unread.map(|warning| warning.message.clone()).collect();
    if unread.is_empty() { Ok(()) } else { Err(Error::PruneUnread(unread)) }
}

fn annotate(desired: &mut DesiredDaemonSet, key: &str, value: &str) {
    for object in [&mut desired.raw, &mut desired.written] {
        let metadata = &mut Arc::make_mut(object)["metadata"];
        // `annotations: null` means no annotations, as for the API server.
        if !metadata["annotations"].is_object() {
            metadata["annotations"] = Value::Object(serde_json::Map::new());
        }
        metadata["annotations"][key] = value.into();
    }
    let own = desired.annotations.iter().chain([(key, value)]);
    desired.annotations = own.collect();
}

/// Parses a source id: characters that are safe in annotations, shells and messages.
pub(super) fn source_id(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
    if text.is_empty() || text.len() > LONGEST_ID || !text.chars().all(allowed) {
        return Err(format!(
            "an id has 1 to {LONGEST_ID} letters, digits and `. _ / : @ -`, such as prod/logging"
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::model::LabelSelector;

    #[test]
    fn ids_have_safe_characters() {
        for (text, fits) in [
            ("prod", true),
            ("git.example/fleet:deploy/prod", true),
            ("", false),
            ("two words", false),
            ("line\nbreak", false),
            (&*"x".repeat(LONGEST_ID), true),
            (&*"x".repeat(LONGEST_ID + 1), false),
        ] {
            assert_eq!(source_id(text).is_ok(), fits, "{text:?}");
        }
    }

    #[test]
    fn pruning_a_part_of_a_source_is_refused() {
        let all = NarrowFlags { names: Vec::new(), selector: None };
        let named = NarrowFlags { names: vec!["log/agent".parse().unwrap()], ..all.clone() };
        let labelled = NarrowFlags { selector: Some(LabelSelector::default()), ..all.clone() };
        let namespace = NamespaceName::from("log");
        let flags =
            PruneFlags { source_id: Some("prod".to_owned()), prune: true, ..Default::default() };
        let only_marked = PruneFlags { prune: false, ..flags.clone() };
        for (rule, narrow, namespace, refused) in [
            ("all of it", &all, None, false),
            ("names", &named, None, true),
            ("labels", &labelled, None, true),
            ("a namespace", &all, Some(&namespace), true),
        ] {
            assert_eq!(flags.refuse_narrowed(narrow, namespace).is_err(), refused, "{rule}");
            assert!(only_marked.refuse_narrowed(narrow, namespace).is_ok(), "{rule}");
        }
    }

    #[test]
    fn pruning_is_refused_when_a_part_was_skipped() {
        let warning = |code: &str| Warning {
            code: code.to_owned(),
            message: format!("`x` {code}"),
            daemon_set: None,
            nodes: Vec::new(),
        };
        assert!(refuse_unread(&[warning("workingTreeDiffers")]).is_ok());
        for code in UNREAD {
            let error = refuse_unread(&[warning("workingTreeDiffers"), warning(code)]).unwrap_err();
            assert!(error.to_string().contains(&format!("`x` {code}")), "{error}");
        }
    }
}
