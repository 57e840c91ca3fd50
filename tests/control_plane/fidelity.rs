//! The embedded cluster behaves as a real one does: the same scenarios are played on both, and the
//! transcripts compared. A transcript has the status of the DaemonSet, its revisions, and for each
//! node what came and went there, whenever all has come to rest.
//!
//! Both are reached through a `kube::Client`, so that the steps are the same code; only the time
//! differs, which is virtual in the embedded cluster. All scenarios share one control plane: each
//! has a namespace and nodes of its own. Hashes are each side's own, and are called by letters in
//! the order of their revisions.
//!
//! `DS_PLAN_SCENARIO` plays those alone whose names contain it, and prints their transcripts.

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

#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_cluster_does_what_a_real_one_does() {
    let wanted = std::env::var("DS_PLAN_SCENARIO").ok();
    let mut chosen = scenarios();
    chosen.retain(|it| wanted.as_ref().is_none_or(|wanted| it.name.contains(wanted)));
    let embedded = embedded::play_all(&chosen);
    let mut real = real::play_all(&chosen).await;
    // A real cluster on a busy machine may pause for longer than it takes to be taken for at rest.
    // What differs for another reason differs again on a cluster of its own.
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

/// So many that differ are played once more; more are no accident.
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
fn scenarios_are_many_and_told_apart() {
    let all = scenarios();
    let mut names: Vec<&str> = all.iter().map(|it| it.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all.len(), "two have one name");
    for Scenario { name, steps, .. } in &all {
        assert!(steps.last().is_some_and(Step::looks), "{name} ends without a look");
    }
}
