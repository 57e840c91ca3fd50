//! Chart of the nodes without an available pod over the time of a rehearsal, as a line of text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use daemonset::model::DaemonSetKey;
use embedded::{Kind, Server};

/// The period of sampling, in the cluster's time.
const PERIOD: Duration = Duration::from_secs(5);

/// The maximum number of columns of a chart.
const COLUMNS: usize = 60;

/// The characters of a chart, from 0 to the maximum.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The samples: unavailable nodes of each DaemonSet, one per period.
type Seen = BTreeMap<DaemonSetKey, Vec<u32>>;

/// Samples an embedded cluster until it is stopped.
pub(super) struct Usage {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Usage {
    /// Starts sampling.
    pub(super) fn of(server: Server) -> Self {
        let seen = Arc::new(Mutex::new(Seen::new()));
        let writes = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            for periods in 0.. {
                look(&server, &writes, periods);
                tokio::time::sleep(PERIOD).await;
            }
        });
        Self { seen, task }
    }

    /// Stops sampling. Returns the chart, one line for each DaemonSet whose samples changed.
    pub(super) fn chart(self) -> String {
        self.task.abort();
        chart(&self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Adds a sample, after `looks` earlier ones.
fn look(server: &Server, seen: &Mutex<Seen>, looks: usize) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    let store = server.store();
    for daemon_set in store.objects(Kind::DaemonSet, None).filter_map(|it| it.daemon_set()) {
        let samples = seen.entry(daemon_set.key.clone()).or_default();
        // A new DaemonSet has no earlier samples.
        samples.resize(looks, 0);
        samples.push(daemon_set.status.number_unavailable);
    }
}

fn chart(seen: &Seen) -> String {
    let changed = |samples: &&Vec<u32>| samples.windows(2).any(|pair| pair[0] != pair[1]);
    let lines: Vec<(String, &Vec<u32>)> =
        seen.iter().filter(|(_, it)| changed(it)).map(|(key, it)| (key.to_string(), it)).collect();
    let longest = lines.iter().map(|(_, samples)| samples.len()).max().unwrap_or_default();
    if longest == 0 {
        return String::new();
    }
    let width = longest.div_ceil(COLUMNS);
    let column = PERIOD * u32::try_from(width).unwrap_or(u32::MAX);
    let name_width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut text = format!("nodes without an available pod, {} s per column\n", column.as_secs());
    for (name, samples) in lines {
        let most = samples.iter().copied().max().unwrap_or_default();
        let line: String = samples.chunks(width).map(|some| level(some, most)).collect();
        let _ = writeln!(text, "  {name:name_width$}  {line}  at most {most}");
    }
    text
}

/// The character for the maximum of some samples, relative to the maximum of all.
fn level(samples: &[u32], most: u32) -> char {
    let here = samples.iter().copied().max().unwrap_or_default();
    let steps = LEVELS.len() - 1;
    let step = (here as usize * steps).div_ceil(most.max(1) as usize);
    LEVELS[step.min(steps)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_shows_the_maximum_of_each_column() {
        let key = |name: &str| DaemonSetKey::new("ns", name);
        let seen: Seen = [
            (key("quiet"), vec![1; 9]),
            (key("rolled"), vec![0, 1, 4, 4, 2, 0]),
            (key("long"), (0..120).map(|n| u32::from(n == 61)).collect()),
        ]
        .into();
        let want = format!(
            "nodes without an available pod, 10 s per column\n  \
             ns/long    {}█{}  at most 1\n  \
             ns/rolled  ▂█▄  at most 4\n",
            " ".repeat(30),
            " ".repeat(29)
        );
        assert_eq!(chart(&seen), want);
        assert_eq!(chart(&Seen::new()), "");
    }
}
