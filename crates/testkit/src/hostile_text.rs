//! Documents with hostile text in every place where a manifest or a cluster may put text: for tests
//! of the output, in the library and of the programs.

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A document as JSON, and the places in it that accept any text.
pub struct HostilePlan<T> {
    json: Value,
    pub spots: Vec<String>,
    read: fn(Value) -> serde_json::Result<T>,
}

impl<T: Serialize + DeserializeOwned> HostilePlan<T> {
    /// Tries every text of `document`: a place accepts any text if the document with another text
    /// there can still be parsed.
    pub fn of(document: &T) -> Self {
        let json = serde_json::to_value(document).unwrap();
        let mut spots = Vec::new();
        texts(&json, String::new(), &mut spots);
        let read = |json| serde_json::from_value::<T>(json);
        spots.retain(|spot| read(planted(&json, spot, "weed")).is_ok());
        Self { json, spots, read }
    }

    /// The document with `seeds` in turn in every place that accepts any text.
    pub fn sown(&self, seeds: &[String]) -> T {
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

/// Text with a meaning for a terminal, a CI system, Markdown or GitHub.
pub fn seed() -> impl Strategy<Value = String> {
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
        "<!-- ds-plan:default -->",
        "-->",
        "</details></code></pre><script>x</script>",
        "<img src=x onerror=x>",
        "```",
        "`````\n# x",
        "a`b``c",
        "|",
        "a | b \\| c",
        "\\",
        "@octocat",
        "octo/cat#12 GH-12 #12",
        "4f2c9e1d0a5b6c7d8e9f00112233445566778899",
        "https://x.example/a www.x.example x@x.example",
        "[a](https://x.example) ![b](c) <https://x.example>",
        "*a* __b__ ~~c~~ $d$ &amp; :+1:",
        "# a",
        "- a",
        "1. a",
        "    a",
        "===",
        "a\n\nb",
        "[^1]: x",
        "{{x}} ${x} %x%",
    ]);
    prop_oneof![3 => hostile.prop_map(String::from), 1 => any::<String>()]
}
