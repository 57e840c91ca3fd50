//! Properties that do not depend on earlier writes or their managers.

use proptest::prelude::*;
use serde_json::Value;

use super::super::fields_of::fields_of;
use super::super::ownership::own_part;
use super::super::remove::remove;
use super::super::{
    Attempt, DAEMON_SET, FieldPath, FieldSet, ManagedFields, Manager, Manifest, PathStep, owned_by,
};
use super::{apply, defaulted, now, served, updated_by};
use testkit::manifests;
use testkit::random::Random;

/// An object that some managers have written, if there is one, and the next applied object.
fn history(seed: u64) -> (Option<Value>, Value) {
    history_of(seed, meaningful)
}

/// The same with manifests changed by `shaped`.
fn history_of(seed: u64, shaped: fn(Value) -> Value) -> (Option<Value>, Value) {
    let mut random = Random::seeded(seed);
    let mut live = None;
    for _ in 0..random.below(5) {
        let manager = random.pick(&["other", "third", "ds-apply", "ds-apply"]);
        let whole = live.is_none() || random.one_in(2);
        let applied = if whole {
            manifests::whole(&mut random, "ds")
        } else {
            manifests::part(&mut random, "ds")
        };
        let applied = shaped(applied);
        let mut object = served(live.as_ref(), &applied, manager);
        if random.one_in(3) {
            updated_by(&mut object, "third");
        }
        live = Some(object);
    }
    (live, shaped(manifests::whole(&mut random, "ds")))
}

/// The object without `null` and empty values. Empty maps are a special case: the server does not
/// store the owned map, so each apply adds it again.
fn meaningful(value: Value) -> Value {
    let nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, meaningful(value)));
            Value::Object(fields.filter(|(_, value)| !nothing(value)).collect())
        }
        Value::Array(items) => items.into_iter().map(meaningful).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

fn owners(live: Option<&Value>) -> ManagedFields {
    live.map(|live| ManagedFields::of(live).unwrap()).unwrap_or_default()
}

fn owned_by_others(owners: &ManagedFields) -> FieldSet {
    let others = owners.entries().iter().filter(|entry| entry.manager.name != "ds-apply");
    others.fold(FieldSet::default(), |all, entry| all.union(&entry.fields))
}

fn owned_by_us(owners: &ManagedFields) -> FieldSet {
    let own = owners.entries().iter().find(|entry| entry.manager.name == "ds-apply");
    own.map(|entry| entry.fields.clone()).unwrap_or_default()
}

fn fields(object: &Value) -> FieldSet {
    fields_of(DAEMON_SET.shape(), &own_part(object))
}

/// The list elements above a field.
fn elements_above(path: &FieldPath) -> Vec<FieldPath> {
    let ends = (1..path.0.len()).filter(|end| !matches!(path.0[end - 1], PathStep::Field(_)));
    ends.map(|end| FieldPath(path.0[..end].to_vec())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn applying_twice_changes_nothing(seed: u64) {
        let (live, applied) = history(seed);
        let once = served(live.as_ref(), &applied, "ds-apply");
        let twice = apply(Some(&once), &applied, "ds-apply");
        prop_assert_eq!(&twice.conflicts, &[]);
        prop_assert_eq!(&twice.managed_fields.to_value(), &once["metadata"]["managedFields"]);
        prop_assert_eq!(own_part(&defaulted(&twice.object)), own_part(&once));
    }

    /// Also with empty values in the manifest.
    #[test]
    fn one_settling_apply_has_the_result_of_two(seed: u64) {
        let (live, applied) = history_of(seed, |it| it);
        let defaults = defaulted(&applied);
        let manifest = Manifest { applied: &applied, defaulted: &defaults };
        let attempt = Attempt::new(&DAEMON_SET, live.as_ref(), manifest, "ds-apply", now()).unwrap();
        let settling = attempt.under(attempt.owners()).settling();
        let sent = settling.map_or_else(|| applied.clone(), |settling| settling.applied);
        let once = served(live.as_ref(), &sent, "ds-apply");
        let plainly = served(live.as_ref(), &applied, "ds-apply");
        let plainly = served(Some(&plainly), &applied, "ds-apply");
        prop_assert_eq!(&own_part(&once), &own_part(&plainly), "of {}", &sent);
        let twice = served(Some(&once), &applied, "ds-apply");
        prop_assert_eq!(&own_part(&twice), &own_part(&once));
        let spec = |owners: &ManagedFields| owned_by_us(owners).child(&PathStep::field("spec")).cloned();
        prop_assert_eq!(spec(&owners(Some(&twice))), spec(&owners(Some(&plainly))));
    }

    /// So a field of another manager stays, unless it is a conflict.
    #[test]
    fn others_lose_exactly_the_conflicting_fields(seed: u64) {
        let (live, applied) = history(seed);
        let before = owners(live.as_ref());
        let merged = apply(live.as_ref(), &applied, "ds-apply");
        let lost = |manager: &Manager| -> FieldSet {
            let own = merged.conflicts.iter().filter(|c| c.managers.contains(manager));
            own.map(|conflict| conflict.path.clone()).collect()
        };
        for entry in before.entries().iter().filter(|entry| entry.manager.name != "ds-apply") {
            let after = merged.managed_fields.get(&entry.manager).map(|entry| entry.fields.clone());
            let gone = entry.fields.difference(&after.unwrap_or_default());
            prop_assert_eq!(gone, lost(&entry.manager), "{}", entry.manager);
        }
        // All of those now have the applied value.
        let (now, values) = (fields(&merged.object), fields(&applied));
        for conflict in &merged.conflicts {
            prop_assert!(values.has(&conflict.path) && now.has(&conflict.path), "{}", conflict.path);
        }
    }

    #[test]
    fn fields_no_longer_applied_are_removed_without_other_owners(seed: u64) {
        let (live, applied) = history(seed);
        let before = owners(live.as_ref());
        let merged = apply(live.as_ref(), &applied, "ds-apply");
        let (others, now) = (owned_by_others(&before), fields(&merged.object));
        for path in owned_by_us(&before).difference(&fields(&applied)).paths() {
            if !others.touches(&path) && !fields(&applied).touches(&path) {
                prop_assert!(!now.has(&path), "{path} is still there");
            }
            let whole_way = elements_above(&path).iter().all(|element| others.has(element));
            if others.has(&path) && whole_way {
                prop_assert!(now.touches(&path), "{path} is gone");
            }
        }
    }

    #[test]
    fn a_sole_applier_gets_what_it_applies(seed: u64) {
        let mut random = Random::seeded(seed);
        let mut live = None;
        for _ in 0..3 {
            let applied = meaningful(manifests::whole(&mut random, "ds"));
            let merged = apply(live.as_ref(), &applied, "ds-apply");
            prop_assert_eq!(defaulted(&merged.object), defaulted(&applied));
            prop_assert_eq!(&merged.leftovers, &[]);
            let mut object = merged.object;
            object["metadata"]["managedFields"] = merged.managed_fields.to_value();
            live = Some(object);
        }
    }

    #[test]
    fn owned_fields_can_be_applied_again_and_change_nothing(seed: u64) {
        let (live, applied) = history(seed);
        let served = served(live.as_ref(), &applied, "ds-apply");
        let owned = owned_by(&DAEMON_SET, &served, "ds-apply").unwrap().unwrap();
        let again = apply(Some(&served), &owned, "ds-apply");
        prop_assert_eq!(&again.conflicts, &[]);
        prop_assert_eq!(defaulted(&again.object)["spec"].clone(), served["spec"].clone());
        let (before, after) = (owners(Some(&served)), &again.managed_fields);
        let (before, after) = (owned_by_us(&before), owned_by_us(after));
        // Go omits zero values, for example `hostNetwork: false`: such a field is owned but absent.
        let there = fields(&served);
        let lost = before.difference(&after).paths();
        prop_assert!(!lost.iter().any(|path| there.has(path)), "no longer owned: {lost:?}");
        prop_assert_eq!(after.difference(&before).paths(), vec![], "owned too");
        prop_assert_eq!(owned_by(&DAEMON_SET, &served, "nobody").unwrap(), None);
    }

    #[test]
    fn without_its_leftovers_an_object_equals_the_applied_one(seed: u64) {
        let (live, applied) = history(seed);
        let merged = apply(live.as_ref(), &applied, "ds-apply");
        let mut leftovers: FieldSet = merged.leftovers.iter().map(|left| left.path.clone()).collect();
        let pod = ["spec", "template", "spec"].map(PathStep::field);
        if leftovers.has(&FieldPath([&pod[..], &[PathStep::field("serviceAccountName")]].concat())) {
            leftovers.insert(&[&pod[..], &[PathStep::field("serviceAccount")]].concat());
        }
        let shape = DAEMON_SET.shape();
        let rest = remove(shape, &merged.object, &leftovers);
        let of_spec = |object: &Value| defaulted(object)["spec"].clone();
        prop_assert_eq!(of_spec(&rest), of_spec(&applied), "without {:?}", leftovers);
        // Each leftover exists and has the stated owners.
        let now = fields(&merged.object);
        for left in &merged.leftovers {
            prop_assert!(now.touches(&left.path), "{}", left.path);
            for manager in &left.managers {
                let entry = merged.managed_fields.get(manager).unwrap();
                prop_assert!(entry.fields.touches(&left.path), "{} {}", left.path, manager);
            }
        }
    }
}
