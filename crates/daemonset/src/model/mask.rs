//! Finds and replaces values of a pod template that may be secrets.
//!
//! Secret by location: values of env vars, of HTTP headers, of the attributes of CSI and flexVolume
//! drivers. Secret by content: arguments whose flag names a secret, and arguments and annotations
//! that contain a login or a header with credentials. All output of templates uses this module.
//! Detection by content is heuristic: a secret under an unusual name is not found.
//!
//! Recordings also hide arguments and annotations that are not known to be harmless, and contain
//! salted digests in their place, so that equality can still be decided. Digests protect long
//! secrets only: a short or common value can be guessed.
//! Values that templates only refer to (`valueFrom`) are not in the template.

mod words;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use words::Argument;

/// A salt, which makes digests of different files incomparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Salt([u8; 16]);

impl Salt {
    /// The salt of these bytes, which should be random.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The digest that replaces `value`: equal for equal values under the same salt.
    pub fn digest(&self, value: &str) -> String {
        let digest = Sha256::new().chain_update(self.0).chain_update(value).finalize();
        format!("masked-{}", Hex(&digest[..16]))
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Hex(&self.0), f)
    }
}

/// The text is not a salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a salt is 32 hexadecimal digits")]
pub struct ParseSaltError;

impl FromStr for Salt {
    type Err = ParseSaltError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // `from_str_radix` alone would take a leading `+`.
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(ParseSaltError);
        }
        let number = u128::from_str_radix(text, 16).map_err(|_| ParseSaltError)?;
        Ok(Self(number.to_be_bytes()))
    }
}

impl Serialize for Salt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Salt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Prefix of the annotations of ds-plan, which plans and rollouts read.
const OWN_ANNOTATIONS: &str = "ds-plan.dev/";

/// The location of a value in a template that may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretValue {
    /// JSON pointer (RFC 6901) to the text, from the template's root, such as
    /// `/spec/containers/0/env/2/value`.
    pub pointer: String,
    /// Byte offset of the secret in the text: after the `=` of `--password=…`, else 0.
    pub start: usize,
}

/// Every value of a pod template that may be a secret, in the order of a diff. Empty strings are
/// not secrets.
pub fn secret_values(template: &Value) -> Vec<SecretValue> {
    found_in(template, Doubt::IsShown)
}

/// Treatment of arguments and annotations with unknown content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// Shown: the reader of a plan has to see changes.
    IsShown,
    /// Hidden, because a recording contains whole templates.
    IsHidden,
}

fn found_in(template: &Value, doubt: Doubt) -> Vec<SecretValue> {
    let mut found = Vec::new();
    let annotations = template.pointer("/metadata/annotations").and_then(Value::as_object);
    for (name, value) in annotations.into_iter().flatten() {
        if value.as_str().is_some_and(|value| is_hidden(name, value, doubt)) {
            let pointer = format!("/metadata/annotations/{}", escaped(name));
            found.push(SecretValue { pointer, start: 0 });
        }
    }
    for list in ["containers", "ephemeralContainers", "initContainers"] {
        let pointer = format!("/spec/{list}");
        if let Some(containers) = template.pointer(&pointer) {
            search(containers, &pointer, doubt, &mut found);
        }
    }
    let volumes = template.pointer("/spec/volumes").and_then(Value::as_array);
    for (index, volume) in volumes.into_iter().flatten().enumerate() {
        for attributes in ["csi/volumeAttributes", "flexVolume/options"] {
            let pointer = format!("/spec/volumes/{index}/{attributes}");
            texts_of(volume.pointer(&format!("/{attributes}")), &pointer, &mut found);
        }
    }
    found
}

/// Every string of a map.
fn texts_of(map: Option<&Value>, pointer: &str, found: &mut Vec<SecretValue>) {
    for (name, value) in map.and_then(Value::as_object).into_iter().flatten() {
        if value.as_str().is_some_and(|value| !value.is_empty()) {
            found.push(SecretValue { pointer: format!("{pointer}/{}", escaped(name)), start: 0 });
        }
    }
}

fn is_hidden(name: &str, value: &str, doubt: Doubt) -> bool {
    words::of_annotation(name, value)
        || doubt == Doubt::IsHidden && !words::is_harmless_annotation(name, value)
}

/// Whether the value of an annotation may be a secret, so that it is not shown.
pub fn is_secret_annotation(name: &str, value: &str) -> bool {
    is_hidden(name, value, Doubt::IsShown)
}

/// Replaces the annotations of an object that contain credentials by the result of `replacement`.
pub fn replace_annotations(object: &mut Value, replacement: impl Fn(&str) -> String) {
    replace_annotations_if(object, is_secret_annotation, replacement);
}

/// Replaces the annotations of an object that are not known to be harmless by their digests.
pub fn mask_annotations(object: &mut Value, salt: &Salt) {
    let hidden = |name: &str, value: &str| is_hidden(name, value, Doubt::IsHidden);
    replace_annotations_if(object, hidden, |value| salt.digest(value));
}

fn replace_annotations_if(
    object: &mut Value,
    is_hidden: impl Fn(&str, &str) -> bool,
    replacement: impl Fn(&str) -> String,
) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    for (name, value) in annotations.into_iter().flatten() {
        if !name.starts_with(OWN_ANNOTATIONS)
            && let Value::String(text) = value
            && is_hidden(name, text)
        {
            *text = replacement(text);
        }
    }
}

/// Replaces every value of a pod template that may be a secret, or is not known to be harmless, by
/// its digest.
pub fn mask_template(template: &mut Value, salt: &Salt) {
    for SecretValue { pointer, start } in found_in(template, Doubt::IsHidden) {
        if let Some(Value::String(text)) = template.pointer_mut(&pointer) {
            let digest = salt.digest(&text[start..]);
            text.replace_range(start.., &digest);
        }
    }
}

/// Searches a container, with its probes and hooks, for `env`, `httpHeaders`, `command` and `args`.
fn search(value: &Value, pointer: &str, doubt: Doubt, found: &mut Vec<SecretValue>) {
    match value {
        Value::Object(fields) => {
            arguments(fields, pointer, doubt, found);
            for (key, child) in fields {
                let pointer = format!("{pointer}/{}", escaped(key));
                match key.as_str() {
                    "env" | "httpHeaders" => named_values(child, &pointer, found),
                    "command" | "args" => {}
                    _ => search(child, &pointer, doubt, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                search(item, &format!("{pointer}/{index}"), doubt, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The `value` of each entry of `env` or `httpHeaders`.
fn named_values(list: &Value, pointer: &str, found: &mut Vec<SecretValue>) {
    for (index, entry) in list.as_array().into_iter().flatten().enumerate() {
        if entry.get("value").and_then(Value::as_str).is_some_and(|value| !value.is_empty()) {
            found.push(SecretValue { pointer: format!("{pointer}/{index}/value"), start: 0 });
        }
    }
}

/// The secrets in `command` and `args`, which are one command line.
fn arguments(
    fields: &Map<String, Value>,
    pointer: &str,
    doubt: Doubt,
    found: &mut Vec<SecretValue>,
) {
    let mut follows_secret_flag = false;
    for list in ["command", "args"] {
        for (index, text) in
            fields.get(list).and_then(Value::as_array).into_iter().flatten().enumerate()
        {
            let Some(text) = text.as_str() else { continue };
            let argument = Argument::read(text, follows_secret_flag);
            follows_secret_flag = argument == Argument::SecretFlag;
            let known = match argument {
                Argument::Secret { start } => Some(start),
                Argument::Plain | Argument::SecretFlag => None,
            };
            let unknown = match doubt {
                Doubt::IsShown => None,
                Doubt::IsHidden => words::unknown_from(text, list == "command" && index == 0),
            };
            if let Some(start) =
                known.into_iter().chain(unknown).min().filter(|at| *at < text.len())
            {
                found.push(SecretValue { pointer: format!("{pointer}/{list}/{index}"), start });
            }
        }
    }
}

/// Escapes one reference token of a JSON pointer.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn salt(byte: u8) -> Salt {
        Salt::from_bytes([byte; 16])
    }

    /// Each secret of `template` as `pointer: hidden part`.
    fn hidden(template: &Value) -> Vec<String> {
        let show = |secret: SecretValue| {
            let text = template.pointer(&secret.pointer).unwrap().as_str().unwrap();
            format!("{}: {}", secret.pointer, &text[secret.start..])
        };
        secret_values(template).into_iter().map(show).collect()
    }

    #[test]
    fn locations_that_contain_secrets() {
        let template = json!({"spec": {
            "initContainers": [{"env": [{"name": "I", "value": "init"}]}],
            "containers": [{
                "name": "c", "image": "password=not-an-argument",
                "env": [
                    {"name": "A", "value": "a"},
                    {"name": "EMPTY", "value": ""},
                    {"name": "REF", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
                ],
                "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Auth", "value": "h"}]}},
                "lifecycle": {"preStop": {"exec": {"command": ["x", "--token=t"]}}},
            }],
        }});
        assert_eq!(
            hidden(&template),
            [
                "/spec/containers/0/env/0/value: a",
                "/spec/containers/0/lifecycle/preStop/exec/command/1: t",
                "/spec/containers/0/livenessProbe/httpGet/httpHeaders/0/value: h",
                "/spec/initContainers/0/env/0/value: init",
            ]
        );
    }

    #[test]
    fn arguments_whose_flag_names_a_secret() {
        for (command, args, want) in [
            (json!([]), json!(["--password=p"]), vec!["args/0: p"]),
            (json!([]), json!(["-api-TOKEN=p=q"]), vec!["args/0: p=q"]),
            (json!([]), json!(["--password", "p", "q"]), vec!["args/1: p"]),
            (json!([]), json!(["--password", "-p9", "-q"]), vec!["args/1: -p9"]),
            (json!([]), json!(["--use-token", "--verbose", "x"]), vec![]),
            (json!([]), json!(["--use-token", "-v", "x"]), vec![]),
            (json!([]), json!(["--password="]), vec![]),
            (json!([]), json!(["--verbose", "--path=/secret"]), vec![]),
            (json!([]), json!(["--set", "auth.password=p"]), vec!["args/1: p"]),
            (json!(["env", "DB_PASSWORD=p"]), json!(["x"]), vec!["command/1: p"]),
            (json!(["x", "--credential"]), json!(["p"]), vec!["args/0: p"]),
            (json!(["sh", "-c", "run --key k"]), json!([]), vec!["command/2: run --key k"]),
            (
                json!(["sh", "-c", "PGPASSWORD='p' x"]),
                json!([]),
                vec!["command/2: PGPASSWORD='p' x"],
            ),
            (json!(["sh", "-c", "cat /etc/secret"]), json!([]), vec![]),
            (json!([1, null]), json!("--password=p"), vec![]),
        ] {
            let template = json!({"spec": {"containers": [{"command": command, "args": args}]}});
            let want: Vec<_> = want.iter().map(|w| format!("/spec/containers/0/{w}")).collect();
            assert_eq!(hidden(&template), want, "{template}");
        }
    }

    #[test]
    fn masking_keeps_equality_and_nothing_else_of_the_value() {
        let masked = |value: &str, salt: Salt| {
            let mut template = json!({"spec": {"containers": [
                {"image": "i", "args": [format!("--token={value}")],
                 "env": [{"name": "A", "value": value}]}
            ]}});
            mask_template(&mut template, &salt);
            template
        };
        assert_eq!(masked("one", salt(1)), masked("one", salt(1)));
        assert_ne!(masked("one", salt(1)), masked("two", salt(1)));
        assert_ne!(masked("one", salt(1)), masked("one", salt(2)));
        let text = masked("one", salt(1)).to_string();
        assert!(!text.contains("one") && text.contains(r#""--token=masked-"#), "{text}");
        assert!(text.contains(r#""image":"i""#), "{text}");
    }

    #[test]
    fn a_salt_is_read_as_it_is_written() {
        let salt = Salt::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(salt.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(salt.to_string().parse(), Ok(salt));
        for text in
            ["", "0001", "+00102030405060708090a0b0c0d0eff", "g00102030405060708090a0b0c0d0eff"]
        {
            assert_eq!(text.parse::<Salt>(), Err(ParseSaltError), "{text}");
        }
    }

    #[test]
    fn pointers_escape_keys() {
        let template = json!({"spec": {"containers": [{"a/b~c": {"env": [{"value": "x"}]}}]}});
        assert_eq!(hidden(&template), ["/spec/containers/0/a~1b~0c/env/0/value: x"]);
    }
}
