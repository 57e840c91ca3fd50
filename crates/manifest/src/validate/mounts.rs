//! Mounts of volumes in a container, as directories and as raw devices (upstream:
//! `ValidateVolumeMounts`, `ValidateVolumeDevices`).

use std::collections::{BTreeMap, BTreeSet};

use super::at::At;
use super::context::Volumes;
use super::formats::{has_backsteps, local_descending_path};
use super::rules::Rule::{Follows, OneOfIfSet, Required};

/// Validates `volumeMounts`. Errors of one field of a mount are reported without the index.
pub(super) fn check(container: &At<'_>, volumes: &Volumes<'_>) {
    let mounts = container.get("volumeMounts");
    let devices = paths_by_volume(&container.get("volumeDevices"), "devicePath");
    let device_paths: BTreeSet<&str> = devices.values().copied().collect();
    let is_privileged = container.nested("securityContext.privileged").is_true();
    let mut all_paths = BTreeSet::new();
    for mount in mounts.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        name.check(Required);
        if !volumes.contains_key(name.text()) {
            name.not_found();
        }
        path.check(Required);
        path.invalid_if(!all_paths.insert(path.text()), "must be unique");
        let is_device = devices.contains_key(name.text());
        name.invalid_if(is_device, "must not already exist in volumeDevices");
        let is_device_path = device_paths.contains(path.text());
        path.invalid_if(is_device_path, "must not already exist as a path in volumeDevices");
        let without_index = mount.clone().reported_at(mounts.path());
        without_index.get("subPath").check(Follows(local_descending_path));
        let (sub_path, expression) = (mount.get("subPath"), mount.get("subPathExpr"));
        let both = !sub_path.is_empty() && !expression.is_empty();
        expression.invalid_if(both, "subPathExpr and subPath are mutually exclusive");
        without_index.get("subPathExpr").check(Follows(local_descending_path));
        check_propagation(&without_index.get("mountPropagation"), is_privileged);
        check_recursive_read_only(&without_index);
    }
}

/// The path of each volume, by name. For a duplicate name, upstream keeps the last path only.
fn paths_by_volume<'a>(list: &At<'a>, field: &str) -> BTreeMap<&'a str, &'a str> {
    list.items().map(|item| (item.get("name").text(), item.get(field).text())).collect()
}

fn check_propagation(propagation: &At<'_>, is_privileged: bool) {
    propagation.check(OneOfIfSet(&["Bidirectional", "HostToContainer", "None"]));
    let why = "Bidirectional mount propagation is available only to privileged containers";
    propagation.forbidden_if(propagation.text() == "Bidirectional" && !is_privileged, why);
}

fn check_recursive_read_only(mount: &At<'_>) {
    let recursive = mount.get("recursiveReadOnly");
    recursive.check(OneOfIfSet(&["Disabled", "Enabled", "IfPossible"]));
    if !["Enabled", "IfPossible"].contains(&recursive.text()) {
        return;
    }
    let is_writable = !mount.get("readOnly").is_true();
    recursive.forbidden_if(is_writable, "may only be specified when readOnly is true");
    let propagates = mount.find("mountPropagation").is_some_and(|it| it.text() != "None");
    let why = "may only be specified when mountPropagation is None or not specified";
    recursive.forbidden_if(propagates, why);
}

/// Validates `volumeDevices`.
pub(super) fn check_devices(container: &At<'_>, volumes: &Volumes<'_>) {
    let mounts = paths_by_volume(&container.get("volumeMounts"), "mountPath");
    let mount_paths: BTreeSet<&str> = mounts.values().copied().collect();
    let (mut all_names, mut all_paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        name.check(Required);
        name.invalid_if(!name.is_empty() && !all_names.insert(name.text()), "must be unique");
        check_device_volume(&name, volumes);
        path.check(Required);
        path.invalid_if(all_paths.contains(path.text()), "must be unique");
        if has_backsteps(path.text()) {
            path.invalid("can not contain backsteps ('..')");
        } else {
            all_paths.insert(path.text());
        }
        let is_mounted = mounts.contains_key(name.text());
        name.invalid_if(is_mounted, "must not already exist in volumeMounts");
        let is_mount_path = mount_paths.contains(path.text());
        path.invalid_if(is_mount_path, "must not already exist as a path in volumeMounts");
    }
}

fn check_device_volume(name: &At<'_>, volumes: &Volumes<'_>) {
    match volumes.get(name.text()) {
        None => name.not_found(),
        Some(volume) => {
            let claims = volume.find_all(&["persistentVolumeClaim", "ephemeral"]);
            let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for \
                       block mode";
            name.invalid_if(claims.is_empty(), why);
        }
    }
}
