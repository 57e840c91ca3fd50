//! Runs the rules on their tables.

use crate::RefusedBy;
pub(super) use testkit::invalid::{rows, valid};

/// Checks that every row of a table has exactly its expected errors.
pub(super) fn check(table: &str) {
    let mut wrong = vec![];
    for row in rows(table) {
        let found = super::validate(&row.object());
        let errors: Vec<String> = found.iter().map(ToString::to_string).collect();
        let is_only_ours =
            !errors.is_empty() && found.iter().all(|e| e.refused_by == RefusedBy::DsPlan);
        if errors != row.errors || row.ours != is_only_ours {
            wrong.push(format!("{}\n  got  {errors:#?}\n  want {:#?}", row.name, row.errors));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
