//! Volume sources for storage: host paths, disks, network shares, drivers (upstream:
//! `validateHostPathVolumeSource` and related functions).

use super::at::{At, Errors};
use super::go_text::quoted;
use super::{containers, names, paths};

const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];

fn required_fields(source: &At<'_>, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        source.get(field).not_empty(errors);
    }
}

pub(super) fn host_path(source: &At<'_>, errors: &mut Errors) {
    let path = source.get("path");
    path.not_empty(errors);
    if !path.is_empty() {
        paths::no_backsteps(&path, errors);
        source.get("type").one_of_if_set(&HOST_PATH_TYPES, errors);
    }
}

pub(super) fn git_repo(source: &At<'_>, errors: &mut Errors) {
    source.get("repository").not_empty(errors);
    paths::local_descending(&source.get("directory"), errors);
}

/// Validates a GCE disk; upstream reports a name that the field does not have.
pub(super) fn gce_disk(source: &At<'_>, errors: &mut Errors) {
    let path = source.path().replace("gcePersistentDisk", "persistentDisk");
    let source = source.clone().reported_at(path);
    source.get("pdName").not_empty(errors);
    partition(&source, errors);
}

pub(super) fn aws_block_store(source: &At<'_>, errors: &mut Errors) {
    source.get("volumeID").not_empty(errors);
    partition(source, errors);
}

/// Validates `partition`; 0 is valid, although upstream's message denies it.
fn partition(disk: &At<'_>, errors: &mut Errors) {
    let partition = disk.get("partition");
    if !(0..=255).contains(&partition.int()) {
        errors.push(partition.invalid("must be between 1 and 255, inclusive"));
    }
}

pub(super) fn nfs(source: &At<'_>, errors: &mut Errors) {
    required_fields(source, &["server", "path"], errors);
    let path = source.get("path");
    if !path.text().starts_with('/') {
        errors.push(path.invalid("must be an absolute path"));
    }
}

pub(super) fn iscsi(source: &At<'_>, errors: &mut Errors) {
    required_fields(source, &["targetPortal", "iqn"], errors);
    let iqn = source.get("iqn");
    if !iqn.is_empty() {
        initiator(&iqn, errors);
    }
    source.get("lun").within(0, 255, errors);
    let chap = ["chapAuthDiscovery", "chapAuthSession"].map(|field| source.get(field).is_true());
    if chap.contains(&true) && !source.get("secretRef").is_set() {
        errors.push(source.get("secretRef").required(""));
    }
    if let Some(name) = source.find("initiatorName") {
        initiator(&name.reported_at(source.path_of("initiatorname")), errors);
    }
}

fn initiator(name: &At<'_>, errors: &mut Errors) {
    let text = name.text();
    let well_formed = match text.get(..3) {
        Some("iqn") => is_iqn(text),
        Some("eui") => is_number(text, 16),
        Some("naa") => is_number(text, 32),
        _other => {
            errors.push(name.invalid("must be valid format starting with iqn, eui, or naa"));
            return;
        }
    };
    if !well_formed {
        errors.push(name.invalid("must be valid format"));
    }
}

/// `iqn.YYYY-MM.reversed.domain:anything`.
fn is_iqn(text: &str) -> bool {
    let Some((authority, name)) = text.split_once(':') else { return false };
    let date_and_domain: Vec<&str> = authority.splitn(3, '.').collect();
    let &[_iqn, date, domain] = date_and_domain.as_slice() else { return false };
    let date_is_fine = date.len() == 7
        && date
            .bytes()
            .enumerate()
            .all(|(i, b)| if i == 4 { b == b'-' } else { b.is_ascii_digit() });
    date_is_fine
        && !domain.is_empty()
        && domain.bytes().all(|b| b.is_ascii_alphanumeric() || b"-.".contains(&b))
        && !name.is_empty()
        && !name.contains([',', ';', '*', '&', '$', '|', ' ', '\t', '\n', '\r', '\u{c}'])
}

/// `true` for three letters, any character, and `length` alphanumeric characters.
fn is_number(text: &str, length: usize) -> bool {
    let digits: Vec<char> = text.chars().skip(4).collect();
    digits.len() == length && digits.iter().all(char::is_ascii_alphanumeric)
}

pub(super) fn glusterfs(source: &At<'_>, errors: &mut Errors) {
    required_fields(source, &["endpoints", "path"], errors);
}

pub(super) fn flocker(source: &At<'_>, errors: &mut Errors) {
    let (name, uuid) = (source.get("datasetName"), source.get("datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => {
            errors.push(source.required("one of datasetName and datasetUUID is required"));
        }
        (false, false) => {
            let why = "datasetName and datasetUUID can not be specified simultaneously";
            errors.push(source.invalid_as(quoted("resource"), why));
        }
        (true, false) | (false, true) => {}
    }
    if name.text().contains('/') {
        errors.push(name.invalid("must not contain '/'"));
    }
}

pub(super) fn claim(source: &At<'_>, errors: &mut Errors) {
    source.get("claimName").not_empty(errors);
}

pub(super) fn rbd(source: &At<'_>, errors: &mut Errors) {
    required_fields(source, &["monitors", "image"], errors);
}

pub(super) fn cinder(source: &At<'_>, errors: &mut Errors) {
    source.get("volumeID").not_empty(errors);
    secret_reference(source, errors);
}

fn secret_reference(source: &At<'_>, errors: &mut Errors) {
    if let Some(secret) = source.find("secretRef") {
        secret.get("name").not_empty(errors);
    }
}

pub(super) fn cephfs(source: &At<'_>, errors: &mut Errors) {
    source.get("monitors").not_empty(errors);
}

pub(super) fn quobyte(source: &At<'_>, errors: &mut Errors) {
    let (registry, tenant) = (source.get("registry"), source.get("tenant"));
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        errors.push(registry.required(pairs));
    } else if tenant.text().len() >= 65 {
        errors.push(tenant.required("must be a UUID and may not exceed a length of 64 characters"));
    } else {
        for _pair in registry.text().split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.push(registry.invalid(pairs));
        }
    }
    source.get("volume").not_empty(errors);
}

/// `true` for one colon, or brackets around an address with more of them.
fn is_host_and_port(pair: &str) -> bool {
    match pair.rsplit_once(':') {
        Some((host, port)) => {
            let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            let is_plain = |text: &str| !text.contains(['[', ']']);
            is_plain(port) && inside.map_or(!host.contains(':') && is_plain(host), is_plain)
        }
        None => false,
    }
}

pub(super) fn fibre_channel(source: &At<'_>, errors: &mut Errors) {
    let (targets, wwids) = (source.get("targetWWNs"), source.get("wwids"));
    if targets.is_empty() && wwids.is_empty() {
        let why = "must specify either targetWWNs or wwids, but not both";
        errors.push(targets.required(why));
    }
    if !targets.is_empty() && !wwids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(targets.invalid_json(why));
    }
    if !targets.is_empty() {
        match source.find("lun") {
            None => {
                let why = "lun is required if targetWWNs is specified";
                errors.push(source.get("lun").required(why));
            }
            Some(lun) => lun.within(0, 255, errors),
        }
    }
}

pub(super) fn flex_volume(source: &At<'_>, errors: &mut Errors) {
    source.get("driver").not_empty(errors);
    for (key, option) in source.get("options").entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if [".kubernetes.io", ".k8s.io"].iter().any(|reserved| namespace.ends_with(reserved)) {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(option.invalid_as(quoted(key), why));
        }
    }
}

pub(super) fn azure_file(source: &At<'_>, errors: &mut Errors) {
    required_fields(source, &["secretName", "shareName"], errors);
}

pub(super) fn azure_disk(source: &At<'_>, errors: &mut Errors) {
    required_fields(source, &["diskName", "diskURI"], errors);
    source.get("cachingMode").one_of_if_set(&["None", "ReadOnly", "ReadWrite"], errors);
    let (kind, uri) = (source.get("kind"), source.get("diskURI"));
    kind.one_of_if_set(&["Dedicated", "Managed", "Shared"], errors);
    if !kind.is_set() {
        return;
    }
    let (start, example) = if kind.text() == "Managed" {
        let example = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/\
                       microsoft.compute/disks/{disk-id}";
        ("/subscriptions/", example)
    } else {
        (
            "https://",
            "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd",
        )
    };
    if !uri.text().starts_with(start) {
        errors.push(uri.not_supported_as(quoted(uri.text()), &[example]));
    }
}

pub(super) fn vsphere(source: &At<'_>, errors: &mut Errors) {
    source.get("volumePath").not_empty(errors);
}

pub(super) fn photon(source: &At<'_>, errors: &mut Errors) {
    source.get("pdID").not_empty(errors);
}

pub(super) fn portworx(source: &At<'_>, errors: &mut Errors) {
    source.get("volumeID").not_empty(errors);
}

pub(super) fn storage_os(source: &At<'_>, errors: &mut Errors) {
    source.get("volumeName").required_and_follows(names::dns_label, errors);
    source.get("volumeNamespace").follows_if_set(names::dns_label, errors);
    secret_reference(source, errors);
}

pub(super) fn scale_io(source: &At<'_>, errors: &mut Errors) {
    required_fields(source, &["gateway", "system", "volumeName"], errors);
}

/// Validates a CSI source; an invalid secret name is reported at the source itself.
pub(super) fn csi(source: &At<'_>, errors: &mut Errors) {
    let driver = source.get("driver");
    driver.not_empty(errors);
    if !driver.is_empty() {
        if driver.text().len() > 63 {
            errors.push(driver.too_long(63));
        }
        errors.extend(driver.invalids(names::dns_subdomain(&driver.text().to_lowercase())));
    }
    if let Some(secret) = source.find("nodePublishSecretRef") {
        let name = secret.get("name");
        name.not_empty(errors);
        let name = name.reported_at(source.path_of("name"));
        name.follows_if_set(names::dns_subdomain, errors);
    }
}

/// Validates an image source; in a template the reference may be missing.
pub(super) fn image(source: &At<'_>, errors: &mut Errors) {
    source.get("pullPolicy").required_one_of(&containers::PULL_POLICIES, errors);
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("storage.yaml"));
    }
}
