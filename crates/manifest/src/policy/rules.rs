//! The rules of a policy beyond the types of its fields. All violations are found at once.
//!
//! Not here: what depends on the cluster, such as a step that selects no node, or a number of nodes
//! compared with a percentage.

mod checks;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::validate::{dns_label, dns_subdomain, label_key, label_value};
use daemonset::model::{
    Calendar, DaemonSetKey, Domains, IntOrPercent, LabelSelector, LabelSelectorRequirement,
    NodeName, PolicySpec, PolicyStep, PrePull, StepNodes, StepSelector,
};

/// Limit of steps in a policy.
const MAX_STEPS: usize = 50;
/// Limit of names of nodes in a step.
const MAX_NAMES: usize = 5_000;
/// Maximum length of the name of a step or check.
const MAX_NAME: usize = 40;
/// The implied last step.
const LAST_STEP: &str = "rest";

/// A violation: the path of the field, and the message.
pub(super) type Violation = (String, String);

/// Fields and values that are refused with a message of their own.
pub(super) fn of_fields(policy: &Value) -> Vec<Violation> {
    let spec = &policy["spec"];
    let mut found: Vec<Violation> = Vec::new();
    if spec.get("order").is_some() {
        let message = "`order` is replaced by `after`: list the DaemonSets that must be done \
                       first, such as `after: [kube-system/cni]`";
        found.push(("spec.order".to_owned(), message.to_owned()));
    }
    let renamed = match spec["onFailure"].as_str() {
        Some("park") => Some("`park` is now `abort`"),
        Some("hold") => Some("`hold` is now `pause`"),
        Some(_) | None => None,
    };
    found.extend(renamed.map(|message| ("spec.onFailure".to_owned(), message.to_owned())));
    found
}

/// The violations of a policy whose fields have the right types.
pub(super) fn of_spec(spec: &PolicySpec) -> Vec<Violation> {
    let mut found = Vec::new();
    let selects = &spec.selects;
    if selects.names.is_empty() && selects.labels.is_empty() {
        found.push(("spec.selects".to_owned(), "set `names` or `labels`".to_owned()));
    }
    twice(&spec.after, DaemonSetKey::to_string, "spec.after", &mut found);
    of_windows(spec, &mut found);
    if spec.max_unavailable.is_some_and(IntOrPercent::is_zero) {
        let message = "no node could ever begin; use 1 or more".to_owned();
        found.push(("spec.maxUnavailable".to_owned(), message));
    }
    if spec.shared_budget.is_some_and(IntOrPercent::is_zero) {
        let message = "no node could ever begin; use 1 or more".to_owned();
        found.push(("spec.sharedBudget".to_owned(), message));
    }
    of_pre_pull(spec, &mut found);
    if let Some(domains) = &spec.domains {
        of_domains(domains, &mut found);
    }
    if spec.steps.len() > MAX_STEPS {
        let message = format!("{} steps; at most {MAX_STEPS} are allowed", spec.steps.len());
        found.push(("spec.steps".to_owned(), message));
    }
    of_names(&spec.steps, &mut found);
    of_counts(&spec.steps, &mut found);
    checks::of_checks(spec, &mut found);
    for (at, step) in spec.steps.iter().enumerate() {
        of_step(step, &format!("spec.steps[{at}]"), &mut found);
    }
    found
}

/// A node begins only if it is finished before the window closes, and its new pod has to be Ready
/// for `minReadySeconds`: with shorter windows, none would ever begin. Windows that touch are one.
/// Exclusions are left out, as they end.
fn of_windows(spec: &PolicySpec, found: &mut Vec<Violation>) {
    let Some(min_ready) = spec.min_ready_seconds.filter(|_| !spec.windows.is_empty()) else {
        return;
    };
    let calendar = Calendar::of(&spec.windows, &[]);
    // When it is read does not matter: windows return.
    let lasts = calendar.next_start(Timestamp::UNIX_EPOCH, u64::from(min_ready) + 1);
    if lasts.is_none() {
        let message = format!(
            "none is long enough for one node: its new pod must be Ready for {min_ready} s \
             (`minReadySeconds`) before the window closes"
        );
        found.push(("spec.windows".to_owned(), message));
    }
}

fn of_pre_pull(spec: &PolicySpec, found: &mut Vec<Violation>) {
    let Some(PrePull { parallel, timeout: _ }) = spec.pre_pull else { return };
    if parallel == 0 {
        let message = "no node could ever pull; use 1 or more".to_owned();
        found.push(("spec.prePull.parallel".to_owned(), message));
    }
    if spec.shared_budget.is_some() {
        // A node that is opened for several DaemonSets would wait for the images of the later ones.
        let message = "not possible together with `sharedBudget` yet; leave out one of them";
        found.push(("spec.prePull".to_owned(), message.to_owned()));
    }
}

fn of_domains(domains: &Domains, found: &mut Vec<Violation>) {
    let Domains { key, at_once, max_unavailable, first, soak: _ } = domains;
    let mut add = |field: &str, message: String| {
        found.push((format!("spec.domains.{field}"), message));
    };
    for complaint in label_key(key) {
        add("key", format!("`{key}`: {complaint}"));
    }
    if *at_once == 0 {
        add("atOnce", "no domain could ever begin; use 1 or more".to_owned());
    }
    if max_unavailable.is_some_and(IntOrPercent::is_zero) {
        add("maxUnavailable", "no node could ever begin; use 1 or more".to_owned());
    }
    twice(first, String::clone, "spec.domains.first", found);
}

/// The names of steps: valid, and different.
fn of_names(steps: &[PolicyStep], found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    for (at, PolicyStep { name, .. }) in steps.iter().enumerate() {
        let message = if name == LAST_STEP {
            format!("`{LAST_STEP}` is the implied last step: all other nodes")
        } else if name.len() > MAX_NAME || !dns_label(name).is_empty() {
            format!(
                "`{name}` is not a name for a step: use lowercase letters, digits and `-` between \
                 them, at most {MAX_NAME} characters"
            )
        } else if !seen.insert(name) {
            format!("another step before it is named `{name}`, too")
        } else {
            continue;
        };
        found.push((format!("spec.steps[{at}].name"), message));
    }
}

/// The counts of steps: each contains the nodes of the earlier ones, so they must grow. A number
/// and a percentage can only be compared on a cluster.
fn of_counts(steps: &[PolicyStep], found: &mut Vec<Violation>) {
    let (mut numbers, mut percentages) = (None, None);
    for (at, step) in steps.iter().enumerate() {
        let StepNodes::Count(count) = step.nodes else { continue };
        let path = format!("spec.steps[{at}].nodes");
        let (size, before) = match count {
            IntOrPercent::Int(nodes) => (nodes, &mut numbers),
            IntOrPercent::Percent(percent) => (percent, &mut percentages),
        };
        if count.is_zero() {
            found.push((path, format!("`{count}` selects no node; use 1 or more")));
        } else if matches!(count, IntOrPercent::Percent(101..)) {
            found.push((path, format!("`{count}` is more than all nodes")));
        } else if let Some((before, name)) = before.filter(|(before, _)| size <= *before) {
            let before = match count {
                IntOrPercent::Int(_) => IntOrPercent::Int(before),
                IntOrPercent::Percent(_) => IntOrPercent::Percent(before),
            };
            let message = format!(
                "`{count}` is not more than the {before} of step `{name}`; each step includes the \
                 nodes of those before it"
            );
            found.push((path, message));
        } else {
            *before = Some((size, step.name.as_str()));
        }
    }
}

fn of_step(step: &PolicyStep, path: &str, found: &mut Vec<Violation>) {
    let PolicyStep { name: _, nodes, spread, max_unavailable, approve: _, soak: _ } = step;
    if max_unavailable.is_some_and(IntOrPercent::is_zero) {
        let message = "no node could ever begin; use 1 or more".to_owned();
        found.push((format!("{path}.maxUnavailable"), message));
    }
    match (nodes, spread) {
        (StepNodes::Count(_), Some(key)) => {
            let complaints = label_key(key).into_iter();
            let complaints = complaints.map(|why| format!("`{key}`: {why}"));
            found.extend(complaints.map(|message| (format!("{path}.spread"), message)));
        }
        (StepNodes::Selected(_), Some(_)) => {
            let message = "only a number or percentage of nodes is spread over the values of a \
                           label; leave it out"
                .to_owned();
            found.push((format!("{path}.spread"), message));
        }
        (StepNodes::Count(_) | StepNodes::Selected(_), None) => {}
    }
    match nodes {
        StepNodes::Count(_) => {}
        StepNodes::Selected(StepSelector::Names(names)) => of_node_names(names, path, found),
        StepNodes::Selected(StepSelector::Labels(selector)) => {
            let complaints = of_selector(selector).into_iter();
            found.extend(complaints.map(|message| (format!("{path}.nodes"), message)));
        }
    }
}

fn of_node_names(names: &[NodeName], path: &str, found: &mut Vec<Violation>) {
    let path = format!("{path}.nodes.names");
    if names.len() > MAX_NAMES {
        let message =
            format!("{} names; at most {MAX_NAMES} are allowed: use a label instead", names.len());
        return found.push((path, message));
    }
    for (at, name) in names.iter().enumerate() {
        let complaints = dns_subdomain(name.as_str()).into_iter();
        let complaints =
            complaints.map(|why| (format!("{path}[{at}]"), format!("`{name}`: {why}")));
        found.extend(complaints);
    }
    twice(names, NodeName::to_string, &path, found);
}

/// Upstream's rules for keys and values (`ValidateLabelSelector`).
fn of_selector(selector: &LabelSelector) -> Vec<String> {
    let LabelSelector { match_labels, match_expressions } = selector;
    let labels = match_labels.iter().map(|(key, value)| (key, vec![value]));
    let expressions = match_expressions.iter().map(|requirement| {
        let LabelSelectorRequirement { key, operator: _, values } = requirement;
        (key.as_str(), values.iter().map(String::as_str).collect())
    });
    let mut found = Vec::new();
    for (key, values) in labels.chain(expressions) {
        found.extend(label_key(key).iter().map(|why| format!("`{key}`: {why}")));
        for value in values {
            found.extend(label_value(value).iter().map(|why| format!("`{value}`: {why}")));
        }
    }
    found
}

/// Items of the list at `path` that occur a second time.
fn twice<T: Ord>(items: &[T], text: impl Fn(&T) -> String, path: &str, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        if !seen.insert(item) {
            found.push((format!("{path}[{at}]"), format!("`{}` is listed twice", text(item))));
        }
    }
}
