//! The embedded cluster answers as a real API server does: the same requests go to both over the
//! same kind of client, and whole answers are compared.
//!
//! Each file tells a story, in which later requests use what earlier ones were answered. Uids,
//! times, versions and generated names are each side's own.

mod applying;
mod changing;
mod creating;
mod deleting;
mod evicting;
mod player;
mod reading;
mod watching;

use crate::harness::{Component, ControlPlane};

use self::player::{Story, play};

/// A control plane in which only the API server acts.
fn quiet() -> ControlPlane {
    ControlPlane::builder()
        .without(Component::Kwok)
        .without(Component::Scheduler)
        .without(Component::ControllerManager)
        .user("dev", &[])
        .start()
}

#[test]
fn answers_are_those_of_a_real_server() {
    let plane = quiet();
    let stories: [(&str, fn(&mut Story)); 6] = [
        ("creating", creating::tell),
        ("reading", reading::tell),
        ("changing", changing::tell),
        ("applying", applying::tell),
        ("deleting", deleting::tell),
        ("evicting", evicting::tell),
    ];
    let mut differences = Vec::new();
    for (name, tell) in stories {
        let mut story = Story::new(name);
        tell(&mut story);
        differences.extend(play(&plane, story));
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}
