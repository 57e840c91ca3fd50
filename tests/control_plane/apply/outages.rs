//! Servers that go down and come back, refused requests, and cut connections.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use http::Method;

use super::*;
use crate::harness::{Component, Fault};
use testkit::random::Random;

const NODES: usize = 10;

#[test]
fn outages_of_the_api_server_and_etcd() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| slowly(&manifest("outage", image, &at_most("2")));
    let fleet = Fleet::new(&plane, "outage", NODES, &version("v1"));
    let watcher = fleet.watch();
    let run = fleet.start(&version("v2"), &[]);
    for (gone, component) in [(3, Component::ApiServer), (6, Component::Etcd)] {
        wait_until("pods to be deleted", SOON, || watcher.gone() >= gone);
        plane.kill_component(component);
        plane.start_component(component);
        // kwok gives up a status that the server could not store; a kubelet does not.
        plane.kill_component(Component::Kwok);
        plane.start_component(Component::Kwok);
    }
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    fleet.is_replaced_within(2, &watcher.end().without_surplus(), 2);
    let next = fleet.plan(&version("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

/// The outage is longer than the progress deadline, and the controller reports that it cannot
/// create pods because it does not reach the server. Neither is caused by the template.
#[test]
fn an_outage_longer_than_the_progress_deadline_fails_no_rollout() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| slowly(&manifest("away", image, &at_most("2")));
    let fleet = Fleet::new(&plane, "away", NODES, &version("v1"));
    let watcher = fleet.watch();
    let run = fleet.start(&version("v2"), &["--progress-deadline=25s"]);
    for (gone, away) in [(2, 15), (5, 35)] {
        wait_until("pods to be deleted", SOON, || watcher.gone() >= gone);
        plane.kill_component(Component::ApiServer);
        thread::sleep(Duration::from_secs(away));
        plane.start_component(Component::ApiServer);
        // kwok gives up a status that the server could not store; a kubelet does not.
        plane.kill_component(Component::Kwok);
        plane.start_component(Component::Kwok);
    }
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    fleet.is_replaced_within(2, &watcher.end().without_surplus(), 2);
    let next = fleet.plan(&version("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

/// Chooses the fault of a request that a namespace's run sends to the server.
type FaultRule = fn(&mut Random, &Method) -> Option<Fault>;

#[test]
fn a_rollout_survives_refused_lost_and_late_requests() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let troubles: [(&str, FaultRule); 5] = [
        ("too-many", |random, _| random.one_in(5).then_some(Fault::Status(429, Some(1)))),
        ("broken", |random, _| random.one_in(5).then_some(Fault::Status(500, None))),
        ("gateway", |random, _| {
            random.one_in(5).then(|| Fault::Status(random.pick(&[502, 503, 504]), None))
        }),
        // Deletes and writes that are applied but not answered; and the reverse.
        ("answers", |random, method| {
            let hit = *method != Method::GET && random.one_in(3);
            hit.then(|| if random.one_in(2) { Fault::AnswerLost } else { Fault::Lost })
        }),
        ("late", |random, method| {
            let late = Duration::from_millis(random.below(1_500).try_into().unwrap());
            (*method != Method::GET).then_some(Fault::Late(late))
        }),
    ];
    thread::scope(|scope| {
        for (namespace, trouble) in troubles {
            let plane = &plane;
            scope.spawn(move || through(plane, namespace, trouble));
        }
    });
}

/// A run through a proxy with faults.
fn through(plane: &ControlPlane, namespace: &str, trouble: FaultRule) {
    let version = |image: &str| slowly(&manifest(namespace, image, &at_most("2")));
    let fleet = Fleet::new(plane, namespace, NODES, &version("v1"));
    let proxy = Proxy::start(plane, "admin");
    let mut random = Random::of("outages", namespace);
    let befallen = Arc::new(AtomicBool::new(false));
    let befell = Arc::clone(&befallen);
    let mut in_a_row = BTreeMap::new();
    proxy.fault(move |method, uri| {
        // A request that always fails ends the run, correctly.
        let path = uri.split('?').next().unwrap_or_default().to_owned();
        let before = in_a_row.entry((method.to_string(), path)).or_insert(0);
        let fault = trouble(&mut random, method).filter(|_| *before < 2);
        *before = if fault.is_some() { *before + 1 } else { 0 };
        befell.fetch_or(fault.is_some(), Ordering::Relaxed);
        fault
    });
    let watcher = fleet.watch();
    let output = start_through(&proxy, &version("v2")).wait();
    assert!(befallen.load(Ordering::Relaxed), "{namespace}: no fault occurred");
    assert_eq!(output.status.code(), Some(0), "{namespace}: {}", output_text(&output));
    fleet.is_replaced_within(2, &watcher.end(), 2);
}

#[test]
fn cut_watches_are_resumed() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| slowly(&manifest("cut", image, &at_most("2")));
    let fleet = Fleet::new(&plane, "cut", NODES, &version("v1"));
    let proxy = Proxy::start(&plane, "admin");
    let watcher = fleet.watch();
    let run = start_through(&proxy, &version("v2"));
    for gone in [1, 2, 4, 6, 8, 10] {
        wait_until("pods to be deleted", SOON, || watcher.gone() >= gone);
        proxy.cut();
    }
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    fleet.is_replaced_within(2, &watcher.end(), 2);
}
