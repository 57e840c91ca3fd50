//! A drift report as text: a block for each DaemonSet that deviates, class by class.

use super::fields::field_change;
use super::nodes::{group_line, reason_column};
use super::notices::{compared, warnings};
use super::page::{ASIDE, CHANGE, Line, NAME, Page, TextOptions};
use crate::view::{DaemonSetDriftView, DeviationView, DriftClass, DriftView, totals_words};
use planner::plan::Drift;

const INDENT: usize = 4;

/// The report as text. The line that begins with `Drift:` keeps its form, for scripts.
pub fn drift_text(drift: &Drift, options: &TextOptions) -> String {
    let drift = DriftView::of(drift);
    let deviating = drift.deviating();
    let mut page = Page::default();
    let title = if deviating.is_empty() { "Drift: none. " } else { "ds-plan drift  " };
    page.push(compared(title, &drift.origin, *options));
    for daemon_set in drift.reported() {
        page.gap();
        block(&mut page, daemon_set, *options);
    }
    page.gap();
    warnings(&mut page, &drift.warnings);
    if !deviating.is_empty() {
        page.gap();
        page.push(Line::at(0).whole().styled(NAME, totals_words(drift.totals)));
    }
    page.write(*options)
}

/// `NAMESPACE/NAME` of each DaemonSet that deviates, one per line.
pub fn drift_name(drift: &Drift) -> String {
    Page::of_names(DriftView::of(drift).deviating().into_iter().map(|it| &it.key))
}

fn block(page: &mut Page, daemon_set: &DaemonSetDriftView<'_>, options: TextOptions) {
    page.push(Line::at(0).styled(NAME, &daemon_set.key));
    let mut last: Option<DriftClass> = None;
    for deviation in &daemon_set.deviations {
        let class = deviation.class;
        if last != Some(class) {
            let legend = if class == DriftClass::Spec { "   (- live, + source)" } else { "" };
            page.push(Line::at(INDENT).styled(CHANGE, class).styled(ASIDE, legend));
            last = Some(class);
        }
        one(page, deviation, options);
    }
}

fn one(page: &mut Page, deviation: &DeviationView<'_>, options: TextOptions) {
    if let Some(field) = &deviation.field {
        field_change(page, 2 * INDENT, field.change, options);
        for writer in &field.writers {
            page.push(Line::at(3 * INDENT).styled(ASIDE, writer));
        }
        return;
    }
    page.push(Line::at(2 * INDENT).plain(&deviation.sentence));
    let indent = 3 * INDENT;
    let reasons = indent + reason_column(&deviation.groups);
    for group in &deviation.groups {
        group_line(page, Line::at(indent), group, reasons);
    }
    for node in deviation.nodes.iter().filter(|node| options.verbose && node.has_reason()) {
        let line = Line::at(indent + INDENT).styled(ASIDE, node.name);
        page.push(node.pods.iter().fold(line, |line, pod| line.plain("   ").plain(pod)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::past;

    #[test]
    fn each_class_with_the_writers_of_fields() {
        insta::assert_snapshot!(drift_text(&past::drift(), &TextOptions::default()), @r#"
        ds-plan drift  8 DaemonSets at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes

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

        logging/waiting
            rollout
                waiting, begun by ci@runner-7 at 2026-08-01T11:00:00Z, commit 4f2c9e1, from revision 7, step canary soaks until 2026-08-01T12:30:00Z; forgotten: no run has come for 120m
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

        Drift: 4 spec, 5 pod, 9 rollout, 6 history, 2 eligibility.
        "#);
        insta::assert_snapshot!(drift_name(&past::drift()), @"
        logging/absent
        logging/fluent-bit
        logging/going
        logging/paused
        logging/waiting
        logging/aborted
        logging/revisions
        ");
    }

    #[test]
    fn nothing_to_report() {
        let mut drift = past::drift();
        drift.daemon_sets.retain(|one| one.deviations.is_empty());
        insta::assert_snapshot!(drift_text(&drift, &TextOptions::default()), @"Drift: none. 1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes");
    }

    #[test]
    fn verbose_names_every_pod() {
        let options = TextOptions { verbose: true, ..TextOptions::default() };
        let text = drift_text(&past::drift(), &options);
        assert!(text.contains("\n                edge-a-02   agent-a-02x\n"), "{text}");
    }
}
