//! A plan describes what then happens: after its handover of fields and its apply, the object is
//! what `diff` showed, and the next plan is empty.

use daemonset::model::DesiredDaemonSet;
use jiff::Timestamp;
use kube::Client;
use planner::plan::{
    Change, DaemonSetPlan, Diff, DiffInput, ShownValues, SourceInfo, diff, sent, settled,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::server::{self, Answer, Run};
use super::{APPLIER, Count, api_server, decided, desired, equal, story};
use crate::harness::{ControlPlane, kubernetes};
use crate::planning;
use testkit::random::Random;

/// The number of objects and manifests to try.
const PAIRS: u64 = 100;

#[tokio::test]
async fn a_plan_describes_what_happens_and_the_next_one_is_empty() {
    if !kubernetes::keeps_templates_as_sent() {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let (mut count, mut wrong) = (Count::new(), Vec::new());
    for seed in 0..PAIRS {
        let mut random = Random::seeded(5000 + seed);
        let name = format!("ds-{seed}");
        let reported = story::live(&plane, &client, &mut random, &name).await;
        let Some(desired) = desired(&story::to_apply(&mut random, &name)) else { continue };
        if let Err(difference) = carry_out(&plane, &client, &desired, &mut count).await {
            let (reported, applied) = (reported.join("\n  "), &desired.written);
            wrong.push(format!("seed {seed}\n  {reported}\n  applied {applied}\n{difference}"));
        }
    }
    println!("{count:?}");
    assert!(wrong.is_empty(), "{} wrong, {count:?}\n{}", wrong.len(), wrong.join("\n"));
    let seen = |kind: &str| count.get(kind).copied().unwrap_or_default();
    for (kind, least) in
        [("applied", 55), ("conflicts forced", 30), ("with leftovers", 20), ("emptied", 5)]
    {
        assert!(seen(kind) >= least, "only {} {kind}: {count:?}", seen(kind));
    }
}

async fn carry_out(
    plane: &ControlPlane,
    client: &Client,
    desired: &DesiredDaemonSet,
    count: &mut Count,
) -> Result<(), String> {
    let before = planning::live(plane).await;
    let plan = planning::planned(&before, std::slice::from_ref(desired));
    let refused = plan.warnings.iter().find(|it| it.code == "applyRefused");
    let target = target(&before, desired);
    let plan = &plan.daemon_sets[0];
    let name = plan.name.as_str();
    if plan.change == Change::Recreate {
        return Ok(());
    }
    force_conflicts(client, plan).await?;
    let live = server::get(client, name).await;
    let settled = settled(live.as_ref(), sent(desired));
    let emptied = settled != sent(desired);
    let answer = server::apply(client, &settled, APPLIER, true, Run::Real).await;
    let mut count = |kind| *count.entry(kind).or_default() += 1;
    let served = match (answer, refused) {
        (Answer::Object(served), None) => served,
        (Answer::Invalid(_) | Answer::Failed(_), Some(_)) => {
            count("refused");
            return Ok(());
        }
        (answer, refused) => return Err(format!("we: {refused:?}\nthe server: {answer:?}")),
    };
    count("applied");
    if emptied {
        count("emptied");
    }
    if !plan.forced_conflicts.is_empty() {
        count("conflicts forced");
    }
    if !plan.leftovers.is_empty() {
        count("with leftovers");
    }
    if let Some(target) = target {
        equal("target", &decided(&target), &decided(&served))?;
    }
    // Restoring the strategy is a second apply.
    let again = server::apply(client, &sent(desired), APPLIER, false, Run::Real).await;
    let Answer::Object(again) = again else { return Err(format!("once more: {again:?}")) };
    equal("object, once more", &decided(&again), &decided(&served))?;
    let after = planning::live(plane).await;
    let next = planning::planned(&after, std::slice::from_ref(desired));
    let next = &next.daemon_sets[0];
    let settled = next.change == Change::None && next.conflicts.is_empty();
    let stays = next.leftovers == plan.leftovers || plan.change == Change::Create;
    if settled && stays {
        return Ok(());
    }
    let stay = (&plan.leftovers, &next.leftovers);
    Err(format!("{name} is not settled: {:?}\n{:?}\n{stay:?}", next.changes, next.conflicts))
}

/// The new object that `diff` shows; `None` if nothing changes.
pub(super) fn target(
    before: &daemonset::model::Snapshot,
    desired: &DesiredDaemonSet,
) -> Option<Value> {
    let Diff { mut daemon_sets, .. } = diff(DiffInput {
        snapshot: before,
        desired: std::slice::from_ref(desired),
        force_conflicts: &BTreeSet::new(),
        source: SourceInfo::default(),
        warnings: Vec::new(),
        show_values: ShownValues::All,
    });
    daemon_sets.remove(0).target
}

/// Writes the field ownership that the plan assumes, as `ds-apply` would.
async fn force_conflicts(client: &Client, plan: &DaemonSetPlan) -> Result<(), String> {
    if plan.forced_conflicts.is_empty() {
        return Ok(());
    }
    let name = plan.name.as_str();
    let live = server::get(client, name).await.unwrap();
    let owners = ssa::ownership(&ssa::DAEMON_SET, &live, Timestamp::now())
        .map_err(|error| error.to_string())?;
    let names: Vec<&str> = plan.forced_conflicts.iter().map(String::as_str).collect();
    let version = &live["metadata"]["resourceVersion"];
    let patch = json!([
        { "op": "test", "path": "/metadata/resourceVersion", "value": version },
        {
            "op": "add", "path": "/metadata/managedFields",
            "value": owners.transferred(&ssa::DAEMON_SET, &names, APPLIER).to_value(),
        },
    ]);
    server::patch(client, name, "json-patch", APPLIER, &patch).await.map(|_| ())
}
