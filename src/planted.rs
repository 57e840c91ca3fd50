//! Faults that can be planted into the decision code, one at a time, to check that the simulation's
//! invariants detect each of them. Without the feature `planted` no fault is compiled in.

#[cfg(feature = "planted")]
use std::sync::RwLock;

/// `planted!(right, "name" => wrong)` is `right`; in a build with the feature `planted`, `wrong`
/// while the fault of that name is planted.
#[cfg(not(feature = "planted"))]
macro_rules! planted {
    ($right:expr, $name:literal => $wrong:expr) => {
        $right
    };
}

/// `planted!(right, "name" => wrong)` is `right`; while the fault of that name is planted, `wrong`.
#[cfg(feature = "planted")]
macro_rules! planted {
    ($right:expr, $name:literal => $wrong:expr) => {
        if $crate::planted::is($name) { $wrong } else { $right }
    };
}

pub(crate) use planted;

/// Every fault that can be planted; a test compares the list with the code.
#[cfg(feature = "planted")]
pub const ALL: &[&str] = &[
    "a failed gate is passed over",
    "a failed template is tried again",
    "a lock is taken that is held",
    "a new pod need not stay up",
    "a node whose pod leaves does not count",
    "a pod that is not Ready is available",
    "a restart does not count",
    "a stale holder writes on",
    "a way back is left",
    "a young pod is deleted",
    "all at once, without a ramp",
    "all pods are created at once",
    "an eviction is not guarded",
    "an interrupt is not heard",
    "an updated pod is outdated",
    "another strategy is given back",
    "applied without a pause",
    "decides on what may be old",
    "deleted by name alone",
    "deletes are forgotten",
    "deletes without a pause",
    "done before the last pods are Ready",
    "given back when the budget is used up",
    "minReadySeconds do not count",
    "nobody waits for the controller",
    "one answer sets the clock",
    "one more node is skipped",
    "one more than the budget",
    "orphans are adopted without a pause",
    "other people's pods are ours",
    "aborted with the failed template",
    "percentages are rounded wrongly",
    "the change is not recorded",
    "the pause forgets what was declared",
    "the policy's budget does not count",
    "the run's own controller deletes after an interrupt",
    "the run's own controller does not wait for it",
    "the run's own controller rolls",
    "what failed is not remembered",
    "what restarts or flaps stops nothing",
    "written over changes",
];

/// The planted fault; empty if there is none.
#[cfg(feature = "planted")]
static PLANTED: RwLock<&str> = RwLock::new("");

/// Plants a fault in this process and removes the previous one.
#[cfg(feature = "planted")]
pub fn plant(name: &'static str) {
    *PLANTED.write().unwrap_or_else(std::sync::PoisonError::into_inner) = name;
}

/// Whether this fault is planted.
#[cfg(feature = "planted")]
pub(crate) fn is(name: &str) -> bool {
    *PLANTED.read().unwrap_or_else(std::sync::PoisonError::into_inner) == name
}
