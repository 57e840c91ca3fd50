//! Parses the lines of a watch in JSON, each a document (upstream: `metav1.WatchEvent`).

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::event::{Event, EventType, LONGEST, Unread};
use crate::decode::Encoded;

/// Splits the received bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Lines(pub(super) Unread);

impl Lines {
    /// The next complete line.
    ///
    /// # Errors
    /// The line is not a valid event, or is too long.
    pub(super) fn next(&mut self) -> Result<Option<Event<'_>>, String> {
        while let Some(length) = memchr::memchr(b'\n', self.0.rest()) {
            if self.0.rest()[..length].trim_ascii().is_empty() {
                self.0.take(length + 1);
                continue;
            }
            let line = &self.0.take(length + 1)[..length];
            return parse(line).map(Some).map_err(|error| error.to_string());
        }
        if self.0.rest().len() > LONGEST {
            return Err(format!("a watch event is longer than {LONGEST} bytes"));
        }
        Ok(None)
    }
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Versioned {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(rename = "resourceVersion")]
    version: String,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

/// Parses a change in the exact form of upstream's encoder. Fast path: thousands may come at once,
/// so the object is scanned only once, for its version. Any other form is parsed as ordinary JSON.
fn plain_change(line: &[u8]) -> Option<Event<'_>> {
    let rest = std::str::from_utf8(line).ok()?.strip_prefix(r#"{"type":""#)?;
    let (kind, rest) = rest.split_once('"')?;
    let json = rest.strip_prefix(r#","object":"#)?.strip_suffix('}')?;
    let Ok(EventType::Change(change)) = EventType::read(kind) else { return None };
    // This also fails when `json` is not exactly one object.
    let Versioned { metadata: Metadata { version } } = serde_json::from_str(json).ok()?;
    Some(Event::Change { change, version, object: Encoded::Json(json) })
}

fn parse(line: &[u8]) -> Result<Event<'_>, serde_json::Error> {
    if let Some(change) = plain_change(line) {
        return Ok(change);
    }
    let Wire { kind, object } = serde_json::from_slice(line)?;
    let json = object.get();
    let version = || Ok(serde_json::from_str::<Versioned>(json)?.metadata.version);
    Ok(match EventType::read(&kind).map_err(serde::de::Error::custom)? {
        EventType::Change(change) => {
            Event::Change { change, version: version()?, object: Encoded::Json(json) }
        }
        EventType::Bookmark => Event::Bookmark { version: version()? },
        EventType::Error => {
            let Status { code, message } = serde_json::from_str(json)?;
            Event::Error { code, message }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::event::Change;
    use super::*;

    const PUT: &str =
        r#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"5","name":"a"}}}"#;

    #[test]
    fn lines_are_read_from_any_pieces() {
        let bookmark = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        let text = format!("{PUT}\n\n{bookmark}\n{PUT}");
        for cut in 1..text.len() {
            let mut lines = Lines::default();
            let mut seen = Vec::new();
            for part in [&text.as_bytes()[..cut], &text.as_bytes()[cut..]] {
                lines.0.push(part);
                while let Some(line) = lines.next().unwrap() {
                    seen.push(match line {
                        Event::Change { change, version, object } => {
                            format!("{change:?} {version} {}", object.json().unwrap())
                        }
                        Event::Bookmark { version } => version,
                        Event::Error { .. } => unreachable!(),
                    });
                }
            }
            let json = r#"{"metadata":{"resourceVersion":"5","name":"a"}}"#;
            assert_eq!(seen, [format!("Put 5 {json}"), "9".to_owned()], "cut at {cut}");
        }
    }

    /// Any JSON form of an event gives the same change.
    #[test]
    fn a_change_is_read_however_it_is_written() {
        let object = r#"{"metadata":{"resourceVersion":"5","name":"a"}}"#;
        for line in [
            format!(r#"{{"type":"ADDED","object":{object}}}"#),
            format!(r#"{{"type":"MODIFIED", "object":{object}}}"#),
            format!(r#"{{"object":{object},"type":"ADDED"}}"#),
            format!(r#"{{"type":"ADD\u0045D","object":{object}}}"#),
            format!(r#"{{"type":"ADDED","object":{object},"more":{{}}}}"#),
            format!("{{\"type\":\"ADDED\",\"object\":{object} }}\r"),
        ] {
            let Ok(Event::Change { change, version, object: Encoded::Json(json) }) =
                parse(line.as_bytes())
            else {
                panic!("{line}")
            };
            assert_eq!((change, &*version, json.trim()), (Change::Put, "5", object), "{line}");
        }
    }

    #[test]
    fn errors_and_invalid_lines_are_distinguished() {
        let read = |text: &str| {
            let mut lines = Lines::default();
            lines.0.push(format!("{text}\n").as_bytes());
            lines.next().map(|line| format!("{line:?}"))
        };
        let error = r#"{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}"#;
        let want = r#"Some(Error { code: 410, message: "too old" })"#;
        assert_eq!(read(error).as_deref(), Ok(want));
        for garbage in [
            "<html>",
            "{}",
            r#"{"type":"ADDED","object":{"metadata":{}}}"#,
            r#"{"type":"SHOUTED","object":{"metadata":{"resourceVersion":"5"}}}"#,
        ] {
            assert!(read(garbage).is_err(), "{garbage}");
        }
    }

    #[test]
    fn a_line_without_an_end_is_an_error() {
        let mut lines = Lines::default();
        lines.0.push(&vec![b' '; LONGEST]);
        assert_eq!(lines.next(), Ok(None));
        lines.0.push(b"  ");
        assert!(lines.next().is_err());
    }
}
