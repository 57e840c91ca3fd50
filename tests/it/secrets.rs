//! Values that may be secret are in no output, whatever other errors the input has.

use std::collections::BTreeSet;

use cluster::read_recorded_from;
use daemonset::controller::revision_data::data_for;
use daemonset::model::{DaemonSetKey, DesiredDaemonSet, ManifestFile, RevisionNumber, Snapshot};
use manifest::{self, FieldValidation, Options};
use planner::plan::{
    self, Detail, DiffInput, DriftInput, HistoryQuestion, Input, ShownValues, SourceInfo,
};
use proptest::prelude::*;
use render::{self, HtmlOptions, MarkdownOptions, TextOptions};
use serde_json::{Value, json};

use testkit::fixture::cluster_with;

/// Contained in every planted value.
const MARK: &str = "hunter2";

/// Every place where a value may be secret, with a value; `RELEASE` distinguishes one version of
/// them from the next.
const MANIFEST: &str = "\
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: agent
  namespace: logging
  annotations:
    example.com/password: hunter2-object-RELEASE
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata:
      labels: {app: agent}
      annotations:
        example.com/api-key: hunter2-annotation-RELEASE
        example.com/database: postgres://user:hunter2-database-RELEASE@db/x
        example.com/registries: '{\"auths\":{\"r\":{\"auth\":\"hunter2-registry-RELEASE\"}}}'
    spec:
      volumes:
        - name: csi
          csi: {driver: csi.example.com, volumeAttributes: {share: hunter2-csi-RELEASE}}
        - name: flex
          flexVolume: {driver: example.com/flex, options: {share: hunter2-flex-RELEASE}}
      initContainers:
        - name: init
          image: registry.example/init:1
          env:
            - name: PASSWORD
              value: hunter2-init-RELEASE
      containers:
        - name: agent
          image: registry.example/agent:1
          command: [agent, --api-key, hunter2-command-RELEASE]
          args:
            - --token=hunter2-joined-RELEASE
            - --auth=hunter2-auth-RELEASE
            - --pwd=hunter2-pwd-RELEASE
            - --passphrase=hunter2-passphrase-RELEASE
            - -phunter2-glued-RELEASE
            - '--header=Authorization: Bearer hunter2-bearer-RELEASE'
            - https://user:hunter2-login-RELEASE@host/path
            - X-Api-Key:hunter2-glued-header-RELEASE
            - '--config={\"password\":\"hunter2-json-RELEASE\"}'
            - --password
            - hunter2-apart-RELEASE
            - -secret=hunter2-short-RELEASE
          env:
            - name: API_KEY
              value: hunter2-env-RELEASE
            - name: MULTILINE
              value: |
                hunter2-first-RELEASE
                hunter2-second-RELEASE
          livenessProbe:
            httpGet:
              port: 80
              httpHeaders:
                - name: Authorization
                  value: Bearer hunter2-header-RELEASE
          lifecycle:
            preStop:
              exec: {command: [stop, --credential, hunter2-stop-RELEASE]}
";

fn desired(text: &str) -> Result<manifest::Desired, manifest::Errors> {
    let file = ManifestFile { path: "agent.yaml".into(), bytes: text.as_bytes().to_vec() };
    let validate = FieldValidation::Strict;
    manifest::read(
        &[file],
        &Options {
            default_namespace: "default".into(),
            validate,
            policies: None,
            every_file: false,
            not_objects: manifest::NotObjects::Reject,
        },
    )
}

/// A cluster where the first release of the manifest runs, after an even older one.
fn snapshot() -> Snapshot {
    let live = MANIFEST.replace("RELEASE", "one");
    let mut cluster = cluster_with(&live, &["node-1", "node-2"]);
    let older: Value = serde_yaml::from_str(&MANIFEST.replace("RELEASE", "zero")).unwrap();
    let items = cluster["items"].as_array_mut().unwrap();
    let applied = items.iter_mut().find(|it| it["kind"] == "DaemonSet").unwrap();
    applied["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": older.to_string()});
    let mut revision = items.iter().find(|it| it["kind"] == "ControllerRevision").unwrap().clone();
    revision["metadata"]["name"] = "agent-old".into();
    revision["metadata"]["uid"] = "uid-old".into();
    revision["revision"] = json!(0);
    revision["data"] = data_for(&older["spec"]["template"]);
    items.push(revision);
    read_recorded_from(cluster.to_string().as_bytes(), "cluster.json").unwrap()
}

/// Everything that the program would print about `text`.
fn outputs(snapshot: &Snapshot, text: &str) -> Vec<String> {
    let desired = match desired(text) {
        Ok(desired) => desired,
        Err(errors) => return vec![errors.to_string(), format!("{errors:?}")],
    };
    let mut shown: Vec<String> = desired.warnings.iter().map(ToString::to_string).collect();
    let plan = plan::plan(Input {
        base: Some(&[]),
        detail: Detail { all_nodes: true, show_values: ShownValues::None },
        ..Input::of(snapshot, &desired.daemon_sets)
    });
    for verbose in [false, true] {
        let options = TextOptions { verbose, color: verbose, ..TextOptions::default() };
        shown.push(render::plan_text(&plan, &options));
        shown.push(render::status_text(&plan::status(snapshot, |_| true), &options));
    }
    shown.push(render::json(&plan).unwrap());
    shown.push(render::yaml(&plan).unwrap());
    for verbose in [false, true] {
        let options = HtmlOptions { nodes: &snapshot.nodes, verbose };
        shown.push(render::plan_html(&plan, &options).unwrap());
        let markdown = MarkdownOptions { verbose, ..MarkdownOptions::default() };
        shown.push(render::plan_markdown(&plan, &markdown));
    }
    let key = DaemonSetKey::new("logging", "agent");
    if let Ok(explanation) = plan::explain(snapshot, &key, &"node-1".into()) {
        shown.push(render::json(&explanation).unwrap());
    }
    shown.extend(comparisons(snapshot, &desired.daemon_sets));
    shown.extend(histories(snapshot));
    shown
}

fn comparisons(snapshot: &Snapshot, desired: &[DesiredDaemonSet]) -> Vec<String> {
    let diff = plan::diff(DiffInput {
        snapshot,
        desired,
        force_conflicts: &BTreeSet::new(),
        source: SourceInfo::default(),
        warnings: Vec::new(),
        show_values: ShownValues::None,
    });
    let drift = plan::drift(DriftInput {
        snapshot,
        desired,
        source: SourceInfo::default(),
        warnings: Vec::new(),
        show_values: ShownValues::None,
    });
    let options = TextOptions { verbose: true, ..TextOptions::default() };
    vec![
        render::diff_text(&diff, &options),
        render::json(&diff).unwrap(),
        render::yaml(&diff).unwrap(),
        render::drift_text(&drift, &options),
        render::json(&drift).unwrap(),
        render::yaml(&drift).unwrap(),
        render::drift_html(&drift, &HtmlOptions { nodes: &snapshot.nodes, verbose: true }).unwrap(),
    ]
}

fn histories(snapshot: &Snapshot) -> Vec<String> {
    let [older, newer] = [0, 1].map(RevisionNumber);
    let mut shown = Vec::new();
    for question in [
        HistoryQuestion::Overview,
        HistoryQuestion::Revision(older),
        HistoryQuestion::Difference(older, newer),
    ] {
        let history = plan::history(snapshot, |_| true, question, ShownValues::None).unwrap();
        shown.push(render::history_text(&history, &TextOptions::default()));
        shown.push(render::json(&history).unwrap());
        shown.push(render::yaml(&history).unwrap());
    }
    shown
}

#[test]
fn no_output_has_a_secret_in_it() {
    let snapshot = snapshot();
    let text = MANIFEST.replace("RELEASE", "two");
    let outputs = outputs(&snapshot, &text);
    assert!(outputs.len() > 4, "{outputs:#?}");
    assert!(outputs[0].contains("does not check the fields of this volume"), "{}", outputs[0]);
    assert!(outputs[1].contains("(sensitive value)"), "{}", outputs[1]);
    for output in outputs {
        assert!(!output.contains(MARK), "{output}");
    }
}

#[test]
fn secrets_are_shown_on_request() {
    let snapshot = snapshot();
    let desired = desired(&MANIFEST.replace("RELEASE", "two")).unwrap();
    let plan = plan::plan(Input {
        detail: Detail { all_nodes: false, show_values: ShownValues::All },
        ..Input::of(&snapshot, &desired.daemon_sets)
    });
    let text = render::json(&plan).unwrap();
    let places =
        ["init", "command", "joined", "apart", "short", "env", "first", "second", "header", "stop"];
    for place in places {
        for release in ["one", "two"] {
            assert!(
                text.contains(&format!("{MARK}-{place}-{release}")),
                "{place} {release}\n{text}"
            );
        }
    }
}

/// The manifest with one character inserted, removed or replaced; never in a line that contains a
/// secret, nor in one that makes the next a secret.
fn damaged() -> impl Strategy<Value = String> {
    let text = MANIFEST.replace("RELEASE", "two");
    let (mut at, mut spots) = (0, Vec::new());
    for line in text.split_inclusive('\n') {
        if !line.contains(MARK) && !line.contains("--password") && !line.contains("value: |") {
            spots.extend(at..at + line.len());
        }
        at += line.len();
    }
    let odd = prop::sample::select(vec![
        "", " ", "\n", "-", ":", "{", "'", "\"", "&a", "*a", "!x", "é", "\t", "#", "0",
    ]);
    (prop::sample::select(spots), 0..2usize, odd).prop_map(move |(at, taken, put)| {
        let mut damaged = text.clone();
        damaged.replace_range(at..at + taken, put);
        damaged
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_error_has_a_secret_in_it(text in damaged()) {
        let snapshot = snapshot();
        for output in outputs(&snapshot, &text) {
            prop_assert!(!output.contains(MARK), "{}", output);
        }
    }
}
