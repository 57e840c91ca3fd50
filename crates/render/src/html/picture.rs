//! The data that a report embeds once and its script draws: nodes, the labels that group them, and
//! a row for each node and DaemonSet with something to show. Repeated texts are stored once and
//! referenced by index, and the columns of rows as [`Runs`], so that the data of a large fleet stays
//! small.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Serialize, Serializer};

use super::markup::Text;
use crate::view::natural_order;
use daemonset::model::Node;

/// Labels with more values than this do not group nodes.
const MOST_VALUES: usize = 40;
/// Maximum number of labels to group by.
const MOST_GROUPINGS: usize = 24;
/// Labels commonly used for grouping; the first one that the fleet has is the default.
const USUAL: [&str; 5] = [
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/arch",
];

/// The data of the map and the table.
#[derive(Debug, Serialize)]
pub(super) struct Picture {
    /// Names of nodes, in natural order.
    nodes: Vec<Text>,
    /// Labels to group them by.
    groupings: Vec<Grouping>,
    /// The states of a node, most severe first; the last one is "nothing to show".
    kinds: Vec<Marker>,
    /// Headings of the table's columns; empty for columns that are not used.
    heads: Heads,
    /// `NAMESPACE/NAME` of DaemonSets.
    sets: Vec<Text>,
    /// By DaemonSet, the index of the label by which its policy divides nodes; -1 for none.
    keys: Vec<i32>,
    /// Reasons, each once.
    whys: Vec<Text>,
    rows: Rows,
}

/// A label, and its value on each node.
#[derive(Debug, Serialize)]
struct Grouping {
    name: Text,
    values: Vec<Text>,
    /// By node, the index of its value; -1 for none.
    of: Vec<i32>,
}

/// Numbers of which many are like the one before. In JSON, each is followed by how often it is
/// repeated.
#[derive(Debug, Default, PartialEq)]
struct Runs(Vec<(i64, u32)>);

impl Runs {
    fn push(&mut self, number: impl Into<i64>) {
        let number = number.into();
        match self.0.last_mut() {
            Some((last, times)) if *last == number => *times += 1,
            _ => self.0.push((number, 1)),
        }
    }
}

impl Serialize for Runs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let flat = self.0.iter().flat_map(|(number, times)| [*number, i64::from(*times)]);
        serializer.collect_seq(flat)
    }
}

/// A state of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Marker {
    /// Its name in the legend.
    pub words: &'static str,
    /// The symbol that text output uses for it.
    pub symbol: &'static str,
    /// The shape of its cells, so that states differ by more than colour.
    pub shape: Shape,
    /// Its colour.
    pub tone: Tone,
}

/// The shape of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Shape {
    Plus,
    Cross,
    Square,
    Diamond,
    Frame,
    Dot,
}

/// A colour of the palette for colour-blind people by Okabe and Ito.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tone {
    Green,
    Red,
    Blue,
    Sky,
    Amber,
    Purple,
    Grey,
}

/// Headings of the optional columns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Heads {
    /// Heading of the state column.
    pub kind: &'static str,
    /// Heading of the wave column; set by [`Picture::of`] if a row has a wave.
    pub wave: &'static str,
    /// Heading of the duration column.
    pub seconds: &'static str,
}

/// One row, by columns.
#[derive(Debug, Default, Serialize)]
struct Rows {
    set: Runs,
    /// The difference to the node of the row before: often 1.
    node: Runs,
    kind: Runs,
    why: Runs,
    /// 0: none.
    wave: Runs,
    /// -1: not known.
    seconds: Runs,
}

/// The row of one node; `S` is its state.
pub(super) struct Row<'a, S> {
    pub node: &'a str,
    pub state: S,
    pub wave: Option<u32>,
    pub seconds: Option<i64>,
    pub why: String,
}

/// The rows of one DaemonSet.
pub(super) struct RowsOf<'a, S> {
    /// `NAMESPACE/NAME`.
    pub set: &'a str,
    /// The label by which its policy divides nodes into domains.
    pub key: Option<&'a str>,
    pub rows: Vec<Row<'a, S>>,
}

impl Tone {
    /// Its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Red => "red",
            Self::Blue => "blue",
            Self::Sky => "sky",
            Self::Amber => "amber",
            Self::Purple => "purple",
            Self::Grey => "grey",
        }
    }
}

impl Picture {
    /// The picture of the fleet with the rows of each DaemonSet. Rows in the last state, "nothing to
    /// show", only name their node. Nodes in the rows may no longer exist.
    pub(super) fn of<S: Copy + PartialEq>(
        fleet: &[Node],
        (states, kind): (&[S], fn(S) -> Marker),
        heads: Heads,
        sets: &[RowsOf<'_, S>],
    ) -> Self {
        let in_fleet = fleet.iter().map(|node| node.name.as_ref());
        let in_rows = sets.iter().flat_map(|of_set| &of_set.rows).map(|row| row.node);
        let names: BTreeSet<&str> = in_fleet.chain(in_rows).collect();
        let mut names: Vec<&str> = names.into_iter().collect();
        names.sort_by(|a, b| natural_order(a, b));
        let places: HashMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let (mut whys, mut rows, mut before) = (Numbered::default(), Rows::default(), 0);
        for (set, of_set) in sets.iter().enumerate() {
            for row in of_set.rows.iter().filter(|row| Some(&row.state) != states.last()) {
                let kind = states.iter().position(|it| *it == row.state).unwrap_or_default();
                rows.set.push(index(set));
                let node = i64::from(places.get(row.node).copied().unwrap_or_default());
                rows.node.push(node - std::mem::replace(&mut before, node));
                rows.kind.push(index(kind));
                rows.wave.push(row.wave.unwrap_or_default());
                rows.seconds.push(row.seconds.unwrap_or(-1));
                rows.why.push(whys.number(&row.why));
            }
        }
        let keys: Vec<&str> = sets.iter().filter_map(|of_set| of_set.key).collect();
        let groupings = groupings(fleet, &places, &keys);
        let position = |key: Option<&str>| {
            let found = groupings.iter().position(|it| key.is_some_and(|key| it.name.is(key)));
            found.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1)
        };
        let in_waves = rows.wave.0.iter().any(|(wave, _)| *wave > 0);
        Self {
            nodes: names.iter().map(Text::of).collect(),
            keys: sets.iter().map(|of_set| position(of_set.key)).collect(),
            groupings,
            kinds: states.iter().map(|state| kind(*state)).collect(),
            heads: Heads { wave: if in_waves { "Wave" } else { "" }, ..heads },
            sets: sets.iter().map(|of_set| Text::of(of_set.set)).collect(),
            whys: whys.texts,
            rows,
        }
    }
}

/// Texts, each once, in the order in which they were first asked for.
#[derive(Default)]
struct Numbered<'a> {
    texts: Vec<Text>,
    numbers: HashMap<&'a str, u32>,
}

impl<'a> Numbered<'a> {
    fn number(&mut self, text: &'a str) -> u32 {
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(Text::of(text));
            index(self.texts.len() - 1)
        })
    }
}

fn index(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// The labels that group nodes: those of policies first, however many values they have; then the
/// common ones, then by name.
fn groupings(fleet: &[Node], places: &HashMap<&str, u32>, first: &[&str]) -> Vec<Grouping> {
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, value) in fleet.iter().flat_map(|node| node.labels.iter()) {
        let known = values.entry(key).or_default();
        // One value too many is enough to exclude the label.
        if known.len() <= MOST_VALUES || first.contains(&key) {
            known.insert(value);
        }
    }
    let usual = |key: &str| USUAL.iter().position(|it| *it == key).unwrap_or(USUAL.len());
    let of_policy = |key: &str| first.iter().position(|it| *it == key).unwrap_or(first.len());
    let mut keys: Vec<(&str, BTreeSet<&str>)> = values.into_iter().collect();
    keys.retain(|(key, values)| {
        let groups = values.len() > 1 || usual(key) < USUAL.len();
        first.contains(key) || (groups && values.len() <= MOST_VALUES)
    });
    keys.sort_by_key(|(key, _)| (of_policy(key), usual(key)));
    keys.truncate(MOST_GROUPINGS);
    keys.into_iter().map(|(key, values)| grouping(key, values, fleet, places)).collect()
}

fn grouping(
    key: &str,
    values: BTreeSet<&str>,
    fleet: &[Node],
    places: &HashMap<&str, u32>,
) -> Grouping {
    let mut values: Vec<&str> = values.into_iter().collect();
    values.sort_by(|a, b| natural_order(a, b));
    let by_value: HashMap<&str, i32> = values.iter().copied().zip(0..).collect();
    let mut of = vec![-1; places.len()];
    for node in fleet {
        let value = node.labels.get(key).and_then(|value| by_value.get(value));
        let place = places.get(node.name.as_str()).and_then(|place| usize::try_from(*place).ok());
        if let (Some(value), Some(slot)) = (value, place.and_then(|place| of.get_mut(place))) {
            *slot = *value;
        }
    }
    Grouping { name: Text::of(key), values: values.iter().map(Text::of).collect(), of }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use daemonset::model::NodeReadiness;

    #[derive(Clone, Copy, PartialEq)]
    enum Case {
        Bad,
        Idle,
    }

    fn kind(_: Case) -> Marker {
        Marker { words: "", symbol: "", shape: Shape::Dot, tone: Tone::Grey }
    }

    fn node(number: usize, labels: &[(&str, &str)]) -> Node {
        Node {
            name: format!("n-{number}").as_str().into(),
            uid: "u".into(),
            labels: labels.iter().map(|(key, value)| (*key, *value)).collect(),
            taints: Box::default(),
            unschedulable: false,
            readiness: NodeReadiness::Ready,
            conditions: Box::default(),
            allocatable: std::iter::empty::<(&str, &str)>().collect(),
            created: None,
        }
    }

    #[test]
    fn labels_that_group_can_be_chosen_the_usual_ones_first() {
        let fleet: Vec<Node> = (0..50)
            .map(|n| {
                let (host, pool) = (format!("n-{n}"), if n < 9 { "gpu" } else { "cpu" });
                let zone = ["b", "a10", "a9"][n % 3];
                let labels = [("host", host.as_str()), ("os", "linux"), ("pool", pool)];
                let zone = (n > 0).then_some(("topology.kubernetes.io/zone", zone));
                node(n, &labels.into_iter().chain(zone).collect::<Vec<_>>())
            })
            .collect();
        let picture = Picture::of::<Case>(&fleet, (&[], kind), Heads::default(), &[]);
        let [zone, pool] = &picture.groupings[..] else { panic!("{picture:?}") };
        // The label of a policy comes first, even if each node has its own value.
        let set = |key| RowsOf::<Case> { set: "a/b", key: Some(key), rows: Vec::new() };
        let sets = [set("pool"), set("host"), set("unknown")];
        let of_policy = Picture::of(&fleet, (&[], kind), Heads::default(), &sets);
        let names: Vec<_> = of_policy.groupings.iter().map(|it| json!(it.name)).collect();
        assert_eq!(names, ["pool", "host", "topology.kubernetes.io/zone"]);
        assert_eq!((of_policy.keys, of_policy.groupings[1].values.len()), (vec![0, 1, -1], 50));
        assert_eq!(json!(zone.values), json!(["a9", "a10", "b"]));
        assert_eq!(zone.of[..4], [-1, 1, 0, 2]);
        assert_eq!((json!(pool.name), pool.of[8], pool.of[9]), (json!("pool"), 1, 0));
    }

    #[test]
    fn repeated_reasons_are_written_once() {
        let fleet = [node(10, &[]), node(9, &[])];
        let row = |node, state, why: &str| Row {
            node,
            state,
            wave: None,
            seconds: None,
            why: why.into(),
        };
        let names = ["n-10", "gone", "n-9"];
        let same = names.map(|name| row(name, Case::Bad, "same"));
        let others = vec![row("gone", Case::Bad, "other"), row("n-11", Case::Idle, "idle")];
        let set = |set, rows| RowsOf { set, key: None, rows };
        let sets = [set("a/b", Vec::from(same)), set("a/c", others)];
        let states = [Case::Bad, Case::Idle];
        let picture = Picture::of(&fleet, (&states, kind), Heads::default(), &sets);
        let picture = serde_json::to_value(picture).unwrap();
        assert_eq!(picture["nodes"], json!(["gone", "n-9", "n-10", "n-11"]));
        assert_eq!(picture["whys"], json!(["same", "other"]));
        // 2, 0, 1, 0; then three times 0 and once 1.
        assert_eq!(picture["rows"]["node"], json!([2, 1, -2, 1, 1, 1, -1, 1]));
        assert_eq!(picture["rows"]["why"], json!([0, 3, 1, 1]));
        assert_eq!(picture["rows"]["set"], json!([0, 3, 1, 1]));
        assert_eq!(picture["heads"]["wave"], "");
    }
}
