//! The rules on their tables, which are compared with a real API server too.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::*;
use crate::RefusedBy;
use testkit::invalid::{Row, rows, valid};

/// The rows of every table, each named after its table.
fn all_rows() -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/validate");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let tables = paths.filter(|path| path.extension().is_some_and(|it| it == "yaml"));
    let named = |path: std::path::PathBuf| {
        let table = path.file_stem().unwrap().to_string_lossy().into_owned();
        let rows = rows(&fs::read_to_string(path).unwrap()).into_iter();
        rows.map(move |row| Row { name: format!("{table}: {}", row.name), ..row })
    };
    tables.flat_map(named).collect()
}

#[test]
fn each_row_has_exactly_its_errors() {
    let mut wrong = vec![];
    let rows = all_rows();
    for row in &rows {
        let found = validate(&row.object());
        let errors: Vec<String> = found.iter().map(ToString::to_string).collect();
        let is_only_ours =
            !errors.is_empty() && found.iter().all(|e| e.refused_by == RefusedBy::DsPlan);
        if errors != row.errors || row.ours != is_only_ours {
            wrong.push(format!("{}\n  got  {errors:#?}\n  want {:#?}", row.name, row.errors));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows.len() > 500, "only {} rows", rows.len());
}

#[test]
fn each_row_has_its_warnings() {
    let texts = |found: Vec<crate::FieldWarning>| -> Vec<String> {
        found.iter().map(ToString::to_string).collect()
    };
    for row in all_rows().iter().filter(|row| row.name.starts_with("warnings: ")) {
        let object = row.object();
        assert_eq!(texts(warnings(&object)), row.warnings, "{}", row.name);
        assert_eq!(texts(unchecked_volumes(&object)), row.own_warnings, "{}", row.name);
    }
}

#[test]
fn the_valid_example_is_valid_and_has_no_warnings() {
    assert_eq!(validate(&valid()), []);
    assert_eq!((warnings(&valid()), unchecked_volumes(&valid())), (vec![], vec![]));
}

#[test]
fn a_selector_changes_when_its_requirements_differ() {
    for (live, desired, want) in [
        (json!({"matchLabels": {"a": "b"}}), json!({"matchLabels": {"a": "b"}}), false),
        (json!({"matchLabels": {"a": "b"}}), json!({"matchLabels": {"a": "c"}}), true),
        (
            json!({"matchLabels": {"a": "b"}, "matchExpressions": []}),
            json!({"matchLabels": {"a": "b"}}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
            json!({"matchLabels": null, "matchExpressions": [
                {"key": "a", "operator": "Exists", "values": []}]}),
            false,
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}),
            true,
        ),
    ] {
        let [live_set, desired_set] =
            [&live, &desired].map(|selector| json!({"spec": {"selector": selector}}));
        assert_eq!(selector_changes(&live_set, &desired_set), want, "{live} to {desired}");
    }
}

#[test]
fn an_update_may_not_change_the_selector() {
    let live = valid();
    let mut desired = live.clone();
    desired["spec"]["selector"] = json!({"matchLabels": {"app": "agent", "v": "2"}});
    desired["spec"]["template"]["metadata"]["labels"]["v"] = "2".into();
    assert_eq!(validate_update(&live, &live), []);
    let errors: Vec<String> =
        validate_update(&live, &desired).iter().map(ToString::to_string).collect();
    assert_eq!(
        errors,
        ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"agent\",\"v\":\"2\"}}: \
          field is immutable"]
    );
}

/// The API server compares the namespace with that of the request before it validates, so this
/// is not a row of the table.
#[test]
fn a_namespace_is_a_label() {
    for (namespace, want) in [
        ("", "metadata.namespace: Required value"),
        ("a.b", "metadata.namespace: Invalid value: \"a.b\": must not contain dots"),
    ] {
        let mut object = valid();
        object["metadata"]["namespace"] = namespace.into();
        let errors = validate(&object);
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [want]);
    }
}

/// Not a row of the table: the error repeats the complete value.
#[test]
fn a_credential_spec_has_a_maximum_size() {
    let errors = |length| {
        let mut object = valid();
        object["spec"]["template"]["spec"]["securityContext"] =
            json!({"windowsOptions": {"gmsaCredentialSpec": "a".repeat(length)}});
        let errors = validate(&object).into_iter();
        errors.map(|error| error.without_value().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(errors(65_536), [""; 0]);
    assert_eq!(
        errors(65_537),
        ["spec.template.spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: \
          gmsaCredentialSpec size must be under 64 KiB"]
    );
}

#[test]
fn every_volume_plug_in_without_rules_gets_a_warning() {
    let unchecked = [
        "gitRepo",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "iscsi",
        "glusterfs",
        "flocker",
        "rbd",
        "cinder",
        "cephfs",
        "quobyte",
        "fc",
        "flexVolume",
        "azureFile",
        "vsphereVolume",
        "photonPersistentDisk",
        "portworxVolume",
        "azureDisk",
        "storageos",
        "scaleIO",
    ];
    let checked = [
        "emptyDir",
        "hostPath",
        "secret",
        "nfs",
        "persistentVolumeClaim",
        "downwardAPI",
        "configMap",
        "projected",
        "csi",
        "ephemeral",
        "image",
    ];
    for (kinds, want) in [(&unchecked[..], 1), (&checked, 0)] {
        for kind in kinds {
            let mut object = valid();
            object["spec"]["template"]["spec"]["volumes"] = json!([{"name": "v", *kind: {}}]);
            assert_eq!(unchecked_volumes(&object).len(), want, "{kind}");
        }
    }
}
