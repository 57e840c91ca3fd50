//! The version of Kubernetes that the tests run on: `DS_PLAN_TEST_KUBERNETES`, else the newest.
//!
//! On an older version every test checks the same as on the newest. One that needs what a version
//! lacks begins with `kubernetes::since`, which says why it is skipped there.

use std::env;
use std::io::{self, Write as _};
use std::sync::OnceLock;
use std::thread;

/// The variable that selects the version.
const VARIABLE: &str = "DS_PLAN_TEST_KUBERNETES";

/// A version of Kubernetes that `tools/` has a Go module for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kubernetes {
    /// The `36` of 1.36.
    pub(crate) minor: u32,
    /// The folder of its Go module, below `tools/`.
    pub(crate) module: &'static str,
}

/// All of them, the newest last.
const SUPPORTED: [Kubernetes; 3] = [
    Kubernetes { minor: 31, module: "older/1.31" },
    Kubernetes { minor: 33, module: "older/1.33" },
    Kubernetes { minor: 36, module: "kubernetes" },
];

/// Servers before 1.34 add a null `creationTimestamp` to templates.
pub(crate) const NO_NULL_TIMESTAMPS: u32 = 34;

/// The version that this test process runs on.
pub(crate) fn version() -> Kubernetes {
    static VERSION: OnceLock<Kubernetes> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let set = env::var(VARIABLE).unwrap_or_default();
        selected(&set).unwrap_or_else(|error| panic!("{error}"))
    })
}

/// The version that a value of the variable selects; empty is the newest.
fn selected(value: &str) -> Result<Kubernetes, String> {
    let [.., newest] = SUPPORTED;
    if value.is_empty() {
        return Ok(newest);
    }
    let found = SUPPORTED.into_iter().find(|it| value == format!("1.{}", it.minor));
    found.ok_or_else(|| {
        let known = SUPPORTED.map(|it| format!("1.{}", it.minor)).join(", ");
        format!("{VARIABLE} is {value:?}, for which there is no Go module; use one of {known}")
    })
}

/// Whether the version is at least 1.`minor`. If not, the calling test has to return: a line on
/// standard error then says that it was skipped and why.
#[must_use = "the test has to return if the version is too old"]
pub(crate) fn since(minor: u32, why: &str) -> bool {
    let ours = version().minor;
    if ours < minor {
        let current = thread::current();
        let test = current.name().unwrap_or("a test");
        // Written past the test harness, which would capture it.
        let _ = writeln!(io::stderr(), "{}", skipped(test, minor, why, ours));
    }
    ours >= minor
}

/// [`since`], for tests that compare whole objects with those of the server.
#[must_use = "the test has to return if the version is too old"]
pub(crate) fn keeps_templates_as_sent() -> bool {
    since(NO_NULL_TIMESTAMPS, "the server adds a null creationTimestamp to templates")
}

/// The line about a skipped test.
fn skipped(test: &str, minor: u32, why: &str, ours: u32) -> String {
    format!("control plane: {test} SKIPPED, needs Kubernetes 1.{minor}: {why} (this is 1.{ours})")
}

#[test]
fn a_version_without_a_module_is_refused_with_those_that_have_one() {
    let minor = |value| selected(value).map(|it| it.minor);
    assert_eq!(minor(""), Ok(36));
    assert_eq!(minor("1.31"), Ok(31));
    for wrong in ["1.30", "1.3", "31", "v1.31", "1.31.13", "newest"] {
        let error = format!(
            "DS_PLAN_TEST_KUBERNETES is {wrong:?}, for which there is no Go module; use one of \
             1.31, 1.33, 1.36"
        );
        assert_eq!(minor(wrong), Err(error));
    }
}
