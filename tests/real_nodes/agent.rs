//! A version of the node agent: its behaviour, as a DaemonSet's manifest.

use crate::nodes::NAMES;

/// A version of the agent.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    /// Its answer, and the label of its pods.
    pub(crate) version: &'static str,
    image: &'static str,
    command: Option<&'static str>,
    environment: Vec<(&'static str, &'static str)>,
    probed: bool,
    grace: u32,
    at_once: u32,
}

impl Agent {
    /// A version that serves as soon as it runs, without probes, and ends at SIGTERM.
    pub(crate) fn new(version: &'static str) -> Self {
        Self {
            version,
            image: "agent:1",
            command: None,
            environment: Vec::new(),
            probed: false,
            grace: 5,
            at_once: 1,
        }
    }

    /// Sets another image, by its name in the registry.
    pub(crate) fn image(mut self, image: &'static str) -> Self {
        self.image = image;
        self
    }

    /// Runs another program than the image's own.
    pub(crate) fn command(mut self, program: &'static str) -> Self {
        self.command = Some(program);
        self
    }

    /// Adds a readiness probe, every two seconds. It starts a process in the container: the nodes
    /// share an address, so the kubelet's network probes could not distinguish their agents.
    pub(crate) fn probed(mut self) -> Self {
        self.probed = true;
        self
    }

    /// The same without the failure: the version before.
    pub(crate) fn good(&self) -> Self {
        Self { probed: self.probed, at_once: self.at_once, ..Self::new("good") }
    }

    /// Ends with status 1 after this time.
    pub(crate) fn exits_after(self, duration: &'static str) -> Self {
        self.environment("EXIT_AFTER", duration)
    }

    /// Its probe succeeds after this time.
    pub(crate) fn ready_after(self, duration: &'static str) -> Self {
        self.environment("READY_AFTER", duration)
    }

    /// Ignores SIGTERM, and ends only after its grace period of this many seconds.
    pub(crate) fn deaf_for(mut self, seconds: u32) -> Self {
        self.grace = seconds;
        self.environment("IGNORE_TERM", "yes")
    }

    /// Sets `maxUnavailable`.
    pub(crate) fn at_once(mut self, nodes: u32) -> Self {
        self.at_once = nodes;
        self
    }

    fn environment(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// Its DaemonSet `agent`, with images of `registry` and a port for each node.
    pub(crate) fn manifest(&self, namespace: &str, registry: &str, ports: &[u16]) -> String {
        let Self { version, image, command, environment, probed, grace, at_once } = self;
        let pairs = NAMES.iter().zip(ports).map(|(node, port)| format!("{node}={port}"));
        let ports = pairs.collect::<Vec<_>>().join(",");
        let given = [("VERSION", *version), ("PORTS", &ports)];
        let environment: Vec<String> = given
            .iter()
            .chain(environment)
            .map(|(name, value)| format!("\n        - {{name: {name}, value: '{value}'}}"))
            .collect();
        let environment = environment.concat();
        let command = command.map(|it| format!("\n        command: ['{it}']")).unwrap_or_default();
        let probe = if *probed {
            // A machine under load may take a while to start a process.
            "\n        readinessProbe: {exec: {command: [/agent, check]}, periodSeconds: 2, timeoutSeconds: 5}"
        } else {
            ""
        };
        format!(
            "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, namespace: {namespace}}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{maxUnavailable: {at_once}}}}}
  template:
    metadata: {{labels: {{app: agent, version: {version}}}}}
    spec:
      hostNetwork: true
      terminationGracePeriodSeconds: {grace}
      containers:
      - name: agent
        image: '{registry}/{image}'{command}{probe}
        env:
        - {{name: NODE_NAME, valueFrom: {{fieldRef: {{fieldPath: spec.nodeName}}}}}}{environment}
"
        )
    }
}
