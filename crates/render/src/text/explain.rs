//! One DaemonSet on one node: each rule with its outcome, then the resulting action.

use anstyle::Style;

use super::page::{ASIDE, GAIN, HALT, LOSS, Line, NAME, Page, TextOptions, style_of};
use super::status::pause_words;
use crate::view::{Origin, fate, sentence};
use planner::plan::{Action, ContainerLog, Explanation, RuleReport, RuleResult};

const INDENT: usize = 4;
/// The outcomes are aligned if no rule is wider than this.
const MOST_ALIGNED: usize = 64;

/// The explanation as text.
pub fn explain_text(explanation: &Explanation, options: &TextOptions) -> String {
    let Explanation {
        api_version: _,
        kind: _,
        cluster,
        source,
        daemon_set,
        node,
        rules,
        may_start,
        may_stay,
        pods,
        action,
        wave,
        wave_name,
        is_later: _,
        waits_for: _,
        pause: _,
        waits_since: _,
        reasons,
        logs: _,
    } = explanation;
    let mut page = Page::default();
    let title = Line::at(0).styled(NAME, daemon_set).plain(" on node ").styled(NAME, node);
    let place = source.as_ref().map(|source| Origin::of(source, cluster, 1).place_words(false));
    page.push(title.plain(match place {
        Some(place) => format!(", as planned{place}"),
        None => ", as it is in the cluster".to_owned(),
    }));
    page.gap();
    rule_lines(&mut page, rules);
    page.gap();
    page.push(Line::at(0).plain(verdict(*may_start, *may_stay)));
    if pods.is_empty() {
        page.push(Line::at(0).plain("No pod on this node."));
    }
    for pod in pods {
        page.push(Line::at(0).plain(fate(pod)));
    }
    // Without a name, a later wave than the first is the only sign that there are several.
    let wave = wave.filter(|wave| *wave > 1 || wave_name.is_some());
    let name = wave_name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
    let when = wave.map(|wave| format!(" in wave {wave}{name}")).unwrap_or_default();
    let words = action_words(*action);
    page.gap();
    let line = Line::at(0).styled(style_of(*action), signed(*action)).plain(words).plain(when);
    page.push(if reasons.is_empty() { line } else { line.plain(": ").plain(sentence(reasons)) });
    remarks(&mut page, explanation);
    page.write(*options)
}

/// What the action waits for, and details of the pods.
fn remarks(page: &mut Page, explanation: &Explanation) {
    let Explanation { is_later, waits_for, pause, waits_since, reasons, logs, .. } = explanation;
    if let Some(pause) = pause {
        page.push(Line::at(INDENT).styled(HALT, pause_words(pause, *waits_since)));
    }
    if *is_later {
        page.push(Line::at(INDENT).styled(HALT, "other waves come before it"));
    }
    for wait in waits_for {
        page.push(Line::at(INDENT).styled(HALT, format!("waiting: {wait}")));
    }
    for detail in reasons.iter().flat_map(|coded| coded.reason.details()) {
        page.push(Line::at(INDENT).styled(ASIDE, detail));
    }
    for line in logs.iter().flat_map(ContainerLog::lines_shown) {
        page.push(Line::at(INDENT).whole().plain(line));
    }
}

fn rule_lines(page: &mut Page, rules: &[RuleReport]) {
    let widths = rules.iter().map(|report| report.rule.chars().count());
    let widest = widths.filter(|width| *width <= MOST_ALIGNED).max().unwrap_or(0);
    for RuleReport { rule, outcome, message } in rules {
        let (style, word) = outcome_word(*outcome);
        let line = Line::at(INDENT).styled(style, word).padded_to(INDENT + 12).plain(rule);
        let line = line.padded_to(INDENT + 12 + widest);
        page.push(line.plain("   ").styled(ASIDE, message));
    }
}

fn outcome_word(outcome: RuleResult) -> (Style, &'static str) {
    match outcome {
        RuleResult::Pass => (GAIN, "pass"),
        RuleResult::StayOnly => (HALT, "stay only"),
        RuleResult::Fail => (LOSS, "fail"),
        RuleResult::NotApplicable => (ASIDE, "-"),
    }
}

fn verdict(may_start: bool, may_stay: bool) -> &'static str {
    match (may_start, may_stay) {
        (true, true) => "A pod may start here, and stay.",
        (false, true) => "A pod here keeps running; a new pod may not start here.",
        (false, false) => "A pod may neither start here nor stay.",
        (true, false) => "A pod may start here, but may not stay.",
    }
}

/// The symbol as in a plan, with a space if there is one.
fn signed(action: Action) -> String {
    let symbol = action.symbol();
    if symbol.is_empty() { String::new() } else { format!("{symbol} ") }
}

fn action_words(action: Action) -> &'static str {
    match action {
        Action::Create => "a pod is created",
        Action::Delete => "a pod is deleted",
        Action::Replace => "its pod is deleted, then recreated",
        Action::Surge => "a new pod is created, then the old one is deleted",
        Action::Wait => "it waits",
        Action::Keep => "nothing happens",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use crate::examples::past::pause;
    use planner::plan::{PauseState, PodNotReady, Reason};

    #[test]
    fn messages_of_the_kubelet_and_container_logs_come_last() {
        let mut explanation = examples::explanation();
        let unready = PodNotReady {
            container: Some("agent".to_owned()),
            container_failure: Some("CrashLoopBackOff".to_owned()),
            detail: Some("back-off; it ended with Error, exit code 3".to_owned()),
            warning: Some("BackOff: restarting".to_owned()),
            restarts: 4,
        };
        explanation.reasons = vec![Reason::PodNotReady(unready.into()).into()];
        explanation.logs = vec![ContainerLog {
            pod: "agent-x".into(),
            container: Some("agent".to_owned()),
            previous: true,
            lines: vec!["starting".to_owned(), "\u{1b}[2J::error::no config".to_owned()],
            error: None,
        }];
        let text = explain_text(&explanation, &TextOptions::default());
        insta::assert_snapshot!(text.rsplit_once("\n\n").unwrap().1, @r"
            - a pod is deleted: pod is not Ready: CrashLoopBackOff in container agent
                back-off; it ended with Error, exit code 3
                last warning: BackOff: restarting
                container agent printed before it ended:
                  | starting
                  | \u{1b}[2J::error::no config
            ");
    }

    #[test]
    fn each_rule_then_the_resulting_action() {
        insta::assert_snapshot!(explain_text(&examples::explanation(), &TextOptions::default()), @r"
            logging/fluent-bit on node edge-b-13, as it is in the cluster

                -           nodeName                                            not set: any node
                fail        nodeSelector disk=ssd                               node has disk=hdd
                stay only   taint gpu=yes:NoSchedule                            not tolerated
                pass        taint node.kubernetes.io/unschedulable:NoSchedule   tolerated, as by every daemon pod

            A pod may neither start here nor stay.
            pod agent-b-13x deleted: nodeSelector disk=ssd does not match (node has disk=hdd)

            - a pod is deleted: nodeSelector disk=ssd does not match (node has disk=hdd)
            ");
    }

    #[test]
    fn a_paused_rollout_is_shown_as_in_a_status() {
        let mut explanation = examples::explanation();
        explanation.action = Action::Wait;
        explanation.reasons = vec![Reason::Outdated { revision: None }.into()];
        explanation.pause = Some(pause(PauseState::Aborted));
        let text = explain_text(&explanation, &TextOptions::default());
        insta::assert_snapshot!(text.rsplit_once("\n\n").unwrap().1, @r"
            ! it waits: runs a revision that no longer exists
                aborted by ci@runner-7 since 2026-08-01T11:00:00Z, commit 4f2c9e1, from revision 7: `ds-apply undo` rolls back; `ds-apply --retry` resumes when the cause is fixed
            ");
        explanation.pause = Some(pause(PauseState::Waiting));
        explanation.waits_since = Some("2026-08-01T12:00:00Z".parse().unwrap());
        let text = explain_text(&explanation, &TextOptions::default());
        let ways = ", waiting since 2026-08-01T12:00:00Z: the next `ds-apply` continues, \
                    `ds-apply undo` rolls back\n";
        assert!(text.ends_with(ways), "{text}");
    }

    #[test]
    fn a_node_without_pod() {
        let mut explanation = examples::explanation();
        (explanation.may_start, explanation.may_stay) = (true, true);
        (explanation.rules, explanation.pods) = (vec![], vec![]);
        (explanation.action, explanation.wave) = (Action::Create, Some(2));
        explanation.reasons = vec![Reason::NoPod.into()];
        insta::assert_snapshot!(explain_text(&explanation, &TextOptions::default()), @r"
            logging/fluent-bit on node edge-b-13, as it is in the cluster

            A pod may start here, and stay.
            No pod on this node.

            + a pod is created in wave 2: node has no pod yet
            ");
        // The only wave, as far as this document tells.
        explanation.wave = Some(1);
        let text = explain_text(&explanation, &TextOptions::default());
        assert!(text.ends_with("\n+ a pod is created: node has no pod yet\n"), "{text}");
    }
}
