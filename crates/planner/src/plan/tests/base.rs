//! The change of a pull request itself, against its merge base.

use std::collections::BTreeSet;

use super::*;
use daemonset::model::DaemonSetKey;
use daemonset::model::mask::{Salt, mask_annotations, mask_template};

/// The cluster as `ds-plan snapshot --mask-values` records it.
fn masked_recording(mut snapshot: Snapshot) -> Snapshot {
    let salt = Salt::from_bytes([7; 16]);
    snapshot.coverage.masked = Some(salt);
    for live in &mut snapshot.daemon_sets {
        live.spec.template.edit(|template| mask_template(template, &salt));
        let raw = Arc::make_mut(&mut live.raw);
        mask_template(&mut raw["spec"]["template"], &salt);
        mask_annotations(raw, &salt);
    }
    for revision in &mut snapshot.revisions {
        mask_template(&mut Arc::make_mut(&mut revision.data)["spec"]["template"], &salt);
    }
    snapshot
}

/// Both sides are of git, so a recording has no effect on it, masked or not.
#[test]
fn a_masked_recording_has_the_same_changes_since_the_base() {
    let mut cluster = Cluster::of(2);
    cluster.edit(|spec| {
        let container = &mut spec["template"]["spec"]["containers"][0];
        container["env"] = json!([{"name": "PASSWORD", "value": "hunter2"}]);
        container["args"] = json!(["--config=/etc/a"]);
    });
    settle(&mut cluster);
    let plain = snapshot(&cluster);
    let masked = masked_recording(plain.clone());
    // Existing drift.
    cluster.set_image("foo/bar:2");
    let base = [desired(&cluster)];
    let changes: [fn(&mut Cluster); 4] = [
        |_| {},
        |cluster| cluster.set_image("foo/bar:3"),
        |cluster| {
            cluster.edit(|spec| {
                let container = &mut spec["template"]["spec"]["containers"][0];
                container["env"][0]["value"] = json!("hunter3");
            });
        },
        |cluster| {
            cluster.edit(|spec| {
                let container = &mut spec["template"]["spec"]["containers"][0];
                container["args"] = json!(["--config=/etc/b"]);
            });
        },
    ];
    for (count, change) in changes.into_iter().enumerate() {
        change(&mut cluster);
        let wanted = [desired(&cluster)];
        let [of_plain, of_masked] = [&plain, &masked].map(|snapshot| {
            let input = Input { base: Some(&base), ..Input::of(snapshot, &wanted) };
            plan(input).daemon_sets.remove(0).base.unwrap()
        });
        assert_eq!(of_plain.changes.len(), count, "{of_plain:#?}");
        assert_eq!(of_masked, of_plain);
    }
}

/// Nothing else of the plan is about it.
#[test]
fn what_a_pull_request_removes_is_a_warning_while_it_is_live() {
    let cluster = settled(2);
    let live = snapshot(&cluster);
    let key = live.daemon_sets[0].key.clone();
    let mut terminating = live.clone();
    terminating.daemon_sets[0].terminating = true;
    let mut gone = live.clone();
    gone.daemon_sets.clear();
    let removed = BTreeSet::from([key.clone()]);
    let renamed =
        [DesiredDaemonSet { key: DaemonSetKey::new("default", "bar"), ..desired(&cluster) }];
    let other = BTreeSet::from([DaemonSetKey::new("default", "other")]);
    for (snapshot, removed, warned) in [
        (&live, &removed, true),
        (&live, &other, false),
        (&live, &BTreeSet::new(), false),
        (&terminating, &removed, false),
        (&gone, &removed, false),
    ] {
        let plan = plan(Input { base: Some(&[]), removed, ..Input::of(snapshot, &renamed) });
        let about: Vec<_> =
            plan.warnings.iter().filter(|it| it.code == "removedFromSource").collect();
        let names: Vec<_> = about.iter().map(|it| it.daemon_set.clone().unwrap()).collect();
        let want = if warned { vec![key.to_string()] } else { Vec::new() };
        assert_eq!(names, want, "{:#?}", plan.warnings);
    }
}
