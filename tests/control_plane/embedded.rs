//! The embedded cluster answers like a real API server: the same requests are sent to both with the
//! same kind of client, and whole answers are compared.
//!
//! Each file has a story: later requests use the answers of earlier ones. Uids, timestamps,
//! versions and generated names differ between the two and are replaced.

mod applying;
mod changing;
mod creating;
mod deleting;
mod forbidding;
mod player;
mod reading;
mod watching;

use crate::harness::{Component, ControlPlane, kubernetes};

use self::player::{Story, play};

/// A control plane without controllers.
fn quiet() -> ControlPlane {
    ControlPlane::builder()
        .without(Component::Kwok)
        .without(Component::Scheduler)
        .without(Component::ControllerManager)
        .user("dev", &[])
        .start()
}

/// Adds the requests of a story.
type Teller = fn(&mut Story);

#[test]
fn answers_match_a_real_server() {
    if !kubernetes::since(36, "the embedded cluster answers as the newest version does") {
        return;
    }
    let plane = quiet();
    let stories: [(&str, Teller); 5] = [
        ("creating", creating::tell),
        ("reading", reading::tell),
        ("changing", changing::tell),
        ("applying", applying::tell),
        ("deleting", deleting::tell),
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
