//! Containers of a template (upstream: `describeContainers`).

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use serde_json::Value;

use super::lines::{Lines, is_optional, list, plain};

/// Characters that Go's `url.URL` escapes in a path.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Adds a block for each container.
pub(super) fn describe(lines: &mut Lines<'_>, title: &str, containers: &[Value]) {
    let none = if containers.is_empty() { " <none>" } else { "" };
    lines.add(1, format!("{title}:{none}"));
    for container in containers {
        lines.add(1, format!(" {}:", plain(&container["name"])));
        basics(lines, container);
        for (title, field) in [("Command", "command"), ("Args", "args")] {
            command_line(lines, title, list(&container[field]));
        }
        for (title, field) in [("Limits", "limits"), ("Requests", "requests")] {
            resources(lines, title, &container["resources"][field]);
        }
        for (title, field) in [
            ("Liveness", "livenessProbe"),
            ("Readiness", "readinessProbe"),
            ("Startup", "startupProbe"),
        ] {
            if container[field].is_object() {
                lines.add(2, format!("{title}:\t{}", probe(&container[field])));
            }
        }
        environment_from(lines, list(&container["envFrom"]));
        environment(lines, list(&container["env"]));
        mounts(lines, container);
    }
}

fn basics(lines: &mut Lines<'_>, container: &Value) {
    lines.add(2, format!("Image:\t{}", plain(&container["image"])));
    let ports = list(&container["ports"]);
    for (title, field) in [("Port", "containerPort"), ("Host Port", "hostPort")] {
        let texts: Vec<String> = ports.iter().map(|port| port_words(port, field)).collect();
        lines.add(
            2,
            match texts.as_slice() {
                [] => format!("{title}:\t<none>"),
                [one] => format!("{title}:\t{one}"),
                several => format!("{title}s:\t{}", several.join(", ")),
            },
        );
    }
    let seccomp = &container["securityContext"]["seccompProfile"];
    if seccomp.is_object() {
        lines.add(2, format!("SeccompProfile:\t{}", plain(&seccomp["type"])));
        lines.text_if_set(3, "LocalhostProfile", &seccomp["localhostProfile"]);
    }
}

fn port_words(port: &Value, field: &str) -> String {
    let number = port[field].as_i64().unwrap_or_default();
    let text = format!("{number}/{}", plain(&port["protocol"]));
    match port["name"].as_str().filter(|name| !name.is_empty()) {
        Some(name) => format!("{text} ({name})"),
        None => text,
    }
}

fn command_line(lines: &mut Lines<'_>, title: &str, words: &[Value]) {
    if words.is_empty() {
        return;
    }
    lines.add(2, format!("{title}:"));
    for line in words.iter().map(plain).collect::<Vec<_>>().iter().flat_map(|it| it.split('\n')) {
        lines.add(3, line);
    }
}

fn resources(lines: &mut Lines<'_>, title: &str, amounts: &Value) {
    let Some(amounts) = amounts.as_object().filter(|all| !all.is_empty()) else { return };
    lines.add(2, format!("{title}:"));
    for (name, amount) in amounts {
        lines.add(3, format!("{name}:\t{}", plain(amount)));
    }
}

fn probe(probe: &Value) -> String {
    let number = |field: &str| probe[field].as_i64().unwrap_or_default();
    let pace = format!(
        "delay={}s timeout={}s period={}s #success={} #failure={}",
        number("initialDelaySeconds"),
        number("timeoutSeconds"),
        number("periodSeconds"),
        number("successThreshold"),
        number("failureThreshold"),
    );
    let [exec, http, tcp, grpc] =
        ["exec", "httpGet", "tcpSocket", "grpc"].map(|field| &probe[field]);
    let how = if exec.is_object() {
        let words: Vec<String> = list(&exec["command"]).iter().map(plain).collect();
        format!("exec [{}]", words.join(" "))
    } else if http.is_object() {
        format!("http-get {}", url(http))
    } else if tcp.is_object() {
        format!("tcp-socket {}:{}", plain(&tcp["host"]), plain(&tcp["port"]))
    } else if grpc.is_object() {
        format!("grpc <pod>:{} {}", plain(&grpc["port"]), plain(&grpc["service"]))
    } else {
        "unknown".to_owned()
    };
    format!("{how} {pace}")
}

fn url(http: &Value) -> String {
    let [scheme, host, port, path] =
        ["scheme", "host", "port", "path"].map(|field| plain(&http[field]));
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let port = if port.is_empty() { port } else { format!(":{port}") };
    let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    let path = utf8_percent_encode(&path, PATH);
    format!("{}://{host}{port}{slash}{path}", scheme.to_lowercase())
}

fn environment_from(lines: &mut Lines<'_>, sources: &[Value]) {
    if sources.is_empty() {
        return;
    }
    lines.add(2, "Environment Variables from:");
    for source in sources {
        let (kind, reference) = match source.get("configMapRef") {
            Some(reference) => ("ConfigMap", reference),
            None => ("Secret", &source["secretRef"]),
        };
        let prefix = match source["prefix"].as_str().filter(|prefix| !prefix.is_empty()) {
            Some(prefix) => format!(" with prefix '{prefix}'"),
            None => String::new(),
        };
        let (name, optional) = (plain(&reference["name"]), is_optional(reference));
        lines.add(3, format!("{name}\t{kind}{prefix}\tOptional: {optional}"));
    }
}

fn environment(lines: &mut Lines<'_>, variables: &[Value]) {
    let none = if variables.is_empty() { "\t<none>" } else { "" };
    lines.add(2, format!("Environment:{none}"));
    for variable in variables {
        let name = plain(&variable["name"]);
        let from = &variable["valueFrom"];
        if from.is_null() {
            for (nth, line) in plain(&variable["value"]).split('\n').enumerate() {
                let head = if nth == 0 { format!("{name}:") } else { String::new() };
                lines.add(3, format!("{head}\t{line}"));
            }
        } else if let Some(text) = value_from(from) {
            lines.add(3, format!("{name}:\t{text}"));
        }
    }
}

/// The source of the value of a variable; `None` for sources that kubectl does not print.
fn value_from(from: &Value) -> Option<String> {
    let key = |reference: &Value, of: &str| {
        let [key, name] = ["key", "name"].map(|field| plain(&reference[field]));
        format!("<set to the key '{key}' {of} '{name}'>\tOptional: {}", is_optional(reference))
    };
    if let Some(field) = from.get("fieldRef") {
        let [version, path] = ["apiVersion", "fieldPath"].map(|name| plain(&field[name]));
        Some(format!(" ({version}:{path})"))
    } else if let Some(amount) = from.get("resourceFieldRef") {
        Some(format!(" ({})", plain(&amount["resource"])))
    } else if let Some(secret) = from.get("secretKeyRef") {
        Some(key(secret, "in secret"))
    } else {
        from.get("configMapKeyRef").map(|map| key(map, "of config map"))
    }
}

fn mounts(lines: &mut Lines<'_>, container: &Value) {
    let mounts = list(&container["volumeMounts"]);
    let none = if mounts.is_empty() { "\t<none>" } else { "" };
    lines.add(2, format!("Mounts:{none}"));
    for mount in sorted_by(mounts, "mountPath") {
        let mode = if mount["readOnly"] == true { "ro" } else { "rw" };
        let part = match mount["subPath"].as_str().filter(|part| !part.is_empty()) {
            Some(part) => format!(",path={part:?}"),
            None => String::new(),
        };
        let [path, name] = ["mountPath", "name"].map(|field| plain(&mount[field]));
        lines.add(3, format!("{path} from {name} ({mode}{part})"));
    }
    let devices = list(&container["volumeDevices"]);
    if !devices.is_empty() {
        lines.add(2, format!("Devices:{none}"));
    }
    for device in sorted_by(devices, "devicePath") {
        let [path, name] = ["devicePath", "name"].map(|field| plain(&device[field]));
        lines.add(3, format!("{path} from {name}"));
    }
}

fn sorted_by<'a>(items: &'a [Value], field: &str) -> Vec<&'a Value> {
    let mut sorted: Vec<&Value> = items.iter().collect();
    sorted.sort_by_key(|item| plain(&item[field]));
    sorted
}
