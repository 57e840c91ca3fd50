//! A server whose versions really expire: without a watch cache, and compacted every second.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cluster::{ConnectOptions, Scope, connect};
use jiff::Timestamp;

use super::*;
use crate::harness::{Component, Fault};

const NODES: usize = 10;
/// The longest that etcd keeps an old version, and some more.
const COMPACTED: Duration = Duration::from_secs(3);

fn compacted_every_second() -> ControlPlane {
    ControlPlane::builder()
        .flag(Component::ApiServer, "--watch-cache=false")
        .flag(Component::ApiServer, "--etcd-compaction-interval=1s")
        .start()
}

/// After each pause of the watches, their version has expired: pods are listed again.
#[test]
fn a_rollout_survives_versions_that_expire() {
    let plane = compacted_every_second();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| slowly(&manifest("compacted", image, &at_most("2")));
    let fleet = Fleet::new(&plane, "compacted", NODES, &version("v1"));
    let proxy = Proxy::start(&plane, "admin");
    let lists = Arc::new(AtomicUsize::new(0));
    let count = |watches_fail: bool| {
        let lists = Arc::clone(&lists);
        proxy.fault(move |_, uri| {
            let of_pods = uri.contains("/pods?");
            let is_watch = uri.contains("watch=true");
            lists.fetch_add(usize::from(of_pods && !is_watch), Ordering::Relaxed);
            (is_watch && watches_fail).then_some(Fault::Status(503, None))
        });
    };
    count(false);
    let run = start_through(&proxy, &version("v2"));
    let gone = || fleet.images_gone("v1");
    for outdated in [9, 6, 3] {
        wait_until("pods to be replaced", SOON, || gone() >= NODES - outdated);
        let before = lists.load(Ordering::Relaxed);
        count(true);
        proxy.cut();
        thread::sleep(COMPACTED);
        count(false);
        wait_until("another list of pods", SOON, || lists.load(Ordering::Relaxed) > before);
    }
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    let next = fleet.plan(&version("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

impl Fleet<'_> {
    /// The number of nodes whose pod no longer has this image.
    fn images_gone(&self, image: &str) -> usize {
        let images = "--output=jsonpath={.items[*].spec.containers[0].image}";
        let images = self.kubectl(&["get", "pods", images]);
        NODES - images.split(' ').filter(|one| one.ends_with(image)).count()
    }
}

/// The second page is requested when the version of the first one has expired.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_whose_version_expires_is_started_again() {
    let plane = compacted_every_second();
    plane.create_nodes(three_zones(NODES));
    let proxy = Proxy::start(&plane, "admin");
    let begun = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    proxy.fault(move |_, uri| {
        let of_nodes = uri.contains("/nodes?");
        let is_first = of_nodes && !uri.contains("continue=");
        let times = count.fetch_add(usize::from(is_first), Ordering::Relaxed);
        (of_nodes && !is_first && times == 1).then_some(Fault::Late(COMPACTED))
    });
    let kubeconfig = Some(proxy.kubeconfig_path().to_owned());
    let options = ConnectOptions { kubeconfig, ..ConnectOptions::default() };
    let cluster = connect(&options).await.unwrap().with_page_size(4);
    let reading =
        tokio::spawn(async move { cluster.snapshot(&Scope::All, Timestamp::now()).await });
    // etcd compacts what is older than its last version: it needs new ones.
    let mut writes = 0;
    while !reading.is_finished() {
        writes += 1;
        assert!(writes < 600, "the list does not end");
        plane.kubectl(&["create", "configmap", &format!("write-{writes}")]);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let snapshot = reading.await.unwrap().unwrap();
    assert_eq!(snapshot.nodes.len(), NODES);
    assert_eq!(begun.load(Ordering::Relaxed), 2, "the list is started again");
}
