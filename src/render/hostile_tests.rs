//! Whatever a manifest or a cluster says, no output of ours carries it out.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::examples::{
    change, diff, drift, explanation, guarded, history, plan, rollout, status, updated,
};
use super::{
    TextOptions, diff_text, drift_name, drift_text, explain_text, history_text, json, neutral,
    plan_name, plan_text, status_name, status_text, yaml,
};
use crate::plan::{Diff, Drift, Explanation, History, Plan, Status};

/// A document as JSON, and where in it any text may stand.
struct Fertile<T> {
    json: Value,
    spots: Vec<String>,
    read: fn(Value) -> serde_json::Result<T>,
}

impl<T: Serialize + DeserializeOwned> Fertile<T> {
    /// Tries every text of `document`: those in whose place it can be read back with another text
    /// are no words of ours.
    fn of(document: &T) -> Self {
        let json = serde_json::to_value(document).unwrap();
        let mut spots = Vec::new();
        texts(&json, String::new(), &mut spots);
        let read = |json| serde_json::from_value::<T>(json);
        spots.retain(|spot| read(planted(&json, spot, "weed")).is_ok());
        Self { json, spots, read }
    }

    /// The document with `seeds` planted in turn wherever text may stand.
    fn sown(&self, seeds: &[String]) -> T {
        let mut json = self.json.clone();
        for (spot, seed) in self.spots.iter().zip(seeds.iter().cycle()) {
            *json.pointer_mut(spot).unwrap() = Value::from(seed.as_str());
        }
        (self.read)(json).unwrap()
    }
}

fn texts(json: &Value, at: String, found: &mut Vec<String>) {
    match json {
        Value::String(_) => found.push(at),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, value)| texts(value, format!("{at}/{n}"), found));
        }
        Value::Object(all) => {
            all.iter().for_each(|(key, value)| texts(value, format!("{at}/{key}"), found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn planted(json: &Value, spot: &str, text: &str) -> Value {
    let mut json = json.clone();
    *json.pointer_mut(spot).unwrap() = Value::from(text);
    json
}

static PLANS: LazyLock<[Fertile<Plan>; 2]> = LazyLock::new(|| {
    let mut small = rollout();
    small.daemon_sets[1].nodes.truncate(8);
    small.daemon_sets[1].waves[0].nodes.truncate(8);
    let changes = vec![
        change("a", "b", "c"),
        change("d", Value::Null, "e"),
        change("f", vec!["g"], vec!["h"]),
    ];
    let mut other = plan(vec![updated("agent", changes)]);
    (other.guards, other.warnings) = (guarded().guards, guarded().warnings);
    other.cluster.snapshot = Some("fleet.json".into());
    [Fertile::of(&small), Fertile::of(&other)]
});
static STATUS: LazyLock<Fertile<Status>> = LazyLock::new(|| Fertile::of(&status()));
static EXPLANATION: LazyLock<Fertile<Explanation>> = LazyLock::new(|| Fertile::of(&explanation()));
static HISTORY: LazyLock<Fertile<History>> = LazyLock::new(|| Fertile::of(&history()));
static DIFF: LazyLock<Fertile<Diff>> = LazyLock::new(|| Fertile::of(&diff()));
static DRIFT: LazyLock<Fertile<Drift>> = LazyLock::new(|| Fertile::of(&drift()));

fn seed() -> impl Strategy<Value = String> {
    let hostile = prop::sample::select(vec![
        "::error::x",
        "  ::warning",
        "##[error]",
        "##vso[task]",
        "\n::error::x",
        "\r\n##[x]",
        "\u{1b}[2J",
        "\u{9b}2J",
        "\u{202e}x",
        "\u{2066}",
        "\u{200b}",
        "\u{feff}",
        "\u{301}",
        "\u{2028}::x",
        "",
        " ",
        "a b ::c",
        "#",
        "##",
        "[x]",
    ]);
    prop_oneof![3 => hostile.prop_map(String::from), 1 => any::<String>()]
}

/// `text` has nothing but visible characters in lines, and no line is an order to a CI system.
fn harmless(text: &str) -> Result<(), TestCaseError> {
    // Apart from what is tested: the ranges that matter most, once more and by number.
    let never = |c: char| {
        matches!(u32::from(c),
            0..=9 | 11..=0x1f | 0x7f..=0x9f | 0xad | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe0fff)
    };
    for line in text.lines() {
        prop_assert!(!line.chars().any(|c| never(c) || !neutral::is_visible(c)), "{:?}", line);
        prop_assert!(!line.trim_start().starts_with("::"), "{:?}", line);
        prop_assert!(!line.contains("##[") && !line.contains("##vso["), "{:?}", line);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_hostile_gets_through(
        seeds in prop::collection::vec(seed(), 1..12),
        verbose: bool,
        width in prop::option::of(40..100_usize),
    ) {
        let options = TextOptions { verbose, width, color: false };
        for fertile in &*PLANS {
            let plan = fertile.sown(&seeds);
            harmless(&plan_text(&plan, &options))?;
            harmless(&plan_name(&plan))?;
            let (as_json, as_yaml) = (json(&plan).unwrap(), yaml(&plan).unwrap());
            harmless(&as_json)?;
            harmless(&as_yaml)?;
            let read: Value = serde_json::from_str(&as_json).unwrap();
            prop_assert_eq!(&read, &serde_json::to_value(&plan).unwrap());
            prop_assert_eq!(&read, &serde_yaml::from_str::<Value>(&as_yaml).unwrap());
            let colored = plan_text(&plan, &TextOptions { color: true, ..options });
            prop_assert_eq!(
                anstream::adapter::strip_str(&colored).to_string(), plan_text(&plan, &options)
            );
        }
        let status = STATUS.sown(&seeds);
        harmless(&status_text(&status, &options))?;
        harmless(&status_name(&status))?;
        harmless(&json(&status).unwrap())?;
        harmless(&yaml(&status).unwrap())?;
        let explanation = EXPLANATION.sown(&seeds);
        harmless(&explain_text(&explanation, &options))?;
        harmless(&json(&explanation).unwrap())?;
        harmless(&yaml(&explanation).unwrap())?;
    }

    #[test]
    fn nothing_hostile_gets_through_what_was_found(
        seeds in prop::collection::vec(seed(), 1..12),
        verbose: bool,
        width in prop::option::of(40..100_usize),
    ) {
        let options = TextOptions { verbose, width, color: false };
        let (history, diff, drift) = (HISTORY.sown(&seeds), DIFF.sown(&seeds), DRIFT.sown(&seeds));
        for text in [
            history_text(&history, &options),
            json(&history).unwrap(),
            yaml(&history).unwrap(),
            diff_text(&diff, &options),
            json(&diff).unwrap(),
            yaml(&diff).unwrap(),
            drift_text(&drift, &options),
            drift_name(&drift),
            json(&drift).unwrap(),
            yaml(&drift).unwrap(),
        ] {
            harmless(&text)?;
        }
    }
}

#[test]
fn text_is_planted_nearly_everywhere() {
    let spots: usize = PLANS.iter().map(|fertile| fertile.spots.len()).sum();
    assert!(spots > 60, "only {spots}");
    assert!(PLANS[1].spots.iter().any(|spot| spot == "/daemonSets/0/changes/2/after/0"));
}
