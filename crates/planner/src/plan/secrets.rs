//! Masks the sensitive values of templates, so that they can be shown.
//!
//! A value that differs between two versions still shows as different, as in `kubectl diff` for
//! Secrets. Not here: finding the values that may be sensitive (`model::mask`).

use std::collections::BTreeMap;

use serde_json::Value;

use daemonset::model::mask::{SecretValue, replace_annotations, secret_values};
use ssa::LAST_APPLIED_ANNOTATION;

/// Replacement of a sensitive value.
pub(super) const MASK: &str = "(sensitive value)";
/// Replacement in the earlier version of a value that differs.
const MASK_BEFORE: &str = "(sensitive value, before)";
/// Replacement in the later version of a value that differs.
const MASK_AFTER: &str = "(sensitive value, after)";

/// The sensitive values to show instead of masks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShownValues<'a> {
    /// None.
    #[default]
    None,
    /// The values of the environment variables with these names.
    Env(&'a [String]),
    /// All of them.
    All,
}

impl ShownValues<'_> {
    /// `true` if the value at this pointer of a template is shown.
    fn has(self, template: &Value, pointer: &str) -> bool {
        match self {
            Self::None => false,
            Self::Env(names) => {
                env_name(template, pointer).is_some_and(|name| names.iter().any(|it| it == name))
            }
            Self::All => true,
        }
    }
}

/// The name of the environment variable whose value is at this pointer.
fn env_name<'v>(template: &'v Value, pointer: &str) -> Option<&'v str> {
    let variable = pointer.strip_suffix("/value")?;
    let (list, _) = variable.rsplit_once('/')?;
    list.ends_with("/env").then(|| template.pointer(variable)?.get("name")?.as_str()).flatten()
}

/// Masks the sensitive values of a template, except those that are `shown`.
pub(super) fn mask(template: &mut Value, shown: ShownValues<'_>) {
    let secrets = secret_values(template).into_iter();
    let hidden = secrets.filter(|secret| !shown.has(template, &secret.pointer));
    let masks = hidden.map(|secret| (secret, MASK)).collect();
    put(template, masks);
}

/// Masks the sensitive values of two versions of a template. Values at the same place that differ
/// get different masks.
pub(super) fn mask_pair(before: &mut Value, after: &mut Value, shown: ShownValues<'_>) {
    let (old, new) = (by_place(before, shown), by_place(after, shown));
    let differs = |place: &String, all: &BTreeMap<String, (SecretValue, String)>, own: &String| {
        all.get(place).is_some_and(|(_, value)| value != own)
    };
    let masks = |all: &BTreeMap<String, (SecretValue, String)>, others, changed| {
        let masks = all.iter().map(|(place, (secret, value))| {
            let mask = if differs(place, others, value) { changed } else { MASK };
            (secret.clone(), mask)
        });
        masks.collect::<Vec<_>>()
    };
    let (old_masks, new_masks) = (masks(&old, &new, MASK_BEFORE), masks(&new, &old, MASK_AFTER));
    put(before, old_masks);
    put(after, new_masks);
}

/// Masks the sensitive values of whole DaemonSets: in their templates, and in the annotation with
/// the manifest of `kubectl apply`.
pub(super) fn mask_objects(before: Option<&mut Value>, after: &mut Value, shown: ShownValues<'_>) {
    const TEMPLATE: &str = "/spec/template";
    let mask = |template: &mut Value| mask(template, shown);
    mask_last_applied(after);
    let Some(before) = before else {
        after.pointer_mut(TEMPLATE).into_iter().for_each(mask);
        return;
    };
    mask_last_applied(before);
    match (before.pointer_mut(TEMPLATE), after.pointer_mut(TEMPLATE)) {
        (Some(before), Some(after)) => mask_pair(before, after, shown),
        (before, after) => before.into_iter().chain(after).for_each(mask),
    }
}

/// Masks the annotations of an object's metadata that may have credentials.
pub(super) fn without_credentials(metadata: &Value) -> Value {
    let mut object = serde_json::json!({"metadata": metadata});
    replace_annotations(&mut object, |_| MASK.to_owned());
    object["metadata"].take()
}

fn mask_last_applied(object: &mut Value) {
    let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
    if let Some(manifest) = annotations.and_then(|all| all.get_mut(LAST_APPLIED_ANNOTATION)) {
        *manifest = MASK.into();
    }
    replace_annotations(object, |_| MASK.to_owned());
}

/// The sensitive values of a template that are not shown, by place; a place does not change when a list is reordered.
fn by_place(template: &Value, shown: ShownValues<'_>) -> BTreeMap<String, (SecretValue, String)> {
    let hidden = secret_values(template).into_iter();
    let hidden = hidden.filter(|secret| !shown.has(template, &secret.pointer));
    let secrets = hidden.filter_map(|secret| {
        let text = template.pointer(&secret.pointer)?.as_str()?;
        let value = text.get(secret.start..)?.to_owned();
        Some((place(template, &secret.pointer), (secret, value)))
    });
    secrets.collect()
}

/// A pointer with list elements by name if they have one. Elements with the same name are
/// distinguished by position.
fn place(template: &Value, pointer: &str) -> String {
    let mut at = template;
    let mut place = String::new();
    for token in pointer.split('/').skip(1) {
        let name = at.as_array().and_then(|all| unique_name(all, token.parse().ok()?));
        place.push('/');
        place.push_str(&name.unwrap_or_else(|| token.to_owned()));
        at = match at {
            Value::Array(all) => token.parse().ok().and_then(|index: usize| all.get(index)),
            Value::Object(all) => all.get(&token.replace("~1", "/").replace("~0", "~")),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        }
        .unwrap_or(&Value::Null);
    }
    place
}

fn unique_name(elements: &[Value], index: usize) -> Option<String> {
    let name = |element: &Value| element.get("name").and_then(Value::as_str).map(str::to_owned);
    let own = name(elements.get(index)?)?;
    let same = elements.iter().filter(|element| name(element).as_ref() == Some(&own)).count();
    Some(if same == 1 { format!("[{own}]") } else { format!("[{own}]{index}") })
}

fn put(template: &mut Value, masks: Vec<(SecretValue, &str)>) {
    for (SecretValue { pointer, start }, mask) in masks {
        if let Some(Value::String(text)) = template.pointer_mut(&pointer) {
            text.replace_range(start.., mask);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn template(env: &Value, args: &Value) -> Value {
        json!({"spec": {"containers": [{"name": "c", "env": env, "args": args}]}})
    }

    #[test]
    fn a_value_that_differs_shows_as_different() {
        let mut before = template(
            &json!([{"name": "A", "value": "one"}, {"name": "B", "value": "two"},
                   {"name": "GONE", "value": "three"}]),
            &json!(["--token=four"]),
        );
        let mut after = template(
            &json!([{"name": "NEW", "value": "five"}, {"name": "B", "value": "two"},
                   {"name": "A", "value": "six"}]),
            &json!(["--token=seven"]),
        );
        mask_pair(&mut before, &mut after, ShownValues::None);
        let values = |template: &Value| {
            let env = template.pointer("/spec/containers/0/env").unwrap().as_array().unwrap();
            let all = env.iter().map(|entry| entry["value"].as_str().unwrap().to_owned());
            let argument = template.pointer("/spec/containers/0/args/0").unwrap();
            all.chain([argument.as_str().unwrap().to_owned()]).collect::<Vec<_>>()
        };
        let flag = |mask| format!("--token={mask}");
        assert_eq!(values(&before), [MASK_BEFORE, MASK, MASK, &flag(MASK_BEFORE)]);
        assert_eq!(values(&after), [MASK, MASK, MASK_AFTER, &flag(MASK_AFTER)]);
    }

    #[test]
    fn variables_that_are_named_exactly_are_shown() {
        let names = ["LOG_LEVEL".to_owned(), "TOKEN_FILE".to_owned()];
        let of = |level: &str, others: &str| {
            let env = [("LOG_LEVEL", level), ("LOG_LEVEL_2", others), ("log_level", others)];
            let env = env.map(|(name, value)| json!({"name": name, "value": value}));
            template(&json!(env), &json!([format!("--token={others}")]))
        };
        let mut alone = of("debug", "hunter2");
        mask(&mut alone, ShownValues::Env(&names));
        assert_eq!(alone, of("debug", MASK));
        let (mut before, mut after) = (of("debug", "one"), of("info", "two"));
        mask_pair(&mut before, &mut after, ShownValues::Env(&names));
        assert_eq!((before, after), (of("debug", MASK_BEFORE), of("info", MASK_AFTER)));
    }

    #[test]
    fn two_variables_with_one_name_are_distinguished() {
        let of = |first: &str, second: &str| {
            let entry = |value: &str| json!({"name": "A", "value": value});
            template(&json!([entry(first), entry(second)]), &json!([]))
        };
        let (mut before, mut after) = (of("one", "two"), of("one", "three"));
        mask_pair(&mut before, &mut after, ShownValues::None);
        assert_eq!(before, of(MASK, MASK_BEFORE));
        assert_eq!(after, of(MASK, MASK_AFTER));
    }

    #[test]
    fn the_manifest_in_an_annotation_is_a_secret() {
        let object = || {
            json!({
                "metadata": {"annotations": {LAST_APPLIED_ANNOTATION: "hunter2", "a": "b"}},
                "spec": {"template": template(&json!([{"name": "A", "value": "hunter2"}]), &json!([]))},
            })
        };
        let (mut before, mut after) = (object(), object());
        mask_objects(Some(&mut before), &mut after, ShownValues::None);
        assert_eq!(before, after);
        assert!(!before.to_string().contains("hunter2"), "{before}");
        let mut alone = object();
        mask_objects(None, &mut alone, ShownValues::None);
        assert_eq!(alone, after);
    }
}
