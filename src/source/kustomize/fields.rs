//! What a kustomization may say, and which of it are paths (upstream: `types.Kustomization`).
//!
//! What is not known here is refused, because it may name a file, a URL or a program. So are
//! plugins, functions and Helm charts, which are programs. Names are compared exactly, while
//! kustomize does not care about their case; that is why it is never given the original, but what
//! was understood here, written anew (`kustomize`).

use serde_json::{Map, Value};

use super::{Problem, shown};

/// What a path must lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    /// A file.
    File,
    /// A folder with a kustomization.
    Folder,
    /// One of both.
    Either,
}

/// What is done about each path: it may be written otherwise, or refused.
pub(super) type Visit<'v> = dyn FnMut(&str, Want, &str) -> Result<String, super::Error> + 'v;

/// Fields in which nothing is a path.
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

/// Fields that make kustomize run or fetch something, and fields that configure that.
const PROGRAMS: [&str; 6] = [
    "generators",
    "transformers",
    "validators",
    "helmCharts",
    "helmGlobals",
    "helmChartInflationGenerator",
];

/// Fields of one element of a list, besides its path.
const PATCH: [&str; 3] = ["patch", "target", "options"];
const REPLACEMENT: [&str; 2] = ["source", "targets"];
const GENERATOR: [&str; 6] = ["name", "namespace", "behavior", "type", "options", "literals"];

/// Shows every path of `kustomization` to `visit`, and puts in its place what that returns.
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

/// An object with a path under `key`, and with `others` besides it.
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

/// A generator of a `ConfigMap` or Secret: `files` are `path` or `key=path`.
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

/// Replaces every text of a list; `None` when it is no list of texts.
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
