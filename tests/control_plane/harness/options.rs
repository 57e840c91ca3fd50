//! The options of a test's control plane.

use super::ControlPlane;
use super::component::Component;

/// The controllers that DaemonSet tests need; the others would only cost time.
const CONTROLLERS: [&str; 8] = [
    "daemonset-controller",
    "pod-garbage-collector-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "taint-eviction-controller",
    "node-lifecycle-controller",
    "disruption-controller",
    "serviceaccount-controller",
];

/// A user of the API server, authenticated by a token.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// The name in RBAC.
    pub(crate) name: String,
    pub(crate) groups: Vec<String>,
}

impl User {
    /// The bearer token; a test's user needs no secret.
    pub(crate) fn token(&self) -> String {
        format!("token-of-{}", self.name)
    }
}

/// Options of a control plane; `ControlPlane::builder()` creates them, `start` uses them.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    components: Vec<Component>,
    controllers: Vec<String>,
    flags: Vec<(Component, String)>,
    admission_on: Vec<String>,
    admission_off: Vec<String>,
    users: Vec<User>,
    audited: bool,
}

impl Default for Options {
    fn default() -> Self {
        let servers = Component::ALL.into_iter().filter_map(Component::user);
        let masters = ["admin"].into_iter().chain(servers);
        Self {
            components: Component::ALL.to_vec(),
            controllers: CONTROLLERS.map(str::to_owned).to_vec(),
            flags: Vec::new(),
            admission_on: Vec::new(),
            // It would reject pods until the namespace has a service account, and mount tokens.
            admission_off: vec!["ServiceAccount".to_owned()],
            users: masters.map(|name| user(name, &["system:masters"])).collect(),
            audited: false,
        }
    }
}

impl Options {
    /// Does not start `component`; it can be started later.
    pub(crate) fn without(mut self, component: Component) -> Self {
        self.components.retain(|it| *it != component);
        self
    }

    /// Disables one controller of the controller manager, for example `daemonset-controller`.
    pub(crate) fn without_controller(mut self, name: &str) -> Self {
        assert!(
            self.controllers.iter().any(|it| it == name),
            "the controller {name} is not among {:?}",
            self.controllers
        );
        self.controllers.retain(|it| it != name);
        self
    }

    /// Enables one more controller of the controller manager.
    pub(crate) fn with_controller(mut self, name: &str) -> Self {
        self.controllers.push(name.to_owned());
        self
    }

    /// Adds a flag to a server's command line, after ours: `--max-requests-inflight=5`.
    pub(crate) fn flag(mut self, component: Component, flag: &str) -> Self {
        self.flags.push((component, flag.to_owned()));
        self
    }

    /// Enables an admission plugin, for example `PodNodeSelector`.
    pub(crate) fn with_admission(mut self, plugin: &str) -> Self {
        self.admission_on.push(plugin.to_owned());
        self
    }

    /// Disables an admission plugin, for example `TaintNodesByCondition`.
    pub(crate) fn without_admission(mut self, plugin: &str) -> Self {
        self.admission_off.push(plugin.to_owned());
        self
    }

    /// Adds a user, who has only the permissions of the test's RBAC objects.
    pub(crate) fn user(mut self, name: &str, groups: &[&str]) -> Self {
        self.users.push(user(name, groups));
        self
    }

    /// Enables the audit log; see `ControlPlane::audit_log`.
    pub(crate) fn audit(mut self) -> Self {
        self.audited = true;
        self
    }

    /// Starts the control plane; returns when it answers.
    pub(crate) fn start(self) -> ControlPlane {
        ControlPlane::with(self)
    }

    pub(super) fn components(&self) -> &[Component] {
        &self.components
    }

    pub(super) fn users(&self) -> &[User] {
        &self.users
    }

    pub(super) fn audited(&self) -> bool {
        self.audited
    }

    pub(super) fn controllers(&self) -> String {
        self.controllers.join(",")
    }

    pub(super) fn flags_of(&self, component: Component) -> impl Iterator<Item = &str> {
        self.flags.iter().filter(move |(of, _)| *of == component).map(|(_, flag)| flag.as_str())
    }

    pub(super) fn admission_flags(&self) -> Vec<String> {
        let lists = [
            ("--enable-admission-plugins", &self.admission_on),
            ("--disable-admission-plugins", &self.admission_off),
        ];
        lists
            .into_iter()
            .filter(|(_, plugins)| !plugins.is_empty())
            .map(|(flag, plugins)| format!("{flag}={}", plugins.join(",")))
            .collect()
    }
}

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.to_owned(), groups: groups.iter().map(|&group| group.to_owned()).collect() }
}
