//! The objects that are sent.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::annotations::{COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION, ROLLOUT_ANNOTATION};
use crate::plan::{PauseState, PausedRollout, keeps_template, record_after};
use crate::rollout::observed_cluster::is_older_version;
use crate::rollout::write::provenance;
use crate::rollout::{Precondition, Provenance, Purpose, Write};
use daemonset::model::{Labels, RevisionNumber, RevisionRef};

fn pause() -> PausedRollout {
    PausedRollout {
        state: PauseState::Paused,
        declared: json!({"type": "RollingUpdate"}),
        plan_digest: "sha256:01".into(),
        from: Some(RevisionRef { name: "agent-1".into(), number: RevisionNumber(1) }),
        since: "2026-08-01T12:00:00Z".parse().unwrap(),
        commit: None,
        by: None,
        failed: None,
        target: None,
        waits_for: Vec::new(),
        failed_gate: None,
    }
}

fn written(write: impl FnOnce(&mut Write)) -> Value {
    let mut this = Write {
        precondition: Precondition::Unchanged { uid: "u".into(), resource_version: "41".into() },
        live: None,
        keeps_template: false,
        purpose: Purpose::Apply,
        written: Arc::new(json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "annotations": {"note": "kept"}},
            "spec": {"template": {"spec": {"image": "new"}}, "updateStrategy": {"type": "old"}},
        })),
        template: None,
        strategy: json!({"type": "OnDelete"}),
        pause: Some(pause()),
        provenance: Some(Provenance {
            commit: Some("c0ffee".into()),
            plan_digest: "sha256:01".into(),
            change_cause: None,
            by: None,
        }),
    };
    write(&mut this);
    this.object()
}

#[test]
fn one_object_contains_template_pause_and_provenance() {
    let object = written(|_| {});
    let mut metadata = object["metadata"].clone();
    let text = metadata["annotations"].as_object_mut().unwrap().remove(ROLLOUT_ANNOTATION);
    let text = text.unwrap();
    assert_eq!(serde_json::from_str::<PausedRollout>(text.as_str().unwrap()).unwrap(), pause());
    assert_eq!(
        metadata,
        json!({
            "name": "agent",
            "annotations": {
                "note": "kept", COMMIT_ANNOTATION: "c0ffee", PLAN_DIGEST_ANNOTATION: "sha256:01",
            },
        })
    );
    let spec = json!({
        "template": {"spec": {"image": "new"}}, "updateStrategy": {"type": "OnDelete"},
    });
    assert_eq!(object["spec"], spec);
}

#[test]
fn unset_fields_are_not_sent() {
    let object = written(|write| {
        write.precondition = Precondition::Absent;
        write.pause = None;
        write.provenance = None;
        write.template = Some(Arc::new(json!({"spec": {"image": "good"}})));
        let object = Arc::make_mut(&mut write.written);
        object["metadata"]["annotations"][ROLLOUT_ANNOTATION] = "an earlier pause".into();
    });
    assert_eq!(object["metadata"], json!({"name": "agent", "annotations": {"note": "kept"}}));
    assert_eq!(object["spec"]["template"], json!({"spec": {"image": "good"}}));
}

#[test]
fn restoring_the_strategy_keeps_the_live_template_and_its_ownership() {
    let container = |more: &Value| {
        let mut container = json!({"name": "c", "image": "a:1"});
        container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"spec": {"containers": [container]}})
    };
    // `(live, the manifest, the sent object)`; a `{}` that is not live would make a different
    // template.
    let stop = json!({"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}});
    for (live, manifest, sent) in [
        (json!({}), json!({}), json!({})),
        (json!({}), json!({"lifecycle": {}}), json!({})),
        (json!({"lifecycle": {}}), json!({"lifecycle": {}}), json!({"lifecycle": {}})),
        (stop.clone(), json!({"lifecycle": {}}), stop.clone()),
        (stop.clone(), json!({"image": "a:2"}), stop.clone()),
    ] {
        let stated = |more: &Value| {
            json!({
                "apiVersion": "apps/v1", "kind": "DaemonSet",
                "metadata": {"name": "agent", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": container(more)},
            })
        };
        let now = "2026-08-01T12:00:00Z".parse().unwrap();
        let raw = record_after(None, &stated(&live), now).unwrap();
        let object = written(|write| {
            write.live = Some(Arc::new(raw.clone()));
            write.keeps_template = true;
            write.written = Arc::new(stated(&manifest));
            write.strategy = json!({"type": "RollingUpdate"});
            write.pause = None;
        });
        assert_eq!(object["spec"]["template"], container(&sent), "{live} and {manifest}");
        assert_eq!(object["spec"]["updateStrategy"], json!({"type": "RollingUpdate"}));
        assert!(keeps_template(&raw, &object), "{live} and {manifest}");
    }
}

#[test]
fn provenance_is_added_to_that_of_the_revision() {
    let change = |commit: Option<&str>| Provenance {
        commit: commit.map(str::to_owned),
        plan_digest: "sha256:02".into(),
        change_cause: Some("newer".into()),
        by: None,
    };
    let present: Labels = [
        (COMMIT_ANNOTATION, "a"),
        (PLAN_DIGEST_ANNOTATION, "sha256:01"),
        ("kubernetes.io/change-cause", "older"),
    ]
    .into_iter()
    .collect();
    let added = provenance(&present, &change(Some("b")));
    let want = [
        (COMMIT_ANNOTATION, "a,b".to_owned()),
        (PLAN_DIGEST_ANNOTATION, "sha256:01,sha256:02".to_owned()),
        ("kubernetes.io/change-cause", "newer".to_owned()),
    ];
    assert_eq!(added, want);
    assert_eq!(provenance(&present, &change(Some("a")))[0].1, "a", "not twice");
    let after: Labels = added.into_iter().collect();
    for (commit, is_on) in [(Some("a"), true), (Some("b"), true), (Some("c"), false), (None, true)]
    {
        assert_eq!(change(commit).is_on(&after), is_on, "{commit:?}");
        assert_eq!(change(commit).is_on(&present), is_on && commit == Some("a"), "{commit:?}");
    }
    assert_eq!(Provenance::of(&after).commit.as_deref(), Some("b"), "the last one");
}

#[test]
fn versions_are_integers_of_any_length() {
    for (version, than, want) in [
        ("9", "10", true),
        ("10", "9", false),
        ("10", "10", false),
        ("009", "10", true),
        ("99999999999999999999998", "99999999999999999999999", true),
        ("", "10", false),
        ("abc", "10", false),
        ("9", "x", false),
    ] {
        assert_eq!(is_older_version(version, than), want, "{version} {than}");
    }
}
