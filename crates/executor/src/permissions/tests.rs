//! The permissions that each work needs, and the reviews by name.

use daemonset::model::PolicySpec;
use serde_json::{Value, json};

use super::*;

fn errand(managed_by: ManagedBy, work: Work) -> Errand {
    Errand::with(&DaemonSetKey::new("log", "agent"), managed_by, work)
}

/// `verb resource`, cluster-wide ones with a star; optional ones in brackets.
fn words(errands: &[Errand]) -> Vec<String> {
    let word = |need: &Need| {
        let Permission { verb, resource, namespace } = &need.permission;
        let place = if namespace.is_none() { "*" } else { "" };
        match need.weight {
            Weight::Required => format!("{verb} {}{place}", resource.name()),
            Weight::Optional => format!("[{verb} {}{place}]", resource.name()),
        }
    };
    needs(errands).iter().map(word).collect()
}

#[test]
fn each_work_needs_what_it_does_and_no_more() {
    let by = ManagedBy::DaemonSetController;
    let read = ["list nodes*", "list daemonsets", "list controllerrevisions", "list pods"];
    let lock = ["get leases", "create leases", "patch leases"];
    let watch = ["watch nodes*", "watch daemonsets", "watch controllerrevisions", "watch pods"];
    let rolling = [&read[..], &lock, &watch].concat();
    for (work, more) in [
        (Work::Share, vec![]),
        (Work::Roll, vec!["delete pods"]),
        (Work::Release, vec!["patch daemonsets"]),
        (
            Work::Change { creates: false },
            vec!["delete pods", "patch daemonsets", "patch controllerrevisions"],
        ),
        (
            Work::Change { creates: true },
            vec![
                "create daemonsets",
                "delete pods",
                "patch daemonsets",
                "patch controllerrevisions",
            ],
        ),
    ] {
        let want: BTreeSet<&str> = rolling.iter().chain(&more).copied().collect();
        let got = words(&[errand(by, work)]);
        let required = got.iter().map(String::as_str).filter(|word| !word.starts_with('['));
        assert_eq!(required.collect::<BTreeSet<_>>(), want, "{work:?}");
    }
    let got = words(&[errand(by, Work::Look)]);
    let required = got.iter().map(String::as_str).filter(|word| !word.starts_with('['));
    let want: BTreeSet<&str> = read.iter().chain(&lock).copied().collect();
    assert_eq!(required.collect::<BTreeSet<_>>(), want);
}

#[test]
fn approvals_are_read_where_a_policy_asks_for_some() {
    use Weight::{Optional, Required};
    let (change, look) = (Work::Change { creates: false }, Work::Look);
    for (managed_by, work, approvals, want) in [
        (ManagedBy::DaemonSetController, change, true, Some(Required)),
        (ManagedBy::DaemonSetController, change, false, Some(Optional)),
        (ManagedBy::DaemonSetController, Work::Roll, true, Some(Required)),
        (ManagedBy::DaemonSetController, look, true, None),
        (ManagedBy::DaemonSetController, Work::Release, true, None),
        // A guard blocks it.
        (ManagedBy::DsApply, change, true, None),
    ] {
        let all = needs(&[Errand { approvals, ..errand(managed_by, work) }]);
        let found = all.iter().find(|need| need.permission.resource == Resource::Approvals);
        let weight = found.map(|need| need.weight);
        assert_eq!(weight, want, "{managed_by} {work:?} {approvals}");
        let Some(need) = found else { continue };
        assert_eq!((need.permission.verb, need.role), (Get, Role::DsApply));
        let name = need.of(need.names.as_ref().and_then(BTreeSet::first)).name;
        assert_eq!(name.as_deref(), Some("ds-plan-agent-approvals"));
    }
}

#[test]
fn pods_are_created_only_where_images_are_pulled_before() {
    use ManagedBy::{DaemonSetController, DsApply};
    let change = Work::Change { creates: false };
    for (managed_by, work, pre_pulls, want) in [
        (DaemonSetController, change, true, Some((Weight::Required, Role::DsApply))),
        (DaemonSetController, change, false, Some((Weight::Optional, Role::DsApply))),
        (DaemonSetController, Work::Roll, true, Some((Weight::Required, Role::DsApply))),
        (DaemonSetController, Work::Release, true, None),
        (DaemonSetController, Work::Look, true, None),
        (DsApply, change, true, Some((Weight::Required, Role::AsController))),
    ] {
        let all = needs(&[Errand { pre_pulls, ..errand(managed_by, work) }]);
        let is_it = |need: &&Need| {
            (need.permission.verb, need.permission.resource) == (Create, Resource::Of(Kind::Pod))
        };
        let found = all.iter().find(is_it).map(|need| (need.weight, need.role));
        assert_eq!(found, want, "{managed_by} {work:?} {pre_pulls}");
        let purpose = all.iter().find(is_it).map(|need| need.purpose);
        let is_its = managed_by == DaemonSetController && found.is_some() && pre_pulls;
        assert_eq!(purpose == Some(Purpose::PrePull), is_its, "{managed_by} {work:?}");
    }
}

#[test]
fn pods_of_the_whole_cluster_are_read_only_for_checks_that_look_at_them() {
    use ManagedBy::{DaemonSetController, DsApply};
    let change = Work::Change { creates: false };
    for (managed_by, work, neighbours, want) in [
        (DaemonSetController, change, true, vec![List, Watch]),
        (DaemonSetController, change, false, vec![]),
        (DaemonSetController, Work::Roll, true, vec![List, Watch]),
        (DaemonSetController, Work::Release, true, vec![]),
        (DaemonSetController, Work::Look, true, vec![]),
        (DsApply, change, true, vec![List, Watch]),
    ] {
        let all = needs(&[Errand { neighbours, ..errand(managed_by, work) }]);
        let of_all = all.iter().filter(|need| {
            let Permission { resource, namespace, .. } = &need.permission;
            *resource == Resource::Of(Kind::Pod) && namespace.is_none()
        });
        let found: Vec<Verb> = of_all.clone().map(|need| need.permission.verb).collect();
        assert_eq!(found, want, "{managed_by} {work:?} {neighbours}");
        let is_right =
            |need: &Need| (need.purpose, need.weight) == (Purpose::Neighbours, Weight::Required);
        assert!(of_all.clone().all(is_right), "{managed_by} {work:?}");
    }
}

#[test]
fn the_in_process_controller_needs_to_create_pods() {
    let beside = words(&[errand(ManagedBy::DaemonSetController, Work::Change { creates: true })]);
    assert!(beside.contains(&"[create pods]".to_owned()), "{beside:?}");
    let instead = [errand(ManagedBy::DsApply, Work::Change { creates: true })];
    let all = words(&instead);
    for word in ["create pods", "create configmaps", "create controllerrevisions"] {
        assert!(all.contains(&word.to_owned()), "{word}: {all:?}");
    }
    assert!(!all.contains(&"patch daemonsets".to_owned()), "{all:?}");
    // It is not known whether there is a record.
    let look = words(&[errand(ManagedBy::DsApply, Work::Look)]);
    assert!(look.contains(&"list configmaps".to_owned()), "{look:?}");
    assert!(!look.contains(&"create configmaps".to_owned()), "{look:?}");
    // With both, a permission that is optional for one is required for the other.
    let mixed = [
        errand(ManagedBy::DaemonSetController, Work::Change { creates: false }),
        instead[0].clone(),
    ];
    assert!(words(&mixed).contains(&"create pods".to_owned()));
    let role = |verb, resource| {
        let is_it = |need: &Need| {
            (need.permission.verb, need.permission.resource) == (verb, Resource::Of(resource))
        };
        needs(&instead).into_iter().find(is_it).unwrap().role
    };
    assert_eq!(role(Create, Kind::DaemonSetRecord), Role::AsController);
    assert_eq!(role(Create, Kind::Pod), Role::AsController);
    assert_eq!(role(Delete, Kind::Pod), Role::DsApply);
}

#[test]
fn each_permission_is_reviewed_once_and_by_object_name() {
    let name = |name| {
        Errand::with(
            &DaemonSetKey::new("log", name),
            ManagedBy::DaemonSetController,
            Work::Change { creates: false },
        )
    };
    let all = needs(&[name("a"), name("b")]);
    assert_eq!(all.len(), needs(&[name("a")]).len());
    let names = |verb, kind| {
        let found = all.iter().find(|need| {
            (need.permission.verb, need.permission.resource) == (verb, Resource::Of(kind))
        });
        found.unwrap().names.clone()
    };
    assert_eq!(names(Patch, Kind::DaemonSet), Some(["a".into(), "b".into()].into()));
    assert_eq!(names(Delete, Kind::Pod), None, "pod names are not known in advance");
    let patch = all.iter().find(|need| need.purpose == Purpose::Lock).unwrap();
    assert_eq!(patch.of(Some(&"a".into())).name.as_deref(), Some("ds-plan-a"));
}

#[test]
fn a_policy_needs_what_its_steps_and_checks_need() {
    let step = |approve| json!({"steps": [{"name": "canary", "nodes": 1, "approve": approve}]});
    let gate = |kind: Value| json!({"gates": [{"name": "gate", (kind["is"].as_str().unwrap()): kind["of"]}]});
    for (policy, want) in [
        (json!({}), [false; 3]),
        (step(false), [false; 3]),
        (step(true), [true, false, false]),
        (json!({"prePull": {}}), [false, true, false]),
        (gate(json!({"is": "pods", "of": {"resource": "gpu"}})), [false, false, true]),
        (gate(json!({"is": "nodeConditions", "of": {"Ready": "True"}})), [false; 3]),
    ] {
        let mut spec = policy.clone();
        spec["selects"] = json!({"names": ["a/b"]});
        let spec: PolicySpec = serde_json::from_value(spec).unwrap();
        let change = Work::Change { creates: false };
        let errand = errand(ManagedBy::DaemonSetController, change).under(&spec);
        assert_eq!([errand.approvals, errand.pre_pulls, errand.neighbours], want, "{policy}");
    }
}
