//! Servers that go and come back, answers that are refused, and connections that are cut.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use http::Method;

use super::*;
use crate::harness::{Component, Fault};
use crate::random::Random;

const NODES: usize = 10;

#[test]
fn the_api_server_and_its_store_go_and_come_back() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| slowly(&manifest("outage", image, &at_most("2")));
    let fleet = Fleet::new(&plane, "outage", NODES, &version("v1"));
    let watcher = fleet.watch();
    let run = fleet.start(&version("v2"), &[]);
    for (gone, component) in [(3, Component::ApiServer), (6, Component::Etcd)] {
        wait_until("pods to go", SOON, || watcher.gone() >= gone);
        plane.kill_component(component);
        plane.start_component(component);
        // kwok gives up a status that the server could not store; a kubelet does not.
        plane.kill_component(Component::Kwok);
        plane.start_component(Component::Kwok);
    }
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    fleet.is_replaced_within(2, &watcher.end().without_surplus(), 2);
    let next = fleet.plan(&version("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", told(&next));
}

/// Longer than a pod may take, and the controller says that it cannot create pods: it does not reach
/// the server. Neither says anything of the template.
#[test]
fn an_api_server_that_is_away_for_longer_than_the_deadline_fails_no_rollout() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| slowly(&manifest("away", image, &at_most("2")));
    let fleet = Fleet::new(&plane, "away", NODES, &version("v1"));
    let watcher = fleet.watch();
    let run = fleet.start(&version("v2"), &["--progress-deadline=25s"]);
    for (gone, away) in [(2, 15), (5, 35)] {
        wait_until("pods to go", SOON, || watcher.gone() >= gone);
        plane.kill_component(Component::ApiServer);
        thread::sleep(Duration::from_secs(away));
        plane.start_component(Component::ApiServer);
        // kwok gives up a status that the server could not store; a kubelet does not.
        plane.kill_component(Component::Kwok);
        plane.start_component(Component::Kwok);
    }
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    fleet.is_replaced_within(2, &watcher.end().without_surplus(), 2);
    let next = fleet.plan(&version("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", told(&next));
}

/// What befalls a request of one namespace's run on its way to the server.
type Trouble = fn(&mut Random, &Method) -> Option<Fault>;

#[test]
fn whatever_is_refused_lost_or_late_on_the_way_it_goes_on() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let troubles: [(&str, Trouble); 5] = [
        ("too-many", |random, _| random.one_in(5).then_some(Fault::Status(429, Some(1)))),
        ("broken", |random, _| random.one_in(5).then_some(Fault::Status(500, None))),
        ("gateway", |random, _| {
            random.one_in(5).then(|| Fault::Status(random.pick(&[502, 503, 504]), None))
        }),
        // Deletes and writes that are carried out, but not answered; and the other way round.
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

/// A run on a bad way.
fn through(plane: &ControlPlane, namespace: &str, trouble: Trouble) {
    let version = |image: &str| slowly(&manifest(namespace, image, &at_most("2")));
    let fleet = Fleet::new(plane, namespace, NODES, &version("v1"));
    let proxy = Proxy::start(plane, "admin");
    let mut random = Random::of("outages", namespace);
    let befallen = Arc::new(AtomicBool::new(false));
    let befell = Arc::clone(&befallen);
    let mut in_a_row = BTreeMap::new();
    proxy.fault(move |method, uri| {
        // A request that fails for ever rightly ends the run.
        let path = uri.split('?').next().unwrap_or_default().to_owned();
        let before = in_a_row.entry((method.to_string(), path)).or_insert(0);
        let fault = trouble(&mut random, method).filter(|_| *before < 2);
        *before = if fault.is_some() { *before + 1 } else { 0 };
        befell.fetch_or(fault.is_some(), Ordering::Relaxed);
        fault
    });
    let watcher = fleet.watch();
    let output = start_through(&proxy, &version("v2")).wait();
    assert!(befallen.load(Ordering::Relaxed), "{namespace}: nothing went wrong");
    assert_eq!(output.status.code(), Some(0), "{namespace}: {}", told(&output));
    fleet.is_replaced_within(2, &watcher.end(), 2);
}

#[test]
fn watches_that_are_cut_are_taken_up_again() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| slowly(&manifest("cut", image, &at_most("2")));
    let fleet = Fleet::new(&plane, "cut", NODES, &version("v1"));
    let proxy = Proxy::start(&plane, "admin");
    let watcher = fleet.watch();
    let run = start_through(&proxy, &version("v2"));
    for gone in [1, 2, 4, 6, 8, 10] {
        wait_until("pods to go", SOON, || watcher.gone() >= gone);
        proxy.cut();
    }
    let output = run.wait();
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    fleet.is_replaced_within(2, &watcher.end(), 2);
}
