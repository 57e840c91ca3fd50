//! Removes the fields that a manager applied before and no longer applies (upstream:
//! `Updater.prune`).

use serde_json::Value;

use super::field_set::FieldSet;
use super::fields_of::fields_of;
use super::remove::remove;
use super::schema::Shape;

/// `merged` without the fields of `last` that no manager owns any more. `owned` are the fields of
/// all managers, including those applied now.
pub(super) fn prune(merged: &Value, last: FieldSet, owned: FieldSet) -> Value {
    let shape = Shape::daemon_set();
    let fields = |object: &Value| fields_of(shape, object).with_named_parents(shape);
    let [last, owned] = [last, owned].map(|fields| fields.with_named_parents(shape));

    let pruned = remove(shape, merged, &last);
    let before = fields(merged);
    // Fields with another owner are restored, and so are fields that this manager never owned.
    let unowned = before.difference(&fields(&pruned).union(&owned));
    let pruned = remove(shape, merged, &unowned);
    let gone = before.difference(&fields(&pruned)).intersection(&last);
    remove(shape, merged, &gone)
}
