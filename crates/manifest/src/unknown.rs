//! Suggestions for an unknown field: a known field at another depth, or one with a similar name in
//! the same struct; or that the document is a patch.

use super::fields::Struct;
use super::warning::FieldHint;

/// Minimum similarity of a suggested name.
const LIKENESS: f64 = 0.8;

/// A suggestion for the field `name`, which the innermost of the structs `around` does not have.
/// Each struct comes with the length of its `path`.
pub(super) fn hint(
    around: &[(&'static Struct, usize)],
    path: &str,
    name: &str,
) -> Option<FieldHint> {
    if name.starts_with('$') {
        return Some(FieldHint::PatchDirective);
    }
    let (innermost, outer) = around.split_last()?;
    let fields = innermost.0;
    let join = |prefix: &str, rest: &str| match prefix {
        "" => rest.to_owned(),
        prefix => format!("{prefix}.{rest}"),
    };
    let above = outer.iter().rev().find(|(fields, _)| fields.contains_key(name));
    if let Some((_, length)) = above {
        return Some(FieldHint::Elsewhere { path: join(&path[..*length], name) });
    }
    let nearest = fields.keys().map(|known| (likeness(known, name), known));
    let nearest = nearest.filter(|(likeness, _)| *likeness >= LIKENESS);
    if let Some((_, known)) = nearest.max_by(|(a, _), (b, _)| a.total_cmp(b)) {
        return Some(FieldHint::Nearest { name: known.clone() });
    }
    let below = fields
        .iter()
        .find(|(_, field)| field.kind.as_struct().is_some_and(|inner| inner.contains_key(name)));
    let (parent, _) = below?;
    Some(FieldHint::Elsewhere { path: join(path, &format!("{parent}.{name}")) })
}

fn likeness(known: &str, name: &str) -> f64 {
    if known.eq_ignore_ascii_case(name) {
        return 1.0;
    }
    strsim::normalized_damerau_levenshtein(known, name).max(strsim::jaro_winkler(known, name) - 0.1)
}
