//! The transcript of a scenario: the DaemonSet, its revisions, and each node, as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::step::Scenario;
use super::view::{View, hash_of, is_ready, node_of, owner};

/// The prefix of a pod's line.
const THERE_IS: &str = "    there is: ";

/// The prefix of an event's line.
const HAPPENED: &str = "    happened: ";

/// The lines so far.
#[derive(Default)]
pub(super) struct Transcript {
    looks: usize,
    general: Vec<String>,
    nodes: BTreeMap<String, Vec<String>>,
}

impl Transcript {
    /// Appends the current state, and the events on each node since the last call.
    pub(super) fn look(&mut self, view: &View, mut happened: BTreeMap<String, Vec<String>>) {
        self.looks += 1;
        let number = self.looks;
        self.general.push(format!("look {number}"));
        self.general.extend(view.daemon_sets.iter().map(daemon_set));
        let mut revisions: Vec<(i64, String)> = view.revisions.iter().map(revision).collect();
        revisions.sort();
        self.general.extend(revisions.into_iter().map(|(_, line)| line));
        let warnings = view
            .events
            .iter()
            .filter(|it| it["type"] == "Warning" && it["involvedObject"]["kind"] == "DaemonSet");
        let mut reasons: Vec<&str> = warnings.filter_map(|it| it["reason"].as_str()).collect();
        reasons.sort_unstable();
        reasons.dedup();
        self.general.push(format!("  warnings {reasons:?}"));

        let mut pods: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for one in &view.pods {
            pods.entry(node_of(one)).or_default().push(pod(one));
        }
        let mut names: Vec<String> = happened.keys().cloned().collect();
        names.extend(view.nodes.iter().map(|it| name(it).to_owned()));
        names.extend(pods.keys().map(|&name| name.to_owned()));
        names.sort();
        names.dedup();
        for of in names {
            let lines = self.nodes.entry(of.clone()).or_default();
            let found = view.nodes.iter().find(|it| name(it) == of);
            lines.push(format!("  look {number}: {}", found.map_or("gone".to_owned(), node)));
            let happened = happened.remove(&of).unwrap_or_default();
            lines.extend(happened.into_iter().map(|what| format!("{HAPPENED}{what}")));
            let here = pods.remove(&*of).unwrap_or_default();
            lines.extend(here.into_iter().map(|what| format!("{THERE_IS}{what}")));
        }
    }

    /// The whole text, with letters for these hashes. If nodes are alike, their names are left out.
    pub(super) fn text(&self, hashes: &[String], scenario: &Scenario) -> String {
        let Scenario { alike, races, .. } = *scenario;
        let common = |text: &str| {
            let letters = hashes.iter().zip('A'..='Z');
            letters.fold(text.to_owned(), |text, (hash, letter)| {
                text.replace(hash, &format!("<{letter}>"))
            })
        };
        let mut blocks: Vec<String> = self
            .nodes
            .iter()
            .map(|(name, lines)| {
                let name = if alike { "some node" } else { name };
                let mut lines: Vec<String> = lines.iter().map(|line| common(line)).collect();
                let both = |[one, other]: [&String; 2], begin: &str| {
                    one.starts_with(begin) && other.starts_with(begin)
                };
                for alike in lines.chunk_by_mut(|one, other| {
                    let pair = [one, other];
                    both(pair, THERE_IS) || races && both(pair, HAPPENED)
                }) {
                    alike.sort();
                }
                format!("{name}\n{}\n", lines.join("\n"))
            })
            .collect();
        if alike {
            blocks.sort();
        }
        let mut text = common(&self.general.join("\n"));
        let _ = write!(text, "\n{}", blocks.concat());
        text
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn daemon_set(daemon_set: &Value) -> String {
    let metadata = &daemon_set["metadata"];
    let ending = if metadata["deletionTimestamp"].is_string() { ", ending" } else { "" };
    format!(
        "  DaemonSet {}, generation {}{ending}, finalizers {}, status {}",
        name(daemon_set),
        metadata["generation"],
        metadata["finalizers"],
        daemon_set["status"],
    )
}

fn revision(revision: &Value) -> (i64, String) {
    let metadata = &revision["metadata"];
    let number = revision["revision"].as_i64().unwrap_or_default();
    let line = format!(
        "  revision {number}, {}, {}, labels {}, annotations {}, {}",
        name(revision),
        owner(revision),
        metadata["labels"],
        metadata["annotations"],
        revision["data"],
    );
    (number, line)
}

fn pod(pod: &Value) -> String {
    let labels = &pod["metadata"]["labels"];
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    let ready = if is_ready(pod) { "ready" } else { "not ready" };
    let bound = if pod["spec"]["nodeName"].is_string() { "" } else { ", unbound" };
    let ending = if pod["metadata"]["deletionTimestamp"].is_string() { ", ending" } else { "" };
    let image = pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
    let hash = hash_of(pod);
    format!("{hash} {image} {phase}, {ready}{bound}{ending}, {}, {labels}", owner(pod))
}

fn node(node: &Value) -> String {
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let mut taints: Vec<String> =
        taints.map(|it| format!("{}:{}", text(&it["key"]), text(&it["effect"]))).collect();
    taints.sort();
    let ready = if is_ready(node) { "ready" } else { "not ready" };
    let cordoned = if node["spec"]["unschedulable"] == true { ", cordoned" } else { "" };
    format!("{ready}{cordoned}, taints {taints:?}")
}
