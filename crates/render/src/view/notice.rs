//! Guards and warnings: equal ones are listed once, with the DaemonSets that they are about.

use super::nodes::{names, zones_of};
use super::origin::few;
use super::ranges::natural_order;
use planner::plan::{Guard, GuardCode, Warning, Zones};
use planner::words::count;

/// Maximum number of DaemonSets that are named; the others are counted.
const MOST_NAMES: usize = 5;

/// A guard or a warning.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Notice<'a> {
    /// Its kind: a few words for a guard, the code of a warning.
    pub kind: &'a str,
    /// `NAMESPACE/NAME` of each DaemonSet that has it; empty if it is about none.
    pub daemon_sets: Vec<&'a str>,
    pub message: &'a str,
    /// The nodes of all of them, in natural order.
    pub nodes: Vec<&'a str>,
    /// Number of the zones of these nodes; `None` if not all of them are known.
    zones: Option<usize>,
    /// The flag that allows what a guard blocks.
    pub allow_flag: Option<&'a str>,
}

impl<'a> Notice<'a> {
    pub(crate) fn of_guards(guards: &'a [Guard], zones: &Zones) -> Vec<Self> {
        let notice = |guard: &'a Guard| {
            let Guard { code, message, allow_flag, daemon_set, nodes } = guard;
            Self {
                kind: guard_words(*code),
                daemon_sets: daemon_set.as_deref().into_iter().collect(),
                message,
                nodes: nodes.iter().map(AsRef::as_ref).collect(),
                zones: None,
                allow_flag: allow_flag.as_deref(),
            }
        };
        merged(guards.iter().map(notice), zones)
    }

    pub(crate) fn of_warnings(warnings: &'a [Warning], zones: &Zones) -> Vec<Self> {
        let notice = |warning: &'a Warning| {
            let Warning { code, message, daemon_set, nodes } = warning;
            Self {
                kind: code,
                daemon_sets: daemon_set.as_deref().into_iter().collect(),
                message,
                nodes: nodes.iter().map(AsRef::as_ref).collect(),
                zones: None,
                allow_flag: None,
            }
        };
        merged(warnings.iter().map(notice), zones)
    }

    /// `logging/agent`, or `3 DaemonSets (logging/a, logging/b, logging/c)`, each name as `shown`.
    pub(crate) fn subject(&self, shown: impl Fn(&str) -> String) -> Option<String> {
        match self.daemon_sets.as_slice() {
            [] => None,
            [one] => Some(shown(one)),
            several => {
                let names = few(several.iter().map(|key| shown(key)), MOST_NAMES);
                Some(format!("{} ({names})", count(several.len(), "DaemonSet")))
            }
        }
    }

    /// What allows a guard, before the flag if there is one.
    pub(crate) fn way_out(&self) -> &'static str {
        if self.allow_flag.is_some() { "To allow it, pass" } else { "No flag allows it" }
    }

    /// Its nodes as text; `None` if it names none.
    pub(crate) fn whereabouts(&self) -> Option<String> {
        (!self.nodes.is_empty()).then(|| names(&self.nodes, self.zones))
    }
}

/// The number of guards or warnings before equal ones were merged.
pub(crate) fn number_of(notices: &[Notice<'_>]) -> usize {
    notices.iter().map(|notice| notice.daemon_sets.len().max(1)).sum()
}

/// Equal notices as one, in the place of the first.
fn merged<'a>(notices: impl Iterator<Item = Notice<'a>>, zones: &Zones) -> Vec<Notice<'a>> {
    let mut all: Vec<Notice<'a>> = Vec::new();
    for notice in notices {
        let equal = |other: &&mut Notice<'a>| {
            (other.kind, other.message, other.allow_flag)
                == (notice.kind, notice.message, notice.allow_flag)
        };
        match all.iter_mut().find(equal) {
            Some(first) => {
                first.daemon_sets.extend(notice.daemon_sets);
                first.nodes.extend(notice.nodes);
            }
            None => all.push(notice),
        }
    }
    for notice in &mut all {
        notice.nodes.sort_by(|a, b| natural_order(a, b));
        notice.nodes.dedup();
        notice.zones = zones_of(&notice.nodes, zones);
    }
    all
}

fn guard_words(code: GuardCode) -> &'static str {
    match code {
        GuardCode::SelectorChange => "another selector",
        GuardCode::MassEviction => "evicts too many at once",
        GuardCode::ForceConflicts => "forces conflicts",
        GuardCode::GitOps => "applied by a GitOps controller",
        GuardCode::FailedTemplate => "failed before",
        GuardCode::Deadlock => "cannot finish",
        GuardCode::MassDeletion => "deletes more than half of the source",
        GuardCode::ManagedBy => "managed by another controller",
        GuardCode::OtherSource => "was applied from another source",
        GuardCode::PolicyChange => "loosens its policy",
        GuardCode::EmptyStep => "a step without nodes",
        GuardCode::SurgeUnderPolicy => "surges under a policy with domains",
        GuardCode::WindowTooShort => "no window is long enough",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(message: &str, daemon_set: Option<&str>, nodes: &[&str]) -> Warning {
        Warning {
            code: "c".into(),
            message: message.into(),
            daemon_set: daemon_set.map(str::to_owned),
            nodes: nodes.iter().map(|node| (*node).into()).collect(),
        }
    }

    #[test]
    fn equal_notices_are_listed_once_with_their_number() {
        let warnings = [
            warning("same", Some("a/a"), &["n-2"]),
            warning("other", Some("a/a"), &[]),
            warning("same", Some("a/b"), &["n-1", "n-2"]),
            warning("of all", None, &[]),
        ];
        let notices = Notice::of_warnings(&warnings, &Zones::new());
        let subjects: Vec<Option<String>> =
            notices.iter().map(|it| it.subject(str::to_owned)).collect();
        let subject = |text: &str| Some(text.to_owned());
        assert_eq!(subjects, [subject("2 DaemonSets (a/a, a/b)"), subject("a/a"), None]);
        assert_eq!(notices[0].nodes, ["n-1", "n-2"]);
        assert_eq!(number_of(&notices), 4);
    }
}
