//! A snapshot goes in, and comes out the same through the product's own reader.

use jiff::Timestamp;

use super::*;
use crate::cluster::{self, Scope};
use crate::simulator::on_virtual_time;

fn fleet() -> Snapshot {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/cluster.json");
    cluster::read_recorded(&path).unwrap()
}

/// The snapshot as the program reads it from its embedded cluster.
fn read_back(snapshot: &Snapshot) -> Snapshot {
    let read = on_virtual_time(async {
        let world = World::begin(snapshot, Rehearsal::default()).unwrap();
        world.cluster().snapshot(&Scope::All, Timestamp::UNIX_EPOCH).await.unwrap()
    });
    read.unwrap()
}

#[test]
fn the_example_fleet_comes_out_as_it_went_in() {
    let fleet = fleet();
    let read = read_back(&fleet);
    assert_eq!(read.observed_at, fleet.observed_at);
    assert_eq!(read.cluster.uid, fleet.cluster.uid);
    assert_eq!(read.nodes, fleet.nodes);
    assert_eq!(read.daemon_sets, fleet.daemon_sets);
    assert_eq!(read.revisions, fleet.revisions);
    assert_eq!(read.namespaces, fleet.namespaces);
    assert_eq!(read.services, fleet.services);
    assert_eq!(read.leases, fleet.leases);
    assert_eq!(read.pods, fleet.pods);
}
