//! Tables of single decisions, and laws of several rollouts that take their steps in random order.

use proptest::prelude::*;

use super::*;
use daemonset::model::IntOrPercent;

const NODES: usize = 6;

fn name(node: usize) -> NodeName {
    format!("n-{node}").as_str().into()
}

fn share(daemon_set: usize, course: ShareCourse, nodes: &str) -> Share {
    let node = |(at, state): (usize, char)| {
        let share = NodeShare { is_desired: true, ..NodeShare::default() };
        let share = match state {
            'o' => NodeShare { is_outdated: true, may_begin: true, ..share },
            // Its policy does not let it begin.
            'x' => NodeShare { is_outdated: true, ..share },
            'g' => NodeShare { is_disturbed: true, is_in_flight: true, ..share },
            'n' => NodeShare { is_updated: true, ..share },
            // Down, though nothing is rolled out there.
            'd' => NodeShare { is_disturbed: true, ..share },
            // Updated, and its node takes no pod of it any more.
            't' => NodeShare { is_updated: true, ..NodeShare::default() },
            '.' => NodeShare::default(),
            other => panic!("{other}"),
        };
        (name(at), share)
    };
    let daemon_set = DaemonSetKey::new("n", format!("d-{daemon_set}").as_str());
    Share { daemon_set, course, nodes: nodes.chars().enumerate().map(node).collect() }
}

fn soak() -> WaitsFor {
    WaitsFor {
        kind: WaitKind::Soak,
        daemon_set: None,
        step: "canary".into(),
        domain: None,
        until: None,
        check: None,
    }
}

fn siblings(budget: u32, position: usize, others: Vec<Share>) -> Siblings {
    let daemon_set = DaemonSetKey::new("n", "own");
    Siblings { daemon_set, budget: IntOrPercent::Int(budget), position, others }
}

/// For each node: `!` may begin, `s` its turn without a slot, `-` later, `h` may not begin.
fn decided(own: &str, siblings: &Siblings) -> String {
    let own = share(9, ShareCourse::Rolling, own);
    let slots = Slots::of(&own, siblings);
    let one = |(node, here): (&NodeName, &NodeShare)| match slots.turn(node, "rest") {
        _ if !here.may_begin => '.',
        Turn::Now if slots.clone().take(node) => '!',
        Turn::Now => 's',
        Turn::Later => '-',
        Turn::MayNotBegin(_) => 'h',
    };
    own.nodes.iter().map(one).collect()
}

#[test]
fn slots_and_turns_depend_on_the_others() {
    use ShareCourse::{Counted, Done, Rolling, Starting, Stopped};
    let waiting = || ShareCourse::Waiting(vec![soak()]);
    for (rule, own, course, other, position, want) in [
        ("nobody else is there", "oooo", Counted, "....", 0, "!!!!"),
        ("nodes that are down take slots", "oooo", Counted, "dd..", 0, "!!ss"),
        ("one slot is left", "oooo", Counted, "d...", 0, "!!!!"),
        ("the other comes first", "oooo", Rolling, "oooo", 1, "----"),
        ("the other follows", "oooo", Rolling, "oooo", 0, "!!!!"),
        ("the other is in flight", "oooo", Rolling, "gooo", 1, "----"),
        ("an open node is finished", "oooo", Rolling, "nooo", 1, "!---"),
        ("open nodes take slots", "oooo", Rolling, "nn..", 1, "!!ss"),
        ("a node that is tainted stays open", "oooo", Rolling, "tt..", 1, "!!ss"),
        ("more open nodes than slots", "oooo", Rolling, "nnn.", 1, "!!!s"),
        ("what is open is first of all not disturbed twice", "oooo", Done, "nnnn", 1, "!!!!"),
        ("the other cannot go along yet", "oooo", Rolling, "xooo", 0, "-!!!"),
        ("the other cannot go first yet", "oooo", Rolling, "xgoo", 1, "----"),
        ("nothing could begin otherwise", "oo..", Rolling, "xx..", 0, "!!.."),
        ("nothing could begin otherwise", "oo..", Rolling, "xx..", 1, "!!.."),
        ("the other could begin elsewhere", "o...", Rolling, "xo..", 0, "-..."),
        ("the other has no slot for that", "o...", Rolling, "xodd", 0, "s..."),
        ("the other waits", "oooo", waiting(), "xx..", 0, "hh!!"),
        ("the other waits, but the node is open", "xo..", waiting(), "xx..", 0, ".h.."),
        ("the other has stopped", "oooo", Stopped, "....", 0, "hhhh"),
        ("the other is about to begin", "oooo", Starting, "....", 0, "----"),
    ] {
        let siblings = siblings(2, position, vec![share(1, course, other)]);
        assert_eq!(decided(own, &siblings), want, "{rule}");
    }
}

/// A percentage is of the nodes on which any of them should run a pod.
#[test]
fn percentages_are_of_all_nodes_together() {
    for (percent, want) in [(1, "!ssss."), (20, "!ssss."), (21, "!!sss."), (100, "!!!!!.")] {
        let other = share(1, ShareCourse::Counted, ".....n");
        let mut siblings = siblings(0, 0, vec![other]);
        siblings.budget = IntOrPercent::Percent(percent);
        let own = share(9, ShareCourse::Rolling, "ooooo.");
        let mut slots = Slots::of(&own, &siblings);
        let taken: String =
            (0..5).map(|at| if slots.take(&name(at)) { '!' } else { 's' }).collect();
        // Six nodes: 20% is two.
        let want = if percent == 20 { "!!sss." } else { want };
        assert_eq!(format!("{taken}."), want, "{percent}%");
    }
}

#[test]
fn a_sibling_that_waits_is_named() {
    let waits = |course| {
        let siblings = siblings(2, 0, vec![share(1, course, "xx")]);
        let own = share(9, ShareCourse::Rolling, "oo");
        let turn = Slots::of(&own, &siblings).turn(&name(0), "rest");
        let Turn::MayNotBegin(wait) = turn else { panic!("{turn:?}") };
        wait.to_string()
    };
    assert_eq!(waits(ShareCourse::Waiting(vec![soak()])), "n/d-1: step canary soaks");
    assert_eq!(waits(ShareCourse::Stopped), "step rest waits for n/d-1, which does not continue");
}

#[test]
fn nodes_that_matter_to_most_come_first() {
    use ShareCourse::{Counted, Rolling};
    let all = siblings(
        1,
        0,
        vec![share(1, Rolling, "no."), share(2, Rolling, "oo."), share(3, Counted, "nnn")],
    );
    let rank = |node| {
        let NodeRank { is_open, siblings, restarts: _ } = all.rank(&name(node));
        (is_open, siblings)
    };
    assert_eq!([rank(0), rank(1), rank(2)], [(true, 2), (false, 2), (false, 0)]);
}

/// The state of one DaemonSet on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    NotDesired,
    Old,
    Going,
    New,
}

/// Several rollouts, in the order in which they follow on each node.
struct World {
    budget: u32,
    state: Vec<[Is; NODES]>,
    /// For each rollout, the nodes of its first step; the others are its second one.
    first_step: Vec<[bool; NODES]>,
    /// Nodes that a DaemonSet disturbs which is not rolled out.
    down: [bool; NODES],
    /// How often each node was begun while it was neither disturbed nor open.
    begun: [u32; NODES],
}

impl World {
    fn may_begin(&self, rollout: usize, node: usize) -> bool {
        let first = &self.first_step[rollout];
        let left = (0..NODES).any(|at| first[at] && self.state[rollout][at] == Is::Old);
        self.state[rollout][node] == Is::Old && (first[node] || !left)
    }

    fn share(&self, rollout: usize) -> Share {
        let letter = |node: usize| match self.state[rollout][node] {
            Is::NotDesired => '.',
            Is::Old if self.may_begin(rollout, node) => 'o',
            Is::Old => 'x',
            Is::Going => 'g',
            Is::New => 'n',
        };
        let letters: String = (0..NODES).map(letter).collect();
        let is_done = !letters.contains(['o', 'x', 'g']);
        share(rollout, if is_done { ShareCourse::Done } else { ShareCourse::Rolling }, &letters)
    }

    fn others(&self, rollout: usize) -> Siblings {
        let others = (0..self.state.len()).filter(|at| *at != rollout);
        let mut others: Vec<Share> = others.map(|at| self.share(at)).collect();
        let down: String = self.down.iter().map(|down| if *down { 'd' } else { '.' }).collect();
        others.push(share(8, ShareCourse::Counted, &down));
        siblings(self.budget, rollout, others)
    }

    fn is_going(&self, node: usize) -> bool {
        self.state.iter().any(|nodes| nodes[node] == Is::Going)
    }

    fn is_open(&self, node: usize) -> bool {
        let has = |is| self.state.iter().any(|nodes| nodes[node] == is);
        has(Is::Old) && has(Is::New)
    }

    fn disturbed(&self) -> u32 {
        let nodes = (0..NODES).filter(|at| self.is_going(*at) || self.down[*at]);
        number(nodes.count())
    }

    fn taken(&self) -> u32 {
        let is = |at: &usize| self.is_going(*at) || self.down[*at] || self.is_open(*at);
        number((0..NODES).filter(is).count())
    }

    /// One rollout takes a step, and looks at the nodes from this one on; returns whether it begins
    /// somewhere.
    fn step(&mut self, rollout: usize, from: usize) -> bool {
        let (own, siblings) = (self.share(rollout), self.others(rollout));
        let mut slots = Slots::of(&own, &siblings);
        let mut order: Vec<usize> = (0..NODES).map(|at| (at + from) % NODES).collect();
        order.sort_by_key(|at| !slots.has(&name(*at)));
        let mut begins = false;
        for node in order {
            let may = self.may_begin(rollout, node) && slots.turn(&name(node), "") == Turn::Now;
            if !may || !slots.take(&name(node)) {
                continue;
            }
            let before = self.is_going(node) || self.is_open(node);
            let is_new = !before && !self.down[node];
            assert!(!self.is_going(node), "two are in flight on node {node}");
            self.state[rollout][node] = Is::Going;
            self.begun[node] += u32::from(!before);
            begins = true;
            // Steps may make it impossible to finish a node that was begun.
            let is_whole = self.first_step.iter().flatten().all(|is_first| *is_first);
            if is_new && is_whole {
                assert!(self.taken() <= self.budget, "{} of {}", self.taken(), self.budget);
            }
            if !self.down[node] {
                assert!(self.disturbed() <= self.budget.max(1), "{}", self.disturbed());
            }
        }
        begins
    }

    /// All rollouts in turn, until all is done; false if they block each other.
    fn finish(&mut self) -> bool {
        self.down = [false; NODES];
        for _ in 0..100 {
            let mut moves = false;
            for rollout in 0..self.state.len() {
                moves |= self.step(rollout, 0);
            }
            for nodes in &mut self.state {
                for is in nodes.iter_mut().filter(|is| **is == Is::Going) {
                    *is = Is::New;
                    moves = true;
                }
            }
            if !moves {
                break;
            }
        }
        self.state.iter().flatten().all(|is| matches!(is, Is::New | Is::NotDesired))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Step(usize, usize),
    /// The new pod of a node becomes available.
    Arrive(usize, usize),
    /// A node that is not ours goes down, or comes back.
    Down(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..3_usize, 0..NODES).prop_map(|(rollout, from)| Op::Step(rollout, from)),
        4 => (0..3_usize, 0..NODES).prop_map(|(rollout, node)| Op::Arrive(rollout, node)),
        1 => (0..NODES).prop_map(Op::Down),
    ]
}

fn obey(world: &mut World, ops: Vec<Op>) {
    for op in ops {
        match op {
            Op::Step(rollout, from) => {
                world.step(rollout, from);
            }
            Op::Arrive(rollout, node) => {
                if world.state[rollout][node] == Is::Going {
                    world.state[rollout][node] = Is::New;
                }
            }
            Op::Down(node) => world.down[node] = !world.down[node],
        }
    }
}

fn desired() -> impl Strategy<Value = Vec<[Is; NODES]>> {
    let one = proptest::array::uniform6(prop_oneof![4 => Just(Is::Old), 1 => Just(Is::NotDesired)]);
    proptest::collection::vec(one, 3)
}

fn world(budget: u32, state: Vec<[Is; NODES]>, first_step: Vec<[bool; NODES]>) -> World {
    World { budget, state, first_step, down: [false; NODES], begun: [0; NODES] }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn each_node_is_disturbed_once_within_the_budget(
        budget in 1..4_u32,
        state in desired(),
        ops in proptest::collection::vec(op(), 0..80),
    ) {
        let mut world = world(budget, state, vec![[true; NODES]; 3]);
        obey(&mut world, ops);
        prop_assert!(world.finish(), "they block each other");
        let wanted = |at: usize| world.state.iter().any(|nodes| nodes[at] == Is::New);
        for at in 0..NODES {
            prop_assert_eq!(world.begun[at], u32::from(wanted(at)), "node {}", at);
        }
    }

    /// Steps may select different nodes for each DaemonSet.
    #[test]
    fn steps_never_block_each_other(
        budget in 1..4_u32,
        state in desired(),
        first in proptest::collection::vec(proptest::array::uniform6(any::<bool>()), 3),
        ops in proptest::collection::vec(op(), 0..80),
    ) {
        let mut world = world(budget, state, first);
        obey(&mut world, ops);
        prop_assert!(world.finish(), "they block each other: {:?}", world.state);
    }
}
