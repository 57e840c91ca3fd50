//! Told time: what takes a minute on the test's control plane happened over months in the example.
//!
//! A story has chapters. Each begins at a real second, is told as a later moment, and runs at a
//! pace of its own: so many told seconds for one real one. Order is kept, so a pod is never ready
//! before it is created, whatever the chapters say.

use std::thread;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// How the real moments of a test are told.
#[derive(Debug, Default)]
pub(crate) struct Story {
    chapters: Vec<Chapter>,
}

#[derive(Debug)]
struct Chapter {
    /// The full second at which it began.
    real: Timestamp,
    /// What that second is told as.
    told: Timestamp,
    /// Told seconds for a real one.
    pace: i32,
}

impl Story {
    /// Begins the next chapter. Kubernetes knows full seconds only, so this waits for the next one:
    /// no second belongs to two chapters.
    pub(crate) fn chapter(&mut self, told: &str, pace: i32) {
        let now = now();
        let real = Timestamp::from_second(now.as_second() + 1).unwrap();
        thread::sleep(real.duration_since(now).unsigned_abs());
        let told = told.parse().unwrap();
        if let Some(last) = self.chapters.last() {
            let end = last.tell(real);
            assert!(end < told, "a chapter that ends at {end} is followed by one of {told}");
        }
        self.chapters.push(Chapter { real, told, pace });
    }

    /// Tells every moment in `value`, an object of the API or a list of them.
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

    /// What was before the first chapter is told at that one's pace.
    fn tell(&self, moment: Timestamp) -> Timestamp {
        let begun = self.chapters.iter().rev().find(|chapter| chapter.real <= moment);
        begun.or(self.chapters.first()).expect("a story has a chapter").tell(moment)
    }
}

impl Chapter {
    fn tell(&self, moment: Timestamp) -> Timestamp {
        let seconds = moment.as_second() - self.real.as_second();
        self.told + SignedDuration::from_secs(seconds * i64::from(self.pace))
    }
}

/// The moment that `text` is, written as the API server writes moments: `2026-07-14T09:14:02Z`.
fn moment(text: &str) -> Option<Timestamp> {
    let moment: Timestamp = text.parse().ok()?;
    (moment.to_string() == text).then_some(moment)
}

/// The moment now.
#[expect(clippy::disallowed_methods, reason = "real servers run on real time")]
pub(crate) fn now() -> Timestamp {
    Timestamp::now()
}

#[test]
fn moments_are_told_in_order_and_all_else_is_left_alone() {
    let chapter = |real: &str, told: &str, pace| Chapter {
        real: real.parse().unwrap(),
        told: told.parse().unwrap(),
        pace,
    };
    let story = Story {
        chapters: vec![
            chapter("2020-01-01T00:00:10Z", "2019-03-01T08:00:00Z", 60),
            chapter("2020-01-01T00:00:12Z", "2019-06-01T08:00:00Z", 1),
        ],
    };
    for (real, told) in [
        ("2020-01-01T00:00:09Z", "2019-03-01T07:59:00Z"),
        ("2020-01-01T00:00:11Z", "2019-03-01T08:01:00Z"),
        ("2020-01-01T00:00:12Z", "2019-06-01T08:00:00Z"),
        ("2020-01-01T00:01:12Z", "2019-06-01T08:01:00Z"),
        ("2020-01-01", "2020-01-01"),
        ("worker-a-01", "worker-a-01"),
    ] {
        let mut value = serde_json::json!({"items": [{"a": real, "b": 5}]});
        story.retell(&mut value);
        assert_eq!(value, serde_json::json!({"items": [{"a": told, "b": 5}]}), "{real}");
    }
}
