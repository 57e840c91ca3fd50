//! The fields of a kustomization, and which of them contain paths (upstream:
//! `types.Kustomization`).
//!
//! Unknown fields are rejected, because they may name a file, a URL or a program. So are plugins,
//! functions and Helm charts, which are programs. Names are compared exactly, while kustomize
//! ignores their case; that is why it never gets the original, but a new file with the fields that
//! were understood here (`kustomize`).

use serde_json::{Map, Value};

use super::problem::Problem;
use super::shown;

/// Required type of a path's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// A file.
    File,
    /// A folder with a kustomization.
    Folder,
    /// A file or a folder.
    Either,
}

/// Callback for each path: returns its replacement, or rejects it.
pub(super) type Visit<'v> = dyn FnMut(&str, Want, &str) -> Result<String, super::Error> + 'v;

/// Fields without paths.
const HARMLESS: [&str; 17] = [
    "apiVersion",
    "kind",
    "metadata",
    "namePrefix",
    "nameSuffix",
    "namespace",
    "commonLabels",
    "commonAnnotations",
    "labels",
    "images",
    "imageTags",
    "replicas",
    "vars",
    "generatorOptions",
    "sortOptions",
    "buildMetadata",
    "patchesStrategicMerge",
];

/// Fields that make kustomize run or fetch something, and their settings.
const PROGRAMS: [&str; 6] = [
    "generators",
    "transformers",
    "validators",
    "helmCharts",
    "helmGlobals",
    "helmChartInflationGenerator",
];

/// Fields of one list element in addition to its path.
const PATCH: [&str; 3] = ["patch", "target", "options"];
const REPLACEMENT: [&str; 2] = ["source", "targets"];
const GENERATOR: [&str; 6] = ["name", "namespace", "behavior", "type", "options", "literals"];

/// Calls `visit` for every path of `kustomization` and replaces the path with the result.
pub(super) fn visit_paths(
    kustomization: &mut Map<String, Value>,
    refuse: &dyn Fn(Problem) -> super::Error,
    visit: &mut Visit<'_>,
) -> Result<(), super::Error> {
    let unexpected = |field: &str| refuse(Problem::Unexpected { field: field.to_owned() });
    for (field, value) in kustomization {
        let name = field.as_str();
        if value.is_null() {
            continue;
        }
        match name {
            "resources" => texts(value, &mut |path| visit(path, Want::Either, name))
                .ok_or_else(|| unexpected(name))??,
            "bases" | "components" => texts(value, &mut |path| visit(path, Want::Folder, name))
                .ok_or_else(|| unexpected(name))??,
            "crds" | "configurations" => texts(value, &mut |path| visit(path, Want::File, name))
                .ok_or_else(|| unexpected(name))??,
            "openapi" => one(value, "path", &["version"], name, refuse, visit)?,
            "patches" | "patchesJson6902" => each(value, name, refuse, &mut |element| {
                one(element, "path", &PATCH, name, refuse, visit)
            })?,
            "replacements" => each(value, name, refuse, &mut |element| {
                one(element, "path", &REPLACEMENT, name, refuse, visit)
            })?,
            "configMapGenerator" | "secretGenerator" => {
                each(value, name, refuse, &mut |element| generator(element, name, refuse, visit))?;
            }
            name if PROGRAMS.contains(&name) => {
                return Err(refuse(Problem::Program { field: name.to_owned() }));
            }
            name if HARMLESS.contains(&name) => {}
            name => return Err(refuse(Problem::Unknown { field: shown(name) })),
        }
    }
    Ok(())
}

/// Visits an object with a path under `key`, which may have the fields `others` too.
fn one(
    value: &mut Value,
    key: &str,
    others: &[&str],
    field: &str,
    refuse: &dyn Fn(Problem) -> super::Error,
    visit: &mut Visit<'_>,
) -> Result<(), super::Error> {
    let Value::Object(fields) = value else {
        return Err(refuse(Problem::Unexpected { field: field.to_owned() }));
    };
    for (name, value) in fields {
        let place = format!("{field}.{name}");
        match value {
            _ if others.contains(&name.as_str()) => {}
            Value::Null if name == key => {}
            Value::String(path) if name == key => *path = visit(path, Want::File, &place)?,
            _ if name == key => return Err(refuse(Problem::Unexpected { field: place })),
            _ => return Err(refuse(Problem::Unknown { field: shown(&place) })),
        }
    }
    Ok(())
}

/// Visits a generator of a `ConfigMap` or Secret: `files` are `path` or `key=path`.
fn generator(
    value: &mut Value,
    field: &str,
    refuse: &dyn Fn(Problem) -> super::Error,
    visit: &mut Visit<'_>,
) -> Result<(), super::Error> {
    let Value::Object(fields) = value else {
        return Err(refuse(Problem::Unexpected { field: field.to_owned() }));
    };
    for (name, value) in fields {
        let place = format!("{field}.{name}");
        let unexpected = || refuse(Problem::Unexpected { field: place.clone() });
        match (name.as_str(), value) {
            (name, _) if GENERATOR.contains(&name) => {}
            ("files" | "envs" | "env", Value::Null) => {}
            ("files", value) => texts(value, &mut |file| match file.split_once('=') {
                Some((key, path)) => Ok(format!("{key}={}", visit(path, Want::File, &place)?)),
                None => visit(file, Want::File, &place),
            })
            .ok_or_else(unexpected)??,
            ("envs", value) => {
                texts(value, &mut |path| visit(path, Want::File, &place))
                    .ok_or_else(unexpected)??;
            }
            ("env", Value::String(path)) => *path = visit(path, Want::File, &place)?,
            ("env", _) => return Err(unexpected()),
            (_, _) => return Err(refuse(Problem::Unknown { field: shown(&place) })),
        }
    }
    Ok(())
}

fn each(
    value: &mut Value,
    field: &str,
    refuse: &dyn Fn(Problem) -> super::Error,
    element: &mut dyn FnMut(&mut Value) -> Result<(), super::Error>,
) -> Result<(), super::Error> {
    let Value::Array(elements) = value else {
        return Err(refuse(Problem::Unexpected { field: field.to_owned() }));
    };
    elements.iter_mut().try_for_each(element)
}

/// Replaces every string of a list; `None` if it is not a list of strings.
fn texts(
    value: &mut Value,
    replace: &mut dyn FnMut(&str) -> Result<String, super::Error>,
) -> Option<Result<(), super::Error>> {
    let Value::Array(elements) = value else { return None };
    for element in elements {
        let Value::String(text) = element else { return None };
        match replace(text) {
            Ok(replaced) => *text = replaced,
            Err(error) => return Some(Err(error)),
        }
    }
    Some(Ok(()))
}
