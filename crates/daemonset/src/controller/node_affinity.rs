//! Required node affinity: one term must match; a term matches if all its requirements match
//! (upstream: `nodeaffinity.LazyErrorNodeSelector`, `labels.NewRequirement`).
//!
//! Terms are parsed once per template. The controller ignores preferred affinity and pod affinity.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Node, NodeSelectorRequirement, NodeSelectorTerm, is_label_key, is_label_value};

/// The only field of a node that affinity supports (upstream: `ObjectNameField`).
const NAME_FIELD: &str = "metadata.name";

/// The parsed required terms of a template.
#[derive(Clone, Debug)]
pub(super) struct RequiredTerms<'a>(Vec<Term<'a>>);

#[derive(Clone, Debug)]
enum Term<'a> {
    /// A term without requirements, which matches no node.
    Empty,
    /// An invalid term, which the controller skips silently.
    Unreadable {
        what: Subject,
        key: &'a str,
        problem: Problem,
    },
    Readable(Vec<Requirement<'a>>),
}

#[derive(Clone, Debug)]
struct Requirement<'a> {
    written: &'a NodeSelectorRequirement,
    what: Subject,
    test: Test,
}

#[derive(Clone, Copy, Debug)]
enum Test {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    Gt(i64),
    Lt(i64),
}

/// The subject of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    /// A label of the node (`matchExpressions`).
    Label,
    /// A field of the node (`matchFields`).
    Field,
}

/// The reason why a requirement, and so its term, is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Problem {
    /// The operator is unknown, or not allowed for this subject.
    UnknownOperator,
    /// The key is not a valid label key.
    InvalidKey,
    /// A value is not a valid label value.
    InvalidValue,
    /// `In` and `NotIn` need values.
    ValuesMissing,
    /// `Exists` and `DoesNotExist` take no values.
    ValuesPresent,
    /// `Gt` and `Lt`, and every operator on fields, need exactly one value.
    NotOneValue,
    /// `Gt` and `Lt` need an integer of 64 bits.
    NotAnInteger,
}

/// The result of one term for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TermOutcome {
    /// The term has no requirements and so matches no node.
    Empty,
    /// A requirement is invalid, so the whole term is skipped.
    Unreadable {
        /// Label or field.
        subject: Subject,
        /// Its key.
        key: String,
        /// The error.
        problem: Problem,
    },
    /// Every requirement was evaluated; the term matches if all of them match.
    Asked {
        /// The requirements, labels before fields, as written.
        requirements: Vec<RequirementOutcome>,
    },
}

/// The result of one requirement for one node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequirementOutcome {
    /// Label or field.
    pub subject: Subject,
    /// Label key or field name.
    pub key: String,
    /// `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    pub operator: String,
    /// Operands as written.
    pub values: Vec<String>,
    /// The node's value of the label, if it has one; never set for a field.
    pub have: Option<String>,
    /// Whether the node satisfies the requirement.
    pub holds: bool,
}

impl<'a> RequiredTerms<'a> {
    pub(super) fn read(terms: &'a [NodeSelectorTerm]) -> Self {
        Self(terms.iter().map(Term::read).collect())
    }

    /// Whether at least one term matches.
    pub(super) fn matches(&self, node: &Node) -> bool {
        self.0.iter().any(|term| term.matches(node))
    }

    /// The result of each term.
    pub(super) fn outcomes(&self, node: &Node) -> Vec<TermOutcome> {
        self.0.iter().map(|term| term.outcome(node)).collect()
    }

    /// The label keys of all requirements.
    pub(super) fn label_keys(&self) -> impl Iterator<Item = &'a str> {
        let labels = self.requirements().filter(|requirement| requirement.what == Subject::Label);
        labels.map(|requirement| requirement.written.key.as_str())
    }

    /// The node names of all requirements.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        let fields = self.requirements().filter(|requirement| requirement.what == Subject::Field);
        fields.flat_map(|requirement| requirement.written.values.iter().map(String::as_str))
    }

    fn requirements(&self) -> impl Iterator<Item = &Requirement<'a>> {
        self.0.iter().flat_map(|term| match term {
            Term::Empty | Term::Unreadable { .. } => [].iter(),
            Term::Readable(requirements) => requirements.iter(),
        })
    }
}

impl<'a> Term<'a> {
    fn read(term: &'a NodeSelectorTerm) -> Self {
        if term.match_expressions.is_empty() && term.match_fields.is_empty() {
            return Self::Empty;
        }
        let labels = term.match_expressions.iter().map(|written| (Subject::Label, written));
        let fields = term.match_fields.iter().map(|written| (Subject::Field, written));
        let mut requirements = Vec::new();
        for (what, written) in labels.chain(fields) {
            let test = match what {
                Subject::Label => Test::on_label(written),
                Subject::Field => Test::on_field(written),
            };
            match test {
                Ok(test) => requirements.push(Requirement { written, what, test }),
                Err(problem) => return Self::Unreadable { what, key: &written.key, problem },
            }
        }
        Self::Readable(requirements)
    }

    fn matches(&self, node: &Node) -> bool {
        match self {
            Self::Empty | Self::Unreadable { .. } => false,
            Self::Readable(requirements) => requirements.iter().all(|each| each.holds(node)),
        }
    }

    fn outcome(&self, node: &Node) -> TermOutcome {
        match self {
            Self::Empty => TermOutcome::Empty,
            Self::Unreadable { what, key, problem } => TermOutcome::Unreadable {
                subject: *what,
                key: (*key).to_owned(),
                problem: *problem,
            },
            Self::Readable(requirements) => TermOutcome::Asked {
                requirements: requirements.iter().map(|each| each.outcome(node)).collect(),
            },
        }
    }
}

impl Test {
    /// Upstream: `nodeSelectorRequirementsAsSelector` and `labels.NewRequirement`.
    fn on_label(written: &NodeSelectorRequirement) -> Result<Self, Problem> {
        let values = &written.values;
        let integer = || match values.as_slice() {
            [value] => value.parse::<i64>().map_err(|_| Problem::NotAnInteger),
            [] | [_, _, ..] => Err(Problem::NotOneValue),
        };
        let test = match written.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => return Err(Problem::ValuesMissing),
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            "Exists" | "DoesNotExist" if !values.is_empty() => return Err(Problem::ValuesPresent),
            "Exists" => Self::Exists,
            "DoesNotExist" => Self::DoesNotExist,
            "Gt" => Self::Gt(integer()?),
            "Lt" => Self::Lt(integer()?),
            _unknown => return Err(Problem::UnknownOperator),
        };
        if !is_label_key(&written.key) {
            return Err(Problem::InvalidKey);
        }
        // A signed operand of `Gt` or `Lt` is invalid for this reason.
        if !values.iter().all(|value| is_label_value(value)) {
            return Err(Problem::InvalidValue);
        }
        Ok(test)
    }

    /// Upstream: `nodeSelectorRequirementsAsFieldSelector`.
    fn on_field(written: &NodeSelectorRequirement) -> Result<Self, Problem> {
        let test = match written.operator.as_str() {
            "In" => Self::In,
            "NotIn" => Self::NotIn,
            _unknown => return Err(Problem::UnknownOperator),
        };
        if written.values.len() == 1 { Ok(test) } else { Err(Problem::NotOneValue) }
    }
}

impl Requirement<'_> {
    fn holds(&self, node: &Node) -> bool {
        let value = match self.what {
            Subject::Label => node.labels.get(&self.written.key),
            // Any other field is read as the empty string (validation refuses it).
            Subject::Field if self.written.key == NAME_FIELD => Some(node.name.as_str()),
            Subject::Field => Some(""),
        };
        let listed = || value.is_some_and(|have| self.written.values.iter().any(|v| v == have));
        let integer = || value.and_then(|have| have.parse::<i64>().ok());
        match self.test {
            Test::In => listed(),
            Test::NotIn => !listed(),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
            Test::Gt(bound) => integer().is_some_and(|have| have > bound),
            Test::Lt(bound) => integer().is_some_and(|have| have < bound),
        }
    }

    fn outcome(&self, node: &Node) -> RequirementOutcome {
        let have = match self.what {
            Subject::Label => node.labels.get(&self.written.key).map(str::to_owned),
            Subject::Field => None,
        };
        RequirementOutcome {
            subject: self.what,
            key: self.written.key.clone(),
            operator: self.written.operator.clone(),
            values: self.written.values.clone(),
            have,
            holds: self.holds(node),
        }
    }
}

impl TermOutcome {
    /// Whether the node matches the term.
    pub fn matches(&self) -> bool {
        match self {
            Self::Empty | Self::Unreadable { .. } => false,
            Self::Asked { requirements } => requirements.iter().all(|each| each.holds),
        }
    }
}

impl fmt::Display for TermOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an empty term matches no node"),
            Self::Unreadable { subject: _, key, problem } => {
                write!(f, "a term is skipped because {problem} ({key})")
            }
            Self::Asked { requirements } => {
                let decisive = requirements.iter().filter(|each| each.holds == self.matches());
                for (at, each) in decisive.enumerate() {
                    let separator = if at == 0 { "" } else { " and " };
                    write!(f, "{separator}{each}")?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for RequirementOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subject, key, operator, values, have, holds } = self;
        write!(f, "{key} {operator}")?;
        if !values.is_empty() {
            write!(f, " [{}]", values.join(", "))?;
        }
        f.write_str(if *holds { " matches" } else { " does not match" })?;
        match (subject, have) {
            (Subject::Field, _) => Ok(()),
            (Subject::Label, Some(have)) => write!(f, " (node has {key}={have})"),
            (Subject::Label, None) => write!(f, " (node has no {key})"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownOperator => "its operator is unknown",
            Self::InvalidKey => "its key is not a valid label key",
            Self::InvalidValue => "a value is not a valid label value",
            Self::ValuesMissing => "In and NotIn need values",
            Self::ValuesPresent => "Exists and DoesNotExist take no values",
            Self::NotOneValue => "it needs exactly one value",
            Self::NotAnInteger => "its value is not an integer",
        })
    }
}
