//! Server-side apply, ownership and annotations.

use std::collections::BTreeMap;

use cluster::{Access, Apply, Kind, OwnedField, Resource, Verb, WriteError};
use daemonset::model::Uid;
use serde_json::{Value, json};

use super::{admin, agent, cluster_of, image, live, locked, manifest, quiet};

fn plain(object: &Value) -> Apply<'_> {
    Apply { object, force: false, uid: None, resource_version: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_to_an_apply() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let (_lock, writer) = locked(&cluster).await;
    let (v1, v2) = (manifest("agent:v1"), manifest("agent:v2"));

    // A dry run of a create, and of a change.
    let tried = cluster.try_apply(&agent(), &plain(&v1)).await.unwrap();
    assert_eq!(image(&tried), "agent:v1");
    assert_eq!(tried.raw["spec"]["revisionHistoryLimit"], 10, "the server defaults it");
    assert_eq!(cluster.live().daemon_set(&agent()).await.unwrap(), None);
    let first = writer.apply(&agent(), &plain(&v1)).await.unwrap();
    cluster.try_apply(&agent(), &plain(&v2)).await.unwrap();
    assert_eq!(live(&cluster).await, first);

    // Preconditions.
    let (other, old) = (Uid::from("00000000-0000-0000-0000-000000000000"), "1");
    for (case, uid, version) in [
        ("another uid", Some(&other), None),
        ("an old version", None, Some(old)),
        ("an old version of it", Some(&first.uid), Some(old)),
    ] {
        let apply = Apply { uid, resource_version: version, force: true, object: &v2 };
        let error = writer.apply(&agent(), &apply).await.unwrap_err();
        assert!(matches!(error, WriteError::Stale { .. }), "{case}: {error:?}");
    }
    let (uid, resource_version) = (Some(&first.uid), first.resource_version());
    let apply = Apply { uid, resource_version, ..plain(&v2) };
    let second = writer.apply(&agent(), &apply).await.unwrap();
    assert_eq!((image(&second), second.generation), ("agent:v2", 2));

    // Fields of another client.
    let patch =
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"agent","image":"hot:fix"}]}}}}"#;
    plane.kubectl(&["patch", "ds", "agent", "--field-manager=bob \"the\" fixer", "-p", patch]);
    let error = writer.apply(&agent(), &plain(&v2)).await.unwrap_err();
    let WriteError::Conflict { fields, .. } = &error else { panic!("{error:?}") };
    let want = OwnedField {
        path: r#".spec.template.spec.containers[name="agent"].image"#.to_owned(),
        manager: "bob \"the\" fixer".to_owned(),
        api_version: Some("apps/v1".to_owned()),
    };
    assert_eq!(fields, &[want]);
    assert_eq!(
        error.to_string(),
        "patch daemonsets.apps default/agent: 1 of its fields is owned by other field managers"
    );
    let forced = writer.apply(&agent(), &Apply { force: true, ..plain(&v2) }).await.unwrap();
    assert_eq!(image(&forced), "agent:v2");

    // An object that was deleted meanwhile is not created again.
    plane.kubectl(&["delete", "ds", "agent"]);
    let error = writer.apply(&agent(), &Apply { uid: Some(&first.uid), ..plain(&v2) }).await;
    assert!(matches!(error, Err(WriteError::Stale { .. })), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_applies() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let (_lock, writer) = locked(&cluster).await;

    let mut invalid = manifest("agent:v1");
    invalid["spec"]["template"]["spec"]["restartPolicy"] = "Never".into();
    let error = writer.apply(&agent(), &plain(&invalid)).await.unwrap_err();
    let WriteError::Invalid { fields, .. } = &error else { panic!("{error:?}") };
    assert_eq!(fields[0].path, "spec.template.spec.restartPolicy");

    let mut twice = manifest("agent:v1");
    twice["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]);
    let before = cluster.live().request_counts();
    let error = writer.apply(&agent(), &plain(&twice)).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused { status: 500, .. }), "{error:?}");
    let sent = cluster.live().request_counts().since(&before);
    assert_eq!(sent.of(Verb::Patch, Resource::Of(Kind::DaemonSet)), 1, "it was sent once");

    let mut unknown = manifest("agent:v1");
    unknown["spec"]["templat"] = json!({});
    let error = writer.apply(&agent(), &plain(&unknown)).await.unwrap_err();
    assert!(matches!(error, WriteError::Refused { .. }), "{error:?}");

    plane.apply_yaml(NO_LATEST);
    let refused = manifest("agent:latest");
    let mut denied = None;
    for _ in 0..100 {
        match cluster.try_apply(&agent(), &plain(&refused)).await {
            Err(error) => denied = Some(error),
            Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
        if denied.is_some() {
            break;
        }
    }
    let denied = denied.expect("the policy is in effect by now");
    assert!(matches!(denied, WriteError::Denied { .. }), "{denied:?}");
    assert!(denied.to_string().contains("no latest, please"), "{denied}");
}

const NO_LATEST: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-latest}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [daemonsets]}
  validations:
  - expression: "object.spec.template.spec.containers.all(c, !c.image.endsWith(':latest'))"
    message: no latest, please
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-latest}
spec: {policyName: no-latest, validationActions: [Deny]}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn pods_are_validated_before_anything_is_deleted() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    plane.kubectl(&["label", "ns", "default", "pod-security.kubernetes.io/enforce=restricted"]);
    let template = &manifest("agent:v1")["spec"]["template"];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"generateName": "agent-", "labels": {"app": "agent"}},
        "spec": template["spec"],
    });
    let error = cluster.try_pod(&"default".into(), &pod).await.unwrap_err();
    let WriteError::Denied { status: 403, message, .. } = &error else { panic!("{error:?}") };
    assert!(message.contains("violates PodSecurity"), "{message}");

    plane.kubectl(&["label", "ns", "default", "pod-security.kubernetes.io/enforce-"]);
    let tried = cluster.try_pod(&"default".into(), &pod).await.unwrap();
    assert_eq!(tried["spec"]["containers"][0]["image"], "agent:v1");
    let mut urgent = pod.clone();
    urgent["spec"]["priorityClassName"] = "no-such-class".into();
    let error = cluster.try_pod(&"default".into(), &urgent).await.unwrap_err();
    assert!(matches!(error, WriteError::Denied { status: 403, .. }), "{error:?}");
    assert_eq!(plane.kubectl(&["get", "pods", "-o=name"]), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn characters_that_yaml_treats_differently_arrive_unchanged() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let odd: String = (0..0x300_u32)
        .chain([0x1680, 0x2028, 0x2029, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x1_f600, 0x10_ffff])
        .filter_map(char::from_u32)
        .collect();
    let mut object = manifest("agent:v1");
    object["metadata"]["annotations"] = json!({"odd": odd, "like-yaml": "yes: [no, ~] # 0x1F"});
    let tried = cluster.try_apply(&agent(), &plain(&object)).await.unwrap();
    assert_eq!(tried.annotations.get("odd"), Some(&*odd));
    assert_eq!(tried.annotations.get("like-yaml"), Some("yes: [no, ~] # 0x1F"));
}

#[tokio::test(flavor = "multi_thread")]
async fn ownership_is_replaced_and_nothing_else() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let (_lock, writer) = locked(&cluster).await;
    plane.apply_yaml(&manifest("agent:v1").to_string());
    let before = live(&cluster).await;

    let mut managed = before.raw["metadata"]["managedFields"].clone();
    managed[0]["manager"] = "ds-apply".into();
    managed[0]["operation"] = "Apply".into();

    // Another client writes first.
    plane.kubectl(&["annotate", "ds", "agent", "x=y"]);
    let annotated = live(&cluster).await;
    let error = writer.replace_managed_fields(&before, &managed).await.unwrap_err();
    assert!(matches!(error, WriteError::Stale { .. }), "{error:?}");
    assert_eq!(live(&cluster).await, annotated, "a failed precondition changes nothing");

    let managed = {
        let mut managed = annotated.raw["metadata"]["managedFields"].clone();
        managed[0]["manager"] = "ds-apply".into();
        managed[0]["operation"] = "Apply".into();
        managed
    };
    let after = writer.replace_managed_fields(&annotated, &managed).await.unwrap();
    assert_eq!(after, live(&cluster).await);
    let without = |daemon_set: &daemonset::model::DaemonSet| {
        let mut raw = Value::clone(&daemon_set.raw);
        let metadata = raw["metadata"].as_object_mut().unwrap();
        metadata.remove("resourceVersion").unwrap();
        metadata.remove("managedFields").unwrap();
        raw
    };
    assert_eq!(without(&after), without(&annotated));
    assert_eq!(after.generation, annotated.generation);
    let names = |managed: &Value| -> Vec<(Value, Value, Value)> {
        let entries = managed.as_array().unwrap().iter();
        entries
            .map(|e| (e["manager"].clone(), e["operation"].clone(), e["fieldsV1"].clone()))
            .collect()
    };
    let mut want = names(&managed);
    let mut got = names(&after.raw["metadata"]["managedFields"]);
    want.sort_by_key(|entry| entry.0.to_string());
    got.sort_by_key(|entry| entry.0.to_string());
    assert_eq!(got, want);

    // The same name, but another object.
    plane.kubectl(&["delete", "ds", "agent"]);
    plane.apply_yaml(&manifest("agent:v1").to_string());
    let error = writer.replace_managed_fields(&after, &managed).await.unwrap_err();
    assert!(matches!(error, WriteError::Stale { .. }), "{error:?}");
    plane.kubectl(&["delete", "ds", "agent"]);
    let error = writer.replace_managed_fields(&after, &managed).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound { .. }), "{error:?}");
}

const REVISION: &str = r#"
apiVersion: apps/v1
kind: ControllerRevision
metadata: {name: agent-1, namespace: default, annotations: {a: "1", b: "2"}}
revision: 1
data: {spec: {template: {"$patch": replace}}}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_only_annotated() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let (_lock, writer) = locked(&cluster).await;
    plane.apply_yaml(REVISION);
    let version = || {
        plane.kubectl(&[
            "get",
            "controllerrevision",
            "agent-1",
            "-o=jsonpath={.metadata.resourceVersion}",
        ])
    };
    let read = async || {
        cluster.live().revision(&"default".into(), &"agent-1".into()).await.unwrap().unwrap()
    };
    let (before, old) = (read().await, version());
    let notes = BTreeMap::from([("c", Some("<3> \u{2028}")), ("a", None)]);
    let after = writer.annotate_revision(&before, Some(&old), &notes).await.unwrap();
    let annotations: BTreeMap<_, _> = after.annotations.iter().collect();
    assert_eq!(annotations.get("c"), Some(&"<3> \u{2028}"));
    assert_eq!((annotations.get("a"), annotations.get("b")), (None, Some(&"2")));
    assert_eq!((after.number, &after.data, &after.uid), (before.number, &before.data, &before.uid));

    let error = writer.annotate_revision(&before, Some(&old), &notes).await.unwrap_err();
    assert!(matches!(error, WriteError::Stale { .. }), "{error:?}");
    writer.annotate_revision(&before, None, &notes).await.unwrap();
    plane.kubectl(&["delete", "controllerrevision", "agent-1"]);
    plane.apply_yaml(REVISION);
    let error = writer.annotate_revision(&before, None, &notes).await.unwrap_err();
    assert!(matches!(error, WriteError::Stale { .. }), "{error:?}");
    plane.kubectl(&["delete", "controllerrevision", "agent-1"]);
    let error = writer.annotate_revision(&before, None, &notes).await.unwrap_err();
    assert!(matches!(error, WriteError::NotFound { .. }), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permissions_are_reported_before_and_after() {
    let plane = quiet();
    let pods = Access {
        verb: Verb::Create,
        resource: Resource::Of(Kind::Pod),
        namespace: Some("default".into()),
        name: None,
    };
    assert!(admin(&plane).await.may(&pods).await.unwrap());
    let dev = cluster_of(&plane, "dev").await;
    assert!(!dev.may(&pods).await.unwrap());
    let error = dev.try_apply(&agent(), &plain(&manifest("agent:v1"))).await.unwrap_err();
    assert_eq!(error.to_string(), "not permitted: patch daemonsets.apps in namespace default");
    let error = dev.live().daemon_set(&agent()).await.unwrap_err();
    assert_eq!(error.to_string(), "not permitted: get daemonsets.apps in namespace default");
}
