//! What a plan says about approvals of steps that it does not know.

use std::collections::BTreeMap;

use super::*;
use crate::approval::{EarlierStep, Evidence, UpdatedNode, noted_steps, step_digest};
use crate::steps::WaitKind;
use daemonset::model::{ManagedBy, RolloutPolicy, StepNote, StepsNote, Unreadable};

/// The DaemonSet with a new template, and a policy whose last step has this `approve`.
fn with_approve(cluster: &mut Cluster, approve: bool) -> DesiredDaemonSet {
    cluster.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!("new"));
    let mut policy = RolloutPolicy::named("p");
    let steps = json!([{"name": "first", "nodes": 1}, {"name": "half", "nodes": "50%", "approve": approve}]);
    policy.spec.steps = serde_json::from_value(steps).unwrap();
    DesiredDaemonSet { policy: Some(policy.into()), ..desired(cluster) }
}

fn messages(plan: &Plan) -> Vec<(&str, &str)> {
    plan.warnings.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect()
}

#[test]
fn approvals_that_were_not_looked_up_are_not_checked() {
    let denied = "not checked: which steps of default/foo are approved (missing permission: get \
                  configmaps in namespace default)";
    let recorded =
        "not checked: which steps of default/foo are approved (a recording has no approvals)";
    for (approve, known, file, want) in [
        (true, false, None, Some(denied)),
        (true, false, Some("cluster.json"), Some(recorded)),
        (true, true, None, None),
        (false, false, None, None),
    ] {
        let mut cluster = settled(4);
        let mut live = snapshot(&cluster);
        live.cluster.file = file.map(str::to_owned);
        let desired = with_approve(&mut cluster, approve);
        if known {
            live.approvals.insert(desired.key.clone(), BTreeMap::new());
        }
        let plan = planned(&live, &[desired]);
        let want = want.map(|message| ("notChecked", message));
        assert_eq!(messages(&plan), Vec::from_iter(want), "{approve} {known} {file:?}");
    }
}

#[test]
fn a_daemon_set_that_does_not_exist_has_no_approvals() {
    let mut cluster = settled(4);
    let mut live = snapshot(&cluster);
    let desired = with_approve(&mut cluster, true);
    live.daemon_sets.clear();
    live.revisions.clear();
    live.pods.clear();
    let plan = planned(&live, &[desired]);
    assert_eq!(plan.daemon_sets[0].change, Change::Create);
    assert!(!messages(&plan).iter().any(|(code, _)| *code == "notChecked"), "{:?}", plan.warnings);
}

#[test]
fn approvals_that_cannot_be_read_are_named() {
    let mut cluster = settled(4);
    let mut live = snapshot(&cluster);
    live.unreadable.push(Unreadable {
        kind: Unreadable::APPROVAL,
        namespace: Some("default".into()),
        name: "ds-plan-foo-approvals".to_owned(),
        reason: "key half: it has more than 10000 bytes".to_owned(),
    });
    let desired = with_approve(&mut cluster, false);
    let want = "ConfigMap default/ds-plan-foo-approvals cannot be read (key half: it has more than \
                10000 bytes); it counts as no approval";
    assert_eq!(messages(&planned(&live, &[desired])), [("unreadable", want)]);
}

#[test]
fn a_run_that_is_the_controller_could_approve_its_own_steps() {
    for (approve, managed_by, refused) in [
        (true, ManagedBy::DsApply, true),
        (false, ManagedBy::DsApply, false),
        (true, ManagedBy::DaemonSetController, false),
    ] {
        let mut cluster = settled(4);
        let mut live = snapshot(&cluster);
        let desired = DesiredDaemonSet { managed_by, ..with_approve(&mut cluster, approve) };
        live.daemon_sets[0].managed_by = managed_by;
        live.approvals.insert(desired.key.clone(), BTreeMap::new());
        let plan = planned(&live, &[desired]);
        let guards: Vec<_> = plan.guards.iter().map(|it| (it.code, it.message.as_str())).collect();
        let want = "step half waits for an approval, which is not possible with `managedBy: \
                    ds-apply`: there ds-apply may write ConfigMaps, and so could approve its own \
                    steps. Remove `approve: true`, or let the DaemonSet controller manage \
                    default/foo";
        let want = refused.then_some((GuardCode::ManagedBy, want));
        assert_eq!(guards, Vec::from_iter(want), "{approve} {managed_by}");
    }
}

#[test]
fn the_evidence_is_who_runs_the_target_and_since_when() {
    let mut cluster = settled(5);
    cluster.set_limits(&json!(3), &json!(0));
    cluster.set_image("new");
    cluster.sync();
    // The new pods: one is not Ready, one has restarted, one is older.
    cluster.sync();
    let hash = cluster.hash();
    let new: Vec<usize> =
        (0..cluster.pods.len()).filter(|at| cluster.pods[*at].has_hash(&hash)).collect();
    let [restarted, unready, older] = new[..] else { panic!("{new:?}") };
    let ready = |since| PodReadiness::Ready { since: Some(at(since).into()) };
    cluster.pods[restarted].readiness = ready(100);
    cluster.pods[restarted].restarts = 2;
    cluster.pods[older].readiness = ready(50);
    let nodes = [restarted, unready, older].map(|at| cluster.pods[at].node().unwrap().clone());
    let (live, desired) = (snapshot(&cluster), with_approve(&mut cluster, true));
    let earlier = &desired.policy.as_ref().unwrap().spec.steps[..1];
    let plan = planned(&live, std::slice::from_ref(&desired)).daemon_sets.remove(0);
    let noted = |template: &str| {
        let digest = step_digest(&earlier[0]);
        let step = StepNote { digest, complete_at: Some(at(7)), done_at: Some(at(9)) };
        let steps = [("first".to_owned(), step)].into();
        StepsNote { template: template.to_owned(), steps, ..StepsNote::default() }
    };
    let [restarted, unready, older] = nodes;
    let node = |node, ready_since, restarts| UpdatedNode { node, ready_since, restarts };
    let nodes = vec![
        node(restarted, Some(at(100)), 2),
        node(unready, None, 0),
        node(older, Some(at(50)), 0),
    ];
    let step =
        |complete_at, done_at| EarlierStep { name: "first".to_owned(), complete_at, done_at };
    for (template, want) in [
        (plan.target_template.as_str(), step(Some(at(7)), Some(at(9)))),
        ("sha256:other", step(None, None)),
    ] {
        let evidence = Evidence::of(&live, &plan, earlier, Some(&noted(template)));
        assert_eq!(evidence, Evidence { steps: vec![want], nodes: nodes.clone() }, "{template}");
    }
}

/// What was done before another client replaced the template is not done for the plan, as for the run, nor
/// for the evidence of an approval.
#[test]
fn the_steps_of_an_ended_rollout_count_only_while_its_template_is_live() {
    for (is_live, started_at, is_counted) in
        [(true, None, true), (false, None, false), (false, Some(at(5)), true)]
    {
        let mut cluster = settled(4);
        let mut live = snapshot(&cluster);
        let desired = with_approve(&mut cluster, true);
        let template = planned(&live, std::slice::from_ref(&desired)).daemon_sets.remove(0);
        let template = template.target_template;
        if is_live {
            // Its nodes have their old pods.
            live.daemon_sets = snapshot(&cluster).daemon_sets;
        }
        let steps = &desired.policy.as_ref().unwrap().spec.steps;
        let done = |step| StepNote {
            digest: step_digest(step),
            complete_at: Some(at(7)),
            done_at: Some(at(9)),
        };
        let steps = steps.iter().map(|step| (step.name.clone(), done(step))).collect();
        let note = StepsNote { template, steps, started_at, ..StepsNote::default() };
        live.set_notes(&desired.key, "", Some(note));
        live.approvals.insert(desired.key.clone(), BTreeMap::new());
        let plan = planned(&live, std::slice::from_ref(&desired)).daemon_sets.remove(0);
        let states: Vec<StepState> = plan.steps.iter().map(|step| step.state).collect();
        let waits: Vec<WaitKind> = plan.waits_for.iter().map(|it| it.kind).collect();
        // The steps, and the implied last one.
        let want = if is_counted {
            vec![StepState::Done, StepState::Done, StepState::InProgress]
        } else {
            vec![StepState::InProgress, StepState::Pending, StepState::Pending]
        };
        assert_eq!((states, waits), (want, vec![]), "{is_live} {started_at:?}");
        let noted = noted_steps(&live, &plan).map(|note| note.steps.len());
        assert_eq!(noted, is_counted.then_some(2), "{is_live} {started_at:?}");
    }
}
