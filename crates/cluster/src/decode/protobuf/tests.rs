//! Objects decoded from protobuf equal those from JSON; broken bytes give errors.

pub(crate) mod schema;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

use self::schema::{NODE, POD, Row, bytes, encode, integer, object, varint};
use super::envelope::{self, ListMeta};
use super::page::{PageReader, header_of_list};
use super::*;
use crate::Kind;
use crate::decode::{Encoded, ObjectError, SnapshotBuilder, read_neighbour};
use daemonset::model::{ClusterInfo, Coverage, Interner, LabelSelector, NeighbourQuery, Snapshot};

/// What decoding an object gives: the snapshot, and what else is kept of it.
type Decoded = Result<(Snapshot, Option<Timestamp>, bool), ObjectError>;

fn decoded(add: impl FnOnce(&mut SnapshotBuilder) -> Result<(), ObjectError>) -> Decoded {
    let mut builder = SnapshotBuilder::default();
    // The name in an error may be read from more than the decoder sees.
    add(&mut builder).map_err(|error| ObjectError { name: None, ..error })?;
    let (newest, managed_fields) = (builder.newest, builder.managed_fields);
    let coverage = Coverage {
        scope: None,
        managed_fields: false,
        namespaces: true,
        services: true,
        leases: true,
        records: true,
        masked: None,
    };
    let snapshot = builder.into_snapshot(ClusterInfo::default(), Timestamp::UNIX_EPOCH, coverage);
    Ok((snapshot.unwrap(), newest, managed_fields))
}

fn from_json(kind: Kind, json: &str) -> Decoded {
    decoded(|builder| builder.add(kind, 0, json))
}

fn from_protobuf(kind: Kind, bytes: &[u8]) -> Decoded {
    decoded(|builder| builder.add_protobuf(kind, 0, bytes))
}

fn rows(kind: Kind) -> &'static [Row] {
    if kind == Kind::Node { NODE } else { POD }
}

/// Fields with numbers that no message has, of each wire type.
fn unknown_fields() -> impl Strategy<Value = Vec<u8>> {
    let one = (900u64..1 << 29, any::<Vec<u8>>(), any::<u64>(), 0..4).prop_map(
        |(number, content, value, wire_type)| {
            let mut out = Vec::new();
            match wire_type {
                0 => integer(&mut out, number, value),
                1 => {
                    varint(&mut out, number << 3 | 1);
                    out.extend(value.to_le_bytes());
                }
                2 => bytes(&mut out, number, &content),
                _ => {
                    varint(&mut out, number << 3 | 5);
                    out.extend(&value.to_le_bytes()[..4]);
                }
            }
            out
        },
    );
    prop::collection::vec(one, 0..3).prop_map(|all| all.concat())
}

fn objects(kind: Kind) -> impl Strategy<Value = (Kind, Value)> {
    let named = |mut object: Value, is_named: bool| {
        if is_named && object["metadata"].is_object() {
            for field in ["name", "namespace", "uid"] {
                object["metadata"][field] = field.into();
            }
        }
        object
    };
    (object(rows(kind)), prop::bool::weighted(0.9))
        .prop_map(move |(object, is_named)| (kind, named(object, is_named)))
}

fn any_object() -> impl Strategy<Value = (Kind, Value)> {
    prop_oneof![objects(Kind::Node), objects(Kind::Pod)]
}

proptest! {
    #[test]
    fn both_formats_give_the_same((kind, object) in any_object(), unknown in unknown_fields()) {
        let mut protobuf = unknown.clone();
        protobuf.extend(encode(rows(kind), &object));
        protobuf.extend(unknown);
        prop_assert_eq!(from_protobuf(kind, &protobuf), from_json(kind, &object.to_string()));
    }

    #[test]
    fn both_formats_give_the_same_neighbour(
        (_, object) in objects(Kind::Pod),
        resource in prop::option::of(prop::sample::select(vec!["a", "b"])),
    ) {
        let resources = resource.map(|it| [it.to_owned()].into());
        let query = NeighbourQuery { selector: LabelSelector::default(), resources };
        let read = |pod| read_neighbour(pod, &query, &mut Interner::default());
        let (json, protobuf) = (object.to_string(), encode(POD, &object));
        prop_assert_eq!(read(Encoded::Protobuf(&protobuf)), read(Encoded::Json(&json)));
    }

    /// A cut object is an error, but where a field ends: that is a smaller object.
    #[test]
    fn a_cut_object_is_an_error((kind, object) in any_object(), cut in any::<prop::sample::Index>()) {
        let protobuf = encode(rows(kind), &object);
        prop_assume!(!protobuf.is_empty());
        let cut = cut.index(protobuf.len());
        let is_between = Fields(&protobuf[..cut]).all(|field| field.is_ok());
        let result = from_protobuf(kind, &protobuf[..cut]);
        prop_assert!(is_between || result.is_err());
    }

    /// Any bytes are an object or an error, also in the places of real fields.
    #[test]
    fn broken_bytes_are_read_or_refused(
        (kind, object) in any_object(),
        at in any::<prop::sample::Index>(),
        broken in prop::collection::vec(any::<u8>(), 1..12),
    ) {
        let mut protobuf = encode(rows(kind), &object);
        let at = at.index(protobuf.len() + 1);
        let end = (at + broken.len()).min(protobuf.len());
        protobuf.splice(at..end, broken);
        let _ = from_protobuf(kind, &protobuf);
        let _ = envelope::name_of(&protobuf);
        let answer = [&b"k8s\0"[..], &protobuf].concat();
        let _ = (opened(&answer, kind).is_ok(), envelope::status(&answer));
        let _ = envelope::ends_in_the_middle(&answer);
    }
}

/// The nodes and pods of the example fleet.
#[test]
fn the_example_fleet_is_the_same_in_both_formats() {
    let text = std::fs::read_to_string("../../examples/fleet/cluster.json").unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let mut count = 0;
    for object in list["items"].as_array().unwrap() {
        let Some(kind @ (Kind::Node | Kind::Pod)) = Kind::of(object["kind"].as_str().unwrap())
        else {
            continue;
        };
        let json = from_json(kind, &object.to_string());
        assert!(json.is_ok());
        assert_eq!(from_protobuf(kind, &encode(rows(kind), object)), json);
        count += 1;
    }
    assert!(count > 200, "{count}");
}

/// A message whose fields are `fields`, one inside the other.
fn nested(numbers: &[u64], innermost: &[u8]) -> Vec<u8> {
    numbers.iter().rev().fold(innermost.to_vec(), |content, number| {
        let mut out = Vec::new();
        bytes(&mut out, *number, &content);
        out
    })
}

#[test]
fn errors_name_the_object_and_the_field() {
    let named = nested(&[1], &{
        let mut metadata = Vec::new();
        for (number, text) in [(1, "p"), (3, "ns"), (5, "u")] {
            bytes(&mut metadata, number, text.as_bytes());
        }
        metadata
    });
    let two_gib = [0xff, 0xff, 0xff, 0xff, 0x07];
    for (rest, want) in [
        (nested(&[3], &[0x10]), "status: the protobuf message is cut off"),
        // A length of 2 GiB, in a message of few bytes.
        (
            nested(&[3, 8], &[&[0x0a], &two_gib[..]].concat()),
            "status.containerStatuses[0]: the protobuf message is cut off",
        ),
        (
            nested(&[3, 8], &[0x08, 1]),
            "status.containerStatuses[0].name: the protobuf field has another type",
        ),
        (
            nested(&[3, 8, 4], b"yes"),
            "status.containerStatuses[0].ready: the protobuf field has another type",
        ),
        (
            nested(&[3, 7], &[0x0d, 1, 2, 3, 4]),
            "status.startTime.seconds: the protobuf field has another type",
        ),
        (nested(&[3], &[0x0b, 0x0c]), "status: the protobuf message has the wire type 3"),
        (nested(&[3], &[0x00, 0x00]), "status: the protobuf message has an invalid field number"),
        (
            nested(&[3], &[0x80; 10]),
            "status: the protobuf message has an integer of more than 64 bits",
        ),
        (
            nested(&[3], &[&[0x88][..], &[0xff; 9], &[0x02]].concat()),
            "status: the protobuf message has an integer of more than 64 bits",
        ),
        (nested(&[3], &[0x0a, 0x02, b'a']), "status: the protobuf message is cut off"),
    ] {
        let object = [named.clone(), rest].concat();
        let error = SnapshotBuilder::default().add_protobuf(Kind::Pod, 4, &object).unwrap_err();
        assert_eq!(error.to_string(), format!("Pod `ns/p` (item 5 of its list): {want}"));
    }
    let error = SnapshotBuilder::default().add_protobuf(Kind::Pod, 0, &[]).unwrap_err();
    assert_eq!(error.to_string(), "Pod (item 1 of its list): metadata.name: is missing");
}

#[test]
fn a_repeated_field_has_a_limit() {
    // Two bytes each, and many times that in memory.
    let empty = |count: usize| nested(&[3], &[0x42, 0x00].repeat(count));
    let read_pod = |count| SnapshotBuilder::default().add_protobuf(Kind::Pod, 0, &empty(count));
    assert_eq!(read_pod(MOST_ITEMS).unwrap_err().path, "metadata.name");
    let error = read_pod(MOST_ITEMS + 1).unwrap_err();
    let want = ("status.containerStatuses", "the protobuf field has more than 20000 items");
    assert_eq!((&*error.path, &*error.reason), want);
}

#[test]
fn unread_fields_may_be_nested_without_end() {
    // The message of an unread field is not looked at: `spec.volumes`.
    let mut deep = Vec::new();
    for _ in 0..10_000 {
        deep = nested(&[1], &deep);
    }
    let pod = nested(&[2], &deep);
    assert_eq!(read_error(&pod), "metadata.name");
}

fn read_error(pod: &[u8]) -> String {
    SnapshotBuilder::default().add_protobuf(Kind::Pod, 0, pod).unwrap_err().path
}

#[test]
fn texts_that_are_not_utf8_are_read_as_in_json() {
    let all = b"\xff\xe2\x82a\xf0\x9f".map(|byte| byte);
    assert_eq!(text(&all), "\u{fffd}\u{fffd}\u{fffd}a\u{fffd}\u{fffd}");
    assert!(matches!(text("ä".as_bytes()), Cow::Borrowed("ä")));
}

#[test]
fn a_repeated_message_continues_the_first() {
    // As upstream's decoder, which only creates what is not there yet.
    let [reason, message] = [(4, "Evicted"), (3, "m")].map(|(number, text)| {
        let mut status = Vec::new();
        bytes(&mut status, number, text.as_bytes());
        nested(&[3], &status)
    });
    let mut named = Vec::new();
    for (number, text) in [(1, "p"), (3, "ns"), (5, "u")] {
        named.extend(nested(&[1], &{
            let mut metadata = Vec::new();
            bytes(&mut metadata, number, text.as_bytes());
            metadata
        }));
    }
    let (snapshot, ..) = from_protobuf(Kind::Pod, &[named, reason, message].concat()).unwrap();
    let failure = snapshot.pods[0].container_failure.as_ref().unwrap();
    assert_eq!((&*failure.reason, &*failure.message), ("Evicted", "m"));
}

/// An answer with this type and content.
pub(crate) fn answer(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut of = Vec::new();
    bytes(&mut of, 1, api_version.as_bytes());
    bytes(&mut of, 2, kind.as_bytes());
    let mut out = b"k8s\0".to_vec();
    bytes(&mut out, 1, &of);
    bytes(&mut out, 2, raw);
    bytes(&mut out, 3, b"");
    bytes(&mut out, 4, b"");
    out
}

/// A page of a list with this token of the next page, which is empty for the last page.
pub(crate) fn page(kind: Kind, next: &str, items: &[Vec<u8>]) -> Vec<u8> {
    let mut metadata = Vec::new();
    for (number, text) in [(1, ""), (2, "77"), (3, next)] {
        bytes(&mut metadata, number, text.as_bytes());
    }
    let mut list = nested(&[1], &metadata);
    for item in items {
        bytes(&mut list, 2, item);
    }
    answer("v1", &format!("{kind}List"), &list)
}

/// The metadata and objects of a page.
type Opened = Result<(ListMeta, Vec<Vec<u8>>), String>;

/// Reads a page in pieces, which end at `cuts`; returns its metadata and objects.
fn in_pieces(page: &[u8], kind: Kind, cuts: &[usize]) -> (bool, Opened) {
    let (mut reader, mut objects) = (PageReader::default(), Vec::new());
    let mut cuts = cuts.to_vec();
    cuts.extend([0, page.len()]);
    cuts.sort_unstable();
    for piece in cuts.windows(2) {
        reader.take(&page[piece[0]..piece[1]], |object| objects.push(object.to_vec()));
    }
    (reader.is_cut(), reader.finish(kind).map(|metadata| (metadata, objects)))
}

fn opened(page: &[u8], kind: Kind) -> Opened {
    in_pieces(page, kind, &[]).1
}

#[test]
fn a_page_has_its_metadata_and_items() {
    let page = page(Kind::Pod, "next", &[Vec::new(), nested(&[1], b"")]);
    let (metadata, objects) = opened(&page, Kind::Pod).unwrap();
    let [version, next] = ["77", "next"].map(|text| Some(text.to_owned()));
    assert_eq!(metadata, ListMeta { version, next });
    assert_eq!(objects, [&b""[..], &[0x0a, 0x00]]);
    for end in 0..page.len() {
        // Without the last two fields of the envelope, which are empty, nothing is missed. But a
        // page without its list must not be an empty list.
        let is_whole = [page.len() - 2, page.len() - 4].contains(&end);
        let (is_cut, opened) = in_pieces(&page[..end], Kind::Pod, &[]);
        assert_eq!((opened.is_ok(), is_cut), (is_whole, !is_whole), "{end}");
        assert_eq!(envelope::ends_in_the_middle(&page[..end]), is_cut, "{end}");
    }
}

/// The reference: reads a whole page. Returns whether it ends in the middle, too.
fn plainly(page: &[u8], kind: Kind) -> (bool, Opened) {
    if begins_second_list(page) {
        return (false, Err("raw: the protobuf field is there twice".to_owned()));
    }
    (envelope::ends_in_the_middle(page), whole(page, kind))
}

/// Whether the envelope is sound up to where a second list begins.
fn begins_second_list(page: &[u8]) -> bool {
    let mut fields = Fields(page.strip_prefix(b"k8s\0").unwrap_or_default());
    let (mut lists, mut of) = (0, envelope::TypeMeta::default());
    loop {
        lists += u32::from(header_of_list(fields.0).is_some());
        let is_sound = fields.next().and_then(Result::ok).is_some_and(|field| match field.number {
            1 => field.merge("typeMeta", &mut of).is_ok(),
            2 => field.bytes("raw").is_ok(),
            _ => true,
        });
        if lists == 2 || !is_sound {
            return lists == 2;
        }
    }
}

fn whole(page: &[u8], kind: Kind) -> Opened {
    let place = |error: Malformed| error.to_string();
    let (of, raw) = envelope::open(page).map_err(place)?;
    of.is_list_of(kind)?;
    let (mut metadata, mut objects) = (ListMeta::default(), Vec::new());
    for field in Fields(raw) {
        let field = field.map_err(place)?;
        match field.number {
            1 => field.merge("metadata", &mut metadata).map_err(place)?,
            2 => objects.push(field.bytes("items").map_err(place)?.to_vec()),
            _ => {}
        }
    }
    Ok((metadata, objects))
}

/// Bytes that look like a page, and those of which a part is broken.
fn pages() -> impl Strategy<Value = Vec<u8>> {
    let items = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8);
    let broken = (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..4));
    (items, unknown_fields(), broken).prop_map(|(items, unknown, (at, broken))| {
        let mut page = page(Kind::Pod, "next", &items);
        page.extend(unknown);
        let at = at.index(page.len());
        let end = (at + broken.len()).min(page.len());
        page.splice(at..end, broken);
        page
    })
}

proptest! {
    #[test]
    fn the_pieces_of_a_page_make_no_difference(
        page in pages(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(page.len() + 1)).collect();
        let bytes: Vec<usize> = (0..page.len()).collect();
        let whole = plainly(&page, Kind::Pod);
        prop_assert_eq!(&in_pieces(&page, Kind::Pod, &[]), &whole);
        prop_assert_eq!(&in_pieces(&page, Kind::Pod, &cuts), &whole);
        prop_assert_eq!(&in_pieces(&page, Kind::Pod, &bytes), &whole);
    }
}

#[test]
fn the_beginning_of_a_page_has_the_token_of_the_next_one() {
    let item = vec![0; 1_000];
    for (next, want) in [("next", Some("next")), ("", None)] {
        let page = page(Kind::Pod, next, &[item.clone(), item.clone()]);
        let mut reader = PageReader::default();
        let known = page.iter().map(|byte| {
            reader.take(&[*byte], |_| {});
            reader.metadata().cloned()
        });
        let known: Vec<_> = known.map(|it| it.map(|metadata| metadata.next)).collect();
        let first = known.iter().position(Option::is_some).unwrap();
        // Magic, the type, and the metadata of the list.
        assert!((30..60).contains(&first), "{first}");
        assert!(known[first..].iter().all(|it| it.as_ref().unwrap().as_deref() == want));
    }
    let items_first = answer("v1", "PodList", &[nested(&[2, 3], b"x"), nested(&[1], b"")].concat());
    for other in [items_first, b"k8s".to_vec(), b"{}".to_vec()] {
        let mut reader = PageReader::default();
        reader.take(&other, |_| {});
        assert!(reader.metadata().is_none());
    }
}

#[test]
fn of_a_page_only_an_incomplete_object_is_held() {
    let page = page(Kind::Pod, "next", &vec![vec![0; 1_000]; 100]);
    let mut reader = PageReader::default();
    for bytes in page.chunks(300) {
        reader.take(bytes, |_| {});
        assert!(reader.held() < 1_010, "{}", reader.held());
    }
}

#[test]
fn other_answers_are_refused() {
    let twice = [answer("v1", "PodList", b""), nested(&[2], b"")];
    for (bytes, want) in [
        (b"{}".to_vec(), "the answer is not a protobuf message of Kubernetes"),
        (answer("v1", "NodeList", b""), "it is a v1 NodeList, not a v1 PodList"),
        (
            answer("meta.k8s.io/v1", "Table\u{1b}[0m", b""),
            r"it is a meta.k8s.io/v1 Table\u{1b}[0m, not a v1 PodList",
        ),
        (answer("v1", "PodList", b"\x0a\xff\xff\xff\xff\x07"), "the protobuf message is cut off"),
        (twice.concat(), "raw: the protobuf field is there twice"),
        (answer("v1", "PodList", b"\x10\x01"), "items: the protobuf field has another type"),
    ] {
        assert_eq!(opened(&bytes, Kind::Pod).err().as_deref(), Some(want));
    }
}

#[test]
fn a_status_is_read() {
    let mut status = Vec::new();
    for (number, text) in [(2, "Failure"), (3, "too old"), (4, "Expired")] {
        bytes(&mut status, number, text.as_bytes());
    }
    integer(&mut status, 6, 410);
    let found = envelope::status(&answer("v1", "Status", &status));
    assert_eq!(found, Some(("too old".to_owned(), "Expired".to_owned())));
    assert_eq!(envelope::status(&answer("v1", "Pod", &status)), None);
}
