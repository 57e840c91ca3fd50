//! Tests from complete files to DaemonSets or errors.

mod documents;

use std::sync::LazyLock;

use proptest::prelude::*;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::*;

const MANIFESTS: &str = include_str!("served/manifests.yaml");

fn file(path: &str, bytes: impl AsRef<[u8]>) -> ManifestFile {
    ManifestFile { path: path.into(), bytes: bytes.as_ref().to_vec() }
}

fn options(validate: FieldValidation) -> Options {
    Options {
        default_namespace: "here".into(),
        validate,
        policies: None,
        every_file: false,
        not_objects: NotObjects::Skip,
    }
}

fn read_as(files: &[ManifestFile], validate: FieldValidation) -> Result<Desired, Errors> {
    read(files, &options(validate))
}

fn read_one(text: &str) -> Result<Desired, Errors> {
    read_as(&[file("f.yaml", text)], FieldValidation::Strict)
}

/// The errors, one on each line.
fn errors(text: &str) -> Vec<String> {
    match read_one(text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

/// A valid DaemonSet with `pod` in its pod spec (indented by six) and `container` in its container
/// (by ten). The pod spec begins on line 8, the container on line 10.
fn daemon_set(name: &str, pod: &str, container: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata:\n  name: {name}\nspec:\n  \
         selector: {{matchLabels: {{app: a}}}}\n  template:\n    \
         metadata: {{labels: {{app: a}}}}\n    spec:\n      containers:\n        \
         - name: c\n          image: agent:v1\n{container}{pod}"
    )
}

#[test]
fn manifests_become_what_the_api_server_serves() {
    let served: serde_json::Map<String, Value> =
        serde_json::from_str(include_str!("served/served.json")).unwrap();
    let desired = read_as(&[file("f.yaml", MANIFESTS)], FieldValidation::Strict).unwrap();
    assert_eq!(desired.daemon_sets.len(), served.len());
    for daemon_set in desired.daemon_sets {
        let (raw, want) = (&daemon_set.raw, &served[daemon_set.key.name.as_str()]);
        assert_eq!(raw["spec"], want["spec"], "{}", daemon_set.key);
        for key in ["labels", "annotations"] {
            let have = raw["metadata"].get(key).unwrap_or(&Value::Null);
            assert_eq!(have, &want[key], "{} {key}", daemon_set.key);
        }
        assert_eq!(raw["metadata"]["namespace"], "here");
        assert!(raw.get("status").is_none());
        assert_eq!(daemon_set.spec.template.raw(), &raw["spec"]["template"]);
    }
}

/// The manifests, parsed by `serde_yaml`.
static ROWS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let documents = serde_yaml::Deserializer::from_str(MANIFESTS);
    documents.map(|document| Value::deserialize(document).unwrap()).collect()
});

/// Removes, empties or nulls one value somewhere inside.
fn damage(value: &mut Value, path: &[prop::sample::Index], how: u8) {
    let Some((at, rest)) = path.split_first() else {
        *value = match how {
            0 => Value::Null,
            1 => json!({}),
            2 => json!([]),
            3 => json!(""),
            _ => json!(0),
        };
        return;
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let key = fields.keys().nth(at.index(fields.len())).unwrap().clone();
            damage(&mut fields[&key], rest, how);
        }
        Value::Array(items) if !items.is_empty() => {
            let at = at.index(items.len());
            damage(&mut items[at], rest, how);
        }
        leaf => damage(leaf, &[], how),
    }
}

proptest! {
    /// Defaulting a defaulted object changes nothing.
    #[test]
    fn defaulting_twice_is_defaulting_once(
        row in any::<prop::sample::Index>(),
        damages in proptest::collection::vec(
            (proptest::collection::vec(any::<prop::sample::Index>(), 1..12), 0..5_u8),
            0..4,
        ),
    ) {
        let mut object = ROWS[row.index(ROWS.len())].clone();
        for (path, how) in &damages {
            damage(&mut object, path, *how);
        }
        if let Ok(once) = default_daemon_set(object.clone()) {
            let (canonical, problems) = decode::daemon_set(object.clone());
            let unknown = decode::unknown_paths(&problems);
            let sent = written::written(&object, &canonical, |path| !unknown.contains(path));
            prop_assert_eq!(default_daemon_set(sent), Ok(once.clone()), "what is sent");
            prop_assert_eq!(default_daemon_set(once.clone()), Ok(once));
        }
    }
}

#[test]
fn bad_files_are_refused_with_their_place() {
    let ok = daemon_set("ok", "", "");
    for (name, text, want) in [
        ("not YAML", "kind: DaemonSet\na: [", "f.yaml:2:"),
        ("second document", &format!("{ok}---\nkind: DaemonSet\n a: 1"), "f.yaml:15:3:"),
        ("separator", &format!("{ok}--- x\n"), "f.yaml:13:1: only a comment"),
        ("no version", "kind: DaemonSet", "f.yaml:1:1: apiVersion is missing"),
        (
            "old version",
            "a: 1\n---\napiVersion: extensions/v1beta1\nkind: DaemonSet",
            "f.yaml:3:1: DaemonSet of extensions/v1beta1, which servers no longer support; \
             use apps/v1",
        ),
        (
            "nothing in it",
            "apiVersion: v1\nkind: Service\n---\nkind: DaemonSet\napiVersion: apps.kruise.io/v1alpha1\n---\ntext",
            "no DaemonSet found in 1 file; it has 1 DaemonSet.apps.kruise.io, 1 Service and 1 document \
             that is not a Kubernetes object",
        ),
        (
            "small letters",
            &format!("{ok}---\nkind: Daemonset\napiVersion: apps/v1"),
            "f.yaml:14:1: unknown kind `Daemonset`; write `DaemonSet`",
        ),
        (
            "a misspelled policy",
            &format!("{ok}---\nkind: RolloutPolcy\napiVersion: ds-plan.dev/v1alpha1"),
            "f.yaml:14:1: unknown kind `RolloutPolcy` of ds-plan.dev; did you mean `RolloutPolicy`?",
        ),
        (
            "a policy without kind",
            &format!("{ok}---\napiVersion: ds-plan.dev/v1alpha1"),
            "f.yaml:14:1: kind is missing",
        ),
        ("a policy without version", "kind: RolloutPolicy", "f.yaml:1:1: apiVersion is missing"),
        ("generated name", &ok.replace("  name: ok", "  generateName: x"), "f.yaml:4:17: generate"),
    ] {
        let errors = errors(text);
        assert!(errors.first().is_some_and(|error| error.starts_with(want)), "{name}: {errors:?}");
    }
}

#[test]
fn limits_are_enforced() {
    let large = format!("# DaemonSet {}", "x".repeat(3 << 20));
    let many = format!("# DaemonSet\n{}", "---\n".repeat(10_000));
    for (text, want) in [
        (large.as_str(), "f.yaml:1:1: the file has 3145740 bytes; at most 3145728 are read"),
        (&many, "f.yaml:1:1: more than 10000 documents in one file"),
    ] {
        assert_eq!(errors(text), [want]);
    }
    let latin = read_as(&[file("f.yaml", b"# DaemonSet\n# \xE9")], FieldValidation::Strict);
    let want = "f.yaml:2:3: not valid UTF-8; save the file as UTF-8";
    assert_eq!(latin.unwrap_err().to_string(), want);
}

#[test]
fn wrong_values_are_named_by_path_and_place() {
    for (pod, container, want) in [
        (
            "",
            "          env: [{name: A, value: true}]\n",
            "f.yaml:13:34: spec.template.spec.containers[0].env[0].value: must be a string, not a \
             boolean; put it in quotes",
        ),
        (
            "      hostNetwork: \"true\"\n",
            "",
            "f.yaml:13:20: spec.template.spec.hostNetwork: must be true or false, not a string; \
             write it without quotes",
        ),
        (
            "      terminationGracePeriodSeconds: 1.5\n",
            "",
            "f.yaml:13:38: spec.template.spec.terminationGracePeriodSeconds: must be a whole \
             number of at most 64 bits, not 1.5",
        ),
        (
            "",
            "          ports: [{containerPort: 4294967296}]\n",
            "f.yaml:13:35: spec.template.spec.containers[0].ports[0].containerPort: must be a \
             whole number of at most 32 bits, not 4294967296",
        ),
        (
            "",
            "          resources: {limits: {cpu: 1core}}\n",
            "f.yaml:13:37: spec.template.spec.containers[0].resources.limits[cpu]: `1core` is not a \
             quantity; use for example `100m` or `64Mi`",
        ),
        (
            "",
            "          args: -v\n",
            "f.yaml:13:17: spec.template.spec.containers[0].args: must be a list, not a string",
        ),
        (
            "",
            "          imagePullPolice: Always\n",
            "f.yaml:13:28: unknown field `spec.template.spec.containers[0].imagePullPolice`; did \
             you mean `imagePullPolicy`?",
        ),
        (
            "",
            "          hostNetwork: true\n",
            "f.yaml:13:24: unknown field `spec.template.spec.containers[0].hostNetwork`; it \
             belongs at `spec.template.spec.hostNetwork`",
        ),
        (
            "      privileged: true\n",
            "",
            "f.yaml:13:19: unknown field `spec.template.spec.privileged`",
        ),
        (
            "      runAsUser: 0\n",
            "",
            "f.yaml:13:18: unknown field `spec.template.spec.runAsUser`; it belongs at \
             `spec.template.spec.securityContext.runAsUser`",
        ),
        (
            "      restartPolicy: Never\n",
            "",
            "f.yaml:13:22: spec.template.spec.restartPolicy: Unsupported value: \"Never\": \
             supported values: \"Always\"",
        ),
    ] {
        assert_eq!(errors(&daemon_set("a", pod, container)), [want]);
    }
}

#[test]
fn wrong_values_outside_the_pod_are_named_too() {
    let ok = daemon_set("a", "", "");
    for (from, to, want) in [
        ("  name: a\n", "  name: 1\n", "f.yaml:4:9: metadata.name: must be a string"),
        (
            "  name: a\n",
            "  name: a\n  labels: [x]\n",
            "f.yaml:5:3: metadata.labels: must be a mapping",
        ),
        (
            "{labels: {app: a}}",
            "{labels: {app: a}, creationTimestamp: yesterday}",
            "f.yaml:8:53: spec.template.metadata.creationTimestamp: `yesterday` is not a time",
        ),
        (
            "spec:\n  sel",
            "spec:\n  updateStrategy: {rollingUpdate: {maxSurge: true}}\n  sel",
            "f.yaml:6:46: spec.updateStrategy.rollingUpdate.maxSurge: must be a whole number or a \
             string, not a boolean",
        ),
    ] {
        let errors = errors(&ok.replacen(from, to, 1));
        assert!(errors.len() == 1 && errors[0].starts_with(want), "{to}: {errors:?}");
    }
}

#[test]
fn all_errors_of_all_files_come_at_once_in_order() {
    let wrong = daemon_set("a", "      hostPID: 1\n      hostIPC: 1\n", "");
    let files = [
        file("b.yaml", &wrong),
        file("ignored.yaml", "a: ["),
        file("a.yaml", format!("{}---\nkind: [\n---\n{wrong}", daemon_set("b", "", ""))),
    ];
    let errors = read_as(&files, FieldValidation::Strict).unwrap_err();
    let places: Vec<_> = errors
        .iter()
        .map(|error| error.place().map(|place| format!("{}:{}", place.path, place.line)).unwrap())
        .collect();
    assert_eq!(places, ["a.yaml:14", "a.yaml:28", "a.yaml:29", "b.yaml:13", "b.yaml:14"]);
}

#[test]
fn the_same_daemon_set_twice_is_an_error_that_names_both() {
    let namespaced = daemon_set("a", "", "").replace("name: a", "name: a\n  namespace: here");
    let files =
        [file("a.yaml", daemon_set("a", "", "")), file("b.yaml", format!("\n{namespaced}"))];
    let errors = read_as(&files, FieldValidation::Strict).unwrap_err();
    let want = "b.yaml:2:1: DaemonSet here/a is already defined at a.yaml:1:1";
    assert_eq!(errors.to_string(), want);
}

#[test]
fn the_status_is_decoded_before_it_is_ignored() {
    let with = |status: &str| daemon_set("a", "", "") + "status: " + status;
    assert_eq!(errors(&with("{numberReady: 3}")), [""; 0]);
    for (status, want) in [
        ("{numberReady: many}", "13:23: status.numberReady: must be a whole number, not a string"),
        ("{ready: 3}", "13:17: unknown field `status.ready`"),
        ("3", "13:9: status: must be a mapping, not a number"),
    ] {
        let errors = errors(&with(status));
        assert!(
            errors.len() == 1 && errors[0].starts_with(&format!("f.yaml:{want}")),
            "{errors:?}"
        );
    }
}

#[test]
fn unknown_fields_are_errors_warnings_or_nothing() {
    let files = [file("f.yaml", daemon_set("a", "      foo: 1\n", ""))];
    let read = |validate| read_as(&files, validate);
    assert!(read(FieldValidation::Strict).is_err());
    let warned = read(FieldValidation::Warn).unwrap();
    let want = "f.yaml:13:12: unknown field `spec.template.spec.foo`; it is dropped";
    assert_eq!(warned.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
    let ignored = read(FieldValidation::Ignore).unwrap();
    assert_eq!(ignored.warnings, []);
    assert_eq!(ignored.daemon_sets, warned.daemon_sets);
}

#[test]
fn suspicious_content_is_warned_about() {
    let exported = daemon_set("a", "      hostPID: true\n      hostPID: false\n", "").replace(
        "  name: a\n",
        "  name: a\n  uid: u\n  creationTimestamp: null\n  resourceVersion: '7'\n  annotations:\n    \
         deprecated.daemonset.template.generation: '3'\n",
    );
    let text = format!(
        "{exported}---\n\
         on: push\n---\njust text\n"
    );
    let desired = read_one(&text).unwrap();
    let warnings: Vec<_> = desired.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "f.yaml:7:20: `metadata.resourceVersion`, `metadata.uid`, \
             `metadata.annotations[deprecated.daemonset.template.generation]` are written by the \
             server and ignored",
            "f.yaml:19:7: key `hostPID` is already on line 18; this later value is used",
            "f.yaml:21:1: a document that is not a Kubernetes object is skipped",
            "f.yaml:23:1: a document that is not a Kubernetes object is skipped",
        ]
    );
    let raw = &desired.daemon_sets[0].raw;
    assert_eq!(raw["metadata"], json!({"name": "a", "namespace": "here"}));
    let broken = exported.replace("'3'", "three");
    let want = "f.yaml:9:47: metadata.annotations[deprecated.daemonset.template.generation]: \
                `three` is not a whole number";
    assert_eq!(errors(&broken), [want]);
}

#[test]
fn server_warnings_are_reported_with_their_place() {
    let text = daemon_set("a", "      nodeSelector:\n        beta.kubernetes.io/os: linux\n", "");
    let desired = read_one(&text).unwrap();
    let [warning] = &desired.warnings[..] else { panic!("{:?}", desired.warnings) };
    assert_eq!(warning.code(), "fieldWarning");
    assert_eq!(
        warning.to_string(),
        "f.yaml:14:32: spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since \
         v1.14; use \"kubernetes.io/os\" instead"
    );
    let broken = text.replace("agent:v1", "");
    assert_eq!(errors(&broken).len(), 1, "an object with errors is not warned about");
}

#[test]
fn a_patch_is_not_a_complete_object() {
    let patch =
        daemon_set("a", "", "          env:\n          - $patch: delete\n            name: X\n");
    assert_eq!(
        errors(&patch),
        ["f.yaml:14:21: unknown field `spec.template.spec.containers[0].env[0].$patch`; it \
          belongs in a patch, not in a complete object"]
    );
}
