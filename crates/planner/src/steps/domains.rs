//! Domains: groups of nodes that are updated one after the other in every step.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::members::{latest, only_lack_images};
use super::sampled::began;
use super::soak::{self, Progress};
use super::{NodeUpdate, StepNode, StepsInput, WaveId};
use crate::classification::NodeStanding;
use crate::digest::template_digest;
use daemonset::model::{Domains, Soak, StepsNote};

/// The name of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain<'a> {
    /// All nodes: the policy has no domains.
    All,
    /// The nodes with this value of the label.
    Named(&'a str),
    /// The nodes without the label.
    Unlabeled,
}

impl<'a> Domain<'a> {
    /// The value of the label; none without domains, empty for nodes without the label.
    pub(crate) fn name(self) -> Option<&'a str> {
        match self {
            Self::All => None,
            Self::Named(name) => Some(name),
            Self::Unlabeled => Some(""),
        }
    }
}

/// A domain in the step in progress.
#[derive(Clone, Debug)]
pub(crate) struct DomainProgress<'a> {
    /// Its name.
    pub name: Domain<'a>,
    /// Whether its nodes may begin, as far as the number of domains at once is concerned.
    pub is_open: bool,
    /// Maximum number of its nodes without an available pod; none without a limit of its own.
    pub max_unavailable: Option<u32>,
    /// Number of its nodes that count as unavailable.
    pub unavailable: u32,
    /// The end of its soak, while it soaks. It is known, or no later than the longest time.
    pub soaks_until: Option<Timestamp>,
}

impl DomainProgress<'_> {
    /// Number of its nodes that may become unavailable.
    pub(crate) fn room(&self) -> u32 {
        self.max_unavailable.map_or(u32::MAX, |limit| limit.saturating_sub(self.unavailable))
    }
}

/// The domains of the policy that have unavailable nodes, and the number of those.
pub(crate) fn with_unavailable<'s>(
    domains: &'s [DomainProgress<'_>],
) -> impl Iterator<Item = (&'s str, u32)> {
    let named = domains.iter().filter_map(|it| Some((it.name.name()?, it.unavailable)));
    named.filter(|(_, unavailable)| *unavailable > 0)
}

/// The domains in their order, and the domain of each node.
pub(super) fn of_nodes<'a>(
    nodes: &[StepNode<'a>],
    policy: Option<&'a Domains>,
) -> (Vec<Domain<'a>>, Vec<usize>) {
    let Some(policy) = policy else { return (vec![Domain::All], vec![0; nodes.len()]) };
    let value = |node: &StepNode<'a>| node.node.labels.get(&policy.key);
    let present: BTreeSet<&str> = nodes.iter().filter_map(value).collect();
    let first = policy.first.iter().map(String::as_str).filter(|name| present.contains(name));
    let mut names: Vec<&str> = first.collect();
    names.extend(present.iter().filter(|name| !policy.first.iter().any(|it| it == *name)));
    let at = |node: &StepNode<'a>| {
        let position = value(node).and_then(|value| names.iter().position(|it| *it == value));
        position.unwrap_or(names.len())
    };
    let domain_of: Vec<usize> = nodes.iter().map(at).collect();
    let mut domains: Vec<Domain<'a>> = names.iter().copied().map(Domain::Named).collect();
    if domain_of.contains(&names.len()) {
        domains.push(Domain::Unlabeled);
    }
    (domains, domain_of)
}

/// Where nodes and waves are.
pub(super) struct Layout<'l, 'a> {
    pub names: Vec<Domain<'a>>,
    pub domain_of: &'l [usize],
    /// Whether the step in progress has added the node.
    pub is_member: &'l dyn Fn(usize) -> bool,
    pub waves: &'l [Option<WaveId>],
}

/// The domains in the step in progress, and which of them are open. What is noted about their soaks
/// is added to `after`.
pub(super) fn progress<'a>(
    input: &StepsInput<'_, 'a>,
    before: Option<&StepsNote>,
    after: &mut StepsNote,
    layout: Layout<'_, 'a>,
    step: &str,
) -> Vec<DomainProgress<'a>> {
    let Layout { names, domain_of, is_member, waves } = layout;
    let Some(policy) = input.policy.domains.as_ref() else {
        let open = DomainProgress {
            name: Domain::All,
            is_open: true,
            max_unavailable: None,
            unavailable: 0,
            soaks_until: None,
        };
        return vec![open];
    };
    let mut tallies = vec![Tally::default(); names.len()];
    for (at, node) in input.nodes.iter().enumerate() {
        let tally = &mut tallies[domain_of[at]];
        tally.desired += u32::from(node.is_desired);
        tally.unavailable += u32::from(node.is_unavailable);
        tally.has_outdated |= waves[at].is_some() && is_member(at) && is_reachable(node);
    }
    let digest = domains_digest(policy, step);
    let mut domains: Vec<DomainProgress<'a>> = Vec::with_capacity(names.len());
    for (number, (name, tally)) in names.into_iter().zip(&tallies).enumerate() {
        let here = || {
            let nodes = input.nodes.iter().enumerate();
            nodes.filter(|(at, _)| domain_of[*at] == number && is_member(*at)).map(|(_, node)| node)
        };
        let soaks_until = soaking(input, before, after, here, &digest, policy.soak, (step, name));
        let limit = policy.max_unavailable.map(|limit| limit.scaled(tally.desired).max(1));
        domains.push(DomainProgress {
            name,
            is_open: tally.unavailable > 0 || soaks_until.is_some(),
            max_unavailable: limit,
            unavailable: tally.unavailable,
            soaks_until,
        });
    }
    // The disturbed domains are known before any other one is opened.
    let at_once = usize::try_from(policy.at_once).unwrap_or(usize::MAX);
    let mut open = domains.iter().filter(|domain| domain.is_open).count();
    for (domain, tally) in domains.iter_mut().zip(&tallies) {
        if !domain.is_open && tally.has_outdated && open < at_once {
            domain.is_open = true;
            open += 1;
        }
    }
    // More of them are disturbed than may be at once: only these continue. One that soaks has nothing
    // to begin.
    domains
}

#[derive(Clone, Copy, Default)]
struct Tally {
    desired: u32,
    unavailable: u32,
    /// Whether the step in progress has outdated nodes here.
    has_outdated: bool,
}

fn is_reachable(node: &StepNode<'_>) -> bool {
    node.standing == NodeStanding::Ready
}

/// The end of a domain's soak, while it soaks.
fn soaking<'s, 'a: 's, I: Iterator<Item = &'s StepNode<'a>>>(
    input: &StepsInput<'_, '_>,
    before: Option<&StepsNote>,
    after: &mut StepsNote,
    nodes: impl Fn() -> I,
    digest: &str,
    soak: Soak,
    (step, name): (&str, Domain<'_>),
) -> Option<Timestamp> {
    if soak.is_zero() {
        return None;
    }
    let began = began(after, input, input.now);
    let counted = || nodes().filter(|node| node.standing != NodeStanding::Skipped);
    let is_updated = |node: &StepNode<'_>| matches!(node.update, NodeUpdate::Updated { .. });
    let is_complete = counted().next().is_some() && counted().all(is_updated);
    let key = format!("{step}/{}", name.name().unwrap_or_default());
    let noted = before.and_then(|note| note.steps.get(&key)).filter(|note| note.digest == digest);
    let (up_since, now) = (latest(nodes()), input.now);
    match soak::judge(noted, digest.to_owned(), is_complete, up_since, soak, now, Timestamp::MAX) {
        // All its nodes are skipped since it began: that may be what the new pods have done.
        Progress::Running if counted().next().is_none() => match noted {
            Some(note) => {
                after.steps.insert(key, note.clone());
                Some(Timestamp::MAX)
            }
            // None of its new pods has been available before.
            None => nodes().any(|node| node.is_gated(began)).then_some(Timestamp::MAX),
        },
        Progress::Running => {
            // As of a step: it continues until a node that was skipped has its images.
            if let Some(note) = noted.filter(|_| only_lack_images(&nodes)) {
                after.steps.insert(key, note.clone());
            }
            None
        }
        // Gates are asked about whole steps.
        Progress::Done { note } | Progress::Soaked { note, since: _ } => {
            after.steps.insert(key, note);
            None
        }
        Progress::Complete { note, until } => {
            after.steps.insert(key, note);
            Some(until.unwrap_or(Timestamp::MAX))
        }
    }
}

/// Digest of the domains of a step: an edited soak begins again.
pub(super) fn domains_digest(policy: &Domains, step: &str) -> String {
    // Text and numbers: it cannot fail.
    let value = serde_json::to_value((policy, step)).unwrap_or_default();
    template_digest(&value)
}
