//! Splits a watch in protobuf into its events: each has its length before it (upstream:
//! `LengthDelimitedFramer`).

use super::event::{Event, EventType, LONGEST, Unread};
use crate::decode::Encoded;
use crate::decode::protobuf::watch_event::WatchEvent;

/// The size of a length, in bytes.
const LENGTH: usize = 4;

/// Splits the received bytes into frames.
#[derive(Debug, Default)]
pub(super) struct Frames(pub(super) Unread);

impl Frames {
    /// The next complete event.
    ///
    /// # Errors
    /// The frame is not a valid event, or is too long.
    pub(super) fn next(&mut self) -> Result<Option<Event<'_>>, String> {
        let rest = self.0.rest();
        let Some((length, rest)) = rest.split_first_chunk::<LENGTH>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Err(format!("a watch event is longer than {LONGEST} bytes"));
        }
        if rest.len() < length {
            return Ok(None);
        }
        parse(&self.0.take(LENGTH + length)[LENGTH..]).map(Some)
    }
}

fn parse(frame: &[u8]) -> Result<Event<'_>, String> {
    let event = WatchEvent::read(frame)?;
    Ok(match EventType::read(event.kind())? {
        EventType::Change(change) => {
            let version = event.version()?;
            Event::Change { change, version, object: Encoded::Protobuf(event.object) }
        }
        EventType::Bookmark => Event::Bookmark { version: event.version()? },
        EventType::Error => {
            let (code, message) = event.status()?;
            Event::Error { code, message }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::event::Change;
    use super::*;
    use crate::decode::protobuf::tests::answer;
    use crate::decode::protobuf::tests::schema::{bytes, integer};

    /// A message with one text or message.
    fn message(number: u64, content: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        bytes(&mut out, number, content);
        out
    }

    /// A pod of which only the resource version is known.
    fn pod(version: &str) -> Vec<u8> {
        message(1, &message(6, version.as_bytes()))
    }

    fn frame(event: &[u8]) -> Vec<u8> {
        let length = u32::try_from(event.len()).unwrap();
        [&length.to_be_bytes(), event].concat()
    }

    fn event(kind: &str, object: &[u8]) -> Vec<u8> {
        let object = message(2, &message(1, &answer("v1", "Pod", object)));
        frame(&[message(1, kind.as_bytes()), object].concat())
    }

    fn read(stream: &[u8]) -> Result<Option<String>, String> {
        let mut frames = Frames::default();
        frames.0.push(stream);
        frames.next().map(|event| event.map(|event| format!("{event:?}")))
    }

    #[test]
    fn frames_are_read_from_any_pieces() {
        let stream =
            [event("ADDED", &pod("5")), event("BOOKMARK", &pod("9")), event("DELETED", &pod("7"))];
        let stream = stream.concat();
        let (first, last) = (pod("5"), pod("7"));
        let change = |change, version: &str, object| {
            let (version, object) = (version.to_owned(), Encoded::Protobuf(object));
            format!("{:?}", Event::Change { change, version, object })
        };
        let want = [
            change(Change::Put, "5", &first),
            format!("{:?}", Event::Bookmark { version: "9".to_owned() }),
            change(Change::Gone, "7", &last),
        ];
        for cut in 0..stream.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for part in [&stream[..cut], &stream[cut..]] {
                frames.0.push(part);
                while let Some(event) = frames.next().unwrap() {
                    seen.push(format!("{event:?}"));
                }
            }
            assert_eq!(seen, want, "cut at {cut}");
        }
    }

    #[test]
    fn the_server_ends_a_watch_with_a_status() {
        let mut status = message(3, b"too old");
        integer(&mut status, 6, 410);
        let want = Event::Error { code: 410, message: "too old".to_owned() };
        assert_eq!(read(&event("ERROR", &status)), Ok(Some(format!("{want:?}"))));
    }

    #[test]
    fn invalid_frames_are_errors() {
        let (cut_off, no_envelope) = (message(2, &[0x0a, 5]), message(2, &message(1, b"{}")));
        for (stream, want) in [
            (event("SHOUTED", &pod("5")), r#"unknown event type "SHOUTED""#),
            (event("ADDED", b""), "metadata.resourceVersion is missing"),
            (frame(b""), "object: the protobuf message is cut off"),
            (frame(&cut_off), "object: the protobuf message is cut off"),
            (frame(&no_envelope), "object: the answer is not a protobuf message of Kubernetes"),
            (b"{\"type\":\"ADDED\"}".to_vec(), "a watch event is longer than 16777216 bytes"),
        ] {
            assert_eq!(read(&stream), Err(want.to_owned()));
        }
        let short = event("ADDED", &pod("5"));
        assert_eq!(read(&short[..short.len() - 1]), Ok(None));
    }
}
