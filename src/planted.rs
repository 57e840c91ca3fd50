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
