//! Large recordings, read in pieces and decoded by several threads.

use std::io::{self, Read};

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::*;

const LIST: &str = include_str!("test_list.json");

fn read(bytes: impl Read) -> Result<Snapshot, Error> {
    read_recorded_from(bytes, "s.json")
}

/// A reader that returns this many bytes at a time.
struct Dribble<'t>(&'t [u8], usize);

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.1.min(buffer.len());
        self.0.read(&mut buffer[..length])
    }
}

/// A list of nodes, one per line from the second line on, each passed through `change`.
fn nodes(count: usize, change: impl Fn(usize, String) -> String) -> String {
    let node = |at: usize| {
        let image = "i".repeat(900);
        let node = format!(
            r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"creationTimestamp":"2026-01-01T00:00:00Z","name":"n{at:05}","uid":"u{at}"}},"status":{{"images":["{image}"]}}}}"#
        );
        change(at, node)
    };
    let nodes: Vec<String> = (0..count).map(node).collect();
    format!("{{\"apiVersion\":\"v1\",\"items\":[\n{}\n],\"kind\":\"List\"}}", nodes.join(",\n"))
}

#[test]
fn objects_of_many_batches_are_all_there_and_in_order() {
    let text = nodes(3_000, |_, node| node);
    for piece in [usize::MAX, 4_099] {
        let snapshot = read(Dribble(text.as_bytes(), piece)).unwrap();
        let names: Vec<&str> = snapshot.nodes.iter().map(|node| node.name.as_str()).collect();
        let want: Vec<String> = (0..3_000).map(|at| format!("n{at:05}")).collect();
        assert_eq!(names, want, "{piece}");
    }
}

#[test]
fn the_first_of_several_errors_is_reported() {
    let text = nodes(3_000, |at, node| match at {
        1_000 | 2_999 => node.replace("\"uid\"", "\"id\""),
        1_500 => node.replace("\"name\"", "\"title\""),
        1_501 => node.replace("\"uid\"", "\"uid\","),
        _ => node,
    });
    // Truncated as well.
    for text in [&text, &text[..text.len() - 20]] {
        for _ in 0..10 {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            let want = "s.json: Node `n01000` (item 1001 of its list): metadata.uid: is missing";
            assert_eq!(error, want);
        }
    }
}

#[test]
fn places_count_from_the_beginning_of_the_file() {
    let broken = |at: usize| {
        let break_it = move |node: String| node.replace(":[\"", ":[,\"");
        nodes(2_000, move |this, node| if this == at { break_it(node) } else { node })
    };
    let one_line = nodes(2_000, |_, node| node).replace('\n', "");
    let unquoted = one_line.replace("\"kind\":\"List\"", "\"kind\":List");
    for text in [broken(0), broken(1), broken(1_999), broken(0).replace('\n', ""), unquoted] {
        let error = read(text.as_bytes()).unwrap_err().to_string();
        let want = first_error(&text).unwrap();
        assert_eq!(error, format!("the snapshot s.json is not JSON: {want}"));
    }
    let cut = &one_line[..one_line.len() - 1];
    let error = read(cut.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, format!("the snapshot s.json is cut off at line 1, column {}", cut.len()));
}

#[test]
fn an_object_without_end_is_not_read_into_memory() {
    let head = br#"{"apiVersion":"v1","items":[{},{"x":""#;
    let endless = io::Read::chain(&head[..], io::repeat(b'x'));
    let error = read(endless).unwrap_err().to_string();
    assert!(
        error
            == "the snapshot s.json is not a List of objects: item 2 is too large for a Kubernetes object"
            || error.contains("item 1 has no kind"),
        "{error}"
    );
}

#[test]
fn items_that_are_not_objects_are_rejected() {
    let list = |items: &str| format!(r#"{{"apiVersion":"v1","kind":"List","items":{items}}}"#);
    for (items, want) in [
        ("null", "the snapshot s.json has no nodes"),
        ("7", "the snapshot s.json is not a List of objects: invalid type: integer `7`"),
        ("[[{}]]", "item 1 is not an object"),
        ("[\"{\"]", "item 1 is not an object"),
        (r#"[{"kind":"X"},7]"#, "item 2 is not an object"),
    ] {
        let error = read(list(items).as_bytes()).unwrap_err().to_string();
        assert!(error.contains(want), "{items}\n got {error}\nwant {want}");
    }
    for items in [
        r#"[{"kind":"X"},]"#,
        r#"[{"kind":"X"}{}]"#,
        r#"[{"kind":"X"}}"#,
        r#"[{"kind":"X"]]"#,
        r#"[{"kind":"X","x":[}]"#,
        r#"[{"kind":"X" "x"}]"#,
    ] {
        let text = list(items);
        let error = read(text.as_bytes()).unwrap_err().to_string();
        assert!(error.starts_with("the snapshot s.json is not JSON: "), "{error}");
        assert_eq!(place(&error), place(&first_error(&text).unwrap().to_string()), "{items}");
    }
}

/// The first error of `serde_json` in consecutive documents.
fn first_error(text: &str) -> Option<serde_json::Error> {
    let mut documents = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    documents.find_map(Result::err)
}

/// Line and column of a message.
fn place(message: &str) -> &str {
    message.rsplit_once(" at ").unwrap().1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn syntax_errors_are_those_of_serde_json(
        at in 1..LIST.len(),
        change in prop_oneof![
            Just(None),
            prop::sample::select(b"{}[]\",:\\ 7x\n".to_vec()).prop_map(Some),
        ],
        insert in any::<bool>(),
        piece in 1..200_usize,
    ) {
        let mut bytes = LIST.as_bytes().to_vec();
        match change {
            None => bytes.truncate(at),
            Some(byte) if insert => bytes.insert(at, byte),
            Some(byte) => bytes[at] = byte,
        }
        let text = String::from_utf8(bytes).unwrap();
        let ours = read(Dribble(text.as_bytes(), piece));
        let Some(want) = first_error(&text) else { return Ok(()) };
        match ours {
            Ok(_) => prop_assert!(false, "{want} was not found in {text}"),
            // For a line break within a string, serde_json's readers report different positions.
            Err(Error::Syntax { reason, .. }) if reason.starts_with("control character") => {
                prop_assert!(want.to_string().starts_with("control character"), "{}", want);
            }
            Err(Error::Syntax { reason, .. }) => {
                let want = want.to_string();
                prop_assert_eq!(place(&reason), place(&want));
            }
            Err(Error::CutOff { at, .. }) => {
                prop_assert_eq!(at, Some((want.line(), want.column())));
            }
            // Its kind comes before the syntax error, and is not a kind of a snapshot.
            Err(_) => {}
        }
    }
}
