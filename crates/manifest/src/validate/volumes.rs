//! The volumes of the pod: their names, and one source each (upstream: `ValidateVolumes`).
//!
//! Not here: the rules of each source (`projections`, `storage`, `claim_template`).

use std::collections::BTreeMap;

use super::at::{At, Errors};
use super::{amount, claim_template, names, projections, storage};

type Check = fn(&At<'_>, &mut Errors);

/// The sources in upstream's order: the field, its name in the error about a second source
/// (upstream misspells two), and its rules.
const SOURCES: [(&str, &str, Check); 30] = [
    ("emptyDir", "emptyDir", check_empty_dir),
    ("hostPath", "hostPath", storage::host_path),
    ("gitRepo", "gitRepo", storage::git_repo),
    ("gcePersistentDisk", "gcePersistentDisk", storage::gce_disk),
    ("awsElasticBlockStore", "awsElasticBlockStore", storage::aws_block_store),
    ("secret", "secret", projections::secret),
    ("nfs", "nfs", storage::nfs),
    ("iscsi", "iscsi", storage::iscsi),
    ("glusterfs", "glusterfs", storage::glusterfs),
    ("flocker", "flocker", storage::flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", storage::claim),
    ("rbd", "rbd", storage::rbd),
    ("cinder", "cinder", storage::cinder),
    ("cephfs", "cephFS", storage::cephfs),
    ("quobyte", "quobyte", storage::quobyte),
    ("downwardAPI", "downwarAPI", projections::downward_api),
    ("fc", "fc", storage::fibre_channel),
    ("flexVolume", "flexVolume", storage::flex_volume),
    ("configMap", "configMap", projections::config_map),
    ("azureFile", "azureFile", storage::azure_file),
    ("vsphereVolume", "vsphereVolume", storage::vsphere),
    ("photonPersistentDisk", "photonPersistentDisk", storage::photon),
    ("portworxVolume", "portworxVolume", storage::portworx),
    ("azureDisk", "azureDisk", storage::azure_disk),
    ("storageos", "storageos", storage::storage_os),
    ("projected", "projected", projections::projected),
    ("scaleIO", "scaleIO", storage::scale_io),
    ("csi", "csi", storage::csi),
    ("ephemeral", "ephemeral", claim_template::check),
    ("image", "image", storage::image),
];

/// The volumes that containers may mount, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, At<'a>>;

/// Validates the volumes. A volume with an error cannot be mounted, so its mounts are errors too.
pub(super) fn check<'a>(volumes: &At<'a>, errors: &mut Errors) -> Volumes<'a> {
    let mut known = Volumes::new();
    for volume in volumes.items() {
        let before = errors.len();
        let name = volume.get("name");
        check_source(&volume, errors);
        name.required_and_follows(names::dns_label, errors);
        if known.contains_key(name.text()) {
            errors.push(name.duplicate());
        }
        if errors.len() == before {
            known.insert(name.text(), volume);
        }
    }
    known
}

fn check_source(volume: &At<'_>, errors: &mut Errors) {
    let mut found = SOURCES.iter().filter_map(|source| Some((source, volume.find(source.0)?)));
    // A volume without a source was defaulted to an `emptyDir`.
    if let Some(((_, _, check), source)) = found.next() {
        check(&source, errors);
    }
    for ((_, name, _), source) in found {
        let source = source.reported_at(volume.path_of(name));
        errors.push(source.forbidden("may not specify more than 1 volume type"));
    }
    check_iscsi_name(volume, errors);
}

/// Validates the length of volume name and portal, which the initiator writes into one line.
fn check_iscsi_name(volume: &At<'_>, errors: &mut Errors) {
    let (name, iscsi) = (volume.get("name"), volume.get("iscsi"));
    let length = name.text().len() + 1 + iscsi.get("targetPortal").text().len();
    if iscsi.get("initiatorName").is_set() && length > 64 {
        let why = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters \
                   if iscsi.initiatorName is specified.";
        errors.push(name.invalid(why));
    }
}

fn check_empty_dir(empty_dir: &At<'_>, errors: &mut Errors) {
    let limit = empty_dir.get("sizeLimit");
    if amount::read(&limit).is_negative() {
        errors.push(limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("volumes.yaml"));
    }
}
