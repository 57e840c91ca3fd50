//! The volumes of the pod: their names, and one source each (upstream: `ValidateVolumes`,
//! `validateVolumeSource`).
//!
//! Not here: the fields of volume plug-ins that DaemonSets rarely mount, which are left to the API
//! server, and the rules of sources with files of their own (`projections`, `claim_template`).

use super::amount;
use super::at::At;
use super::claim_template;
use super::context::{PULL_POLICIES, Volumes};
use super::formats::{absolute_path, dns_label, dns_subdomain, path_no_backsteps};
use super::projections;
use super::rules::Rule::{
    self, Check, Fields, Follows, FollowsIfNotEmpty, OneOfIfSet, Required, RequiredFollows,
    RequiredOneOf,
};
use super::rules::Rules;

/// The sources in upstream's order; `None` for those whose fields only the API server validates.
const SOURCES: [(&str, Option<Rule>); 30] = [
    ("emptyDir", Some(Check(check_empty_dir))),
    ("hostPath", Some(Check(check_host_path))),
    ("gitRepo", None),
    ("gcePersistentDisk", None),
    ("awsElasticBlockStore", None),
    ("secret", Some(Fields(projections::SECRET))),
    ("nfs", Some(Fields(NFS))),
    ("iscsi", None),
    ("glusterfs", None),
    ("flocker", None),
    ("persistentVolumeClaim", Some(Fields(&[("claimName", Required)]))),
    ("rbd", None),
    ("cinder", None),
    ("cephfs", None),
    ("quobyte", None),
    ("downwardAPI", Some(Check(projections::downward_api))),
    ("fc", None),
    ("flexVolume", None),
    ("configMap", Some(Fields(projections::CONFIG_MAP))),
    ("azureFile", None),
    ("vsphereVolume", None),
    ("photonPersistentDisk", None),
    ("portworxVolume", None),
    ("azureDisk", None),
    ("storageos", None),
    ("projected", Some(Check(projections::projected))),
    ("scaleIO", None),
    ("csi", Some(Check(check_csi))),
    ("ephemeral", Some(Check(claim_template::check))),
    // In a template the reference may be missing.
    ("image", Some(Fields(&[("pullPolicy", RequiredOneOf(PULL_POLICIES))]))),
];

const HOST_PATH: Rules =
    &[("path", Follows(path_no_backsteps)), ("type", OneOfIfSet(HOST_PATH_TYPES))];

const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

const NFS: Rules = &[("server", Required), ("path", Required), ("path", Follows(absolute_path))];

/// Validates the volumes. A volume with an error cannot be mounted, so its mounts are errors too.
pub(super) fn check<'a>(volumes: &At<'a>) -> Volumes<'a> {
    let mut known = Volumes::new();
    for volume in volumes.items() {
        let before = volume.error_count();
        let name = volume.get("name");
        check_source(&volume);
        name.check(RequiredFollows(dns_label));
        if known.contains_key(name.text()) {
            name.duplicate();
        }
        if volume.error_count() == before {
            known.insert(name.text(), volume);
        }
    }
    known
}

fn check_source(volume: &At<'_>) {
    let mut found = SOURCES.iter().filter_map(|(field, rule)| Some((volume.find(field)?, rule)));
    // A volume without a source was defaulted to an `emptyDir`.
    if let Some((source, Some(rule))) = found.next() {
        source.check(*rule);
    }
    for (source, _) in found {
        // Upstream misspells two of them.
        let path =
            source.path().replace(".cephfs", ".cephFS").replace(".downwardAPI", ".downwarAPI");
        source.reported_at(path).forbidden("may not specify more than 1 volume type");
    }
}

/// The sources of a volume whose fields are not validated here.
pub(super) fn unchecked_sources<'a>(volume: &At<'a>) -> Vec<At<'a>> {
    let unchecked = SOURCES.iter().filter(|(_, rule)| rule.is_none());
    unchecked.filter_map(|(field, _)| volume.find(field)).collect()
}

fn check_empty_dir(empty_dir: &At<'_>) {
    let limit = empty_dir.get("sizeLimit");
    let is_negative = amount::read(&limit).is_negative();
    limit.forbidden_if(is_negative, "SizeLimit field must be a valid resource quantity");
}

fn check_host_path(source: &At<'_>) {
    source.get("path").check(Required);
    if !source.get("path").is_empty() {
        source.check_fields(HOST_PATH);
    }
}

/// Validates a CSI source; an invalid secret name is reported at the source itself.
fn check_csi(source: &At<'_>) {
    let driver = source.get("driver");
    driver.check(Required);
    if !driver.is_empty() {
        driver.too_long_if_over(63, driver.text().len());
        driver.invalids_as(driver.text(), dns_subdomain(&driver.text().to_lowercase()));
    }
    if let Some(secret) = source.find("nodePublishSecretRef") {
        let name = secret.get("name");
        name.check(Required);
        name.reported_at(source.path_of("name")).check(FollowsIfNotEmpty(dns_subdomain));
    }
}
