//! Whether a build takes more than another one. Pure; `tests/it/speed.rs` tests this file.

/// What the runs of a command took in the rounds that were disturbed least.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least {
    /// The time of a run, in seconds.
    pub(crate) seconds: f64,
    /// The memory of a run, in MiB.
    pub(crate) mebibytes: f64,
}

/// Differences that are too small to mean anything: 20 ms, and 2 MiB. They are allowed on top of the
/// limit, so a command that takes little may take more than the limit.
pub(crate) const LITTLE: Least = Least { seconds: 0.02, mebibytes: 2.0 };

/// What `own` takes more of than `before`: more than `most` times as much, and [`LITTLE`] on top.
pub(crate) fn worse(own: Least, before: Least, most: f64) -> Vec<String> {
    let mut worse = Vec::new();
    if own.seconds > before.seconds * most + LITTLE.seconds {
        worse.push(format!("{:.3} s, before {:.3} s", own.seconds, before.seconds));
    }
    if own.mebibytes > before.mebibytes * most + LITTLE.mebibytes {
        worse.push(format!("{:.1} MiB, before {:.1} MiB", own.mebibytes, before.mebibytes));
    }
    worse
}
