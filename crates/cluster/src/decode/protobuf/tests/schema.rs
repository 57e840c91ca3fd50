//! Nodes and pods as random JSON, and the protobuf that the API server would have for the same
//! object. The tables were copied from upstream's `generated.proto` files on their own, so that a
//! wrong number in the decoder is found.

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

/// A field: its name, its number and its type.
pub(crate) type Row = (&'static str, u64, Type);

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    /// Text that JSON has even when it is empty.
    Text,
    /// Text with `omitempty`: JSON does not have it when it is empty, protobuf does.
    Omitted,
    /// Text of a pointer: absent in both formats.
    Pointer,
    Bool,
    Int32,
    Int64,
    /// A time: `null` in JSON is an empty message.
    Time,
    Message(&'static [Row]),
    List(&'static [Row]),
    Texts,
    /// A map of texts.
    Map,
    /// A map of quantities.
    Quantities,
}

use Type::{Bool, Int32, Int64, List, Message, Omitted, Pointer, Quantities, Text, Texts, Time};

pub(crate) const NODE: &[Row] = &[
    ("metadata", 1, Message(METADATA)),
    ("spec", 2, Message(NODE_SPEC)),
    ("status", 3, Message(NODE_STATUS)),
];

pub(crate) const POD: &[Row] = &[
    ("metadata", 1, Message(METADATA)),
    ("spec", 2, Message(POD_SPEC)),
    ("status", 3, Message(POD_STATUS)),
];

const METADATA: &[Row] = &[
    ("name", 1, Omitted),
    ("generateName", 2, Omitted),
    ("namespace", 3, Omitted),
    ("selfLink", 4, Omitted),
    ("uid", 5, Omitted),
    ("resourceVersion", 6, Omitted),
    ("generation", 7, Int64),
    ("creationTimestamp", 8, Time),
    ("deletionTimestamp", 9, Time),
    ("deletionGracePeriodSeconds", 10, Int64),
    ("labels", 11, Type::Map),
    ("annotations", 12, Type::Map),
    ("ownerReferences", 13, List(OWNER)),
    ("finalizers", 14, Texts),
    ("managedFields", 17, List(MANAGED)),
];

const OWNER: &[Row] = &[
    ("kind", 1, Text),
    ("name", 3, Text),
    ("uid", 4, Text),
    ("apiVersion", 5, Text),
    ("controller", 6, Bool),
    ("blockOwnerDeletion", 7, Bool),
];

const MANAGED: &[Row] = &[
    ("manager", 1, Omitted),
    ("operation", 2, Omitted),
    ("apiVersion", 3, Omitted),
    ("time", 4, Time),
    ("fieldsType", 6, Omitted),
    ("subresource", 8, Omitted),
];

const NODE_SPEC: &[Row] = &[
    ("podCIDR", 1, Omitted),
    ("providerID", 3, Omitted),
    ("unschedulable", 4, Bool),
    ("taints", 5, List(TAINT)),
    ("podCIDRs", 7, Texts),
];

const TAINT: &[Row] =
    &[("key", 1, Text), ("value", 2, Omitted), ("effect", 3, Text), ("timeAdded", 4, Time)];

const NODE_STATUS: &[Row] = &[
    ("capacity", 1, Quantities),
    ("allocatable", 2, Quantities),
    ("phase", 3, Omitted),
    ("conditions", 4, List(NODE_CONDITION)),
    ("volumesInUse", 9, Texts),
];

const NODE_CONDITION: &[Row] = &[
    ("type", 1, Text),
    ("status", 2, Text),
    ("lastHeartbeatTime", 3, Time),
    ("lastTransitionTime", 4, Time),
    ("reason", 5, Omitted),
    ("message", 6, Omitted),
];

const POD_SPEC: &[Row] = &[
    ("containers", 2, List(CONTAINER_SPEC)),
    ("restartPolicy", 3, Omitted),
    ("terminationGracePeriodSeconds", 4, Int64),
    ("nodeSelector", 7, Type::Map),
    ("serviceAccountName", 8, Omitted),
    ("nodeName", 10, Omitted),
    ("hostNetwork", 11, Bool),
    ("affinity", 18, Message(AFFINITY)),
    ("initContainers", 20, List(CONTAINER_SPEC)),
    ("priority", 25, Int32),
    ("resources", 40, Message(RESOURCES)),
];

const CONTAINER_SPEC: &[Row] =
    &[("name", 1, Text), ("image", 2, Omitted), ("resources", 8, Message(RESOURCES))];

const RESOURCES: &[Row] = &[("limits", 1, Quantities), ("requests", 2, Quantities)];

const AFFINITY: &[Row] = &[("nodeAffinity", 1, Message(NODE_AFFINITY))];

const NODE_AFFINITY: &[Row] =
    &[("requiredDuringSchedulingIgnoredDuringExecution", 1, Message(NODE_SELECTOR))];

const NODE_SELECTOR: &[Row] = &[("nodeSelectorTerms", 1, List(TERM))];

const TERM: &[Row] =
    &[("matchExpressions", 1, List(REQUIREMENT)), ("matchFields", 2, List(REQUIREMENT))];

const REQUIREMENT: &[Row] = &[("key", 1, Text), ("operator", 2, Text), ("values", 3, Texts)];

const POD_STATUS: &[Row] = &[
    ("phase", 1, Omitted),
    ("conditions", 2, List(POD_CONDITION)),
    ("message", 3, Omitted),
    ("reason", 4, Omitted),
    ("hostIP", 5, Omitted),
    ("podIP", 6, Omitted),
    ("startTime", 7, Time),
    ("containerStatuses", 8, List(CONTAINER)),
    ("qosClass", 9, Omitted),
    ("initContainerStatuses", 10, List(CONTAINER)),
    ("nominatedNodeName", 11, Omitted),
    ("ephemeralContainerStatuses", 13, List(CONTAINER)),
    ("observedGeneration", 17, Int64),
];

const POD_CONDITION: &[Row] = &[
    ("type", 1, Text),
    ("status", 2, Text),
    ("lastProbeTime", 3, Time),
    ("lastTransitionTime", 4, Time),
    ("reason", 5, Omitted),
    ("message", 6, Omitted),
    ("observedGeneration", 7, Int64),
];

const CONTAINER: &[Row] = &[
    ("name", 1, Text),
    ("state", 2, Message(STATE)),
    ("lastState", 3, Message(STATE)),
    ("ready", 4, Bool),
    ("restartCount", 5, Int32),
    ("image", 6, Text),
    ("imageID", 7, Text),
    ("containerID", 8, Omitted),
    ("started", 9, Bool),
    ("stopSignal", 15, Pointer),
];

const STATE: &[Row] = &[
    ("waiting", 1, Message(&[("reason", 1, Omitted), ("message", 2, Omitted)])),
    ("running", 2, Message(&[("startedAt", 1, Time)])),
    (
        "terminated",
        3,
        Message(&[
            ("exitCode", 1, Int32),
            ("signal", 2, Int32),
            ("reason", 3, Omitted),
            ("message", 4, Omitted),
            ("startedAt", 5, Time),
            ("finishedAt", 6, Time),
            ("containerID", 7, Omitted),
        ]),
    ),
];

/// Words that decisions depend on.
const WORDS: &[&str] = &[
    "",
    "Ready",
    "PodScheduled",
    "PodReadyToStartContainers",
    "True",
    "False",
    "Unknown",
    "Running",
    "Pending",
    "Failed",
    "Succeeded",
    "metadata.name",
    "In",
    "NotIn",
    "NoSchedule",
    "NoExecute",
    "PreferNoSchedule",
    "CrashLoopBackOff",
    "ContainerCreating",
    "PodInitializing",
    "Unschedulable",
    "DaemonSet",
    "Error",
    "a",
    "b",
];

fn text() -> BoxedStrategy<String> {
    prop_oneof![4 => select(WORDS).prop_map(str::to_owned), 1 => "\\PC{0,12}", 1 => any::<String>()]
        .boxed()
}

/// A random JSON object of a message; every field may be absent.
pub(crate) fn object(rows: &'static [Row]) -> BoxedStrategy<Value> {
    let fields: Vec<_> = rows
        .iter()
        .map(|&(name, _, of)| (Just(name), prop::option::weighted(0.7, value(of))).boxed())
        .collect();
    fields
        .prop_map(|fields| {
            let present = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
            let present = present.map(|(name, value)| (name.to_owned(), value));
            present.collect::<Map<_, _>>().into()
        })
        .boxed()
}

fn value(of: Type) -> BoxedStrategy<Value> {
    match of {
        Text => text().prop_map(Value::from).boxed(),
        Omitted | Pointer => text().prop_filter_map("omitted", not_empty).boxed(),
        Bool => any::<bool>().prop_map(Value::from).boxed(),
        Int32 => any::<i32>().prop_map(Value::from).boxed(),
        Int64 => any::<i64>().prop_map(Value::from).boxed(),
        Time => prop_oneof![1 => Just(Value::Null), 6 => time()].boxed(),
        Message(rows) => object(rows),
        List(rows) => prop::collection::vec(object(rows), 0..4).prop_map(Value::from).boxed(),
        Texts => prop::collection::vec(text(), 0..3).prop_map(Value::from).boxed(),
        Type::Map => prop::collection::btree_map(text(), text(), 0..5).prop_map(map).boxed(),
        Quantities => {
            let quantity = select(vec!["0", "8", "100m", "32Gi", "1e3"]).prop_map(str::to_owned);
            prop::collection::btree_map(text(), quantity, 0..4).prop_map(map).boxed()
        }
    }
}

fn not_empty(text: String) -> Option<Value> {
    (!text.is_empty()).then(|| text.into())
}

fn map(entries: std::collections::BTreeMap<String, String>) -> Value {
    entries.into_iter().map(|(key, value)| (key, value.into())).collect::<Map<_, _>>().into()
}

/// A time in whole seconds, of any year that has four digits.
fn time() -> BoxedStrategy<Value> {
    let seconds = prop_oneof![
        6 => 1_780_000_000i64..1_780_000_010,
        1 => -62_135_596_799i64..253_402_300_799,
        1 => Just(0),
    ];
    let text = |seconds| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string();
    seconds.prop_map(move |seconds| text(seconds).into()).boxed()
}

/// The protobuf of a JSON object, as upstream's encoder writes it, fields in the order of numbers.
/// Fields without a row are not written.
pub(crate) fn encode(rows: &[Row], object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for &(name, number, of) in rows {
        field(&mut out, number, of, object.get(name));
    }
    out
}

fn field(out: &mut Vec<u8>, number: u64, of: Type, value: Option<&Value>) {
    let Some(value) = value else {
        if matches!(of, Omitted) {
            bytes(out, number, b"");
        }
        return;
    };
    match of {
        Text | Omitted | Pointer => bytes(out, number, value.as_str().unwrap().as_bytes()),
        Bool => integer(out, number, u64::from(value.as_bool().unwrap())),
        Int32 | Int64 => integer(out, number, value.as_i64().unwrap().cast_unsigned()),
        Time => bytes(out, number, &moment(value)),
        Message(rows) => bytes(out, number, &encode(rows, value)),
        List(rows) => {
            value.as_array().into_iter().flatten().for_each(|item| {
                bytes(out, number, &encode(rows, item));
            });
        }
        Texts => {
            value.as_array().into_iter().flatten().for_each(|item| {
                bytes(out, number, item.as_str().unwrap().as_bytes());
            });
        }
        Type::Map | Quantities => {
            for (key, value) in value.as_object().into_iter().flatten() {
                let (mut entry, mut text) =
                    (Vec::new(), value.as_str().unwrap().as_bytes().to_vec());
                if matches!(of, Quantities) {
                    let mut quantity = Vec::new();
                    bytes(&mut quantity, 1, &text);
                    text = quantity;
                }
                bytes(&mut entry, 1, key.as_bytes());
                bytes(&mut entry, 2, &text);
                bytes(out, number, &entry);
            }
        }
    }
}

/// `Time`: empty for the zero time, else seconds and nanoseconds.
fn moment(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(text) = value.as_str() {
        let moment: Timestamp = text.parse().unwrap();
        integer(&mut out, 1, moment.as_second().cast_unsigned());
        integer(&mut out, 2, 0);
    }
    out
}

/// A field with an integer.
pub(crate) fn integer(out: &mut Vec<u8>, number: u64, value: u64) {
    varint(out, number << 3);
    varint(out, value);
}

/// A field with text, bytes or a message.
pub(crate) fn bytes(out: &mut Vec<u8>, number: u64, value: &[u8]) {
    varint(out, number << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}
