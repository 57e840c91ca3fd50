//! From one version to the next, within the budget; and what becomes of a version that is broken.

use std::thread;

use super::*;

#[test]
fn a_fleet_is_replaced_within_its_budget_whatever_that_is() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(60));
    let one = |namespace: &str, budget: &str, allowed: usize| {
        let version = |image: &str| manifest(namespace, image, &at_most(budget));
        let fleet = Fleet::new(&plane, namespace, 60, &version("v1"));
        let watcher = fleet.watch();
        let output = fleet.apply(&version("v2"), &[]);
        let seen = watcher.end();
        println!("{}", told(&output));
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        assert!(seen.most_unavailable <= allowed, "{budget}: {}", seen.most_unavailable);
        assert_eq!(seen.deleted.len(), 60, "{budget}: each pod once");
        assert_eq!(fleet.images(), ["v2".to_owned()].into(), "{budget}");
        assert_eq!(fleet.strategy(), "RollingUpdate", "{budget}");
        let numbers: Vec<i64> = fleet.revisions().iter().map(|(_, number, _)| *number).collect();
        assert_eq!(numbers, [1, 2], "{budget}: one revision a template");
        let next = fleet.plan(&version("v2"));
        assert_eq!(next.status.code(), Some(0), "{budget}: {}", told(&next));
    };
    thread::scope(|scope| {
        for (namespace, budget, allowed) in
            [("one", "1", 1), ("three", "3", 3), ("tenth", "10%", 6), ("all", "100%", 60)]
        {
            scope.spawn(move || one(namespace, budget, allowed));
        }
    });
}
