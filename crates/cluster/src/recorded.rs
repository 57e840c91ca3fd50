//! Reads a recorded cluster: the output of `kubectl get
//! nodes,pods,daemonsets,controllerrevisions,namespaces -A -o json` or of `ds-plan snapshot`; JSON
//! or YAML, plain or gzip.
//!
//! Objects are decoded while the file is read, on several cores, a few at a time, so memory is
//! bounded by the snapshot and the largest objects. Not here: decoding an object (`decode`).
//!
//! One thread reads bytes and finds where objects end. Only quotes, escapes and brackets matter for
//! that, and 64 bytes are examined together (`object_scanner`). Runs of whole objects, some 256 KiB
//! each, go to one thread per core, which decodes them into the slim model and returns the buffer.
//! `serde_json` parses the text around the objects (`list_skeleton`), so that a recording is
//! checked as any other document, and the reported error is the first one of the file, whichever
//! thread found it.

mod batches;
mod bytes;
mod intake;
mod list;
mod list_skeleton;
mod meter;
pub(super) mod object_scanner;
mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use super::decode::SnapshotBuilder;
use super::{Error, Kind};
use bytes::Format;
use daemonset::model::{ClusterInfo, Coverage, Snapshot};
use intake::Intake;
use list::Recording;

/// Reads a recorded cluster from a file.
///
/// # Errors
/// The file cannot be opened or read, is truncated or damaged, is not a `List` of objects, has an
/// invalid or duplicate object, or has no nodes.
pub fn read_recorded(path: &Path) -> Result<Snapshot, Error> {
    let label: Arc<str> = path.display().to_string().into();
    let file = File::open(path).map_err(|source| Error::Open { file: label.clone(), source })?;
    read_recorded_from(file, &label)
}

/// Reads a recorded cluster from any reader, such as standard input; `label` is its name in
/// messages.
///
/// # Errors
/// As [`read_recorded`].
pub fn read_recorded_from(reader: impl Read, label: &str) -> Result<Snapshot, Error> {
    let file: Arc<str> = label.into();
    let (format, bytes) = bytes::plain(reader, &file)?;
    let mut recording = Recording::new(Arc::clone(&file));
    match format {
        Format::Json => recording.read_json(bytes)?,
        Format::Yaml => recording.read_yaml(bytes)?,
    }
    snapshot(recording, file)
}

/// Builds the snapshot of a completely read recording.
fn snapshot(recording: Recording, file: Arc<str>) -> Result<Snapshot, Error> {
    let Recording { intake: Intake { snapshot_builder, skipped, .. }, header, .. } = recording;
    if snapshot_builder.has_no_nodes() {
        return Err(Error::NoNodes { file, found: summary(&snapshot_builder, &skipped) });
    }
    if let Some(kind) = snapshot_builder.left_out() {
        return Err(Error::Incomplete { file, kind });
    }
    let taken_at = header.as_ref().map(|header| header.observed_at);
    let Some(observed_at) = taken_at.or(snapshot_builder.newest) else {
        return Err(Error::NoMoment { file });
    };
    let coverage = Coverage {
        scope: header.as_ref().and_then(|header| header.scope.clone()),
        // Our own recordings keep those of DaemonSets, the only ones that a plan reads.
        managed_fields: snapshot_builder.managed_fields || header.is_some(),
        namespaces: header
            .as_ref()
            .map_or(snapshot_builder.has(Kind::Namespace), |h| h.all_namespaces),
        // Every cluster has some of both; without any, they were not recorded.
        services: header.as_ref().map_or(snapshot_builder.has(Kind::Service), |h| h.services),
        leases: header.as_ref().map_or(snapshot_builder.has(Kind::Lease), |h| h.leases),
        // Most clusters have none. A revision owned by a record shows that there are some.
        records: header.as_ref().is_some_and(|header| header.records)
            || snapshot_builder.has(Kind::DaemonSetRecord)
            || !snapshot_builder.has_seen_record(),
        masked: header.as_ref().and_then(|header| header.salt),
    };
    let recorded = header.map(|header| header.cluster).unwrap_or_default();
    let cluster = ClusterInfo {
        name: recorded.name,
        uid: snapshot_builder.kube_system.clone().or(recorded.uid),
        version: recorded.version,
        file: Some(file.to_string()),
    };
    snapshot_builder
        .into_snapshot(cluster, observed_at, coverage)
        .map_err(|(kind, name)| Error::Duplicate { origin: file, kind, name })
}

/// The objects of a recording without nodes, such as `12 Pod, 3 Deployment`.
fn summary(snapshot_builder: &SnapshotBuilder, skipped: &BTreeMap<String, usize>) -> String {
    let read = snapshot_builder.counts().into_iter().filter(|(_, count)| *count > 0);
    let read = read.map(|(kind, count)| format!("{count} {kind}"));
    let others = skipped.iter().map(|(kind, count)| format!("{count} {kind}"));
    read.chain(others).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod forms {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Output of `kubectl get … -o json` with one object of each kind and one of another kind.
    const LIST: &str = include_str!("recorded/test_list.json");

    fn read(bytes: impl AsRef<[u8]>) -> Result<Snapshot, Error> {
        read_recorded_from(bytes.as_ref(), "s.json")
    }

    fn message(bytes: impl AsRef<[u8]>) -> String {
        read(bytes).unwrap_err().to_string()
    }

    fn gzip(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// The list as YAML like kubectl's: sorted keys, and quotes where YAML 1.1 needs them.
    fn yaml() -> String {
        let value: serde_json::Value = serde_json::from_str(LIST).unwrap();
        serde_saphyr::to_string(&value).unwrap()
    }

    #[test]
    fn every_form_of_the_same_recording_is_the_same_snapshot() {
        let want = read(LIST).unwrap();
        assert_eq!(want.observed_at.to_string(), "2026-03-04T05:06:09Z");
        assert_eq!((want.nodes.len(), want.pods.len(), want.daemon_sets.len()), (1, 1, 1));
        assert_eq!((want.revisions.len(), want.namespaces.len()), (1, 1));
        assert_eq!((want.services.len(), want.leases.len()), (1, 0), "a node's lease is not kept");
        assert_eq!(want.cluster.uid, Some("ns-uid".into()));
        assert_eq!(
            want.coverage,
            Coverage {
                scope: None,
                managed_fields: true,
                namespaces: true,
                services: true,
                leases: true,
                records: true,
                masked: None
            }
        );

        let value: serde_json::Value = serde_json::from_str(LIST).unwrap();
        let compact = value.to_string();
        let (head, tail) = compact.split_at(compact.len() / 2);
        let kind_last = {
            let mut object = value.as_object().unwrap().clone();
            let kind = object.remove("kind").unwrap();
            let text = serde_json::to_string(&object).unwrap();
            format!(r#"{},"kind":{kind}}}"#, text.strip_suffix('}').unwrap())
        };
        let items = value["items"].as_array().unwrap().iter().map(ToString::to_string);
        let single_objects = items.collect::<Vec<_>>().join("\n");
        for (name, bytes) in [
            ("compact", compact.clone().into_bytes()),
            ("byte-order mark", format!("\u{feff}{LIST}").into_bytes()),
            ("leading blanks", format!("\n\n  {LIST}").into_bytes()),
            ("gzip", gzip(LIST)),
            ("gzip of two members", [gzip(head), gzip(tail)].concat()),
            ("kind last", kind_last.into_bytes()),
            ("single objects", single_objects.into_bytes()),
            ("YAML", yaml().into_bytes()),
            ("YAML with a document mark", format!("---\n{}", yaml()).into_bytes()),
            ("gzip of YAML", gzip(&yaml())),
        ] {
            assert_eq!(
                read(bytes).unwrap_or_else(|error| panic!("{name}: {error}")),
                want,
                "{name}"
            );
        }
    }

    #[test]
    fn errors_of_bad_recordings_name_the_cause() {
        let cut = &LIST[..LIST.rfind("ControllerRevision").unwrap()];
        let packed = gzip(LIST);
        let mut damaged = packed.clone();
        damaged[20..60].fill(0xaa);
        let utf16: Vec<u8> = [0xff, 0xfe]
            .into_iter()
            .chain(LIST.encode_utf16().flat_map(u16::to_le_bytes))
            .collect();
        let node = r#"{"kind":"Node","apiVersion":"v1","metadata":{"name":"n","uid":"u"}}"#;
        let list =
            |items: &str| format!(r#"{{"apiVersion":"v1","kind":"List","items":[{items}]}}"#);
        for (bytes, want) in [
            (Vec::new(), "the snapshot s.json is empty"),
            (b" \n\n".to_vec(), "the snapshot s.json is empty"),
            (gzip(""), "the snapshot s.json is empty"),
            (cut.into(), "the snapshot s.json is cut off at line "),
            (packed[..packed.len() / 2].into(), "the snapshot s.json is cut off"),
            (damaged, "the snapshot s.json is damaged: "),
            (utf16, "the snapshot s.json is UTF-16, not UTF-8"),
            (b"[]".to_vec(), "the snapshot s.json is not a List of objects: expected mapping start at line 1"),
            (b"NAME STATUS\n".to_vec(), "the snapshot s.json is not a List of objects: expected mapping"),
            (b"a: \xff".to_vec(), "the snapshot s.json is damaged: "),
            (b"name: [".to_vec(), "the snapshot s.json is not YAML: "),
            (b"{\"a\":1,}".to_vec(), "the snapshot s.json is not JSON: trailing comma at line 1 column 8"),
            (b"{\"a\":\"\xff\"}".to_vec(), "the snapshot s.json is not JSON: "),
            (format!("{LIST}}}").into(), "the snapshot s.json is not JSON: expected value at line 128 column 1"),
            (b"{\"items\":[]}".to_vec(), "the snapshot s.json is not a List of objects: its kind is ``"),
            (b"{\"kind\":\"List\",\"apiVersion\":\"v2\",\"items\":[]}".to_vec(),
                "the snapshot s.json is not a List of objects: its apiVersion is `v2`, not `v1`"),
            (list("7").into(), "the snapshot s.json is not a List of objects: item 1 is not an object"),
            (list("{}").into(), "the snapshot s.json is not a List of objects: item 1 has no kind"),
            (list("").into(), "the snapshot s.json has no nodes"),
            (list(r#"{"kind":"Secret","apiVersion":"v1"},{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a","uid":"b"}}"#).into(),
                "the snapshot s.json has no nodes, only 1 Namespace, 1 Secret"),
            (b"{\"kind\":\"Status\",\"apiVersion\":\"v1\"}".to_vec(), "the snapshot s.json has no nodes, only 1 Status"),
            (list(&format!("{node},{node}")).into(), "the snapshot s.json has no timestamps"),
            (list(&node.replace("\"uid\"", "\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"uid\"").repeat(2).replace("}}{", "}},{")).into(),
                "s.json: Node `n` appears twice"),
            (list(r#"{"kind":"DaemonSet","apiVersion":"extensions/v1beta1"}"#).into(),
                "s.json: DaemonSet (item 1 of its list) has apiVersion `extensions/v1beta1`; only apps/v1 is supported"),
            (list(r#"{"kind":"Node","apiVersion":"v1","metadata":{"uid":"u"}}"#).into(),
                "s.json: Node (item 1 of its list): metadata.name: is missing"),
        ] {
            let found = message(&bytes);
            assert!(found.starts_with(want), "{}\n got {found}\nwant {want}", String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn other_kinds_are_skipped_even_if_their_name_is_the_same() {
        let foreign = r#"{"kind":"Node","apiVersion":"example.io/v1","metadata":{"name":"x"}},"#;
        let list = LIST.replacen("\"items\": [", &format!("\"items\": [{foreign}"), 1);
        assert_eq!(read(list).unwrap(), read(LIST).unwrap());
    }

    #[test]
    fn a_recording_without_a_needed_kind_is_rejected() {
        let without = |kind: &str| {
            let mut list: serde_json::Value = serde_json::from_str(LIST).unwrap();
            list["items"][2]["status"]["currentNumberScheduled"] = 1.into();
            list["items"].as_array_mut().unwrap().retain(|item| item["kind"] != kind);
            read(list.to_string()).map(|_| ()).map_err(|error| error.to_string())
        };
        for (kind, want) in [
            ("Service", Ok(())),
            ("Lease", Ok(())),
            ("Namespace", Ok(())),
            ("Pod", Err("pods")),
            ("DaemonSet", Err("daemonsets")),
            ("ControllerRevision", Err("controllerrevisions")),
        ] {
            let want = want.map_err(|kind| {
                format!("the snapshot s.json has no {kind}, but its other objects refer to some")
            });
            assert_eq!(without(kind), want, "{kind}");
        }
    }

    #[test]
    fn items_of_a_typed_list_have_its_kind() {
        let list = r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"7"},
            "items":[{"metadata":{"name":"n","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z"}}]}"#;
        let snapshot = read(list).unwrap();
        assert_eq!(snapshot.nodes[0].name.as_str(), "n");
        assert_eq!(
            snapshot.coverage,
            Coverage {
                scope: None,
                managed_fields: false,
                namespaces: false,
                services: false,
                leases: false,
                records: true,
                masked: None
            }
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let deep = |open: &str, close: &str, depth: usize| {
            LIST.replacen(
                "\"number\": 1",
                &format!("\"x\": {}1{}", open.repeat(depth), close.repeat(depth)),
                1,
            )
        };
        assert!(read(deep("[", "]", 60)).is_ok());
        let yaml_60 = format!("{}\nx: {}{}", yaml(), "[".repeat(60), "]".repeat(60));
        assert_eq!(read(yaml_60).unwrap(), read(LIST).unwrap());
        for depth in [200, 100_000] {
            // Only the data of the revision is lost.
            let kept = read(deep("[", "]", depth)).unwrap();
            assert!(kept.unreadable[0].reason.contains("recursion limit exceeded"), "{depth}");
            assert_eq!(*kept.revisions[0].data, serde_json::Value::Null);
            let yaml = format!("{}\nx: {}{}", yaml(), "[".repeat(depth), "]".repeat(depth));
            assert!(message(&yaml).contains("is not YAML"), "{depth}");
        }
    }

    #[test]
    fn a_yaml_recording_larger_than_the_readers_default_bounds_is_read() {
        let images = "1,".repeat(250_001);
        let text = yaml().replacen("\n  status:", &format!("\n  images: [{images}]\n  status:"), 1);
        assert!(text.contains("images"));
        assert_eq!(read(text).unwrap(), read(LIST).unwrap());
    }

    #[test]
    fn a_missing_file_is_reported() {
        let error = read_recorded(Path::new("no/such.json")).unwrap_err();
        assert_eq!(error.to_string(), "cannot open the snapshot no/such.json");
    }
}
