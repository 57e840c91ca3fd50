//! Kinds spelled so that a byte search of the file misses them: a request could hide a DaemonSet
//! from review, and with `--prune` its pods would be deleted.

use proptest::prelude::*;
use serde_json::json;

use testkit::fixture::{AGENT, cluster_with, of_kind};
use testkit::sandbox::Sandbox;

/// Spellings of `kind: DaemonSet` that every YAML reader accepts.
const SPELLINGS: [(&str, &str); 14] = [
    ("a JSON escape", r#"kind: "Daemon\u0053et""#),
    ("a short escape", r#"kind: "\x44aemonSet""#),
    ("a long escape", r#"kind: "Daemon\U00000053et""#),
    ("every letter", r#"kind: "\x44\x61\x65\x6d\x6f\x6e\x53\x65\x74""#),
    ("a continued line", "kind: \"Daemon\\\n  Set\""),
    ("continued lines", "kind: \"Daemon\\\n\\\n  \\\n   Set\""),
    ("a continued line with a Windows line end", "kind: \"Daemon\\\r\n  Set\""),
    ("base64", "kind: !!binary RGFlbW9uU2V0"),
    ("base64 on several lines", "kind: !!binary |\n  RGFl\n  bW9u\n  U2V0"),
    ("base64 with escapes", r#"kind: !!binary "RGFlbW9u\x552V0""#),
    ("base64, tagged in full", "kind: !<tag:yaml.org,2002:binary> RGFlbW9uU2V0"),
    ("base64, tag escaped", "kind: !!bin%61ry RGFlbW9uU2V0"),
    ("an alias", "x: &k \"Daemon\\x53et\"\nkind: *k"),
    ("key and value", r#""k\x69nd": "D\x61emonSet""#),
];

fn spelt(spelling: &str) -> String {
    AGENT.replace("kind: DaemonSet", spelling)
}

fn in_list(spelling: &str) -> String {
    let item = spelt(spelling).replace('\n', "\n  ");
    format!("apiVersion: v1\nkind: List\nitems:\n- {}\n", item.trim_end())
}

#[test]
fn every_spelling_of_a_kind_is_read() {
    for (case, spelling) in SPELLINGS {
        for text in [spelt(spelling), in_list(spelling)] {
            let sandbox = Sandbox::with(&[("hidden.yaml", &text)]);
            sandbox.write("cluster.json", testkit::fixture::cluster().to_string());
            sandbox.commit();
            for source in ["--path hidden.yaml", "-f hidden.yaml"] {
                let line = format!("{source} --snapshot cluster.json --validate=warn -o name");
                let run = sandbox.ds_plan(&line);
                assert_eq!(run.stdout, "logging/agent\n", "{case}: {text}\n{run}");
            }
        }
    }
}

#[test]
fn every_spelling_of_json_is_read() {
    let manifest: serde_json::Value = serde_yaml::from_str(AGENT).unwrap();
    for (written, hidden) in
        [(r#""DaemonSet""#, r#""\u0044aemonSet""#), (r#""DaemonSet""#, r#""D\u0061\u0065monSet""#)]
    {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": [manifest]});
        for text in [manifest.to_string(), list.to_string()] {
            let text = text.replace(written, hidden);
            assert!(text.contains(hidden));
            let sandbox = Sandbox::with(&[("hidden.json", &text)]);
            sandbox.write("cluster.json", testkit::fixture::cluster().to_string());
            let run = sandbox.ds_plan("-f hidden.json --snapshot cluster.json -o name");
            assert_eq!(run.stdout, "logging/agent\n", "{text}\n{run}");
        }
    }
}

/// The source `prod` applied both; one of the two now has a hidden spelling.
fn applied_before(hidden: &str) -> Sandbox {
    let mut cluster = cluster_with(AGENT, &["node-1", "node-2"]);
    for live in of_kind(&mut cluster, "DaemonSet") {
        live["metadata"]["annotations"] =
            json!({"ds-plan.dev/source-id": "prod", "ds-plan.dev/source-paths": "fleet"});
    }
    let sandbox = Sandbox::with(&[("cluster.json", &cluster.to_string())]);
    sandbox.write("fleet/other.yaml", AGENT.replace("agent", "other"));
    sandbox.write("fleet/agent.yaml", hidden);
    sandbox
}

#[test]
fn daemon_sets_in_another_spelling_are_not_pruned() {
    let line = "-f fleet --snapshot cluster.json --source-id prod --prune --validate=warn -o json";
    for (case, spelling) in SPELLINGS {
        let run = applied_before(&spelt(spelling)).ds_plan(line);
        let plan: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        let sets = plan["daemonSets"].as_array().unwrap();
        assert!(sets.iter().all(|set| set["change"] != "delete"), "{case}: {run}");
    }
}

#[test]
fn under_prune_every_file_is_read() {
    let line = "-f fleet --snapshot cluster.json --source-id prod --prune";
    // The content of an unreadable file is unknown.
    for broken in ["kind: [", "kind: \"\\q\"", "a: &a [*b]"] {
        let sandbox = applied_before(broken);
        let run = sandbox.ds_plan(line);
        assert_eq!(run.code, Some(1), "{broken}: {run}");
        assert!(run.stderr.contains("fleet/agent.yaml:1:"), "{broken}: {run}");
        let run = sandbox.ds_plan("-f fleet --snapshot cluster.json --source-id prod");
        assert_eq!(run.code, Some(0), "{broken}: {run}");
    }
}

/// The content of a folder that was not rendered is unknown.
#[test]
fn under_prune_every_folder_is_rendered() {
    for (file, text) in [
        ("fleet/app/Chart.yaml", "name: app\n"),
        ("fleet/app/kustomization.yaml", "resources: [agent.yaml]\n"),
    ] {
        for kind in ["kind: {{ .Values.kind }}", "kind: \"Daemon\\x53et\""] {
            let sandbox = applied_before("kind: Secret\napiVersion: v1\nmetadata: {name: x}\n");
            sandbox.write(file, text);
            sandbox.write("fleet/app/agent.yaml", spelt(kind));
            let line = "-f fleet -R --snapshot cluster.json --source-id prod";
            let run = sandbox.ds_plan(&format!("{line} --prune"));
            assert_eq!(run.code, Some(64), "{file}: {kind}: {run}");
            assert!(run.stderr.contains("a part of it was not read"), "{file}: {kind}: {run}");
        }
    }
}

/// go-yaml ends a line, and so a comment, at these characters; YAML 1.2 does not. So kubectl sees a
/// kind after one, and other readers do not.
#[test]
fn a_line_end_that_readers_disagree_on_is_an_error() {
    for (name, end) in [("U+0085", '\u{85}'), ("U+2028", '\u{2028}'), ("U+2029", '\u{2029}')] {
        let text = AGENT.replace("kind: DaemonSet", &format!("kind: Secret #{end}kind: DaemonSet"));
        let sandbox = Sandbox::with(&[("hidden.yaml", &text)]);
        sandbox.write("agent.yaml", AGENT);
        sandbox.write("cluster.json", testkit::fixture::cluster().to_string());
        let run = sandbox.ds_plan("-f hidden.yaml -f agent.yaml --snapshot cluster.json");
        assert_eq!(run.code, Some(1), "{name}: {run}");
        assert!(run.stderr.contains("hidden.yaml:2:15"), "{name}: {run}");
        assert!(run.stderr.contains(name), "{name}: {run}");
        // Also after a block scalar, which ends there for go-yaml.
        let text = AGENT.replace("kind: DaemonSet", &format!("x: |\n  y{end}kind: DaemonSet"));
        sandbox.write("hidden.yaml", &text);
        let run = sandbox.ds_plan("-f hidden.yaml -f agent.yaml --snapshot cluster.json");
        assert!(run.stderr.contains("hidden.yaml:3:4"), "{name}: {run}");
        // Within quotes all readers take it as text.
        let annotations = format!("{{tier: node}}\n  annotations: {{a: \"b{end}c\"}}");
        let text = AGENT.replace("{tier: node}", &annotations);
        sandbox.write("quoted.yaml", &text);
        let run = sandbox.ds_plan("-f quoted.yaml --snapshot cluster.json");
        assert_eq!(run.code, Some(0), "{name}: {run}");
    }
    // kubectl skips a byte order mark at the beginning of a line.
    let text = AGENT.replace("kind: DaemonSet", "kind: Secret\n\u{feff}kind: DaemonSet");
    let sandbox = Sandbox::with(&[("hidden.yaml", &text), ("agent.yaml", AGENT)]);
    sandbox.write("cluster.json", testkit::fixture::cluster().to_string());
    let run = sandbox.ds_plan("-f hidden.yaml -f agent.yaml --snapshot cluster.json");
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("hidden.yaml:3:1"), "{run}");
}

/// One spelling of a letter inside double quotes.
fn letter(letter: char, how: u8) -> String {
    let code = u32::from(letter);
    match how % 7 {
        0 => format!("\\x{code:02x}"),
        1 => format!("\\x{code:02X}"),
        2 => format!("\\u{code:04x}"),
        3 => format!("\\U{code:08X}"),
        4 => format!("\\\n \t {letter}"),
        _ => letter.to_string(),
    }
}

proptest! {
    /// Every document that an independent reader takes for a DaemonSet is read here, too.
    #[test]
    fn no_spelling_is_missed(how in prop::collection::vec(any::<u8>(), 9), indent in 0..3_usize) {
        let word: String = "DaemonSet".chars().zip(how).map(|(c, how)| letter(c, how)).collect();
        let text = format!("apiVersion: apps/v1\nkind:{}\"{word}\"\n", " ".repeat(indent + 1));
        if let Ok(value) = serde_yaml::from_str::<serde_yaml::Value>(&text) {
            prop_assert_eq!(value["kind"].as_str(), Some("DaemonSet"));
            prop_assert!(manifest::is_read(text.as_bytes()), "{}", text);
        }
    }
}
