//! Three DaemonSets with one budget: whatever happens to their pods, at most two nodes are disturbed
//! by the run, and each node once.
//!
//! The pods are watched from outside, and the laws are checked after each event.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};

use super::*;
use crate::harness::{Program, block_on};

const NODES: usize = 6;

/// The order on each node.
const ORDER: [&str; 3] = ["c", "a", "b"];

/// A new pod is available one second after it is Ready (`minReadySeconds` of the policy), until then
/// its node is disturbed; and a delete that was decided before that takes a moment to arrive.
const NOT_YET_AVAILABLE: Duration = Duration::from_secs(3);

#[test]
fn daemon_sets_share_a_budget() {
    side_by_side(&[together, killed, sibling_rolls_by_itself, sibling_is_locked]);
}

/// One version of one of them, whose pods need a while to be Ready.
fn one(namespace: &str, name: &str, image: &str) -> String {
    slowly(&daemon_set(namespace, image))
        .replace("name: agent, namespace", &format!("name: {name}, namespace"))
        .replace("app: agent", &format!("app: {name}"))
}

fn policy(namespace: &str) -> String {
    format!(
        "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: agents}}
spec:
  selects: {{names: [{namespace}/c, {namespace}/a, {namespace}/b]}}
  minReadySeconds: 1
  ramp: none
  sharedBudget: 2
"
    )
}

/// All three, with an image for each, and the policy.
fn all(namespace: &str, images: [&str; 3]) -> String {
    let each = ORDER.iter().zip(images).map(|(name, image)| one(namespace, name, image) + "---\n");
    each.collect::<String>() + &policy(namespace)
}

struct Site<'p> {
    plane: &'p ControlPlane,
    namespace: String,
}

impl<'p> Site<'p> {
    fn new(plane: &'p ControlPlane, namespace: &str) -> Self {
        (0..NODES).for_each(|at| add_node(plane, namespace, &format!("{at:02}"), at));
        plane.kubectl(&["create", "namespace", namespace]);
        let site = Self { plane, namespace: namespace.to_owned() };
        ends(&site.apply(["v1"; 3]), 0, &["done"]);
        site.wait_until_available();
        site
    }

    fn apply(&self, images: [&str; 3]) -> Output {
        self.program(images).run()
    }

    fn program(&self, images: [&str; 3]) -> Program {
        let files = all(&self.namespace, images);
        let arguments = ["--yes", "-f", "agent.yaml", "--lease=2s"];
        self.plane.ds_apply(&arguments, &[("agent.yaml", &files)])
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        self.plane.kubectl(&[&["--namespace", &self.namespace], arguments].concat())
    }

    fn wait_until_available(&self) {
        let available = "--output=jsonpath={.items[*].status.numberAvailable}";
        let want = vec![NODES.to_string(); 3].join(" ");
        wait_for("available pods", SOON, want, || self.kubectl(&["get", "daemonsets", available]));
    }

    fn images(&self) -> BTreeSet<String> {
        let images = "--output=jsonpath={.items[*].spec.containers[0].image}";
        let images = self.kubectl(&["get", "pods", images]);
        images.split(' ').map(str::to_owned).collect()
    }

    fn watch(&self) -> Observed {
        Observed::begin(self.plane.client(), &self.namespace)
    }
}

/// Node by node, one after the other on each, and never more than two.
fn together(plane: &ControlPlane) {
    let site = Site::new(plane, "shared-all");
    let watcher = site.watch();
    ends(&site.apply(["v2"; 3]), 0, &["a  done", "b  done", "c  done"]);
    let seen = watcher.end();
    assert_eq!(site.images().len(), 1);
    seen.is_once();
}

/// Killed three times with nodes half finished: the next run finishes what was begun, first.
fn killed(plane: &ControlPlane) {
    let site = Site::new(plane, "shared-killed");
    let watcher = site.watch();
    for deletes in [2, 6, 11] {
        let run = site.program(["v2"; 3]).start();
        wait_until("pods to be replaced", SOON, || watcher.deletes() >= deletes);
        assert!(run.kill().is_none());
    }
    ends(&site.apply(["v2"; 3]), 0, &["b  done"]);
    let seen = watcher.end();
    assert_eq!(site.images().len(), 1);
    seen.is_once();
}

/// A sibling that another client restarts counts: while its nodes are down, none begins beyond them.
fn sibling_rolls_by_itself(plane: &ControlPlane) {
    let site = Site::new(plane, "shared-restart");
    // Its three nodes at once use up the budget, and more.
    site.kubectl(&["rollout", "restart", "daemonset/b"]);
    let watcher = site.watch();
    let run = site.apply(["v2", "v2", "v1"]);
    let seen = watcher.end();
    assert!(matches!(run.status.code(), Some(0 | 8)), "{}", output_text(&run));
    assert_eq!(seen.over_budget, Vec::<String>::new(), "{:?}", seen.deleted);
    site.wait_until_available();
    ends(&site.apply(["v2", "v2", "v1"]), 0, &[]);
    assert_eq!(site.images().len(), 2, "{:?}", site.images());
}

/// A run that changes one of them needs the locks on all.
fn sibling_is_locked(plane: &ControlPlane) {
    let site = Site::new(plane, "shared-locked");
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.000000Z").to_string();
    let lease = json!({"spec": {
        "holderIdentity": "another", "leaseDurationSeconds": 600,
        "renewTime": now, "acquireTime": now,
    }});
    let patch = format!("--patch={lease}");
    site.kubectl(&["patch", "lease", "ds-plan-b", "--type=merge", &patch]);
    let files = all(&site.namespace, ["v2", "v1", "v1"]);
    let arguments = ["--yes", "-f", "agent.yaml", "--lock-timeout=2s"];
    let run = plane.ds_apply(&arguments, &[("agent.yaml", &files)]).run();
    ends(&run, 7, &["shared-locked/b"]);
    assert_eq!(site.images(), ["cr.example/agent:v1".to_owned()].into(), "nothing is replaced");
    let holders = "--output=jsonpath={.items[*].spec.holderIdentity}";
    assert_eq!(site.kubectl(&["get", "leases", holders]), "another", "the others are released");
}

/// What happened to the pods.
#[derive(Debug, Default)]
struct Seen {
    /// Node and DaemonSet of each deleted pod, in order.
    deleted: Vec<(String, String)>,
    /// The most nodes without an available pod of one of them.
    most: usize,
    /// Deletes of the run on a node that had all its pods, while others had used up the budget.
    over_budget: Vec<String>,
    /// The last time that each node was without a Ready pod of one of them.
    last_disturbed: BTreeMap<String, Instant>,
}

struct Observed {
    stop: Arc<AtomicBool>,
    /// Number of deleted pods so far.
    deletes: Arc<AtomicUsize>,
    seen: JoinHandle<Seen>,
}

/// A pod: its node, its DaemonSet, whether it is available, whether it is deleted.
type Present = (String, String, bool, bool);

fn present(pod: &Pod) -> Present {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_ready = |one: &k8s_openapi::api::core::v1::PodCondition| {
        one.type_ == "Ready" && one.status == "True"
    };
    let is_ready = conditions.is_some_and(|all| all.iter().any(is_ready));
    let gone = pod.metadata.deletion_timestamp.is_some();
    (node, pod.labels().get("app").cloned().unwrap_or_default(), is_ready && !gone, gone)
}

impl Observed {
    fn begin(client: kube::Client, namespace: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let deletes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&deletes);
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let (ready, is_ready) = std::sync::mpsc::channel();
        let seen = thread::spawn(move || {
            block_on(async move {
                let list = pods.list(&ListParams::default()).await.unwrap();
                let mut all: BTreeMap<String, Present> =
                    list.items.iter().map(|pod| (pod.uid().unwrap(), present(pod))).collect();
                let mut version = list.metadata.resource_version.unwrap();
                let mut seen = Seen::default();
                ready.send(()).unwrap();
                while !stopped.load(Ordering::Relaxed) {
                    let params = WatchParams::default().timeout(2);
                    let mut stream = pods.watch(&params, &version).await.unwrap().boxed();
                    while let Some(Ok(event)) = stream.next().await {
                        let (pod, gone) = match event {
                            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
                            WatchEvent::Deleted(pod) => (pod, true),
                            WatchEvent::Bookmark(_) => continue,
                            WatchEvent::Error(error) => panic!("{error:?}"),
                        };
                        version = pod.resource_version().unwrap();
                        seen.event(&mut all, &pod, gone);
                        counted.store(seen.deleted.len(), Ordering::Relaxed);
                    }
                }
                seen
            })
        });
        is_ready.recv().unwrap();
        Self { stop, deletes, seen }
    }

    fn deletes(&self) -> usize {
        self.deletes.load(Ordering::Relaxed)
    }

    fn end(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.seen.join().unwrap()
    }
}

impl Seen {
    /// At most two nodes were disturbed at once, and each was finished, in the order of the policy,
    /// before another one took its slot.
    fn is_once(&self) {
        let Self { deleted, most, .. } = self;
        assert!(*most <= 2, "{most} nodes at once: {deleted:?}");
        let mut begun: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (node, name) in deleted {
            begun.entry(node).or_default().push(name);
            let open = begun.values().filter(|it| it.len() < ORDER.len()).count();
            assert!(open <= 2, "{deleted:?}");
        }
        assert_eq!(begun.len(), NODES, "{deleted:?}");
        assert!(begun.values().all(|order| *order == ORDER), "{deleted:?}");
    }

    fn event(&mut self, all: &mut BTreeMap<String, Present>, pod: &Pod, gone: bool) {
        let before = disturbed(all);
        let at = Instant::now();
        self.last_disturbed.extend(before.iter().map(|node| (node.clone(), at)));
        let (uid, now) = (pod.uid().unwrap(), present(pod));
        let (node, name, _, goes) = now.clone();
        let went = all.get(&uid).is_some_and(|(.., went)| *went);
        all.insert(uid.clone(), now);
        if (goes || gone) && !went {
            let has_all_pods =
                self.last_disturbed.get(&node).is_none_or(|last| at - *last > NOT_YET_AVAILABLE);
            // Another client restarts `b`.
            if name != "b" && has_all_pods && before.len() >= 2 {
                self.over_budget.push(format!("{name} on {node}, {before:?}"));
            }
            self.deleted.push((node, name));
        }
        if gone {
            all.remove(&uid);
        }
        self.most = self.most.max(disturbed(all).len());
    }
}

/// The nodes without an available pod of one of the DaemonSets.
fn disturbed(all: &BTreeMap<String, Present>) -> BTreeSet<String> {
    // A new pod has no node at first.
    let nodes = all.values().map(|(node, ..)| node).filter(|node| !node.is_empty());
    let nodes: BTreeSet<&String> = nodes.collect();
    let is_served = |node: &str, name: &str| {
        all.values().any(|(on, of, available, _)| on == node && of == name && *available)
    };
    let is_disturbed = |node: &&String| ORDER.iter().any(|name| !is_served(node, name));
    nodes.into_iter().filter(is_disturbed).cloned().collect()
}
