//! Warnings of plans.

use super::*;
use std::collections::BTreeMap;

use daemonset::model::{DaemonSetKey, NodeName, Place, RolloutPolicy};

#[test]
fn daemon_sets_with_the_same_host_port_are_warned_about() {
    let mut cluster = settled(3);
    cluster.nodes[0].labels = labels([("disk", "ssd")]);
    let port = json!([{"containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}]);
    cluster.edit(|spec| {
        spec["template"]["spec"]["containers"][0]["ports"] = port.clone();
    });
    let ours = desired(&cluster);
    cluster.edit(|spec| spec["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"}));
    let mut live = snapshot(&cluster);
    live.daemon_sets[0].key = DaemonSetKey::new("default", "other");
    let plan = planned(&live, &[ours]);
    let warned: Vec<_> =
        plan.warnings.iter().filter(|warning| warning.code == "hostPortClash").collect();
    let [warning] = &warned[..] else { panic!("{:#?}", plan.warnings) };
    assert_eq!(
        warning.message,
        "default/foo and default/other both use host port 9100/TCP on 1 node: the pod that is \
         scheduled second stays Pending"
    );
    assert_eq!(warning.nodes.iter().map(NodeName::as_str).collect::<Vec<_>>(), ["node-0"]);
}

#[test]
fn a_namespace_that_excludes_nodes_is_warned_about() {
    let mut cluster = settled(3);
    cluster.nodes[0].labels = labels([("disk", "ssd")]);
    let mut live = snapshot(&cluster);
    let plugin = "scheduler.alpha.kubernetes.io/node-selector";
    live.namespaces[0].annotations = labels([(plugin, "disk=ssd")]);
    let plan = planned(&live, &[desired(&cluster)]);
    let [warning] = &plan.warnings[..] else { panic!("{:#?}", plan.warnings) };
    assert_eq!(warning.code, "namespaceNodeSelector");
    assert_eq!(
        warning.nodes.iter().map(NodeName::as_str).collect::<Vec<_>>(),
        ["node-1", "node-2"]
    );
}

#[test]
fn creates_beyond_the_budget_are_warned_about_where_pods_run_already() {
    for (limit, new_nodes, warned) in [(2, 2, false), (2, 3, true)] {
        let mut cluster = settled(3);
        for at in 0..new_nodes {
            cluster.nodes.push(node(&format!("node-{}", 3 + at), &[], &[]));
        }
        cluster.set_limits(&json!(limit), &json!(0));
        let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
        let codes: Vec<_> = plan.warnings.iter().map(|warning| warning.code.as_str()).collect();
        let want = if warned { vec!["createsAtOnce"] } else { vec![] };
        assert_eq!(codes, want, "{new_nodes} nodes join, {limit} may be unavailable");
    }
    let mut cluster = settled(3);
    let desired = desired(&cluster);
    cluster.pods.clear();
    let mut none = snapshot(&cluster);
    none.daemon_sets.clear();
    let plan = planned(&none, std::slice::from_ref(&desired));
    assert_eq!(codes(&plan), ["createsAtOnce"], "the built-in controller does not limit creation");
    let managed = DesiredDaemonSet { managed_by: ManagedBy::DsApply, ..desired };
    assert_eq!(codes(&planned(&none, &[managed])), [""; 0]);
}

fn codes(plan: &Plan) -> Vec<&str> {
    plan.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

fn service(name: &str, selector: &[(&str, &str)], headless: bool) -> Service {
    let selector = selector.iter().copied().collect();
    Service { namespace: "default".into(), name: name.into(), selector, headless }
}

#[test]
fn services_that_gain_or_lose_endpoints_are_warned_about() {
    let old = ("tier", "old");
    let new = ("tier", "new");
    for (rule, selector, headless, want) in [
        (
            "it selects the live template only",
            old,
            true,
            Some(
                "headless Service default/web (tier=old) does not select the new pods: it loses \
                 3 endpoints as pods are replaced",
            ),
        ),
        (
            "it selects the target template only",
            new,
            false,
            Some(
                "Service default/web (tier=new) selects the new pods but not the current ones: \
                 it gains them as endpoints",
            ),
        ),
        ("it selects both", OURS[0], false, None),
        ("it selects neither", ("tier", "third"), false, None),
    ] {
        let mut cluster = settled(3);
        let label = |cluster: &mut Cluster, (key, value): (&str, &str)| {
            cluster.edit(|spec| spec["template"]["metadata"]["labels"][key] = value.into());
        };
        label(&mut cluster, old);
        label_pods(&mut cluster, old);
        let mut live = snapshot(&cluster);
        live.services = vec![service("web", &[selector], headless)];
        label(&mut cluster, new);
        let plan = planned(&live, &[desired(&cluster)]);
        let found: Vec<_> = plan.warnings.iter().map(|it| it.message.as_str()).collect();
        assert_eq!(found, want.into_iter().collect::<Vec<_>>(), "{rule}");
    }
}

/// Adds a label to the pods; their template has it too.
fn label_pods(cluster: &mut Cluster, label: (&str, &str)) {
    for pod in &mut cluster.pods {
        pod.labels = pod.labels.iter().chain([label]).collect();
    }
}

#[test]
fn a_new_daemon_set_behind_a_service_of_others_is_warned_about() {
    let mut cluster = settled(2);
    let ours = desired(&cluster);
    for pod in &mut cluster.pods {
        pod.controller = None;
        pod.labels = labels([OURS[0], ("app", "other")]);
    }
    for (selector, want) in [(OURS[0], vec!["serviceMixesEndpoints"]), (("app", "other"), vec![])] {
        let mut live = snapshot(&cluster);
        live.daemon_sets.clear();
        live.services = vec![service("web", &[selector], false)];
        let plan = planned(&live, std::slice::from_ref(&ours));
        let found: Vec<&str> =
            codes(&plan).into_iter().filter(|code| code.starts_with("service")).collect();
        assert_eq!(found, want, "{selector:?}");
    }
}

#[test]
fn a_wave_that_removes_many_endpoints_is_warned_about() {
    for (nodes, limit, warned) in [(4, 2, true), (4, 1, false), (5, 2, false), (1, 1, false)] {
        let mut cluster = settled(nodes);
        cluster.set_limits(&json!(limit), &json!(0));
        let mut live = snapshot(&cluster);
        live.services = vec![service("web", &OURS, false)];
        cluster.set_image("foo/bar:2");
        let plan = planned(&live, &[desired(&cluster)]);
        let want = if warned { vec!["serviceThinsOut"] } else { vec![] };
        assert_eq!(codes(&plan), want, "{limit} of {nodes}");
    }
}

#[test]
fn requests_beyond_what_nodes_can_allocate_are_warned_about() {
    let cpu = |request: &str| json!({"requests": {"cpu": request}});
    for (rule, ours, theirs, room, want) in [
        ("they fit", "1", "1", Some("2"), None),
        ("only together they do not fit", "1", "1500m", Some("2"), Some("2500m of 2")),
        ("the planned one alone does not fit", "3", "0", Some("2500m"), Some("3 of 2500m")),
        ("a missing resource counts as zero", "1", "0", None, Some("1 of 0")),
    ] {
        let mut cluster = settled(3);
        let pods = ("pods", "110");
        cluster.nodes[1].allocatable =
            room.map(|room| ("cpu", room)).into_iter().chain([pods]).collect();
        let request = |cluster: &mut Cluster, request: &str| {
            let resources = cpu(request);
            cluster.edit(|spec| {
                spec["template"]["spec"]["containers"][0]["resources"] = resources;
            });
        };
        request(&mut cluster, theirs);
        let mut live = snapshot(&cluster);
        live.daemon_sets[0].key = DaemonSetKey::new("default", "other");
        request(&mut cluster, ours);
        let plan = planned(&live, &[desired(&cluster)]);
        let found = plan.warnings.iter().find(|it| it.code == "requestsExceedNode");
        let nodes = found.map(|it| it.nodes.iter().map(NodeName::as_str).collect::<Vec<_>>());
        assert_eq!(nodes, want.map(|_| vec!["node-1"]), "{rule}");
        if let (Some(found), Some(want)) = (found, want) {
            let worst = format!("worst: {want} on node-1 (default/");
            assert!(found.message.contains(&worst), "{rule}: {}", found.message);
        }
    }
}

#[test]
fn skipped_checks_are_warned_about_where_they_matter() {
    for (rule, services, leases, image, want) in [
        ("all was read", true, true, "foo/bar:2", None),
        ("nothing changes", false, false, "foo/bar", None),
        ("no Services", false, true, "foo/bar:2", Some("which Services gain or lose endpoints")),
        ("no leases", true, false, "foo/bar:2", Some("whether a template failed before")),
    ] {
        let mut cluster = settled(3);
        let mut live = snapshot(&cluster);
        live.coverage = Coverage { services, leases, ..live.coverage };
        cluster.set_image(image);
        let plan = planned(&live, &[desired(&cluster)]);
        let found: Vec<&str> = plan.warnings.iter().map(|it| it.message.as_str()).collect();
        match want {
            None => assert_eq!(found, Vec::<&str>::new(), "{rule}"),
            Some(want) => {
                let [found] = found[..] else { panic!("{rule}: {found:?}") };
                assert!(found.starts_with(&format!("not checked: {want}")), "{rule}: {found}");
            }
        }
    }
}

#[test]
fn a_daemon_set_without_eligible_nodes_is_warned_about() {
    let mut cluster = settled(3);
    cluster.nodes[0].taints = [taint("gpu:NoSchedule")].into();
    let live = snapshot(&cluster);
    for (selector, want) in [
        (
            Some("ssd"),
            Some("none of the 3 nodes can run its pods: nodeSelector disk=ssd does not match"),
        ),
        (None, None),
    ] {
        cluster.edit(|spec| {
            if let Some(disk) = selector {
                spec["template"]["spec"]["nodeSelector"] = json!({"disk": disk});
            } else {
                spec["template"]["spec"]["nodeSelector"] = json!({});
            }
        });
        let plan = planned(&live, &[desired(&cluster)]);
        let found = plan.warnings.iter().find(|it| it.code == "noEligibleNode");
        match (found, want) {
            (Some(found), Some(want)) => {
                assert!(found.message.starts_with(want), "{}", found.message);
            }
            (found, want) => assert_eq!(found.is_some(), want.is_some(), "{found:?}"),
        }
    }
}

#[test]
fn old_pods_that_count_as_updated_are_warned_about() {
    let mut cluster = settled(3);
    // Orphaned and recreated with another template: the generation starts at 1 again.
    label_pods(&mut cluster, (TEMPLATE_GENERATION_LABEL, "1"));
    cluster.set_image("foo/bar:2");
    cluster.daemon_set.generation = 1;
    cluster.daemon_set.annotations = labels([(TEMPLATE_GENERATION_ANNOTATION, "1")]);
    let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
    let [warning] = &plan.warnings[..] else { panic!("{:#?}", plan.warnings) };
    assert_eq!((warning.code.as_str(), warning.nodes.len()), ("countedAsUpdated", 3));
    assert!(warning.message.starts_with("3 pods come from another template"), "{warning:?}");
    // Pods that are only outdated are not warned about.
    let mut cluster = settled(3);
    label_pods(&mut cluster, (TEMPLATE_GENERATION_LABEL, "1"));
    cluster.daemon_set.annotations = labels([(TEMPLATE_GENERATION_ANNOTATION, "1")]);
    let live = snapshot(&cluster);
    cluster.set_image("foo/bar:2");
    assert_eq!(planned(&live, &[desired(&cluster)]).warnings, []);
}

#[test]
fn a_namespace_that_the_source_creates_is_named_with_its_file() {
    let cluster = settled(1);
    let mut live = snapshot(&cluster);
    live.namespaces.clear();
    let ours = [desired(&cluster)];
    let place = Place { path: "deploy/namespace.yaml".into(), line: 1, column: 1 };
    for (created, want) in [
        ("other", "namespace default does not exist"),
        (
            "default",
            "namespace default does not exist; it is in deploy/namespace.yaml of the same source: \
             apply that first, ds-apply only applies DaemonSets",
        ),
    ] {
        let created = BTreeMap::from([(created.into(), place.clone())]);
        let plan = plan(Input { created_namespaces: &created, ..Input::of(&live, &ours) });
        let [warning] = &plan.warnings[..] else { panic!("{:#?}", plan.warnings) };
        assert_eq!((warning.code.as_str(), warning.message.as_str()), (NAMESPACE_MISSING, want));
    }
}

#[test]
fn a_looser_limit_than_the_daemon_sets_own_is_said_to_be_unused() {
    for (limit, warned) in [("\"50%\"", true), ("2", false), ("1", false)] {
        let mut cluster = settled(10);
        cluster.set_limits(&json!(2), &json!(0));
        let live = snapshot(&cluster);
        let policy = format!(
            r#"{{"apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy",
                "metadata": {{"name": "p"}},
                "spec": {{"selects": {{"names": ["default/foo"]}}, "maxUnavailable": {limit}}}}}"#
        );
        let policy: RolloutPolicy = serde_json::from_str(&policy).unwrap();
        let desired = DesiredDaemonSet { policy: Some(policy.into()), ..desired(&cluster) };
        let plan = planned(&live, &[desired]);
        let messages: Vec<_> = plan.warnings.iter().map(|it| it.message.as_str()).collect();
        let want = "maxUnavailable 50% of the policy or the command line (5 nodes) is not used, \
                    because the DaemonSet's own limit is stricter: 2";
        assert_eq!(messages, if warned { vec![want] } else { vec![] }, "{limit}");
    }
}

#[test]
fn a_missing_priority_class_is_warned_about_and_an_unknown_one_is_not_checked() {
    let missing = "PriorityClass agents does not exist: the server refuses new pods";
    let unknown = "not checked: whether PriorityClass agents exists (not read)";
    for (name, known, want) in [
        ("agents", Some(true), None),
        ("agents", Some(false), Some(("priorityClassMissing", missing))),
        ("agents", None, Some(("notChecked", unknown))),
        ("system-node-critical", None, None),
        ("", None, None),
    ] {
        let mut cluster = settled(2);
        let mut live = snapshot(&cluster);
        cluster.edit(|spec| spec["template"]["spec"]["priorityClassName"] = json!(name));
        live.priority_classes =
            known.map(|exists| ("agents".to_owned(), exists)).into_iter().collect();
        let plan = planned(&live, &[desired(&cluster)]);
        let found: Vec<(&str, &str)> =
            plan.warnings.iter().map(|it| (it.code.as_str(), it.message.as_str())).collect();
        assert_eq!(found, Vec::from_iter(want), "{name} {known:?}");
    }
}

/// Seconds from the creation of the first node's pod until it was Ready, by its kubelet, and from then
/// until now.
#[test]
fn kubelets_whose_clock_is_wrong_are_one_warning() {
    for (ready, passed, want) in [
        (3, 100, None),
        (-30, 100, None),
        (-31, 100, Some("on node-0 by at least 31s behind the API server")),
        (103, 100, None),
        (130, 100, None),
        (131, 100, Some("on node-0 by at least 31s ahead of the API server")),
        (86_500, 100, Some("on node-0 by at least 24h ahead of the API server")),
    ] {
        let mut cluster = settled(3);
        let created = at(50_000);
        cluster.now = created + jiff::SignedDuration::from_secs(passed);
        for pod in &mut cluster.pods {
            pod.created = Some(created.into());
            pod.readiness = PodReadiness::Ready { since: Some(at(50_010).into()) };
        }
        let since = created + jiff::SignedDuration::from_secs(ready);
        cluster.pods[0].readiness = PodReadiness::Ready { since: Some(since.into()) };
        let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
        let found: Vec<_> = plan.warnings.iter().filter(|it| it.code == "kubeletClock").collect();
        assert_eq!(found.len(), usize::from(want.is_some()), "{ready}: {found:?}");
        if let ([warning], Some(want)) = (&found[..], want) {
            assert!(warning.message.contains(want), "{}", warning.message);
            assert_eq!(warning.nodes, ["node-0"]);
        }
    }
}

#[test]
fn fields_that_the_server_is_too_old_for_are_warned_about() {
    let mut cluster = settled(1);
    cluster.edit(|spec| {
        spec["template"]["spec"]["hostnameOverride"] = json!("a");
        spec["template"]["spec"]["hostUsers"] = json!(false);
        // The field came with one version, this value of it with the next one.
        spec["template"]["spec"]["containers"][0]["restartPolicyRules"] =
            json!([{"action": "RestartAllContainers"}]);
    });
    let ours = desired(&cluster);
    let (hostname, users) =
        ("spec.template.spec.hostnameOverride (1.35)", "spec.template.spec.hostUsers (1.33)");
    let rules = "spec.template.spec.containers[*].restartPolicyRules (1.35)";
    let action = "spec.template.spec.containers[*].restartPolicyRules\
                  [action=RestartAllContainers] (1.36)";
    for (version, newer) in [
        ("v1.32.13", vec![hostname, users, rules, action]),
        ("v1.34.4-eks-1", vec![hostname, rules, action]),
        ("v1.35.0", vec![action]),
        ("v1.36.3", vec![]),
        ("unknown", vec![]),
    ] {
        let mut live = snapshot(&cluster);
        live.cluster.version = Some(version.to_owned());
        let plan = planned(&live, std::slice::from_ref(&ours));
        let found = plan.warnings.iter().find(|warning| warning.code == "newerFields");
        let listed = found.and_then(|it| it.message.split_once("versions: "));
        assert_eq!(
            listed.map(|(_, fields)| fields.to_owned()).unwrap_or_default(),
            newer.join(", ")
        );
    }
}
