//! Evaluates the placements of many templates on a fleet: nodes that no template distinguishes form
//! a class, and each template is evaluated once per class.

use std::collections::HashMap;

use super::judged_fields::{JudgedFields, NodeFingerprint};
use super::{Placement, Rules};
use crate::model::{Node, PodPlacement};

/// Evaluates templates on nodes, once per class of nodes that are equal for all of them: equal
/// values of the labels that they use, equal taints, and equal name if a template refers to it.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    nodes: &'a [Node],
    /// The fields that the templates use; `None` before classes are computed.
    judged_fields: Option<JudgedFields<'a>>,
    /// The class of each node.
    classes: Vec<usize>,
    /// A node of each class.
    examples: Vec<&'a Node>,
}

impl<'a> Judge<'a> {
    /// A judge of `nodes` without templates and classes, which is cheap to create.
    pub fn idle(nodes: &'a [Node]) -> Self {
        Self { nodes, judged_fields: None, classes: Vec::new(), examples: Vec::new() }
    }

    /// A judge of `nodes` for `templates`.
    pub fn new(nodes: &'a [Node], templates: impl IntoIterator<Item = &'a PodPlacement>) -> Self {
        let (mut labels, mut names) = (Vec::new(), Vec::new());
        for template in templates {
            let fields = Rules::of(template).judged_fields;
            labels.extend(fields.labels);
            names.extend(fields.names);
        }
        let judged_fields = JudgedFields::new(labels, names);
        let mut examples: Vec<&Node> = Vec::new();
        let mut by_look: HashMap<NodeFingerprint<'_>, usize> = HashMap::new();
        // If no label is used, all nodes without taints are in one class.
        let (looks_at_taints_only, mut untainted) = (judged_fields.is_empty(), None);
        let mut class = |node: &'a Node| {
            let is_plain = looks_at_taints_only && node.taints.is_empty();
            if let Some(class) = untainted.filter(|_| is_plain) {
                return class;
            }
            let class = *by_look.entry(judged_fields.look(node)).or_insert_with(|| {
                examples.push(node);
                examples.len() - 1
            });
            if is_plain {
                untainted = Some(class);
            }
            class
        };
        let classes = nodes.iter().map(&mut class).collect();
        Self { nodes, judged_fields: Some(judged_fields), classes, examples }
    }

    /// Upstream's result for each node, in their order. A template that uses other fields than
    /// those for which the judge was made gets its own classes.
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

    /// Upstream's result for each class of nodes. The template must be one of those for which the
    /// judge was made.
    pub fn by_class(&self, template: &PodPlacement) -> Vec<Placement> {
        let rules = Rules::of(template);
        debug_assert!(self.knows(&rules), "a template for which the judge was not made");
        self.answers(&rules)
    }

    /// Whether its classes distinguish all nodes that the rules distinguish.
    fn knows(&self, rules: &Rules<'_>) -> bool {
        self.judged_fields
            .as_ref()
            .is_some_and(|judged_fields| judged_fields.covers(&rules.judged_fields))
    }

    fn answers(&self, rules: &Rules<'_>) -> Vec<Placement> {
        self.examples.iter().map(|node| rules.judge(node)).collect()
    }

    /// The results for a single template.
    pub fn judge_all(template: &'a PodPlacement, nodes: &'a [Node]) -> Vec<Placement> {
        Self::new(nodes, [template]).judge(template)
    }

    /// Number of classes of nodes.
    #[cfg(test)]
    pub(super) fn class_count(&self) -> usize {
        self.examples.len()
    }
}
