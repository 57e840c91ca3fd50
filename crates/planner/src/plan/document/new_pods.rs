//! What the pods of a new DaemonSet bring to each node: images, privileges and access to the host.
//! Fields that stay the default are left out.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The pods of a DaemonSet that does not exist yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewPods {
    /// Images of its containers, init containers first, each once.
    pub images: Vec<String>,
    /// What its pods may do beyond other pods, the most dangerous first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<Access>,
}

/// One thing that a pod may do beyond other pods.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Access {
    /// A container has every privilege of root on the node.
    Privileged {
        /// Name of the container.
        container: String,
    },
    /// A container has more capabilities than the default ones.
    Capabilities {
        /// Name of the container.
        container: String,
        /// The added capabilities.
        names: Vec<String>,
    },
    /// `hostNetwork`: it uses the network of the node.
    HostNetwork,
    /// `hostPID`: it sees the processes of the node.
    #[serde(rename = "hostPID")]
    HostPid,
    /// `hostIPC`: it shares memory with processes of the node.
    #[serde(rename = "hostIPC")]
    HostIpc,
    /// It mounts a path of the node.
    HostPath {
        /// The path on the node.
        path: String,
        /// Whether each container mounts it read-only.
        read_only: bool,
    },
    /// It takes a port of the node.
    HostPort {
        /// Number of the port.
        port: u64,
    },
    /// It calls the API as this service account.
    ServiceAccount {
        /// Name of the service account.
        name: String,
    },
}

impl NewPods {
    /// Reads a pod template.
    pub(in crate::plan) fn of(template: &Value) -> Self {
        let spec = &template["spec"];
        let containers: Vec<&Value> =
            ["initContainers", "containers"].iter().flat_map(|field| list(&spec[*field])).collect();
        let mut images: Vec<String> = Vec::new();
        for image in containers.iter().filter_map(|it| it["image"].as_str()) {
            if !images.iter().any(|known| known == image) {
                images.push(image.to_owned());
            }
        }
        let host = [
            ("hostNetwork", Access::HostNetwork),
            ("hostPID", Access::HostPid),
            ("hostIPC", Access::HostIpc),
        ];
        let host = host.into_iter().filter(|(field, _)| spec[*field] == true);
        let account =
            spec["serviceAccountName"].as_str().filter(|it| !matches!(*it, "" | "default"));
        let account = account.map(|name| Access::ServiceAccount { name: name.to_owned() });
        let paths = list(&spec["volumes"]).filter_map(|volume| host_path(volume, &containers));
        let of_containers = containers.iter().copied().flat_map(of_container);
        let ports = containers.iter().copied().flat_map(ports);
        let access = of_containers.chain(host.map(|(_, access)| access)).chain(paths);
        Self { images, access: access.chain(ports).chain(account).collect() }
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn host_path(volume: &Value, containers: &[&Value]) -> Option<Access> {
    let path = volume["hostPath"]["path"].as_str()?.to_owned();
    let mounts = containers.iter().flat_map(|container| list(&container["volumeMounts"]));
    let mut mounts = mounts.filter(|mount| mount["name"] == volume["name"]);
    Some(Access::HostPath { path, read_only: mounts.all(|mount| mount["readOnly"] == true) })
}

fn of_container(container: &Value) -> impl Iterator<Item = Access> {
    let name = || container["name"].as_str().unwrap_or_default().to_owned();
    let context = &container["securityContext"];
    let privileged =
        (context["privileged"] == true).then(|| Access::Privileged { container: name() });
    let names = list(&context["capabilities"]["add"]).filter_map(Value::as_str);
    let names: Vec<String> = names.map(str::to_owned).collect();
    let added = (!names.is_empty()).then(|| Access::Capabilities { container: name(), names });
    privileged.into_iter().chain(added)
}

/// With `hostNetwork`, defaulting sets `hostPort`: the port is taken in either case.
fn ports(container: &Value) -> impl Iterator<Item = Access> {
    let ports = list(&container["ports"]).filter_map(|port| port["hostPort"].as_u64());
    ports.filter(|port| *port > 0).map(|port| Access::HostPort { port })
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostNetwork => f.write_str("hostNetwork"),
            Self::HostPid => f.write_str("hostPID"),
            Self::HostIpc => f.write_str("hostIPC"),
            Self::ServiceAccount { name } => write!(f, "service account {name}"),
            Self::HostPath { path, read_only: true } => write!(f, "hostPath {path} (read-only)"),
            Self::HostPath { path, read_only: false } => write!(f, "hostPath {path} (writable)"),
            Self::Privileged { container } => write!(f, "privileged container {container}"),
            Self::Capabilities { container, names } => {
                write!(f, "capabilities {} in container {container}", names.join(", "))
            }
            Self::HostPort { port } => write!(f, "hostPort {port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described(spec: &Value) -> (Vec<String>, Vec<String>) {
        let NewPods { images, access } = NewPods::of(&json!({ "spec": spec }));
        (images, access.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn images_are_listed_once_and_in_order() {
        let (images, access) = described(&json!({
            "initContainers": [{"name": "i", "image": "init:1"}],
            "containers": [{"name": "a", "image": "agent:1"}, {"name": "b", "image": "init:1"}],
            "serviceAccountName": "default", "hostNetwork": false,
        }));
        assert_eq!(images, ["init:1", "agent:1"]);
        assert_eq!(access, [""; 0]);
    }

    #[test]
    fn what_a_pod_may_do_on_its_host() {
        let mount = |name: &str, read_only: bool| json!({"name": name, "readOnly": read_only});
        let (_, access) = described(&json!({
            "hostNetwork": true, "hostPID": true, "hostIPC": true, "serviceAccountName": "root",
            "volumes": [
                {"name": "log", "hostPath": {"path": "/var/log"}},
                {"name": "run", "hostPath": {"path": "/run"}},
                {"name": "tmp", "emptyDir": {}},
            ],
            "containers": [
                {"name": "a", "securityContext": {"privileged": true},
                 "volumeMounts": [mount("log", true), mount("run", true)]},
                {"name": "b", "securityContext": {"capabilities": {"add": ["BPF", "SYS_ADMIN"]}},
                 "volumeMounts": [mount("run", false)], "ports": [{"hostPort": 9100}]},
            ],
        }));
        assert_eq!(
            access,
            [
                "privileged container a",
                "capabilities BPF, SYS_ADMIN in container b",
                "hostNetwork",
                "hostPID",
                "hostIPC",
                "hostPath /var/log (read-only)",
                "hostPath /run (writable)",
                "hostPort 9100",
                "service account root",
            ]
        );
    }
}
