//! Takes away what an applier applied before and no longer applies (upstream: `Updater.prune`).

use serde_json::Value;

use super::field_set::FieldSet;
use super::fields_of::fields_of;
use super::remove::remove;
use super::schema::Shape;

/// `merged` without the fields of `last` that nobody owns any more. `owned` is what all managers
/// own together, with what is applied now.
pub(super) fn prune(merged: &Value, last: FieldSet, owned: FieldSet) -> Value {
    let shape = Shape::daemon_set();
    let fields = |object: &Value| fields_of(shape, object).with_named_parents(shape);
    let [last, owned] = [last, owned].map(|fields| fields.with_named_parents(shape));

    let pruned = remove(shape, merged, &last);
    let before = fields(merged);
    // What somebody owns comes back, and so does what this applier never owned.
    let unowned = before.difference(&fields(&pruned).union(&owned));
    let pruned = remove(shape, merged, &unowned);
    let gone = before.difference(&fields(&pruned)).intersection(&last);
    remove(shape, merged, &gone)
}
