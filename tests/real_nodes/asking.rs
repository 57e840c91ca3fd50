//! Observes the nodes from outside: asks their ports for the version all the time.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The pause between two questions to one node.
const PAUSE: Duration = Duration::from_millis(100);
/// The timeout of an answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Asks each port in its own thread until it is ended.
pub(crate) struct Asking {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Node>>,
}

/// The answers of one node.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The versions that answered.
    pub(crate) versions: BTreeSet<String>,
    /// Each interval without an answer, from the first failed question to the last one.
    pub(crate) silences: Vec<(Instant, Instant)>,
}

/// The answers of all nodes.
#[derive(Debug)]
pub(crate) struct Answers(pub(crate) Vec<Node>);

impl Asking {
    /// Starts to ask.
    pub(crate) fn begin(ports: impl IntoIterator<Item = u16>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let ask = |port| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || ask_on(port, &stop))
        };
        let threads = ports.into_iter().map(ask).collect();
        Self { stop, threads }
    }

    /// Ends; returns the answers.
    pub(crate) fn end(self) -> Answers {
        self.stop.store(true, Ordering::Relaxed);
        Answers(
            self.threads
                .into_iter()
                .map(|it| it.join().expect("the thread does not panic"))
                .collect(),
        )
    }
}

impl Answers {
    /// The highest number of nodes that were silent at one moment.
    pub(crate) fn most_silent(&self) -> usize {
        let all = || self.0.iter().flat_map(|node| &node.silences);
        let at = |moment: Instant| all().filter(move |(from, to)| *from <= moment && moment <= *to);
        // The maximum is reached where some interval begins.
        all().map(|(from, _)| at(*from).count()).max().unwrap_or_default()
    }

    /// The number of nodes that were ever silent.
    pub(crate) fn ever_silent(&self) -> usize {
        self.0.iter().filter(|node| !node.silences.is_empty()).count()
    }

    /// The longest time that a node was silent.
    pub(crate) fn longest(&self) -> Duration {
        let all = self.0.iter().flat_map(|node| &node.silences);
        all.map(|(from, to)| to.saturating_duration_since(*from)).max().unwrap_or_default()
    }
}

fn ask_on(port: u16, stop: &AtomicBool) -> Node {
    let mut node = Node::default();
    let mut silent = false;
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let answer = ask(port);
        match (&answer, node.silences.last_mut()) {
            (Some(version), _) => drop(node.versions.insert(version.clone())),
            (None, Some(last)) if silent => last.1 = now,
            (None, _) => node.silences.push((now, now)),
        }
        silent = answer.is_none();
        thread::sleep(PAUSE);
    }
    node
}

/// The version that answers on a local port.
pub(crate) fn ask(port: u16) -> Option<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.contains(" 200 ").then(|| body.to_owned())
}

#[test]
fn silences_that_overlap_are_counted_together() {
    let start = Instant::now();
    let at = |second: u64| start + Duration::from_secs(second);
    let node = |silences: &[(u64, u64)]| Node {
        versions: BTreeSet::new(),
        silences: silences.iter().map(|(from, to)| (at(*from), at(*to))).collect(),
    };
    let answers = Answers(vec![node(&[(1, 3), (7, 9)]), node(&[(2, 4)]), node(&[(5, 6)])]);
    assert_eq!((answers.most_silent(), answers.ever_silent()), (2, 3));
    assert_eq!(answers.longest(), Duration::from_secs(2));
    let calm = Answers(vec![node(&[]), node(&[(1, 1)])]);
    assert_eq!((calm.most_silent(), calm.ever_silent()), (1, 1));
}
