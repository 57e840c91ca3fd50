//! Revisions: kubectl's table with two more columns, the template of one revision, or the
//! difference between two.

use super::page::{ASIDE, Line, NAME, Page, TextOptions};
use super::{template, unified};
use crate::neutral;
use planner::plan::{
    DaemonSetHistory, History, RevisionDifference, RevisionEntry, RolloutHistory, StepHistory,
};
use planner::words::{agree, count};

/// Spaces between columns (upstream: `tabbedString` of `kubectl rollout history`).
const PADDING: usize = 2;
/// Indentation of the steps of a rollout.
const INDENT: usize = 4;

/// The history as text.
pub fn history_text(history: &History, options: &TextOptions) -> String {
    let History { api_version: _, kind: _, cluster: _, daemon_sets, warnings: _ } = history;
    let mut page = Page::default();
    if daemon_sets.is_empty() {
        page.push(Line::at(0).plain("No DaemonSets found."));
    }
    for daemon_set in daemon_sets {
        page.gap();
        one(&mut page, daemon_set);
    }
    page.write(*options)
}

fn one(page: &mut Page, history: &DaemonSetHistory) {
    let DaemonSetHistory { namespace, name, revisions, pods_without_revision, rollout, difference } =
        history;
    if let Some(difference) = difference {
        compared(page, difference);
        return;
    }
    if let [RevisionEntry { number, template: Some(template), .. }] = revisions.as_slice() {
        page.push(
            Line::at(0).whole().plain(format!("daemonset.apps/{name} with revision #{number}")),
        );
        template::describe(page, template);
        return;
    }
    page.push(Line::at(0).styled(NAME, format!("{namespace}/{name}")));
    if revisions.is_empty() {
        page.push(Line::at(0).plain("No rollout history found."));
    } else {
        table(page, revisions);
    }
    if *pods_without_revision > 0 {
        let pods = count(*pods_without_revision, "pod");
        let verb = agree(*pods_without_revision, "belongs", "belong");
        page.push(Line::at(0).styled(ASIDE, format!("{pods} {verb} to no existing revision")));
    }
    if let Some(rollout) = rollout {
        last_rollout(page, rollout);
    }
}

/// What is still known of the last rollout by steps.
fn last_rollout(page: &mut Page, rollout: &RolloutHistory) {
    let RolloutHistory { revision, state, since, by, steps, waits_for } = rollout;
    let revision = revision.map_or("its last rollout".to_owned(), |it| format!("rollout of {it}"));
    let words = [
        state.map(|state| state.to_string()),
        since.map(|since| format!("since {since}")),
        by.as_ref().map(|by| format!("by {by}")),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    let words = if words.is_empty() { String::new() } else { format!(": {}", words.join(" ")) };
    page.push(Line::at(0).plain(format!("{revision}{words}")));
    for step in steps {
        let StepHistory { name, approved_by, approved_at, complete_at, done_at } = step;
        let approved = approved_by.as_ref().zip(approved_at.as_ref());
        let facts = [
            approved.map(|(by, at)| format!("approved by {by} at {at}")),
            complete_at.map(|at| format!("updated at {at}")),
            done_at.map(|at| format!("done at {at}")),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        page.push(Line::at(INDENT).plain(format!("step {name}: {}", facts.join(", "))));
    }
    for wait in waits_for {
        page.push(Line::at(INDENT).plain(format!("waiting: {wait}")));
    }
}

fn table(page: &mut Page, revisions: &[RevisionEntry]) {
    let mut rows = vec![["REVISION", "CHANGE-CAUSE", "COMMIT", "PODS"].map(str::to_owned)];
    rows.extend(revisions.iter().map(cells));
    page.table(&rows, PADDING, 0);
}

fn cells(revision: &RevisionEntry) -> [String; 4] {
    let RevisionEntry {
        number,
        name: _,
        hash: _,
        live: _,
        created: _,
        change_cause,
        commit,
        pods,
        template: _,
    } = revision;
    let or_none = |text: &Option<String>| {
        let text = text.as_deref().filter(|text| !text.is_empty());
        neutral::line(text.unwrap_or("<none>")).into_owned()
    };
    [number.to_string(), or_none(change_cause), or_none(commit), pods.to_string()]
}

fn compared(page: &mut Page, difference: &RevisionDifference) {
    let RevisionDifference { from, to, changes: _, before, after } = difference;
    let [from, to] =
        [from, to].map(|revision| format!("revision {} ({})", revision.number, revision.name));
    if before == after {
        page.push(Line::at(0).plain(format!("{from} and {to} have the same template.")));
        return;
    }
    unified::difference(page, [&from, &to], Some(before), Some(after));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::past;

    #[test]
    fn an_overview_a_template_and_a_difference() {
        insta::assert_snapshot!(history_text(&past::history(), &TextOptions::default()), @"
        logging/fluent-bit
        REVISION  CHANGE-CAUSE  COMMIT                                    PODS
        7         <none>        <none>                                    3
        8         new image     4f2c9e1d0a5b6c7d8e9f00112233445566778899  409
        2 pods belong to no existing revision

        daemonset.apps/fluent-bit with revision #8
        Pod Template:
          Labels:       app=fluent-bit
          Containers:
           fluent-bit:
            Image:      fluent-bit:3.2
            Port:       <none>
            Host Port:  <none>
            Environment:
              A:        (sensitive value)
            Mounts:     <none>
          Volumes:      <none>
          Node-Selectors:       <none>
          Tolerations:  <none>

        --- revision 7 (fluent-bit-7f6d)
        +++ revision 8 (fluent-bit-8f6d)
        @@ -6,5 +6,5 @@
           - env:
             - name: A
               value: (sensitive value)
        -    image: fluent-bit:3.1
        +    image: fluent-bit:3.2
             name: fluent-bit
        ");
    }

    #[test]
    fn without_revisions_and_without_daemon_sets() {
        let mut history = past::history();
        history.daemon_sets.truncate(1);
        history.daemon_sets[0].revisions.clear();
        history.daemon_sets[0].pods_without_revision = 0;
        let text = history_text(&history, &TextOptions::default());
        assert_eq!(text, "logging/fluent-bit\nNo rollout history found.\n");
        history.daemon_sets.clear();
        let text = history_text(&history, &TextOptions::default());
        assert_eq!(text, "No DaemonSets found.\n");
    }
}
