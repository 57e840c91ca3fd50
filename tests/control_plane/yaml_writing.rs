//! kubectl reads the YAML that we write with the intended values.

use std::collections::BTreeMap;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::harness::{Component, ControlPlane, kubernetes};

/// Strings that some YAML readers take for another type, and random ones.
fn strings() -> Vec<String> {
    let mut strings: Vec<String> =
        serde_json::from_str(include_str!("../nasty_strings.json")).unwrap();
    let mut runner = TestRunner::deterministic();
    for pattern in
        ["\\PC{0,20}", "[ \n\t:#-]{0,6}[a-z0-9.:'\"\\\\ \n_+]{0,12}", "[0-9._:eExob+-]{1,8}"]
    {
        let strategy = proptest::string::string_regex(pattern).unwrap();
        strings.extend((0..150).map(|_| strategy.new_tree(&mut runner).unwrap().current()));
    }
    strings
}

#[test]
fn kubectl_reads_what_we_write() {
    if !kubernetes::since(33, "YAML that begins as JSON is read as newer versions of kubectl do") {
        return;
    }
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    let strings = strings();
    let values: BTreeMap<String, &String> =
        strings.iter().zip(0..).map(|(text, n)| (format!("k{n}"), text)).collect();
    let keys: BTreeMap<&String, &str> = strings.iter().map(|text| (text, "value")).collect();
    for data in [json!(values), json!(keys)] {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "strings"}, "data": data,
        });
        let yaml = render::yaml(&object).unwrap();
        let arguments = ["create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-"];
        let printed: Value = serde_json::from_str(&plane.kubectl_stdin(&arguments, &yaml)).unwrap();
        let (read, written) = (&printed["data"], &object["data"]);
        for (key, text) in written.as_object().unwrap() {
            assert_eq!(read.get(key), Some(text), "{key:?}");
        }
        assert_eq!(read, written);
    }
}
