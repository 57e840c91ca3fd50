//! Soaks: how long new pods must stay up before what comes next begins.

use jiff::Timestamp;

use crate::time::next_whole_second;
use daemonset::model::{Soak, StepNote};

/// How far a step, or a domain in a step, is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Some of its nodes have no available new pod.
    Running,
    /// All of them have, and it soaks.
    Complete {
        /// The note about it.
        note: StepNote,
        /// The end of the soak, if all pods stay up; unknown if the kubelet does not tell since when
        /// a pod is Ready. In whole seconds.
        until: Option<Timestamp>,
    },
    /// Its soak is over, and its gates have not passed since.
    Soaked {
        /// The note about it.
        note: StepNote,
        /// The end of the soak.
        since: Timestamp,
    },
    /// Its soak is over, and its gates have passed since.
    Done {
        /// The note about it.
        note: StepNote,
    },
}

impl Progress {
    /// Done, without a note.
    pub(super) fn done() -> Self {
        Self::Done { note: StepNote::default() }
    }
}

/// Judges a step by what was noted before.
///
/// Its soak ends at the later of two times: all pods have stayed up for its length, by the clocks
/// of the kubelets; and it was seen complete that long ago, by the server's clock. So a kubelet
/// whose clock is behind does not cut a soak short. What was done stays done. `gates_passed` is the
/// last time at which all gates passed; without gates, [`Timestamp::MAX`].
pub(super) fn judge(
    noted: Option<&StepNote>,
    digest: String,
    is_complete: bool,
    up_since: Option<Timestamp>,
    soak: Soak,
    now: Timestamp,
    gates_passed: Timestamp,
) -> Progress {
    if let Some(note) = noted.filter(|note| note.done_at.is_some()) {
        return Progress::Done { note: note.clone() };
    }
    if !is_complete {
        return Progress::Running;
    }
    let complete_at = noted.and_then(|note| note.complete_at).unwrap_or(now);
    let mut note = StepNote { digest, complete_at: Some(complete_at), done_at: None };
    // A pod that does not tell counts from the moment at which the step was seen complete. A kubelet
    // whose clock is ahead says that its pod is up since later: that is now.
    let up_since = up_since.unwrap_or(complete_at).min(now);
    let until = up_since.max(complete_at).saturating_add(soak.duration());
    match until {
        Ok(since) if now >= since && gates_passed < since => Progress::Soaked { note, since },
        Ok(until) if now >= until => {
            note.done_at = Some(now);
            Progress::Done { note }
        }
        until => Progress::Complete { note, until: until.ok().map(next_whole_second) },
    }
}
