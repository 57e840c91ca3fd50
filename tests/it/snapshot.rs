//! `ds-plan snapshot`: rejected arguments; recording itself is tested on a real control plane.

use insta::assert_snapshot;

use testkit::fixture::sandbox;

#[test]
fn a_recording_is_not_recorded() {
    assert_snapshot!(sandbox().ds_plan("snapshot --snapshot cluster.json"), @"
    exit 64
    --- stderr
    error: `ds-plan snapshot` records a live cluster; it does not read --snapshot
    hint: leave out one of the two
    ");
}
