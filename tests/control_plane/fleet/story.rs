//! Maps timestamps: events of a minute on the test's control plane are spread over months in the
//! example.
//!
//! A story has chapters. Each begins at a real second, which is mapped to a later moment, and has
//! its own pace: mapped seconds per real second. The order is kept, so a pod is never ready before
//! it is created, whatever the chapters are.

use std::thread;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// Maps the real timestamps of a test to those of the story.
#[derive(Debug, Default)]
pub(crate) struct Story {
    chapters: Vec<Chapter>,
}

#[derive(Debug)]
struct Chapter {
    /// The full second at which it began.
    real: Timestamp,
    /// The moment that this second is mapped to.
    mapped: Timestamp,
    /// Mapped seconds per real second.
    pace: i32,
}

impl Story {
    /// Begins the next chapter. Kubernetes timestamps have full seconds only, so this waits for the
    /// next one: no second belongs to two chapters.
    pub(crate) fn chapter(&mut self, mapped: &str, pace: i32) {
        let now = now();
        let real = Timestamp::from_second(now.as_second() + 1).unwrap();
        thread::sleep(real.duration_since(now).unsigned_abs());
        let mapped = mapped.parse().unwrap();
        if let Some(last) = self.chapters.last() {
            let end = last.tell(real);
            assert!(end < mapped, "the chapter ends at {end}, but the next begins at {mapped}");
        }
        self.chapters.push(Chapter { real, mapped, pace });
    }

    /// Maps every timestamp in `value`, an object of the API or a list of them.
    pub(crate) fn retell(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|field| self.retell(field)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.retell(item)),
            Value::String(text) => {
                if let Some(moment) = moment(text) {
                    *text = self.tell(moment).to_string();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Timestamps before the first chapter are mapped at its pace.
    fn tell(&self, moment: Timestamp) -> Timestamp {
        let begun = self.chapters.iter().rev().find(|chapter| chapter.real <= moment);
        begun.or(self.chapters.first()).expect("a story has a chapter").tell(moment)
    }
}

impl Chapter {
    fn tell(&self, moment: Timestamp) -> Timestamp {
        let seconds = moment.as_second() - self.real.as_second();
        self.mapped + SignedDuration::from_secs(seconds * i64::from(self.pace))
    }
}

/// The parsed timestamp of `text`, in the format of the API server: `2026-07-14T09:14:02Z`.
fn moment(text: &str) -> Option<Timestamp> {
    let moment: Timestamp = text.parse().ok()?;
    (moment.to_string() == text).then_some(moment)
}

/// The current time.
#[expect(clippy::disallowed_methods, reason = "real servers run on real time")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

#[test]
fn timestamps_are_mapped_in_order_and_nothing_else_changes() {
    let chapter = |real: &str, mapped: &str, pace| Chapter {
        real: real.parse().unwrap(),
        mapped: mapped.parse().unwrap(),
        pace,
    };
    let story = Story {
        chapters: vec![
            chapter("2020-01-01T00:00:10Z", "2019-03-01T08:00:00Z", 60),
            chapter("2020-01-01T00:00:12Z", "2019-06-01T08:00:00Z", 1),
        ],
    };
    for (real, mapped) in [
        ("2020-01-01T00:00:09Z", "2019-03-01T07:59:00Z"),
        ("2020-01-01T00:00:11Z", "2019-03-01T08:01:00Z"),
        ("2020-01-01T00:00:12Z", "2019-06-01T08:00:00Z"),
        ("2020-01-01T00:01:12Z", "2019-06-01T08:01:00Z"),
        ("2020-01-01", "2020-01-01"),
        ("worker-a-01", "worker-a-01"),
    ] {
        let mut value = serde_json::json!({"items": [{"a": real, "b": 5}]});
        story.retell(&mut value);
        assert_eq!(value, serde_json::json!({"items": [{"a": mapped, "b": 5}]}), "{real}");
    }
}
