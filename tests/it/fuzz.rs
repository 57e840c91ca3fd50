//! Damaged input of every kind: it is read or rejected with a message, without a panic.
//!
//! `PROPTEST_CASES` sets the number of cases; `.ci/run` takes about a minute. Earlier findings are
//! in `tests/it/fuzz/found`, one file each, and are tested every time.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use cluster::read_recorded_from;
use daemonset::model::ManifestFile;
use flate2::Compression;
use flate2::write::GzEncoder;
use manifest::{self, FieldValidation, Options};
use proptest::prelude::*;
use proptest::sample::Index;

use testkit::fixture::{AGENT, cluster_with};

const POLICY: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: careful}
spec:
  selects: {names: [logging/agent], labels: {tier: node}}
  maxUnavailable: 10%
  progressDeadline: 1h30m
  skipUnreadyNodes: {max: 3}
";

/// Tokens that are difficult for readers of YAML and JSON.
const TOKENS: [&[u8]; 40] = [
    b"\n",
    b"\r\n",
    b"\t",
    b" ",
    b"  ",
    b"- ",
    b": ",
    b"? ",
    b"---\n",
    b"...\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"'",
    b"|",
    b">",
    b"&a ",
    b"*a",
    b"<<: ",
    b"!!binary ",
    b"#",
    b"%YAML 1.2\n",
    b"~",
    b"0644",
    b"1e999",
    b"-0",
    b".inf",
    b"null",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\xf0\x9f",
    b"\\u0000",
    b"\\ud800",
    b"kind: DaemonSet\n",
    b"items:\n",
    b"9223372036854775808",
    b"\x1b[31m",
];

#[derive(Clone, Debug)]
enum Damage {
    Insert(Index, usize),
    Delete(Index, usize),
    Flip(Index, u8),
    Repeat(Index, usize, usize),
    Cut(Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), 0..TOKENS.len()).prop_map(|(at, token)| Damage::Insert(at, token)),
        3 => (at(), 1..40usize).prop_map(|(at, length)| Damage::Delete(at, length)),
        3 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Flip(at, byte)),
        2 => (at(), 1..200usize, 1..6usize)
            .prop_map(|(at, length, times)| Damage::Repeat(at, length, times)),
        1 => at().prop_map(Damage::Cut),
    ]
}

fn damaged(original: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for damage in damages.iter().filter(|_| !original.is_empty()) {
        let spot = |at: &Index| at.index(bytes.len().max(1)).min(bytes.len());
        match damage {
            Damage::Insert(at, token) => {
                let at = spot(at);
                bytes.splice(at..at, TOKENS[*token].iter().copied());
            }
            Damage::Delete(at, length) => {
                let at = spot(at);
                bytes.drain(at..(at + length).min(bytes.len()));
            }
            Damage::Flip(at, byte) => {
                let at = spot(at);
                if let Some(here) = bytes.get_mut(at) {
                    *here ^= byte;
                }
            }
            Damage::Repeat(at, length, times) => {
                let at = spot(at);
                let part = bytes[at..(at + length).min(bytes.len())].repeat(*times);
                bytes.splice(at..at, part);
            }
            Damage::Cut(at) => bytes.truncate(spot(at)),
        }
    }
    bytes
}

/// Reads `bytes` as manifests; an error must have a location and a message.
fn read_manifest(bytes: Vec<u8>) -> Result<(), String> {
    let file = ManifestFile { path: "f.yaml".into(), bytes };
    let validate = FieldValidation::Strict;
    let options = Options {
        default_namespace: "default".into(),
        validate,
        policies: None,
        every_file: false,
        not_objects: manifest::NotObjects::Reject,
    };
    let Err(errors) = manifest::read(&[file], &options) else { return Ok(()) };
    for error in &errors {
        let text = error.to_string();
        let placed = error
            .place()
            .is_none_or(|place| place.line > 0 && place.column > 0 && text.starts_with("f.yaml:"));
        if !placed || text.len() < 10 {
            return Err(format!("{error:?}"));
        }
    }
    Ok(())
}

/// Reads `bytes` as a recording; an error must name that file.
fn read_snapshot(bytes: &[u8]) -> Result<(), String> {
    match read_recorded_from(bytes, "s.json") {
        Ok(_) => Ok(()),
        Err(error) if error.to_string().contains("s.json") => Ok(()),
        Err(error) => Err(format!("{error:?}")),
    }
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

#[test]
fn earlier_findings_are_read_or_rejected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fuzz/found");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        read_manifest(bytes.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        read_snapshot(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    prop::collection::vec(damage(), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_manifests(damages in damages()) {
        let original = format!("{AGENT}---\n{POLICY}");
        read_manifest(damaged(original.as_bytes(), &damages)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn damaged_recordings(damages in damages()) {
        let original = cluster_with(AGENT, &["node-1"]);
        let json = serde_json::to_vec(&original).unwrap();
        read_snapshot(&damaged(&json, &damages)).map_err(TestCaseError::fail)?;
        let pretty = serde_json::to_vec_pretty(&original).unwrap();
        read_snapshot(&damaged(&pretty, &damages)).map_err(TestCaseError::fail)?;
        read_snapshot(&damaged(&packed(&json), &damages)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn damaged_recordings_in_yaml(damages in damages()) {
        let yaml = serde_yaml::to_string(&cluster_with(AGENT, &["node-1"])).unwrap();
        read_snapshot(&damaged(yaml.as_bytes(), &damages)).map_err(TestCaseError::fail)?;
    }
}
