//! The names of the objects in which `ds-apply` notes something about a DaemonSet.

use sha2::{Digest as _, Sha256};

/// Maximum length of an object's name.
const LONGEST_NAME: usize = 253;

/// The name of a DaemonSet's lease, unique per DaemonSet: names that are too long are replaced by a
/// digest with another prefix.
pub fn lease_name(daemon_set: &str) -> String {
    let plain = format!("ds-plan-{daemon_set}");
    if plain.len() <= LONGEST_NAME {
        return plain;
    }
    let digest = Sha256::digest(daemon_set);
    digest.iter().fold("ds-plan.".to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_never_collide() {
        let longest_plain = "a".repeat(LONGEST_NAME - "ds-plan-".len());
        let too_long = format!("{longest_plain}a");
        assert_eq!(lease_name("agent"), "ds-plan-agent");
        assert_eq!(lease_name(&longest_plain), format!("ds-plan-{longest_plain}"));
        let digested = lease_name(&too_long);
        assert!(digested.len() <= LONGEST_NAME && digested.starts_with("ds-plan."), "{digested}");
        assert_ne!(digested, lease_name(&format!("{longest_plain}b")));
        // Not even for a DaemonSet with the name of another DaemonSet's lease.
        assert_ne!(digested, lease_name(&digested));
    }
}
