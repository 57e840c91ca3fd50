//! Fills the placeholders of a query: `{{nodes}}`, `{{others}}`, `{{namespace}}`, `{{name}}`.
//!
//! Nodes become one regular expression for `=~`, which Prometheus anchors at both ends. It has no
//! quotes and no backslashes, so it means the same in each of the three kinds of strings that
//! `PromQL` has, and inside of a larger expression: `instance=~"{{nodes}}:9100"`.

use std::fmt::Write as _;

use super::problem::Problem;
use super::quoted::quoted;
use daemonset::model::{CheckQuestion, NodeName};

/// Matches nothing: a character after the end.
const NOTHING: &str = "(?:$.)";

/// `query` with its placeholders filled for `question`.
pub(crate) fn fill(query: &str, question: &CheckQuestion) -> Result<String, Problem> {
    let mut filled = String::new();
    let mut rest = query;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").ok_or(Problem::OpenPlaceholder)?;
        filled.push_str(before);
        match name.trim() {
            "nodes" => nodes(&question.nodes, &mut filled)?,
            "others" => nodes(&question.others, &mut filled)?,
            "namespace" => filled += kubernetes_name(question.daemon_set.namespace.as_str())?,
            "name" => filled += kubernetes_name(question.daemon_set.name.as_str())?,
            other => return Err(Problem::Placeholder { name: quoted(other) }),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Appends a regular expression that matches exactly these names.
fn nodes(names: &[NodeName], filled: &mut String) -> Result<(), Problem> {
    if names.is_empty() {
        filled.push_str(NOTHING);
        return Ok(());
    }
    for (at, name) in names.iter().enumerate() {
        filled.push_str(if at == 0 { "(?:" } else { "|" });
        // The dot is the only special character that a name can have.
        for part in kubernetes_name(name.as_str())?.split_inclusive('.') {
            match part.strip_suffix('.') {
                Some(before) => {
                    let _ = write!(filled, "{before}[.]");
                }
                None => filled.push_str(part),
            }
        }
    }
    filled.push(')');
    Ok(())
}

/// `name`, if it has only the characters that Kubernetes allows: nothing else ends a string.
fn kubernetes_name(name: &str) -> Result<&str, Problem> {
    let is_allowed =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    if name.is_empty() || !name.chars().all(is_allowed) {
        return Err(Problem::Name { name: quoted(name) });
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use daemonset::model::{CheckEndpoint, DaemonSetKey, Soak};
    use jiff::Timestamp;

    use super::*;

    fn filled(query: &str, nodes: &[&str]) -> Result<String, String> {
        let question = CheckQuestion {
            name: String::new(),
            endpoint: CheckEndpoint::Command(Vec::new()),
            daemon_set: DaemonSetKey::new("kube-system", "node.agent"),
            nodes: nodes.iter().map(|name| NodeName::from(*name)).collect(),
            others: vec![NodeName::from("o")],
            from: Timestamp::UNIX_EPOCH,
            until: Timestamp::UNIX_EPOCH,
            interval: Soak(1),
        };
        fill(query, &question).map_err(|problem| problem.to_string())
    }

    #[test]
    fn placeholders_are_filled() {
        for (query, nodes, want) in [
            ("up", &[][..], "up"),
            (r#"up{node=~"{{nodes}}"}"#, &["a-1"], r#"up{node=~"(?:a-1)"}"#),
            ("{{nodes}}:9100", &["a", "b.c.d"], "(?:a|b[.]c[.]d):9100"),
            ("{{ nodes }} {{others}}", &[], "(?:$.) (?:o)"),
            ("{{namespace}}/{{name}}", &[], "kube-system/node.agent"),
            // What comes from a name is not filled again.
            ("a{{name}}{{", &[], "error: the query has `{{` without `}}`"),
            (
                "{{node}}",
                &[],
                "error: `{{node}}` is not a placeholder: nodes, others, namespace or name",
            ),
            (
                "{{\u{1b}}}",
                &[],
                "error: `{{\\u{1b}}}` is not a placeholder: nodes, others, namespace or name",
            ),
        ] {
            let filled = filled(query, nodes).unwrap_or_else(|error| format!("error: {error}"));
            assert_eq!(filled, want, "{query}");
        }
    }

    #[test]
    fn a_name_cannot_end_the_string() {
        for name in ["a\"} or up{x=\"", "a'", "a`", "a\\", "a|.*", "a)", "{{others}}", "A", ""] {
            let error = filled("{{nodes}}", &["a", name]).unwrap_err();
            assert!(error.ends_with("is not a name of Kubernetes, so it is not put into a query"));
            assert_eq!(filled("up", &[name]).as_deref(), Ok("up"), "not used");
        }
    }
}
