//! Random cases for the laws of steps: policies, events, and images that fail.

use proptest::prelude::*;

use super::run::Post;
use super::sim::Fate;
use super::step_rules::{DomainRule, Rules, Selects, StepRule};

/// An event.
#[derive(Clone, Copy, Debug)]
pub(super) enum Op {
    /// A run begins, unless one is going on.
    Begin,
    /// This number of seconds passes without faults.
    Settle(u16),
    /// This number of seconds passes; nobody looks.
    Pass(u16),
    /// A step on an observation of this age.
    Look(usize),
    Observe,
    Post(Post),
    Deliver,
    /// The run is killed. A pending request is executed or not.
    Kill(bool),
    /// The note is lost.
    LoseNote,
    Approve(usize),
    EditStep(usize),
    /// A commit with this image.
    Image(usize),
    Node(usize, bool),
    Steal(usize),
    Join(usize),
    Remove(usize),
    /// The container of a pod restarts.
    RestartPod(usize),
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => Just(Op::Begin),
        12 => (1..40_u16).prop_map(Op::Settle),
        6 => (1..200_u16).prop_map(Op::Pass),
        2 => (0..3_usize).prop_map(Op::Look),
        2 => Just(Op::Observe),
        4 => post().prop_map(Op::Post),
        1 => Just(Op::Deliver),
        4 => any::<bool>().prop_map(Op::Kill),
        1 => Just(Op::LoseNote),
        5 => (0..4_usize).prop_map(Op::Approve),
        1 => (0..4_usize).prop_map(Op::EditStep),
        2 => (0..5_usize).prop_map(Op::Image),
        3 => (0..9_usize, any::<bool>()).prop_map(|(at, ready)| Op::Node(at, ready)),
        2 => (0..9_usize).prop_map(Op::Steal),
        1 => (0..4_usize).prop_map(Op::Join),
        1 => (0..9_usize).prop_map(Op::Remove),
        2 => (0..9_usize).prop_map(Op::RestartPod),
    ]
}

fn post() -> impl Strategy<Value = Post> {
    prop_oneof![
        6 => Just(Post::Delivered),
        1 => Just(Post::AnswerLost),
        1 => Just(Post::RequestLost),
        1 => Just(Post::AnswerDelayed),
    ]
}

fn selects() -> impl Strategy<Value = Selects> {
    prop_oneof![
        3 => (1..5_usize).prop_map(Selects::Count),
        2 => (1..80_usize).prop_map(Selects::Percent),
        1 => Just(Selects::Pool),
        1 => (0..6_usize, 0..6_usize).prop_map(|(a, b)| {
            Selects::Names(vec![format!("node-{a}"), format!("node-{b}")])
        }),
    ]
}

fn step_rule() -> impl Strategy<Value = StepRule> {
    let soak = prop_oneof![Just(0), Just(20), Just(60)];
    let limit = prop::option::weighted(0.3, 1..3_usize);
    (selects(), any::<bool>(), soak, prop::bool::weighted(0.3), limit).prop_map(
        |(nodes, spreads, soak, approve, max_unavailable)| StepRule {
            nodes,
            spreads,
            soak,
            approve,
            max_unavailable,
        },
    )
}

fn domain_rule() -> impl Strategy<Value = DomainRule> {
    let limit = prop::option::of(1..3_usize);
    let first = prop_oneof![Just(None), Just(Some("c")), Just(Some("no such zone"))];
    (1..3_usize, limit, prop_oneof![2 => Just(0), 1 => Just(30)], first).prop_map(
        |(at_once, max_unavailable, soak, first)| DomainRule {
            at_once,
            max_unavailable,
            soak,
            first,
        },
    )
}

pub(super) fn rules() -> impl Strategy<Value = Rules> {
    let way = prop_oneof![Just("abort"), Just("pause"), Just("rollback")];
    let rest = (way, prop::option::weighted(0.3, 1..4_usize), 1..4_usize, any::<bool>());
    (
        prop::collection::vec(step_rule(), 0..4),
        prop::option::of(domain_rule()),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.2),
        rest,
        prop_oneof![Just(0_usize), Just(5)],
        prop::bool::weighted(0.3),
    )
        .prop_map(|(steps, domains, windows, keeps_target, rest, min_ready, ramps)| {
            let (on_failure, max_unavailable, declared, skips_all) = rest;
            Rules {
                steps,
                domains,
                windows,
                keeps_target,
                on_failure,
                max_unavailable,
                declared,
                surges: false,
                skips_all,
                min_ready,
                ramps,
            }
        })
}

/// What an image of this number does to its pods; the others are fine.
pub(super) fn faults() -> impl Strategy<Value = Vec<(usize, Fault)>> {
    let fault = prop_oneof![
        Just(Fault::Everywhere(Fate::NeverReady)),
        Just(Fault::Everywhere(Fate::Crashes)),
        (0..9_usize).prop_map(Fault::On),
    ];
    prop::collection::vec((2..7_usize, fault), 0..3)
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Everywhere(Fate),
    On(usize),
}
