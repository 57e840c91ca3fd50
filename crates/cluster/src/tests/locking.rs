//! Locks with a server whose answers are lost, and in a process that is stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::scripted::{Reply, count, server};
use super::writing::{Hand, agent, holder};
use crate::{Clock, LockError, LockOptions, LockWait, WritableCluster, WriteError};

const RENEWALS: &str = "PATCH /apis/coordination.k8s.io/v1/namespaces/team/leases/ds-plan-agent";

/// A clock of the test's paused time.
fn paused_clock() -> Clock {
    let start = Instant::now();
    Clock::new(move || start.elapsed())
}

fn options(wait: u64) -> LockOptions {
    LockOptions { wait: Duration::from_secs(wait), ..LockOptions::new(paused_clock()) }
}

async fn is_held(cluster: &WritableCluster, wait: u64) -> bool {
    match cluster.lock(&agent(), &holder("other"), &options(wait)).await {
        Ok(_) => false,
        Err(LockError::Held { .. }) => true,
        Err(error) => panic!("{error:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_every_five_seconds() {
    let (cluster, log) = server(|_| None);
    let lock = cluster.lock(&agent(), &holder("me"), &options(0)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(count(&log, RENEWALS), 12);
    assert!(lock.is_fresh());
    assert!(is_held(&cluster, 120).await, "for any wait");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_run_waits_for_the_lease_and_one_request() {
    let (cluster, _) = server(|_| None);
    let lock = cluster.lock(&agent(), &holder("me"), &options(0)).await.unwrap();
    lock.die();
    assert!(is_held(&cluster, 24).await);
    let start = Instant::now();
    assert!(!is_held(&cluster, 30).await);
    assert!(
        start.elapsed() >= Duration::from_secs(25),
        "it measures the time itself: {:?}",
        start.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn the_holder_is_reported_at_once_and_only_once() {
    let (cluster, _) = server(|_| None);
    let lock = cluster.lock(&agent(), &holder("me"), &options(0)).await.unwrap();
    lock.die();
    let reported = std::sync::Mutex::new(Vec::new());
    let start = Instant::now();
    let waits = |wait: &LockWait| reported.lock().unwrap().push((start.elapsed(), wait.clone()));
    cluster.lock_reports(&agent(), &holder("other"), &options(60), &waits).await.unwrap();
    let reported = reported.into_inner().unwrap();
    let [(after, LockWait { holder, now: Some(_), unless_renewed, timeout })] = &reported[..]
    else {
        panic!("{reported:?}");
    };
    assert_eq!(*after, Duration::ZERO);
    assert_eq!((unless_renewed.as_secs(), timeout.as_secs()), (25, 60));
    assert_eq!((&*holder.name, holder.lease_seconds), ("h (process 1)", 15));
    assert!(holder.since.is_some() && holder.renewed.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_changed_version_costs_one_more_request() {
    // After a renewal whose answer was lost, or when another client labels the lease.
    let stale = Arc::new(AtomicBool::new(false));
    let is_stale = Arc::clone(&stale);
    let (cluster, log) = server(move |seen| {
        let refused = seen.is(RENEWALS) && is_stale.swap(false, Ordering::Relaxed);
        refused.then_some(Reply::Status(409, None))
    });
    let lock = cluster.lock(&agent(), &holder("me"), &options(0)).await.unwrap();
    stale.store(true, Ordering::Relaxed);
    lock.set_note("a", Some("b")).await.unwrap();
    assert_eq!(count(&log, RENEWALS), 2);
    assert_eq!(lock.note("a").await.as_deref(), Some("b"));
    let record = cluster.live().lease(&agent()).await.unwrap().unwrap();
    assert_eq!(record.note("a"), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_noticed_by_the_next_write() {
    let (cluster, _) = server(|_| None);
    let lock = cluster.lock(&agent(), &holder("me"), &options(0)).await.unwrap();
    cluster.unlock(&agent()).await.unwrap().unwrap();
    let next = cluster.lock(&agent(), &holder("next"), &options(0)).await.unwrap();
    let error = lock.set_note("a", Some("b")).await.unwrap_err();
    assert!(matches!(error, WriteError::Unlocked { .. }), "{error:?}");
    lock.lost().await;
    drop(lock);
    tokio::time::sleep(Duration::from_secs(1)).await;
    next.set_note("c", Some("d")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_makes_the_lock_stale_but_not_lost() {
    let gone = Arc::new(AtomicBool::new(false));
    let is_gone = Arc::clone(&gone);
    let (cluster, _) = server(move |seen| {
        let silent = seen.is(RENEWALS) && is_gone.load(Ordering::Relaxed);
        silent.then_some(Reply::Silence)
    });
    let lock = cluster.lock(&agent(), &holder("me"), &options(0)).await.unwrap();
    gone.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(lock.is_fresh());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(!lock.is_fresh());
    gone.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert!(lock.is_fresh(), "no other run took it, so it is still ours");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_stopped_finds_its_lock_stale() {
    let (cluster, _) = server(|_| None);
    let hand = Hand::default();
    let lock =
        cluster.lock(&agent(), &holder("me"), &LockOptions::new(hand.clock())).await.unwrap();
    assert!(lock.is_fresh());
    hand.set(9);
    assert!(lock.is_fresh());
    hand.set(10);
    assert!(!lock.is_fresh(), "before any other task runs");
}

#[tokio::test(start_paused = true)]
async fn taking_a_lock_is_retried_a_limited_number_of_times() {
    const CREATIONS: &str = "POST /apis/coordination.k8s.io/v1/namespaces/team/leases";
    for (status, failures, locked, creations) in [
        (500, 2, true, 3),
        (503, 2, true, 3),
        (504, 2, true, 3),
        (500, 1_000, false, 9),
        // An answer, so no retry.
        (400, 1, false, 1),
    ] {
        let mut left = failures;
        let (cluster, log) = server(move |seen| {
            let record_failure = seen.is(CREATIONS) && left > 0;
            left -= i32::from(record_failure);
            record_failure.then_some(Reply::Status(status, None))
        });
        let lock = cluster.lock(&agent(), &holder("me"), &options(0)).await;
        assert_eq!(lock.is_ok(), locked, "{status}, {failures} times");
        assert_eq!(count(&log, CREATIONS), creations, "{status}, {failures} times");
    }
}
