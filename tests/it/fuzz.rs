//! Damaged input of every kind: it is read or rejected with a message, without a panic.
//!
//! `PROPTEST_CASES` sets the number of cases; `.ci/run` takes about a minute. The readers and their
//! inputs are those of the fuzz targets (`fuzz/`); earlier findings are among the inputs.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use proptest::sample::Index;

use readers::READERS;
use testkit::fixture::{AGENT, cluster_with};

#[expect(unreachable_pub, reason = "it is the library of the fuzz targets")]
#[path = "../../fuzz/src/lib.rs"]
mod readers;

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

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

/// The kept inputs: the name of the target, that of the file, and its bytes.
fn kept() -> &'static [(String, String, Vec<u8>)] {
    static KEPT: OnceLock<Vec<(String, String, Vec<u8>)>> = OnceLock::new();
    KEPT.get_or_init(|| {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut found = Vec::new();
        for target in fs::read_dir(corpus).unwrap().map(Result::unwrap) {
            for file in fs::read_dir(target.path()).unwrap().map(Result::unwrap) {
                found.push((name(&target), name(&file), fs::read(file.path()).unwrap()));
            }
        }
        found.sort();
        found
    })
}

#[test]
fn each_reader_reads_or_rejects_every_kept_input() {
    for (_, read) in READERS {
        for (_, _, bytes) in kept() {
            read(bytes);
        }
    }
}

/// A target without an input that it reads would only ever reject.
#[test]
fn each_reader_has_a_target_and_inputs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    let targets: Vec<&str> = manifest
        .split("\n[[bin]]\nname = \"")
        .skip(1)
        .map(|it| it.split('"').next().unwrap())
        .collect();
    assert_eq!(targets, READERS.map(|(name, _)| name));
    for name in targets {
        let target = fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(target.contains(&format!("ds_plan_fuzz::{name}(bytes)")), "{target}");
        assert!(kept().iter().any(|(of, _, _)| of == name), "no input for {name}");
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
        readers::manifest(&damaged(original.as_bytes(), &damages));
    }

    #[test]
    fn damaged_recordings(damages in damages()) {
        let original = cluster_with(AGENT, &["node-1"]);
        let json = serde_json::to_vec(&original).unwrap();
        readers::recording(&damaged(&json, &damages));
        let pretty = serde_json::to_vec_pretty(&original).unwrap();
        readers::recording(&damaged(&pretty, &damages));
        readers::recording(&damaged(&packed(&json), &damages));
    }

    #[test]
    fn damaged_recordings_in_yaml(damages in damages()) {
        let yaml = serde_yaml::to_string(&cluster_with(AGENT, &["node-1"])).unwrap();
        readers::recording(&damaged(yaml.as_bytes(), &damages));
    }
    #[test]
    fn damaged_inputs(at in any::<Index>(), damages in damages()) {
        let (target, _, bytes) = &kept()[at.index(kept().len())];
        let (_, read) = READERS.into_iter().find(|(name, _)| name == target).unwrap();
        read(&damaged(bytes, &damages));
    }
}
