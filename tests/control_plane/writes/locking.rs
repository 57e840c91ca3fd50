//! A lock has one holder at a time, also if a holder dies, is suspended or loses its lock.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cluster::{Apply, Clock, LockError, LockOptions, WritableCluster, WriteError};

use daemonset::model::DaemonSet;

use super::{admin, agent, connected, holder, live, manifest, quiet};
use crate::harness::wait_until_async;

const SOON: Duration = Duration::from_secs(30);

/// Set for the process that holds a lock: the path of its kubeconfig.
const KUBECONFIG: &str = "DS_PLAN_TEST_HOLDER_KUBECONFIG";

/// A lease of 3 s, and a request timeout of 1 s.
fn short() -> LockOptions {
    LockOptions {
        lease: Duration::from_secs(3),
        request: Duration::from_secs(1),
        ..LockOptions::new(Clock::of_machine())
    }
}

fn at_once() -> LockOptions {
    LockOptions { wait: Duration::ZERO, ..short() }
}

async fn refused(cluster: &WritableCluster, id: &str) -> String {
    match cluster.lock(&agent(), &holder(id), &at_once()).await {
        Ok(_) => panic!("two processes hold the lock"),
        Err(error @ LockError::Held { .. }) => error.to_string(),
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_holder_waits_for_the_first() {
    let plane = quiet();
    let (cluster, other) = (admin(&plane).await, admin(&plane).await);
    let lock = cluster.lock(&agent(), &holder("first"), &short()).await.unwrap();
    assert!(lock.is_fresh());
    assert_eq!(
        refused(&other, "second").await,
        "default/agent is locked by alice on build-7 (process 4711, https://ci.example/runs/5) for 0 s"
    );
    // Longer than the lease: it is renewed.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(lock.is_fresh());
    refused(&other, "second").await;

    let waiting = tokio::spawn(async move {
        let lock = other.lock(&agent(), &holder("second"), &short()).await.unwrap();
        lock.is_fresh()
    });
    let writer = lock.writer();
    lock.release().await.unwrap();
    assert!(waiting.await.unwrap());
    let object = manifest("agent:v1");
    let apply = Apply { object: &object, force: false, uid: None, resource_version: None };
    let error = writer.apply(&agent(), &apply).await.unwrap_err();
    assert!(matches!(error, WriteError::Unlocked { .. }), "{error:?}");
    assert_eq!(cluster.live().daemon_set(&agent()).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_concurrent_holders_gets_the_lock() {
    let plane = quiet();
    let mut takers = tokio::task::JoinSet::new();
    for number in 0..8 {
        let cluster = admin(&plane).await;
        takers.spawn(async move {
            cluster.lock(&agent(), &holder(&number.to_string()), &at_once()).await.ok()
        });
    }
    let locks: Vec<_> = takers.join_all().await.into_iter().flatten().collect();
    assert_eq!(locks.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_notices_that_it_lost_its_lock() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    for (case, theft) in
        [("unlocked", None), ("deleted", Some(["delete", "lease", "ds-plan-agent"].as_slice()))]
    {
        let lock = cluster.lock(&agent(), &holder(case), &at_once()).await.unwrap();
        match theft {
            None => {
                let robbed = cluster.unlock(&agent()).await.unwrap().unwrap();
                assert!(robbed.holder().unwrap().starts_with("alice on build-7"));
                assert!(cluster.unlock(&agent()).await.unwrap().is_none(), "the lock is free now");
            }
            Some(arguments) => drop(plane.kubectl(arguments)),
        }
        tokio::time::timeout(SOON, lock.lost()).await.expect("the next renewal fails");
        assert!(!lock.is_fresh());
        // A holder that lost its lock does not release the new holder's.
        let next = cluster.lock(&agent(), &holder("next"), &at_once()).await.unwrap();
        drop(lock);
        next.set_note("x", None).await.unwrap();
        next.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn annotations_outlive_the_lock() {
    const FAILED: &str = "ds-plan.dev/failed-templates";
    let plane = quiet();
    let cluster = admin(&plane).await;
    let lock = cluster.lock(&agent(), &holder("first"), &short()).await.unwrap();
    assert_eq!(lock.note(FAILED).await, None);
    lock.set_note(FAILED, Some("sha256:1")).await.unwrap();
    // Another client writes to the lease, and does not take it.
    plane.kubectl(&["label", "lease", "ds-plan-agent", "team=blue"]);
    lock.set_note(FAILED, Some("sha256:1,sha256:2")).await.unwrap();
    lock.release().await.unwrap();
    let record = cluster.live().lease(&agent()).await.unwrap().unwrap();
    assert_eq!((record.is_held(), record.note(FAILED)), (false, Some("sha256:1,sha256:2")));
    let next = cluster.lock(&agent(), &holder("next"), &at_once()).await.unwrap();
    assert_eq!(next.note(FAILED).await.as_deref(), Some("sha256:1,sha256:2"));
    next.set_note(FAILED, None).await.unwrap();
    next.release().await.unwrap();
    assert_eq!(cluster.live().lease(&agent()).await.unwrap().unwrap().note(FAILED), None);
    assert_eq!(
        plane.kubectl(&["get", "lease", "ds-plan-agent", "-o=jsonpath={.metadata.labels.team}"]),
        "blue"
    );
}

/// Another process that holds the lock and writes; ended when dropped.
struct Other {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    fn start(kubeconfig: PathBuf) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writes::locking::a_holder_that_writes", "--ignored", "--nocapture"])
            .env(KUBECONFIG, kubeconfig)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Reads on until the process prints this.
    fn says(&mut self, want: &str) {
        let found = self.lines.by_ref().any(|line| line.unwrap() == want);
        assert!(found, "the other process ended without {want:?}");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "the other process of the tests below"]
async fn a_holder_that_writes() {
    let Some(kubeconfig) = std::env::var_os(KUBECONFIG) else { return };
    let cluster = connected(kubeconfig.into()).await;
    let lock = cluster.lock(&agent(), &holder("other"), &short()).await.unwrap();
    let writer = lock.writer();
    // Fails after a limit instead of waiting for ever.
    for round in 0..1_500 {
        let mut object = manifest("agent:v1");
        object["metadata"]["annotations"] = serde_json::json!({"round": round.to_string()});
        let apply = Apply { object: &object, force: true, uid: None, resource_version: None };
        match writer.apply(&agent(), &apply).await {
            Ok(_) => println!("written"),
            Err(WriteError::Unlocked { .. }) => println!("unlocked"),
            Err(error) => println!("{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_holder_sends_nothing_new_when_continued() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let mut other = Other::start(plane.kubeconfig_path());
    other.says("written");
    refused(&cluster, "ours").await;
    other.signal("-STOP");
    let lock = cluster.lock(&agent(), &holder("ours"), &short()).await.unwrap();
    let round = |it: &DaemonSet| it.annotations.get("round").unwrap().parse::<u32>().unwrap();
    let before = live(&cluster).await;
    other.signal("-CONT");
    other.says("unlocked");
    // It may have been stopped between checking the lock and sending its one request.
    let after = live(&cluster).await;
    assert!(round(&after) <= round(&before) + 1, "{} {}", round(&before), round(&after));
    assert!(lock.is_fresh());
    // It does not recover.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(live(&cluster).await, after);
    lock.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_was_stopped_briefly_continues() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let mut other = Other::start(plane.kubeconfig_path());
    other.says("written");
    other.signal("-STOP");
    // Longer than it may write without a renewal, and shorter than another client waits to take it.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let before = live(&cluster).await;
    other.signal("-CONT");
    wait_until_async("it to write again", SOON, async || live(&cluster).await != before).await;
    refused(&cluster, "ours").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_of_a_killed_holder_expires_first() {
    let plane = quiet();
    let cluster = admin(&plane).await;
    let mut other = Other::start(plane.kubeconfig_path());
    other.says("written");
    drop(other);
    refused(&cluster, "ours").await;
    let lock = cluster.lock(&agent(), &holder("ours"), &short()).await.unwrap();
    let record = cluster.live().lease(&agent()).await.unwrap().unwrap();
    assert!(record.is_held());
    drop(lock);
    // Dropping the lock releases it, a moment later.
    wait_until_async("the lease to be free", SOON, async || {
        !cluster.live().lease(&agent()).await.unwrap().unwrap().is_held()
    })
    .await;
}
