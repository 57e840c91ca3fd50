//! Judging a fleet for many templates: once per class of nodes that no template can tell apart,
//! and the classes are found once.

use std::collections::HashMap;

use super::{Placement, Rules};
use crate::model::{Node, PodPlacement, Taint};

/// What templates look at, beside taints.
#[derive(Clone, Debug, Default)]
pub(super) struct Sight<'a> {
    /// Labels that decide, sorted.
    labels: Vec<&'a str>,
    /// Node names that decide, sorted.
    names: Vec<&'a str>,
}

impl<'a> Sight<'a> {
    pub(super) fn new(mut labels: Vec<&'a str>, mut names: Vec<&'a str>) -> Self {
        for words in [&mut labels, &mut names] {
            words.sort_unstable();
            words.dedup();
        }
        Self { labels, names }
    }

    /// Whether it looks at taints alone.
    fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.names.is_empty()
    }

    /// Whether everything that `other` looks at is in it.
    fn covers(&self, other: &Sight<'_>) -> bool {
        let holds =
            |all: &[&str], some: &[&str]| some.iter().all(|it| all.binary_search(it).is_ok());
        holds(&self.labels, &other.labels) && holds(&self.names, &other.names)
    }

    /// All that can be seen of a node. Nodes that look the same cannot be told apart.
    fn look<'n>(&self, node: &'n Node) -> Look<'n> {
        Look {
            name: self.named(node),
            labels: self.labels.iter().map(|key| node.labels.get(key)).collect(),
            taints: &node.taints,
        }
    }

    /// The node's name, if it is asked for.
    fn named<'n>(&self, node: &'n Node) -> Option<&'n str> {
        let name = node.name.as_str();
        self.names.binary_search(&name).is_ok().then_some(name)
    }
}

/// What can be seen of a node.
#[derive(PartialEq, Eq, Hash)]
struct Look<'n> {
    name: Option<&'n str>,
    labels: Vec<Option<&'n str>>,
    taints: &'n [Taint],
}

/// Judges nodes for some templates, once per class of nodes that look the same to all of them: same
/// values of the labels that they ask for, same taints, same name if one asks for names.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    nodes: &'a [Node],
    /// What those templates look at; `None` for one that has not looked yet.
    sight: Option<Sight<'a>>,
    /// The class of each node.
    classes: Vec<usize>,
    /// A node of each class.
    examples: Vec<&'a Node>,
}

impl<'a> Judge<'a> {
    /// A judge of `nodes` for no template yet: making it costs nothing, and it knows no class.
    pub fn idle(nodes: &'a [Node]) -> Self {
        Self { nodes, sight: None, classes: Vec::new(), examples: Vec::new() }
    }

    /// A judge of `nodes` for `templates`.
    pub fn new(nodes: &'a [Node], templates: impl IntoIterator<Item = &'a PodPlacement>) -> Self {
        let (mut labels, mut names) = (Vec::new(), Vec::new());
        for template in templates {
            let Sight { labels: of_labels, names: of_names } = Rules::of(template).sight;
            labels.extend(of_labels);
            names.extend(of_names);
        }
        let sight = Sight::new(labels, names);
        let mut examples: Vec<&Node> = Vec::new();
        let mut by_look: HashMap<Look<'_>, usize> = HashMap::new();
        // What looks at no label takes most nodes for the same, without a closer look.
        let (looks_at_taints_only, mut untainted) = (sight.is_empty(), None);
        let mut class = |node: &'a Node| {
            let is_plain = looks_at_taints_only && node.taints.is_empty();
            if let Some(class) = untainted.filter(|_| is_plain) {
                return class;
            }
            let class = *by_look.entry(sight.look(node)).or_insert_with(|| {
                examples.push(node);
                examples.len() - 1
            });
            if is_plain {
                untainted = Some(class);
            }
            class
        };
        let classes = nodes.iter().map(&mut class).collect();
        Self { nodes, sight: Some(sight), classes, examples }
    }

    /// Upstream's answer for each node, and why not, in the order of the nodes. A template that
    /// looks at more than those that the judge was made for gets classes of its own.
    pub fn judge(&self, template: &PodPlacement) -> Vec<Placement> {
        let rules = Rules::of(template);
        if !self.knows(&rules) {
            return Judge::new(self.nodes, [template]).judge(template);
        }
        let answers = self.answers(&rules);
        self.classes.iter().map(|class| answers[*class].clone()).collect()
    }

    /// The class of each node, in the order of the nodes.
    pub fn classes(&self) -> &[usize] {
        &self.classes
    }

    /// Upstream's answer for each class of nodes. The template must be one of those that the judge
    /// was made for.
    pub fn by_class(&self, template: &PodPlacement) -> Vec<Placement> {
        let rules = Rules::of(template);
        debug_assert!(self.knows(&rules), "a template that the judge does not know");
        self.answers(&rules)
    }

    /// Whether its classes tell apart whatever the rules tell apart.
    fn knows(&self, rules: &Rules<'_>) -> bool {
        self.sight.as_ref().is_some_and(|sight| sight.covers(&rules.sight))
    }

    fn answers(&self, rules: &Rules<'_>) -> Vec<Placement> {
        self.examples.iter().map(|node| rules.judge(node)).collect()
    }

    /// Answers for one template alone.
    pub fn judge_all(template: &'a PodPlacement, nodes: &'a [Node]) -> Vec<Placement> {
        Self::new(nodes, [template]).judge(template)
    }

    /// How many classes of nodes there are.
    #[cfg(test)]
    pub(super) fn class_count(&self) -> usize {
        self.examples.len()
    }
}
