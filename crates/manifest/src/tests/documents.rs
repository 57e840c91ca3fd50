//! Tests of the documents of a file: encodings, lists, other kinds, and documents that are no
//! objects.

use std::collections::BTreeSet;

use super::*;
use crate::objects::OWN_KINDS;

#[test]
fn lists_are_expanded_and_other_kinds_are_counted() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service}\n- ";
    let list = format!("{text}{}", daemon_set("a", "", "").trim_end().replace('\n', "\n  "));
    let json = default_daemon_set(json!({})).unwrap();
    assert_eq!(json["spec"]["updateStrategy"]["type"], "RollingUpdate");
    let typed = "\n---\napiVersion: apps/v1\nkind: DaemonSetList\nitems: []\n---\n# nothing\n---\n\
                 apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: ServiceList\n\
                 items: [{}, {kind: Service, apiVersion: v1}]\n";
    let desired = read_one(&format!("{list}{typed}")).unwrap();
    let place = &desired.daemon_sets[0].place;
    assert_eq!((place.line, place.column), (5, 3));
    assert_eq!(desired.other_kinds, BTreeMap::from([("Service".to_owned(), 4)]));
    assert_eq!(desired.warnings, []);
}

/// A control-plane test compares them with kubectl.
#[test]
fn lists_that_kubectl_rejects_are_errors() {
    let item = daemon_set("a", "", "").trim_end().replace('\n', "\n  ");
    let untyped = item.replace("apiVersion: apps/v1\n  kind: DaemonSet\n  ", "# DaemonSet\n  ");
    let list = |head: &str, item: &str| format!("{head}\nitems:\n- {item}\n");
    let core = "apiVersion: v1\nkind: List";
    let inner = list(core, &item).trim_end().replace('\n', "\n  ");
    for (name, text, want) in [
        ("list in a list", list(core, &inner), "4:3: a list inside a list, which kubectl rejects"),
        ("no version", list("kind: List", &item), "3:3: DaemonSet in a List without apiVersion"),
        ("no kind", list("apiVersion: v1", &item), "3:3: DaemonSet in a list without kind"),
        (
            "another version",
            list("apiVersion: v2\nkind: List", &item),
            "4:3: DaemonSet in a List of v2; move it to a `List` of v1, or to a document of its own",
        ),
        (
            "a foreign group",
            list("apiVersion: example.dev/v1\nkind: FooList", &item),
            "4:3: DaemonSet in a FooList of example.dev/v1; move it",
        ),
        (
            "another kind",
            list("apiVersion: v1\nkind: PodList", &item),
            "4:3: DaemonSet in a PodList",
        ),
        ("untyped item", list(core, &untyped), "5:3: not a Kubernetes object: apiVersion and kind"),
        ("text", list(core, "DaemonSet"), "4:3: not a Kubernetes object: a string"),
        (
            "nothing",
            format!("{core} # DaemonSet\nitems: [null]"),
            "3:9: not a Kubernetes object: null",
        ),
        ("no items", format!("{core} # DaemonSet"), "1:1: `items` must be a list"),
        (
            "items of another type",
            format!("{core}\nitems: DaemonSet"),
            "1:1: `items` must be a list",
        ),
        (
            "items of a DaemonSet",
            daemon_set("a", "", "items: null\n"),
            "1:1: kubectl reads an object with `items` as a list; remove them from this DaemonSet",
        ),
    ] {
        let errors = errors(&text);
        let starts = |error: &String| error.starts_with(&format!("f.yaml:{want}"));
        assert!(errors.first().is_some_and(starts), "{name}: {errors:?}");
    }
    let daemon_sets =
        |head: &str, item: &str| read_one(&list(head, item)).map(|it| it.daemon_sets.len());
    assert_eq!(daemon_sets("apiVersion: apps/v1\nkind: DaemonSetList", &untyped), Ok(1));
    assert_eq!(daemon_sets("apiVersion: apps/v1\nkind: List", &item), Ok(1));
}

#[test]
fn documents_that_are_no_objects_are_errors_in_named_files_and_skipped_in_repositories() {
    for (document, problem) in [
        ("text", "a string"),
        ("- kind: DaemonSet", "a list"),
        ("3", "a number"),
        ("kind: Service", "apiVersion is missing"),
        ("apiVersion: v1", "kind is missing"),
        ("apiVersion: v1\nkind: ''", "kind is missing"),
        ("on: push", "apiVersion and kind are missing"),
        ("items: [x]", "apiVersion and kind are missing"),
    ] {
        let files = [file("f.yaml", format!("{}---\n{document}\n", daemon_set("a", "", "")))];
        let read = |not_objects| {
            let (default_namespace, policies) = ("here".into(), None);
            let validate = FieldValidation::Strict;
            read(
                &files,
                &Options { default_namespace, validate, policies, every_file: false, not_objects },
            )
        };
        let errors = read(NotObjects::Reject).unwrap_err().to_string();
        assert_eq!(errors, format!("f.yaml:14:1: not a Kubernetes object: {problem}"));
        let skipped = read(NotObjects::Skip).unwrap();
        let warnings: Vec<_> = skipped.warnings.iter().map(ToString::to_string).collect();
        assert_eq!(
            warnings,
            ["f.yaml:14:1: a document that is not a Kubernetes object is skipped"]
        );
    }
    // Too close to a DaemonSet to be skipped.
    assert_eq!(errors("apiVersion: apps/v1 # DaemonSet"), ["f.yaml:1:1: kind is missing"]);
}

#[test]
fn utf_16_and_json_are_read_too() {
    let text = daemon_set("a", "", "");
    let wide: Vec<u8> =
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let object: Value = serde_yaml::from_str(&text).unwrap();
    let want = read_one(&text).unwrap().daemon_sets;
    for (name, bytes) in [
        ("UTF-16", wide),
        ("JSON", object.to_string().into_bytes()),
        ("pretty JSON", serde_json::to_string_pretty(&object).unwrap().replace("  ", "\t").into()),
        ("Windows", text.replace('\n', "\r\n").into()),
    ] {
        let read = read_as(&[file("f.yaml", bytes)], FieldValidation::Strict).unwrap();
        assert_eq!(read.daemon_sets[0].raw, want[0].raw, "{name}");
    }
}

#[test]
fn kinds_are_counted_by_line() {
    for (text, want) in [
        ("kind: DaemonSet\n", 1),
        ("kind: DaemonSet\r\n---\nkind:   DaemonSet # agent\n", 2),
        ("- kind: \"DaemonSet\"\n", 1),
        ("  \"kind\": \"DaemonSet\",\n", 1),
        ("kind: DaemonSetList\n", 0),
        ("# kind: DaemonSet\n", 0),
        ("kind: Deployment\n# DaemonSet\n", 0),
        ("", 0),
    ] {
        assert_eq!(count_daemon_sets(text.as_bytes()), want, "{text:?}");
    }
}

#[test]
fn the_kinds_of_the_schemas_are_known_and_no_others() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas");
    let kinds: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            let schema: Value = serde_json::from_str(&text).unwrap();
            schema["title"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds, OWN_KINDS.map(str::to_owned).into());
    let document = |kind: &str| format!("---\napiVersion: ds-plan.dev/v1alpha1\nkind: {kind}\n");
    let agent = daemon_set("a", "", "");
    for kind in OWN_KINDS.into_iter().filter(|kind| *kind != "RolloutPolicy") {
        let desired = read_one(&format!("{agent}{}", document(kind))).unwrap();
        assert_eq!(desired.other_kinds, BTreeMap::from([(kind.to_owned(), 1)]));
    }
    for (kind, expected) in [
        ("rolloutpolicy", "RolloutPolicy"),
        ("RolloutPolicies", "RolloutPolicy"),
        ("RolloutPolicyList", "RolloutPolicy"),
        ("DaemonSet", "RolloutPolicy"),
        ("faults", "Faults"),
    ] {
        let want =
            format!("f.yaml:2:1: unknown kind `{kind}` of ds-plan.dev; did you mean `{expected}`?");
        let alone = read_policies(&[file("f.yaml", document(kind))]).unwrap_err();
        assert_eq!(alone.to_string(), want);
    }
}

#[test]
fn files_without_policies_are_told_from_files_with_invalid_ones() {
    let policies = |text: &str| read_policies(&[file("f.yaml", text)]).map(|it| it.is_empty());
    for none in ["", "a: b", "kind: RolloutPolicy\napiVersion: other.dev/v1", "# RolloutPolicy"] {
        assert_eq!(policies(none), Ok(true), "{none}");
    }
    let head = "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\n";
    let one = format!("{head}metadata: {{name: p}}\nspec: {{selects: {{names: [a/b]}}}}");
    assert_eq!(policies(&one), Ok(false));
    // A group in another case is refused, too.
    assert!(policies(&one.replace("ds-plan.dev", "DS-Plan.dev")).is_err());
    assert!(policies(head).is_err());
    // Another file need not be valid.
    assert_eq!(policies("kind: DaemonSet\n}"), Ok(true));
    assert!(policies("kind: RolloutPolicy\n}").is_err());
}

#[test]
fn the_valid_daemon_sets_are_read_beside_invalid_ones() {
    let files = [
        file("a.yaml", daemon_set("a", "", "")),
        file("b.yaml", "kind: DaemonSet\n}"),
        file("c.yaml", daemon_set("c", "", "").replace("selector:", "selecter:")),
    ];
    let options = options(FieldValidation::Strict);
    let (valid, errors) = read_valid(&files, &options);
    let names: Vec<_> = valid.iter().map(|it| it.key.to_string()).collect();
    assert_eq!(names, ["here/a"]);
    let all: Vec<_> = read(&files, &options).unwrap_err().iter().cloned().collect();
    assert_eq!(errors, all);
}
