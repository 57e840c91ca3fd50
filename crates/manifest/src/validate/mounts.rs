//! Mounts of volumes in a container, as directories and as raw devices (upstream:
//! `ValidateVolumeMounts`, `ValidateVolumeDevices`).

use std::collections::{BTreeMap, BTreeSet};

use super::at::{At, Errors};
use super::paths;
use super::volumes::Volumes;

/// Validates `volumeMounts`. Errors of one field of a mount are reported without the index.
pub(super) fn check(container: &At<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let mounts = container.get("volumeMounts");
    let devices = places(&container.get("volumeDevices"), "devicePath");
    let device_paths: BTreeSet<&str> = devices.values().copied().collect();
    let mut taken = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        name.not_empty(errors);
        if !volumes.contains_key(name.text()) {
            errors.push(name.not_found());
        }
        path.not_empty(errors);
        if !taken.insert(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if devices.contains_key(name.text()) {
            errors.push(name.invalid("must not already exist in volumeDevices"));
        }
        if device_paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeDevices"));
        }
        check_sub_path(&mount, mounts.path(), errors);
        check_propagation(&mount, container, mounts.path(), errors);
        check_recursive_read_only(&mount, mounts.path(), errors);
    }
}

/// The path of each volume, by name. For a duplicate name, upstream keeps the last path only.
fn places<'a>(list: &At<'a>, field: &str) -> BTreeMap<&'a str, &'a str> {
    list.items().map(|item| (item.get("name").text(), item.get(field).text())).collect()
}

fn check_sub_path(mount: &At<'_>, mounts: &str, errors: &mut Errors) {
    let (path, expression) = (mount.get("subPath"), mount.get("subPathExpr"));
    paths::local_descending(&path.clone().reported_at(format!("{mounts}.subPath")), errors);
    if !expression.is_empty() && !path.is_empty() {
        errors.push(expression.invalid("subPathExpr and subPath are mutually exclusive"));
    }
    paths::local_descending(&expression.reported_at(format!("{mounts}.subPathExpr")), errors);
}

fn check_propagation(mount: &At<'_>, container: &At<'_>, mounts: &str, errors: &mut Errors) {
    let propagation =
        mount.get("mountPropagation").reported_at(format!("{mounts}.mountPropagation"));
    propagation.one_of_if_set(&["Bidirectional", "HostToContainer", "None"], errors);
    let privileged = container.get("securityContext").get("privileged").is_true();
    if propagation.text() == "Bidirectional" && !privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(propagation.forbidden(why));
    }
}

fn check_recursive_read_only(mount: &At<'_>, mounts: &str, errors: &mut Errors) {
    let recursive =
        mount.get("recursiveReadOnly").reported_at(format!("{mounts}.recursiveReadOnly"));
    recursive.one_of_if_set(&["Disabled", "Enabled", "IfPossible"], errors);
    if !["Enabled", "IfPossible"].contains(&recursive.text()) {
        return;
    }
    if !mount.get("readOnly").is_true() {
        errors.push(recursive.forbidden("may only be specified when readOnly is true"));
    }
    let propagation = mount.get("mountPropagation");
    if propagation.is_set() && propagation.text() != "None" {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.push(recursive.forbidden(why));
    }
}

/// Validates `volumeDevices`.
pub(super) fn check_devices(container: &At<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    let devices = container.get("volumeDevices");
    let mounts = places(&container.get("volumeMounts"), "mountPath");
    let mount_paths: BTreeSet<&str> = mounts.values().copied().collect();
    let (mut taken_names, mut taken_paths) = (BTreeSet::new(), BTreeSet::new());
    for device in devices.items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        name.not_empty(errors);
        if !name.is_empty() && !taken_names.insert(name.text()) {
            errors.push(name.invalid("must be unique"));
        }
        check_device_volume(&name, volumes, errors);
        path.not_empty(errors);
        if taken_paths.contains(path.text()) {
            errors.push(path.invalid("must be unique"));
        }
        if paths::climbs(path.text()) {
            errors.push(path.invalid("can not contain backsteps ('..')"));
        } else {
            taken_paths.insert(path.text());
        }
        if mounts.contains_key(name.text()) {
            errors.push(name.invalid("must not already exist in volumeMounts"));
        }
        if mount_paths.contains(path.text()) {
            errors.push(path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}

fn check_device_volume(name: &At<'_>, volumes: &Volumes<'_>, errors: &mut Errors) {
    match volumes.get(name.text()) {
        None => errors.push(name.not_found()),
        Some(volume) => {
            let claims = ["persistentVolumeClaim", "ephemeral"];
            if !claims.iter().any(|source| volume.get(source).is_set()) {
                let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral \
                           for block mode";
                errors.push(name.invalid(why));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("mounts.yaml"));
    }
}
