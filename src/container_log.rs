//! `--logs`: the last log lines of the container that keeps a pod from being Ready; of its previous
//! instance, if it crashed and was restarted.
//!
//! Container logs are untrusted text: only a few short lines are kept, and control characters are
//! escaped when they are shown.

use cluster::{LiveCluster, LogOf};
use daemonset::model::Pod;
use planner::plan::ContainerLog;

/// Number of lines that are shown.
const LINES: usize = 10;

/// Number of characters of a line that are shown.
const LENGTH: usize = 200;

/// Reads the last log lines of a pod.
pub(super) async fn read(cluster: &LiveCluster, pod: &Pod) -> ContainerLog {
    let container = container(pod);
    let of = |previous| LogOf {
        namespace: &pod.namespace,
        pod: &pod.name,
        container: container.as_deref(),
        previous,
    };
    let mut previous = has_ended(pod);
    let mut read = cluster.log(of(previous)).await;
    if previous && read.is_err() {
        // A node keeps the logs of terminated containers only for a while.
        previous = false;
        read = cluster.log(of(previous)).await;
    }
    let (lines, error) = match read {
        Ok(text) => (last_lines(&text), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    ContainerLog { pod: pod.name.clone(), container, previous, lines, error }
}

/// The container that keeps the pod from being Ready, if known.
fn container(pod: &Pod) -> Option<String> {
    let name = &pod.why_unready()?.container;
    (!name.is_empty()).then(|| name.to_string())
}

/// Whether the failed container has been restarted, so that its log is the previous one.
fn has_ended(pod: &Pod) -> bool {
    pod.restarts > 0
        && pod
            .container_failure
            .as_ref()
            .is_some_and(|container_failure| container_failure.is_crash_loop())
}

fn last_lines(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(LINES);
    lines[from..].iter().map(|line| short(line)).collect()
}

fn short(line: &str) -> String {
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_few_and_short() {
        let long = "ä".repeat(LENGTH + 1);
        let text = (0..30).map(|at| format!("line {at}")).collect::<Vec<_>>().join("\n\n");
        let lines = last_lines(&format!("{text}\n\n{long}"));
        assert_eq!(lines.len(), LINES);
        assert_eq!(lines[0], "line 21");
        assert_eq!(lines[LINES - 1].chars().count(), LENGTH + 1);
        assert_eq!(last_lines("\n\n"), Vec::<String>::new());
    }
}
