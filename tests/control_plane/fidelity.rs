//! The embedded cluster behaves like a real one: the same scenarios are run on both, and the
//! transcripts compared. A transcript contains the status of the DaemonSet, its revisions, and for
//! each node the pods that came and went, each time the cluster has settled.
//!
//! Both are reached through a `kube::Client`, so the steps are the same code; only time differs,
//! which is virtual in the embedded cluster. All scenarios share one control plane: each has its
//! own namespace and nodes. Hashes differ between the two clusters, so transcripts use letters
//! instead, in the order of the revisions.
//!
//! `DS_PLAN_SCENARIO` runs only the scenarios whose name contains it, and prints their transcripts.

mod embedded;
mod player;
mod real;
mod scenarios;
mod step;
mod transcript;
mod view;
mod watcher;

use std::collections::BTreeMap;

use similar::TextDiff;

use self::scenarios::scenarios;
use self::step::{Scenario, Step};
use crate::harness::kubernetes;

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_cluster_behaves_like_a_real_one() {
    if !kubernetes::since(36, "the embedded cluster behaves as the newest version does") {
        return;
    }
    let wanted = std::env::var("DS_PLAN_SCENARIO").ok();
    let mut chosen = scenarios();
    chosen.retain(|it| wanted.as_ref().is_none_or(|wanted| it.name.contains(wanted)));
    let embedded = embedded::play_all(&chosen);
    let mut real = real::play_all(&chosen).await;
    // On a busy machine a real cluster may be idle for so long that it seems settled. A real
    // difference appears again on a fresh cluster.
    let again: Vec<Scenario> =
        chosen.iter().filter(|it| differs(it, &real, &embedded)).cloned().collect();
    if (1..=AGAIN).contains(&again.len()) {
        real.extend(real::play_all(&again).await);
    }
    let differences = differences(&chosen, &real, &embedded);
    if wanted.is_some() {
        for (name, text) in &real {
            println!("{name}\n{text}");
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {} scenarios differ (- real, + embedded):\n\n{}",
        differences.len(),
        chosen.len(),
        differences.join("\n\n")
    );
}

/// The most failed scenarios that are run again; more are not a coincidence.
const AGAIN: usize = 3;

/// The transcripts of all scenarios, by name.
type Transcripts = BTreeMap<&'static str, String>;

fn differs(scenario: &Scenario, real: &Transcripts, embedded: &Transcripts) -> bool {
    real[scenario.name] != embedded[scenario.name]
}

fn differences(all: &[Scenario], real: &Transcripts, embedded: &Transcripts) -> Vec<String> {
    let mut differences = Vec::new();
    for scenario in all.iter().filter(|it| differs(it, real, embedded)) {
        let name = scenario.name;
        let diff = TextDiff::from_lines(&real[name], &embedded[name]);
        let diff = diff.unified_diff().context_radius(4).to_string();
        differences.push(format!("{name}:\n{diff}"));
    }
    differences
}

#[test]
fn scenarios_have_unique_names_and_record_their_end() {
    let all = scenarios();
    let mut names: Vec<&str> = all.iter().map(|it| it.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "duplicate name");
    for Scenario { name, steps, .. } in &all {
        assert!(
            steps.last().is_some_and(Step::looks),
            "{name} records nothing after its last step"
        );
    }
}
