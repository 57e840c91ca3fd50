//! Approved plans against clusters and manifests that changed since.

use super::*;

/// A converged cluster of three nodes, two of which may be unavailable.
fn base() -> Cluster {
    let mut cluster = Cluster::of(3);
    cluster.set_limits(&json!(2), &json!(0));
    settle(&mut cluster);
    cluster
}

fn with(change: impl FnOnce(&mut Cluster)) -> Cluster {
    let mut cluster = base();
    change(&mut cluster);
    cluster
}

fn v2(cluster: &mut Cluster) {
    cluster.set_image("foo/bar:2");
}

fn min_ready(seconds: u32) -> impl Fn(&mut Cluster) {
    move |cluster| cluster.edit(|spec| spec["minReadySeconds"] = json!(seconds))
}

fn fail_first_pod(cluster: &mut Cluster) {
    cluster.pods[0].phase = PodPhase::Failed;
}

/// The messages of a stale plan.
fn words(agreed: &Plan, now: &Plan, binding: Binding) -> Vec<String> {
    stale(agreed, now, binding).iter().map(|it| it.what.to_string()).collect()
}

/// A change of a cluster or a manifest.
type Edit = Box<dyn Fn(&mut Cluster)>;

fn edit(change: impl Fn(&mut Cluster) + 'static) -> Edit {
    Box::new(change)
}

fn nothing() -> Edit {
    edit(|_| {})
}

/// Changes of git besides the new image before the approval, then of the cluster and of git after
/// it; then the expected messages without and with `--strict`.
type Row = (&'static str, Edit, Edit, Edit, Words, Words);
type Words = &'static [&'static str];

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn changes_that_make_a_plan_stale() {
    const PODS_1_1: &str = "other pods would be deleted than planned: 1 more, 1 fewer";
    const PODS_1_0: &str = "other pods would be deleted than planned: 1 more, 0 fewer";
    const PODS_0_1: &str = "other pods would be deleted than planned: 0 more, 1 fewer";
    const PODS_0_3: &str = "other pods would be deleted than planned: 0 more, 3 fewer";
    const TARGET: &str = "would get a different template than planned";
    const LIVE: &str = "its live template was changed since the plan";
    const STRATEGY: &str = "has a different or looser update strategy";
    const OBJECT: &str = "was created, deleted or recreated since the plan";
    const MIN_READY: &str = "other fields would change: spec.minReadySeconds";
    let rows: Vec<Row> = vec![
        ("nothing has happened", nothing(), nothing(), nothing(), &[], &[]),
        (
            "a pod was replaced meanwhile",
            nothing(),
            edit(|cluster| cluster.pods[0].uid = "anew".into()),
            nothing(),
            &[],
            &[PODS_1_1],
        ),
        (
            "a node has joined",
            nothing(),
            edit(|cluster| {
                cluster.nodes.push(node("node-9", &[], &[]));
                settle(cluster);
            }),
            nothing(),
            &[],
            &[PODS_1_0],
        ),
        (
            "a node was deleted with its pod",
            nothing(),
            edit(|cluster| {
                cluster.nodes.pop();
                cluster.pods.pop();
            }),
            nothing(),
            &[],
            &[PODS_0_1],
        ),
        (
            "it was applied already",
            nothing(),
            edit(|cluster| {
                v2(cluster);
                settle(cluster);
            }),
            nothing(),
            &[],
            &[PODS_0_3],
        ),
        (
            "a pod has failed, which is another reason",
            nothing(),
            edit(fail_first_pod),
            nothing(),
            &["pods would be deleted for other reasons than planned: failed"],
            &[],
        ),
        (
            "a pod is terminating",
            nothing(),
            edit(|cluster| cluster.pods[0].terminating = true),
            nothing(),
            &[],
            &[],
        ),
        (
            "another client applied another template",
            nothing(),
            edit(|cluster| cluster.set_image("foo/bar:9")),
            nothing(),
            &[LIVE],
            &[LIVE],
        ),
        (
            "another client recreated it",
            nothing(),
            edit(|cluster| cluster.daemon_set.uid = "another".into()),
            nothing(),
            &[OBJECT],
            &[OBJECT],
        ),
        (
            "git has another template",
            nothing(),
            nothing(),
            edit(|git| git.set_image("foo/bar:3")),
            &[TARGET],
            &[TARGET],
        ),
        (
            "git has another field",
            nothing(),
            nothing(),
            edit(min_ready(7)),
            &[MIN_READY],
            &[MIN_READY],
        ),
        (
            "git has another value of a field that was planned to change",
            edit(min_ready(5)),
            nothing(),
            edit(min_ready(7)),
            &[MIN_READY],
            &[MIN_READY],
        ),
        (
            "another client changed a field that was planned to change",
            edit(min_ready(5)),
            edit(min_ready(3)),
            edit(min_ready(5)),
            &[],
            &[],
        ),
        (
            "another client changed another field",
            nothing(),
            edit(min_ready(3)),
            nothing(),
            &[MIN_READY],
            &[MIN_READY],
        ),
        (
            "it is looser, live and in git",
            nothing(),
            edit(|cluster| cluster.set_limits(&json!(3), &json!(0))),
            edit(|git| git.set_limits(&json!(3), &json!(0))),
            &[STRATEGY],
            &[STRATEGY],
        ),
        (
            "it is stricter, live and in git",
            nothing(),
            edit(|cluster| cluster.set_limits(&json!(1), &json!(0))),
            edit(|git| git.set_limits(&json!(1), &json!(0))),
            &[],
            &[],
        ),
        (
            "it surges, live and in git",
            nothing(),
            edit(|cluster| cluster.set_limits(&json!(0), &json!(1))),
            edit(|git| git.set_limits(&json!(0), &json!(1))),
            &[STRATEGY, "pods would be deleted for other reasons than planned: outdated"],
            &[STRATEGY],
        ),
        (
            "it is OnDelete, live and in git",
            nothing(),
            edit(Cluster::set_on_delete),
            edit(Cluster::set_on_delete),
            &[STRATEGY],
            &[STRATEGY, PODS_0_3],
        ),
    ];
    for (name, asked, happened, in_git, of_reasons, of_pods) in rows {
        let wanted = with(|git| {
            v2(git);
            asked(git);
        });
        let agreed = planned(&snapshot(&base()), &[desired(&wanted)]);
        let wanted = with(|git| {
            v2(git);
            in_git(git);
        });
        let now = planned(&snapshot(&with(happened)), &[desired(&wanted)]);
        assert_eq!(words(&agreed, &now, Binding::Reasons), of_reasons, "{name}");
        assert_eq!(words(&agreed, &now, Binding::Pods), of_pods, "{name}, strictly");
    }
}

#[test]
fn a_created_object_is_the_planned_one_only_with_its_template() {
    let mut nobody = snapshot(&base());
    nobody.daemon_sets.clear();
    let wanted = [desired(&base())];
    let agreed = planned(&nobody, &wanted);
    let created = planned(&snapshot(&base()), &wanted);
    assert_eq!(words(&agreed, &created, Binding::Reasons), Vec::<String>::new());
    let by_others = planned(&snapshot(&with(v2)), &wanted);
    let object = ["was created, deleted or recreated since the plan"];
    assert_eq!(words(&agreed, &by_others, Binding::Reasons), object);
    assert_eq!(words(&created, &agreed, Binding::Reasons), object, "it was deleted");
}

#[test]
fn a_daemon_set_on_one_side_only_is_stale() {
    let cluster = base();
    let wanted = desired(&cluster);
    let one = planned(&snapshot(&cluster), std::slice::from_ref(&wanted));
    let none = planned(&snapshot(&cluster), &[]);
    assert_eq!(words(&none, &one, Binding::Reasons), ["is not in the plan"]);
    assert_eq!(words(&one, &none, Binding::Reasons), ["is in the plan, but not in the manifests"]);
    let reported: Vec<String> =
        stale(&none, &one, Binding::Pods).iter().map(ToString::to_string).collect();
    assert_eq!(reported, [format!("{}: is not in the plan", wanted.key)]);
}

#[test]
fn a_surge_that_progressed_is_not_stale() {
    let mut cluster = Cluster::of(3);
    cluster.set_limits(&json!(0), &json!(1));
    settle(&mut cluster);
    v2(&mut cluster);
    let wanted = [desired(&cluster)];
    cluster.sync();
    let agreed = planned(&snapshot(&cluster), &wanted);
    cluster.make_all_ready();
    let now = planned(&snapshot(&cluster), &wanted);
    let pods = now.daemon_sets[0].nodes.iter().flat_map(|node| &node.pods);
    assert_eq!(
        pods.filter(|pod| matches!(pod.reason.reason, Reason::Superseded { .. })).count(),
        1
    );
    assert_eq!(words(&agreed, &now, Binding::Reasons), Vec::<String>::new());
}
