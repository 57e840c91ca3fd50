//! A generated cluster of any size, written as `kubectl get … -o json` would: objects as large as
//! real ones, including images and `managedFields`. The same size gives the same bytes.

mod daemon_set;
mod node;
mod pod;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use daemonset::model::{DesiredDaemonSet, ManifestFile, Snapshot};
use manifest::{self, FieldValidation, Options};
use planner::plan::{Input, Plan, plan};
use serde_json::{Value, json};

/// DaemonSets of the cluster.
const DAEMON_SETS: usize = 20;

/// The number of DaemonSets that run on every node; each of the others runs in one pool.
const EVERYWHERE: usize = 2;

/// Pools of nodes.
const POOLS: usize = 6;

/// Namespaces of teams, each with a share of the ordinary pods.
const TEAMS: usize = 20;

/// A time in the past of the cluster.
const BORN: &str = "2026-03-04T05:06:07Z";
/// The latest timestamp of any object.
const SEEN: &str = "2026-07-14T09:14:07Z";

/// The numbers of nodes to measure: those given on the command line, or the default.
pub(crate) fn sizes() -> Vec<usize> {
    let given: Vec<usize> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    if given.is_empty() { vec![500, 5_000] } else { given }
}

/// A recording of this many nodes, written again each time so that it matches this code.
pub(crate) fn recording(nodes: usize) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fleet");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{nodes}-nodes.json"));
    write(&file, nodes).unwrap();
    file
}

/// Every DaemonSet of the manifests: each of them gets a new image.
pub(crate) fn desired(manifests: &[ManifestFile]) -> Vec<DesiredDaemonSet> {
    let options = Options {
        default_namespace: "default".into(),
        validate: FieldValidation::Strict,
        policies: None,
        every_file: false,
        not_objects: manifest::NotObjects::Reject,
    };
    manifest::read(manifests, &options).unwrap().daemon_sets
}

/// The plan of every DaemonSet.
pub(crate) fn planned(snapshot: &Snapshot, desired: &[DesiredDaemonSet]) -> Plan {
    let plan = plan(Input::of(snapshot, desired));
    assert_eq!(plan.daemon_sets.len(), DAEMON_SETS);
    plan
}

/// Writes a cluster of this many nodes with six pods each, one object per line.
fn write(path: &Path, nodes: usize) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    write!(out, r#"{{"apiVersion":"v1","items":["#)?;
    let mut separator = "\n";
    let mut put = |object: &Value| -> io::Result<()> {
        out.write_all(separator.as_bytes())?;
        separator = ",\n";
        serde_json::to_writer(&mut out, object)?;
        Ok(())
    };
    (0..nodes).try_for_each(|at| put(&node::object(at)))?;
    for set in 0..DAEMON_SETS {
        for at in (0..nodes).filter(|at| runs_on(set, *at)) {
            put(&pod::of_daemon_set(set, at))?;
        }
    }
    (0..nodes).try_for_each(|at| put(&pod::ordinary(at)))?;
    for set in 0..DAEMON_SETS {
        let desired = (0..nodes).filter(|at| runs_on(set, *at)).count();
        put(&daemon_set::live(set, desired))?;
    }
    for set in 0..DAEMON_SETS {
        daemon_set::revisions(set).iter().try_for_each(&mut put)?;
    }
    namespaces().iter().try_for_each(|name| put(&namespace(name)))?;
    out.write_all(b"\n],\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"\"}}\n")?;
    out.flush()
}

/// The manifests that set a new image in every DaemonSet.
pub(crate) fn manifests() -> Vec<ManifestFile> {
    let file = |set| ManifestFile {
        path: format!("{}.json", daemon_set::name(set)).into(),
        bytes: daemon_set::manifest(set).to_string().into_bytes(),
    };
    (0..DAEMON_SETS).map(file).collect()
}

/// Whether a DaemonSet has a pod on a node; every node has pods of five DaemonSets.
fn runs_on(set: usize, node: usize) -> bool {
    set < EVERYWHERE || set % POOLS == node % POOLS
}

/// The team's namespace that contains a node's ordinary pod.
fn team(node: usize) -> String {
    format!("team-{:02}", node % TEAMS)
}

fn namespaces() -> Vec<String> {
    let of_sets = (0..DAEMON_SETS).map(|set| daemon_set::namespace(set).to_owned());
    let mut names: Vec<String> = of_sets.chain((0..TEAMS).map(team)).collect();
    names.push("kube-system".to_owned());
    names.sort();
    names.dedup();
    names
}

fn namespace(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "creationTimestamp": BORN,
            "labels": { "kubernetes.io/metadata.name": name },
            "name": name,
            "resourceVersion": "12",
            "uid": uid("namespace", name),
        },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    })
}

/// A number that looks random, and is the same for the same words.
fn number(kind: &str, name: &str) -> u64 {
    let bytes = kind.bytes().chain([0]).chain(name.bytes());
    // FNV-1a, and the final step of SplitMix64 to spread it over all bits.
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

/// An object's uid.
fn uid(kind: &str, name: &str) -> String {
    let (a, b) = (number(kind, name), number(name, kind));
    let (head, rest) = (a >> 32, b >> 48);
    format!(
        "{head:08x}-{:04x}-4{:03x}-8{:03x}-{rest:04x}{:08x}",
        a & 0xffff,
        b & 0xfff,
        (b >> 12) & 0xfff,
        b >> 24 & 0xffff_ffff
    )
}

/// A digest of an image.
fn sha256(name: &str) -> String {
    let quarters = ["a", "b", "c", "d"].map(|quarter| format!("{:016x}", number(quarter, name)));
    format!("sha256:{}", quarters.concat())
}

/// An entry of `managedFields`.
fn managed(manager: &str, subresource: Option<&str>, fields: &Value) -> Value {
    let mut entry = json!({
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": owned(fields),
        "manager": manager,
        "operation": "Update",
        "time": SEEN,
    });
    if let Some(subresource) = subresource {
        entry["subresource"] = subresource.into();
    }
    entry
}

/// A value as the set of its fields: `f:` for fields, `k:` for items of lists with keys.
fn owned(value: &Value) -> Value {
    let Value::Object(fields) = value else { return json!({}) };
    let entries = fields.iter().map(|(name, value)| (format!("f:{name}"), of_field(value)));
    entries.collect::<serde_json::Map<_, _>>().into()
}

fn of_field(value: &Value) -> Value {
    let Value::Array(items) = value else { return owned(value) };
    let key = |item: &Value| {
        let key = ["name", "type", "ip", "uid"].into_iter().find(|key| item.get(key).is_some())?;
        Some(format!("k:{}", json!({ key: item[key] })))
    };
    let entries = items.iter().filter_map(|item| {
        let mut fields = owned(item);
        fields["."] = json!({});
        Some((key(item)?, fields))
    });
    entries.collect::<serde_json::Map<_, _>>().into()
}
