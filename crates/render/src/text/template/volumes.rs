//! Volumes of a template (upstream: `describeVolumes`).
//!
//! Most kinds are one line of explanation and a list of fields, so they are rows of a table. Kinds
//! that no supported server can mount are not in the table; their fields are shown by name.

use serde_json::{Map, Value};

use super::lines::{Lines, is_optional, list, plain};

/// The description of a kind of volume: its field, an explanation, and its fields with their titles
/// and the text for a missing field.
struct VolumeKind {
    field: &'static str,
    words: &'static str,
    fields: &'static [(&'static str, &'static str, &'static str)],
}

const KINDS: [VolumeKind; 9] = [
    VolumeKind {
        field: "hostPath",
        words: "HostPath (bare host directory volume)",
        fields: &[("Path", "path", ""), ("HostPathType", "type", "<none>")],
    },
    VolumeKind {
        field: "emptyDir",
        words: "EmptyDir (a temporary directory that shares a pod's lifetime)",
        fields: &[("Medium", "medium", ""), ("SizeLimit", "sizeLimit", "<unset>")],
    },
    VolumeKind {
        field: "secret",
        words: "Secret (a volume populated by a Secret)",
        fields: &[("SecretName", "secretName", ""), ("Optional", "optional", "false")],
    },
    VolumeKind {
        field: "configMap",
        words: "ConfigMap (a volume populated by a ConfigMap)",
        fields: &[("Name", "name", ""), ("Optional", "optional", "false")],
    },
    VolumeKind {
        field: "nfs",
        words: "NFS (an NFS mount that lasts the lifetime of a pod)",
        fields: &[
            ("Server", "server", ""),
            ("Path", "path", ""),
            ("ReadOnly", "readOnly", "false"),
        ],
    },
    VolumeKind {
        field: "persistentVolumeClaim",
        words: "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
        fields: &[("ClaimName", "claimName", ""), ("ReadOnly", "readOnly", "false")],
    },
    VolumeKind {
        field: "csi",
        words: "CSI (a Container Storage Interface (CSI) volume source)",
        fields: &[
            ("Driver", "driver", ""),
            ("FSType", "fsType", ""),
            ("ReadOnly", "readOnly", "false"),
        ],
    },
    VolumeKind {
        field: "image",
        words: "Image (a container image or OCI artifact)",
        fields: &[("Reference", "reference", ""), ("PullPolicy", "pullPolicy", "")],
    },
    VolumeKind {
        field: "ephemeral",
        words: "EphemeralVolume (an inline specification for a volume that gets created and deleted \
                with the pod)",
        fields: &[],
    },
];

/// Adds a block for each volume.
pub(super) fn describe(lines: &mut Lines<'_>, volumes: &[Value]) {
    if volumes.is_empty() {
        lines.add(1, "Volumes:\t<none>");
        return;
    }
    lines.add(1, "Volumes:");
    for volume in volumes {
        lines.add(1, format!(" {}:", plain(&volume["name"])));
        source(lines, volume);
    }
}

fn source(lines: &mut Lines<'_>, volume: &Value) {
    if let Some(projected) = volume.get("projected") {
        projection(lines, list(&projected["sources"]));
    } else if let Some(downward) = volume.get("downwardAPI") {
        lines.add(2, "Type:\tDownwardAPI (a volume populated by information about the pod)");
        lines.add(2, "Items:");
        downward_items(lines, list(&downward["items"]));
    } else if let Some((kind, source)) =
        KINDS.iter().find_map(|kind| Some((kind, volume.get(kind.field)?)))
    {
        lines.add(2, format!("Type:\t{}", kind.words));
        for (title, field, missing) in kind.fields {
            let value = source.get(*field).map(plain);
            lines.add(2, format!("{title}:\t{}", value.as_deref().unwrap_or(missing)));
        }
        if kind.field == "csi" {
            attributes(lines, source["volumeAttributes"].as_object());
        }
    } else {
        other(lines, volume);
    }
}

/// Attributes of a CSI volume (upstream: `printCSIPersistentVolumeAttributesMultiline`).
fn attributes(lines: &mut Lines<'_>, attributes: Option<&Map<String, Value>>) {
    let Some(attributes) = attributes.filter(|all| !all.is_empty()) else {
        lines.add(2, "VolumeAttributes:\t<none>");
        return;
    };
    let mut head = "VolumeAttributes:\t";
    for (key, value) in attributes {
        lines.add(2, format!("{head}{key}={}", plain(value)));
        head = "\t";
    }
}

fn projection(lines: &mut Lines<'_>, sources: &[Value]) {
    lines.add(2, "Type:\tProjected (a volume that contains injected data from multiple sources)");
    for source in sources {
        if let Some(secret) = source.get("secret") {
            lines.add(2, format!("SecretName:\t{}", plain(&secret["name"])));
            lines.add(2, format!("Optional:\t{}", is_optional(secret)));
        } else if source.get("downwardAPI").is_some() {
            lines.add(2, "DownwardAPI:\ttrue");
        } else if let Some(map) = source.get("configMap") {
            lines.add(2, format!("ConfigMapName:\t{}", plain(&map["name"])));
            lines.add(2, format!("Optional:\t{}", is_optional(map)));
        } else if let Some(token) = source.get("serviceAccountToken") {
            let seconds = plain(&token["expirationSeconds"]);
            lines.add(2, format!("TokenExpirationSeconds:\t{seconds}"));
        }
    }
}

fn downward_items(lines: &mut Lines<'_>, items: &[Value]) {
    for item in items {
        let path = plain(&item["path"]);
        if let Some(field) = item.get("fieldRef") {
            lines.add(3, format!("{} -> {path}", plain(&field["fieldPath"])));
        }
        if let Some(amount) = item.get("resourceFieldRef") {
            lines.add(3, format!("{} -> {path}", plain(&amount["resource"])));
        }
    }
}

/// A kind that is not in the table: its name and its scalar fields.
fn other(lines: &mut Lines<'_>, volume: &Value) {
    let kinds = volume.as_object().into_iter().flatten().filter(|(key, _)| *key != "name");
    for (kind, source) in kinds {
        lines.add(2, format!("Type:\t{kind}"));
        for (field, value) in source.as_object().into_iter().flatten() {
            lines.add(2, format!("{field}:\t{}", plain(value)));
        }
    }
}
