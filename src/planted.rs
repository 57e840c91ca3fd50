//! Faults that can be planted into the code that decides, one at a time, to see that the laws of the
//! simulation find each of them. Without the feature `planted` there is nothing of it.

#[cfg(feature = "planted")]
use std::sync::RwLock;

/// `planted!(right, "name" => wrong)` is `right`; in a build with the feature `planted`, `wrong` while
/// the fault of that name is planted.
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

/// Every fault that can be planted; a test holds it against the code.
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
    "applied without a hold",
    "decides on what may be old",
    "deleted by name alone",
    "deletes are forgotten",
    "deletes without a hold",
    "done before the last pods are Ready",
    "given back when the budget is used up",
    "minReadySeconds do not count",
    "nobody waits for the controller",
    "one answer sets the clock",
    "one more node is skipped",
    "one more than the budget",
    "orphans are adopted without a hold",
    "other people's pods are ours",
    "parked with the failed template",
    "percentages are rounded wrongly",
    "the change is not recorded",
    "the hold forgets what was declared",
    "the policy's budget does not count",
    "the run's own controller deletes after an interrupt",
    "the run's own controller does not wait for it",
    "the run's own controller rolls",
    "what failed is not remembered",
    "what restarts or flaps stops nothing",
    "written over changes",
];

/// The one fault that is planted.
#[cfg(feature = "planted")]
static PLANTED: RwLock<&str> = RwLock::new("");

/// Plants a fault in this process, in place of the one before.
#[cfg(feature = "planted")]
pub fn plant(name: &'static str) {
    *PLANTED.write().unwrap_or_else(std::sync::PoisonError::into_inner) = name;
}

/// Whether this is the fault that is planted.
#[cfg(feature = "planted")]
pub(crate) fn is(name: &str) -> bool {
    *PLANTED.read().unwrap_or_else(std::sync::PoisonError::into_inner) == name
}
