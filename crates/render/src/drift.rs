//! A drift report as text: a block for each DaemonSet that deviates, class by class.

use super::TextOptions;
use super::nodes::{Group, groups, names, reason_column};
use super::page::{ASIDE, CHANGE, Line, NAME, Page, count};
use super::plan_text::{cluster_words, source_words, warning};
use super::ranges::natural_order;
use super::values::field_change;
use planner::plan::{
    Classified, DaemonSetDrift, DeviatingNodes, Deviation, Drift, DriftClass, DriftTotals,
    NodeDrift, WriteOperation, Writer,
};

const INDENT: usize = 4;

/// The report as text. The line that begins with `Drift:` keeps its form, for scripts.
pub fn drift_text(drift: &Drift, options: &TextOptions) -> String {
    let Drift { api_version: _, kind: _, source, cluster, daemon_sets, totals, warnings } = drift;
    let mut page = Page::default();
    let title = if drift.is_found() { "ds-plan drift  " } else { "Drift: none. " };
    page.push(
        Line::at(0)
            .styled(NAME, title)
            .plain(count(daemon_sets.len(), "DaemonSet"))
            .plain(source_words(source, *options))
            .plain("; ")
            .plain(cluster_words(cluster)),
    );
    for daemon_set in daemon_sets.iter().filter(|it| !it.deviations.is_empty()) {
        page.gap();
        block(&mut page, daemon_set, *options);
    }
    page.gap();
    for it in warnings {
        warning(&mut page, it);
    }
    if drift.is_found() {
        page.gap();
        page.push(Line::at(0).whole().styled(NAME, totals_words(*totals)));
    }
    page.write(*options)
}

/// `NAMESPACE/NAME` of each DaemonSet that deviates, one per line.
pub fn drift_name(drift: &Drift) -> String {
    let mut page = Page::default();
    for daemon_set in drift.daemon_sets.iter().filter(|it| !it.deviations.is_empty()) {
        page.push(Line::at(0).whole().plain(key(daemon_set)));
    }
    page.write(TextOptions::default())
}

pub(super) fn key(daemon_set: &DaemonSetDrift) -> String {
    format!("{}/{}", daemon_set.namespace, daemon_set.name)
}

fn block(page: &mut Page, daemon_set: &DaemonSetDrift, options: TextOptions) {
    page.push(Line::at(0).styled(NAME, key(daemon_set)));
    let mut last: Option<DriftClass> = None;
    for Classified { class, deviation } in &daemon_set.deviations {
        if last != Some(*class) {
            let legend = if *class == DriftClass::Spec { "   (- live, + source)" } else { "" };
            page.push(Line::at(INDENT).styled(CHANGE, class).styled(ASIDE, legend));
            last = Some(*class);
        }
        one(page, &deviation.reason, options);
    }
}

fn one(page: &mut Page, deviation: &Deviation, options: TextOptions) {
    if let Deviation::FieldDiffers { change, writers } = deviation {
        field_change(page, 2 * INDENT, change, options);
        for writer in writers {
            page.push(Line::at(3 * INDENT).styled(ASIDE, writer_words(writer)));
        }
        return;
    }
    page.push(Line::at(2 * INDENT).plain(deviation));
    match deviation.nodes() {
        DeviatingNodes::None => {}
        DeviatingNodes::WithReasons(nodes) => node_lines(page, nodes, options),
        DeviatingNodes::Named(nodes) => {
            let mut nodes: Vec<&str> = nodes.iter().map(AsRef::as_ref).collect();
            nodes.sort_by(|a, b| natural_order(a, b));
            page.push(Line::at(3 * INDENT).plain(names(&nodes)));
        }
    }
}

/// `written by kubectl-edit (Update) at 2026-08-01T12:00:00Z`.
pub(super) fn writer_words(writer: &Writer) -> String {
    let Writer { manager, operation, time, subresource } = writer;
    let operation = match operation {
        WriteOperation::Apply => "Apply",
        WriteOperation::Update => "Update",
    };
    let through = subresource.as_ref().map(|name| format!(" through {name}")).unwrap_or_default();
    let at = time.map(|time| format!(" at {time}")).unwrap_or_default();
    format!("written by {manager} ({operation}){through}{at}")
}

/// Nodes grouped by the reason of their deviation.
pub(super) fn grouped(nodes: &[NodeDrift]) -> Vec<Group<'_, ()>> {
    let each = nodes.iter();
    groups(each.map(|NodeDrift { node, pods: _, reasons }| ((), node.as_ref(), reasons.as_slice())))
}

fn node_lines(page: &mut Page, nodes: &[NodeDrift], options: TextOptions) {
    let grouped = grouped(nodes);
    let indent = 3 * INDENT;
    let column = indent + reason_column(&grouped);
    for Group { key: (), why, nodes } in &grouped {
        page.push(Line::at(indent).plain(names(nodes)).padded_to(column).plain("   ").plain(why));
    }
    if options.verbose {
        for NodeDrift { node, pods, reasons: _ } in nodes {
            let line = Line::at(indent + INDENT).styled(ASIDE, node);
            page.push(pods.iter().fold(line, |line, pod| line.plain("   ").plain(pod)));
        }
    }
}

pub(super) fn totals_words(totals: DriftTotals) -> String {
    let DriftTotals { spec, pod, rollout, history, eligibility } = totals;
    format!(
        "Drift: {spec} spec, {pod} pod, {rollout} rollout, {history} history, \
         {eligibility} eligibility."
    )
}

#[cfg(test)]
mod tests {
    use super::super::examples;
    use super::*;

    #[test]
    fn each_class_with_the_writers_of_fields() {
        insta::assert_snapshot!(drift_text(&examples::drift(), &TextOptions::default()), @r#"
        ds-plan drift  7 DaemonSets at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes

        logging/absent
            spec   (- live, + source)
                it does not exist in the cluster
            history
                revision 7 (fluent-bit-7f6d) does not belong to an existing DaemonSet

        logging/fluent-bit
            spec   (- live, + source)
                ~ spec.template.spec.containers[fluent-bit].image
                    - "3.2"
                    + "3.1"
                    written by kubectl-edit (Update) at 2026-08-01T10:00:00Z
                    written by scaler (Apply) through scale at 2026-08-01T10:00:00Z
                + spec.minReadySeconds: 10
            pod
                3 nodes without a pod
                    3 nodes: edge-a-01 … edge-a-03   node has no pod yet
                3 nodes with more than one pod
                    3 nodes: edge-a-01 … edge-a-03   pod no longer matches the selector and is released
                3 nodes with a pod of another template
                    3 nodes: edge-a-01 … edge-a-03   runs revision 7
                3 nodes with a failed or completed pod
                    3 nodes: edge-a-01 … edge-a-03   pod failed
                3 nodes with a pod that may not run there
                    3 nodes: edge-a-01 … edge-a-03   node no longer exists: the pod garbage collector deletes the pod
            rollout
                the controller has observed generation 8, the object is at 9
            history
                the status counts 3 nodes as updated whose pods run another template
                    3 nodes: edge-a-01 … edge-a-03   runs revision 7
            eligibility
                3 nodes with a pod where a new pod may not start
                    3 nodes: edge-a-01 … edge-a-03   its pod keeps running; a new pod may not start here: nodeSelector disk=ssd does not match (node has disk=hdd)
                openshift.io/node-selector disk=ssd of the namespace excludes 2 nodes that the DaemonSet selects
                    edge-a-9, edge-a-10

        logging/going
            spec   (- live, + source)
                it is being deleted

        logging/paused
            rollout
                paused by ci@runner-7 since 2026-08-01T11:00:00Z, commit 4f2c9e1, from revision 7
                the live template, revision 8, runs on 12 of 40 nodes

        logging/aborted
            rollout
                aborted by ci@runner-7 since 2026-08-01T11:00:00Z, commit 4f2c9e1, from revision 7
                the live template, revision 8, runs on 12 of 40 nodes

        logging/revisions
            rollout
                annotation cannot be read
                annotation ds-plan.dev/rollout is left over: another client has set the update strategy since, so it is ignored; the next apply by ds-apply removes it
            history
                no revision has the live template
                revision 7 (fluent-bit-7f6d) has the same template as revision 8 (fluent-bit-8f6d)
                revision 7 exists more than once: fluent-bit-a, fluent-bit-b
                revision 7 (fluent-bit-7f6d) mixes revision 6 (fluent-bit-6f6d) and revision 8 (fluent-bit-8f6d): the manifest was applied in two steps

        Drift: 4 spec, 5 pod, 7 rollout, 6 history, 2 eligibility.
        "#);
        insta::assert_snapshot!(drift_name(&examples::drift()), @"
        logging/absent
        logging/fluent-bit
        logging/going
        logging/paused
        logging/aborted
        logging/revisions
        ");
    }

    #[test]
    fn nothing_to_report() {
        let mut drift = examples::drift();
        drift.daemon_sets.retain(|one| one.deviations.is_empty());
        insta::assert_snapshot!(drift_text(&drift, &TextOptions::default()), @"Drift: none. 1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes");
    }

    #[test]
    fn verbose_names_every_pod() {
        let options = TextOptions { verbose: true, ..TextOptions::default() };
        let text = drift_text(&examples::drift(), &options);
        assert!(text.contains("\n                edge-a-02   agent-a-02x\n"), "{text}");
    }
}
