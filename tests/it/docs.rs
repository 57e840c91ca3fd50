//! README.md and `docs/`: the programs accept each of their commands, their links lead to files,
//! and the policy's reference is generated from its schema.

use std::fs;
use std::path::{Path, PathBuf};

use render::{Document, schema};
use serde_json::Value;

use crate::sandbox::Sandbox;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// README.md and the pages of `docs/`.
fn pages() -> Vec<(PathBuf, String)> {
    let docs = fs::read_dir(Path::new(ROOT).join("docs")).unwrap();
    let mut paths: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    paths.push(Path::new(ROOT).join("README.md"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

/// The commands of `ds-plan` and `ds-apply` in a page's blocks, without redirections and pipes.
fn commands(page: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2);
    let shown = blocks.filter(|block| block.starts_with("sh\n") || block.starts_with("console\n"));
    let lines = shown.flat_map(|block| {
        let prompt = if block.starts_with("console\n") { "$ " } else { "" };
        block.lines().skip(1).filter_map(move |line| line.strip_prefix(prompt))
    });
    let ours = lines.filter(|line| line.starts_with("ds-plan ") || line.starts_with("ds-apply "));
    ours.map(|line| line.split(['>', '|', '#']).next().unwrap().trim().to_owned()).collect()
}

#[test]
fn every_command_in_the_documentation_is_valid() {
    let sandbox = Sandbox::new();
    let mut seen = 0;
    for (path, page) in pages() {
        for line in commands(&page) {
            let (program, arguments) = line.split_once(' ').unwrap();
            // The help is printed only if all other arguments are valid.
            let arguments = format!("{arguments} --help");
            let run = match program {
                "ds-plan" => sandbox.ds_plan(&arguments),
                _ => sandbox.ds_apply(&arguments),
            };
            assert_eq!(run.code, Some(0), "{}: {line}\n{run}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
}

#[test]
fn every_link_leads_to_a_file() {
    for (path, page) in pages() {
        let targets = page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap());
        for target in targets.filter(|target| !target.starts_with("http")) {
            let file = target.split('#').next().unwrap();
            let found = path.parent().unwrap().join(file);
            assert!(found.exists(), "{}: {target}", path.display());
        }
    }
}

/// A type's name in the reference.
fn type_of(schema: &Value, definitions: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.trim_start_matches("#/$defs/");
        return type_of(&definitions[name], definitions);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(choices) = schema[key].as_array() {
            let choices = choices.iter().map(|choice| type_of(choice, definitions));
            let choices: Vec<String> = choices.filter(|name| name != "null").collect();
            return choices.join(" or ");
        }
    }
    if let Some(types) = schema["type"].as_array() {
        let names = types.iter().filter_map(Value::as_str).filter(|name| *name != "null");
        return names.collect::<Vec<_>>().join(" or ");
    }
    match (schema["const"].as_str(), schema["type"].as_str()) {
        (Some(constant), _) => format!("`{constant}`"),
        (None, Some(name)) => name.to_owned(),
        (None, None) => panic!("a type without a name: {schema}"),
    }
}

/// One row per field; the fields of an object follow it.
fn rows(object: &Value, definitions: &Value, prefix: &str, into: &mut Vec<String>) {
    let required = object["required"].as_array().cloned().unwrap_or_default();
    for (name, field) in object["properties"].as_object().unwrap() {
        let path = format!("{prefix}{name}");
        let words = field["description"].as_str().unwrap().replace('\n', " ");
        let must = if required.contains(&Value::from(name.as_str())) { "required" } else { "" };
        let default = match &field["default"] {
            Value::Null => must.to_owned(),
            value => format!("`{value}`"),
        };
        let kind = type_of(field, definitions);
        into.push(format!("| `{path}` | {kind} | {default} | {words} |\n"));
        let reference = field["$ref"].as_str().map(|name| name.trim_start_matches("#/$defs/"));
        let inner = reference.map_or(field, |name| &definitions[name]);
        if inner["properties"].is_object() {
            rows(inner, definitions, &format!("{path}."), into);
        }
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a setting of the tests, not of the program")]
fn the_policy_reference_matches_its_schema() {
    let schema: Value = serde_json::from_str(&schema(Document::RolloutPolicy).unwrap()).unwrap();
    let mut fields = Vec::new();
    rows(&schema, &schema["$defs"], "", &mut fields);
    let wanted = format!(
        "# The policy, field by field\n\nMade from `schemas/rollout-policy.schema.json`; \
         `UPDATE_SCHEMAS=1 cargo test --test it docs` generates it again.\nWhat is not required may be \
         left out.\n\n| Field | Type | Default | |\n|---|---|---|---|\n{}",
        fields.concat()
    );
    let path = Path::new(ROOT).join("docs/policy.md");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == wanted, "docs/policy.md does not match the schema:\n{wanted}");
}
