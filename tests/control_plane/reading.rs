//! Our reading of manifests, compared with upstream's own code: scalars and keys, the table of
//! fields, quantities.

mod whole_files;

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use manifest::quantity::{Rounding, canonical};
use manifest::single_document;

use crate::harness::{Component, ControlPlane};
use crate::upstream;

/// Put before each row, so that kubectl accepts it as an object.
const HEAD: &str = "apiVersion: example.dev/v1\nkind: Row\nmetadata: {name: row}\n";

/// The unit test over the same table compares it with our reader.
#[test]
fn kubectl_reads_every_row_as_in_the_table() {
    let table = include_str!("../../crates/manifest/src/kubectl_reads.json");
    let rows: Vec<Value> = serde_json::from_str(table).unwrap();
    // Only kubectl is needed; with `--local` it sends no requests.
    let plane = ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start();
    let mut wrong = Vec::new();
    for row in &rows {
        let yaml = row["yaml"].as_str().unwrap();
        let read = plane.try_kubectl_stdin(
            &["annotate", "--local", "--filename=-", "read=yes", "--output=json"],
            &format!("{HEAD}{yaml}"),
        );
        let read = read.status.success().then(|| {
            let mut object: Value = serde_json::from_slice(&read.stdout).unwrap();
            let fields = object.as_object_mut().unwrap();
            for key in ["apiVersion", "kind", "metadata"] {
                fields.remove(key);
            }
            object
        });
        if read.as_ref() != row.get("json") {
            wrong.push(format!("{yaml:?}: kubectl {read:?}, table {:?}", row.get("json")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_field_table_matches_upstreams_types() {
    let table = include_str!("../../crates/manifest/src/fields.json");
    let generated = upstream::ask("fields", "");
    assert!(
        generated == table,
        "run `go run ./fields` in tests/control_plane/tools/kubernetes, and put what it prints \
         into crates/manifest/src/fields.json"
    );
}

/// Texts that are quantities or similar to one.
fn quantity_texts() -> Vec<String> {
    let suffix = "([num]?|[kMGTPE]i?|[eE][-+]?[0-9]{1,2}|[a-z]|Ki[0-9])";
    let pattern = format!("[-+]?0{{0,2}}[0-9]{{0,20}}(\\.[0-9]{{0,12}})?{suffix}");
    let strategy = proptest::string::string_regex(&pattern).unwrap();
    let mut runner = TestRunner::deterministic();
    let mut texts: BTreeSet<String> = BTreeSet::new();
    while texts.len() < 5_000 {
        texts.insert(strategy.new_tree(&mut runner).unwrap().current());
    }
    let whitespace =
        [" 1", "1 ", "1\n", "\t1", "1\r", "1\u{a0}", "\u{2003}1", "1\u{2028}", "1\u{85}"];
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    texts.chain(whitespace.map(str::to_owned)).collect()
}

/// The answer of an upstream program to each text.
fn ask(program: &str, texts: &[String]) -> Vec<Value> {
    let lines = texts.iter().map(|text| json!(text).to_string() + "\n");
    let answers = upstream::ask(program, &lines.collect::<String>());
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), texts.len());
    answers
}

#[test]
fn quantities_are_parsed_like_upstream() {
    let known: Vec<Value> =
        serde_json::from_str(include_str!("../../crates/manifest/src/quantities.json")).unwrap();
    let text_of = |row: &Value| row.get("text").unwrap_or(&row[0]).as_str().unwrap().to_owned();
    let mut texts = quantity_texts();
    texts.extend(known.iter().map(text_of));
    let answers = ask("quantities", &texts);
    for (text, answer) in texts.iter().zip(&answers) {
        for (rounding, key) in [(Rounding::Exact, "exact"), (Rounding::Milli, "milli")] {
            let want = answer.get(key).map(|want| want.as_str().unwrap().to_owned());
            assert_eq!(canonical(text, rounding).ok(), want, "{text} {rounding:?}");
        }
    }
    assert_eq!(answers[answers.len() - known.len()..], known, "quantities.json is out of date");
}

/// Documents of a few lines, with blanks, tabs and document ends in odd places.
fn documents() -> Vec<String> {
    let blank = "[ \t]{0,4}";
    let value = "(x|x y|x\t|\"x\"|\"x\n[ \t]{0,2}y\"|'x\n\\.\\.\\.\n'|\"x\n\\.\\.\\.[a ]y\"|\\[x,[ \n\t]{1,3}y\\]|\
                 \\[\\]|\\||\\|2|>-|&a x|)";
    let line = format!("(k: {value}|  - {value}|{blank}(#|x|-{blank}x|{value})?)\n");
    let lines: String = (1..5).map(|n| line.replace('k', &format!("k{n}"))).collect();
    let strategy = proptest::string::string_regex(&format!("k: {value}\n{lines}")).unwrap();
    let mut runner = TestRunner::deterministic();
    (0..20_000).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect()
}

/// Our reader accepts no document that kubectl rejects, and reads the same values.
#[test]
fn odd_documents_are_read_like_upstream() {
    let texts = documents();
    let answers = ask("documents", &texts);
    let (mut wrong, mut rejected, mut read, mut stricter) = (Vec::new(), 0, 0, 0);
    for (text, answer) in texts.iter().zip(&answers) {
        let ours = single_document(text.as_bytes());
        match (&ours, answer) {
            (Ok(ours), Value::Array(theirs)) if theirs[..] == [ours.clone()] => read += 1,
            (Err(_), Value::Null) => rejected += 1,
            // Where kubectl drops what follows a document's end, for example.
            (Err(_), Value::Array(_)) => stricter += 1,
            (ours, theirs) => wrong.push(format!("{text:?}: ours {ours:?}, theirs {theirs}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), texts.len(), wrong.join("\n"));
    let counts = format!("{read} read, {rejected} rejected by both, {stricter} by us");
    assert!(read > 1_000 && rejected > 1_000 && stricter < 1_000, "{counts}");
}
