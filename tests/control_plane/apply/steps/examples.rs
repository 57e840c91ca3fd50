//! The three policies of `examples/policies`, each carried out on a part of the example fleet, and
//! predicted by rehearsals of its recordings.
//!
//! Policies and manifests are those of the examples, except for time, because nobody can wait for a
//! night:
//!
//! - Soaks and `maxDuration` are divided by [`FASTER`]. All new pods have to stay Ready for a second;
//!   else it would be up to 30.
//! - The window of the GPU driver has just opened, and its exclusion ends a little later.
//! - The fake kubelets take a second to stop a pod and two to start one.
//!
//! The GPU plugin of the fleet declares `OnDelete`, for which only `ds-apply roll` replaces pods;
//! here it declares `RollingUpdate`.

mod course;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, ToSpan as _};
use tempfile::TempDir;

use super::super::approved::{APPROVER, RUN, bind};
use super::*;
use crate::fleet::nodes;
use course::{Leg, legs, took};

/// Divisor of the soaks.
const FASTER: i32 = 300;

/// The tag of the version that is rolled out first. That of the manifest follows.
const BEFORE: &str = "0.9.0";

/// The lines of a small terminal.
const FIRST_SCREEN: usize = 24;

#[test]
fn the_examples_of_a_network_agent_and_a_gpu_driver_are_carried_out() {
    let plane = ControlPlane::builder().user(RUN, &[]).user(APPROVER, &[]).start();
    let all = [nodes::control_plane(), nodes::workers(1..=1), nodes::arm(), nodes::gpu()];
    plane.create_nodes(all.concat());
    plane.kubectl(&["create", "namespace", "gpu"]);
    bind(&plane, "gpu", "gpu-device-plugin");
    thread::scope(|scope| {
        scope.spawn(|| network_agent(&plane));
        scope.spawn(|| gpu_driver(&plane));
    });
}

fn network_agent(plane: &ControlPlane) {
    let course = Example::new(plane, "overlay-agent", "cni-by-zone", |_| ()).is_carried_out();
    let zone = |name: &str| format!("soak rest eu-central-1{name}");
    let waits = ["soak canary".to_owned(), zone("c"), zone("a"), zone("b"), String::new()];
    assert_eq!(course.iter().map(Leg::waits).collect::<Vec<_>>(), waits);
    // 5 nodes are in zones b and c each, and 6 in zone a.
    let counts = course.iter().map(Leg::nodes).collect::<Vec<_>>();
    assert_eq!((counts[0], counts.iter().sum::<usize>()), (1, 16));
    for (leg, zone) in course[1..4].iter().zip(["-c-", "-a-", "-b-"]) {
        let mut updated = leg.updated["rest"].iter();
        assert!(updated.all(|node| node.contains(zone)), "{zone}: {leg:?}");
    }
}

fn gpu_driver(plane: &ControlPlane) {
    let moved = |policy: &mut Value| {
        let now = Timestamp::now();
        let window = &mut policy["windows"][0];
        let zone = TimeZone::get(window["timeZone"].as_str().unwrap()).unwrap();
        let opened = (now - 1.minute()).to_zoned(zone);
        window["schedule"] = format!("{} {} * * *", opened.minute(), opened.hour()).into();
        let exclusion = &mut policy["exclusions"][0];
        exclusion["from"] = (now - 1.hour()).to_string().into();
        exclusion["to"] = Timestamp::from_second(now.as_second() + 40).unwrap().to_string().into();
    };
    let example = Example::new(plane, "gpu-device-plugin", "gpu-driver", moved);
    let course = Example { user: RUN, ..example }.is_carried_out();
    let waits = ["window canary", "soak canary", "approval others", ""];
    assert_eq!(course.iter().map(Leg::waits).collect::<Vec<_>>(), waits);
    assert_eq!(course.iter().map(Leg::nodes).collect::<Vec<_>>(), [0, 1, 0, 3]);
    assert_eq!(course.iter().map(|leg| leg.exit).collect::<Vec<_>>(), [8, 8, 9, 0].map(Some));
}

#[test]
fn the_example_of_a_log_agent_is_carried_out() {
    let plane = ControlPlane::start();
    let all = [nodes::control_plane(), nodes::workers(1..=3), nodes::arm(), nodes::gpu()];
    plane.create_nodes(all.concat());
    plane.kubectl(&["create", "namespace", "logging"]);
    // The network agent has to be done first.
    let before = Example::new(&plane, "overlay-agent", "cni-by-zone", |_| ());
    let example = Example::new(&plane, "fluent-bit", "log-agent-canary", |_| ());
    ends(&before.apply(&[]), 8, &["step canary soaks until "]);
    let words = "logging/fluent-bit does not begin: it comes after kube-system/overlay-agent";
    let rehearsed = example.rehearsal(&example.record("0.json"), &[], &[]).output().unwrap();
    ends(&rehearsed, 8, &[words]);
    ends(&example.apply(&[]), 8, &[words]);
    ends(&plane.ds_apply(&["undo", &before.key, "--yes"], &[]).run(), 0, &["done"]);

    let course = example.is_carried_out();
    let waits = ["soak watched", "soak arm", "soak half", ""];
    assert_eq!(course.iter().map(Leg::waits).collect::<Vec<_>>(), waits);
    assert_eq!(course.iter().map(Leg::nodes).collect::<Vec<_>>(), [2, 6, 3, 11]);
    let watched = ["worker-a-01", "worker-b-01"].map(str::to_owned);
    assert_eq!(course[0].updated["watched"], watched.into());
}

/// A DaemonSet on a control plane of which one version is rolled out; the next one, and its policy.
struct Example<'p> {
    plane: &'p ControlPlane,
    /// The user of the runs.
    user: &'static str,
    /// `NAMESPACE/NAME` of the DaemonSet.
    key: String,
    policy: Value,
    /// Contains the manifest, the policy, and the files of rehearsals.
    folder: TempDir,
}

/// What a plan says about time.
struct Forecast {
    /// From the beginning, or the opening of a window, to the earliest end.
    lasts: SignedDuration,
    /// When each step begins, from the plan on.
    begins: BTreeMap<String, SignedDuration>,
}

impl<'p> Example<'p> {
    /// Rolls out the first version of a manifest of the fleet. `moved` moves the policy in time.
    fn new(
        plane: &'p ControlPlane,
        manifest: &str,
        policy: &str,
        moved: impl Fn(&mut Value),
    ) -> Self {
        let next = quick(read(&format!("fleet/manifests/{manifest}.yaml")));
        let mut first = next.clone();
        let image = &mut first["spec"]["template"]["spec"]["containers"][0]["image"];
        let (repository, _) = image.as_str().unwrap().rsplit_once(':').unwrap();
        *image = format!("{repository}:{BEFORE}").into();
        let first = first.to_string();
        let created = plane.ds_apply(&["--yes", "-f", "first.yaml"], &[("first.yaml", &*first)]);
        ends(&created.run(), 0, &["done"]);

        let text = |field: &str| next["metadata"][field].as_str().unwrap();
        let key = format!("{}/{}", text("namespace"), text("name"));
        let mut policy = read(&format!("policies/{policy}.yaml"));
        faster(&mut policy);
        moved(&mut policy["spec"]);
        let example =
            Self { plane, user: "admin", key, policy, folder: tempfile::tempdir().unwrap() };
        example.write("manifest.yaml", &next);
        example.write("policy.yaml", &example.policy);
        example
    }

    /// Plans and rehearses the next version, and carries it out to the end; returns what each run
    /// did.
    fn is_carried_out(&self) -> Vec<Leg> {
        let forecast = self.is_planned();
        let recording = self.record("before.json");
        let approvals = self.approvals(&forecast);
        let mut whole = self.rehearsal(&recording, &approvals, &["--wait=2h", "-o", "json"]);
        let whole = whole.output().unwrap();
        assert_eq!(whole.status.code(), Some(0), "{}", output_text(&whole));
        let rehearsed = legs(&whole);
        let course = self.runs();
        let what = |legs: &[Leg]| legs.iter().map(Leg::what).collect::<Vec<_>>();
        assert_eq!(what(&rehearsed), what(&course), "{}", self.key);
        let (forecast, rehearsed, took) = (forecast.lasts, took(&rehearsed), took(&course));
        let times =
            format!("{}: forecast {forecast:#}, rehearsed {rehearsed:#}, took {took:#}", self.key);
        assert!([forecast, rehearsed].iter().all(|it| (*it - took).abs() * 4 <= took), "{times}");
        ends(&self.ds_plan(&["--detailed-exitcode"]), 0, &[]);
        course
    }

    /// Checks that the first screen of the plan has the steps and the earliest end.
    fn is_planned(&self) -> Forecast {
        let text = stdout(&self.ds_plan(&[]));
        let screen: Vec<&str> = text.lines().take(FIRST_SCREEN).map(str::trim_start).collect();
        let has = |words: &str| screen.iter().any(|line| line.starts_with(words));
        for (at, step) in self.steps().enumerate() {
            let words = format!("step {} {} ", at + 1, step["name"].as_str().unwrap());
            assert!(has(&words), "{words}: {text}");
        }
        assert!(has("Earliest end "), "{text}");
        let shown = self.program("ds-apply", &["--dry-run", "-o", "json"], "admin").output();
        let shown = stdout(&shown.unwrap());
        let event: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
        Forecast::of(&event["plan"])
    }

    /// Runs, again after each wait, until nothing is left. Each run is rehearsed, too. An approver
    /// approves what waits for it.
    fn runs(&self) -> Vec<Leg> {
        let (mut course, mut approvals) = (Vec::new(), Vec::new());
        loop {
            let recording = self.record(&format!("{}.json", course.len()));
            let mut rehearsal = self.rehearsal(&recording, &approvals, &["-o", "json"]);
            let rehearsal = thread::spawn(move || rehearsal.output().unwrap());
            let real = self.apply(&["-o", "json"]);
            let [leg] = <[Leg; 1]>::try_from(legs(&real)).unwrap();
            let [rehearsed] = <[Leg; 1]>::try_from(legs(&rehearsal.join().unwrap())).unwrap();
            let (want, got) = ((rehearsed.exit, rehearsed.what()), (leg.exit, leg.what()));
            assert_eq!(want, got, "{}: {}", self.key, output_text(&real));
            match leg.exit {
                Some(8) => sleep_past(leg.until().unwrap()),
                Some(9) => approvals.push(self.approve(&leg.waits_for[0].step)),
                _ => {
                    assert_eq!(leg.exit, Some(0), "{}", output_text(&real));
                    course.push(leg);
                    return course;
                }
            }
            course.push(leg);
        }
    }

    /// Approves a step with the approver's role; returns that as an approval of a rehearsal.
    fn approve(&self, step: &str) -> Value {
        let arguments = ["approve", &self.key, step, "--yes"];
        let approved = self.program("ds-apply", &arguments, APPROVER).output().unwrap();
        ends(&approved, 0, &["is approved: by "]);
        json!({"step": step})
    }

    fn steps(&self) -> impl Iterator<Item = &Value> {
        self.policy["spec"]["steps"].as_array().unwrap().iter()
    }

    /// The approvals for a rehearsal of the whole course: a minute later than each step could begin.
    fn approvals(&self, forecast: &Forecast) -> Vec<Value> {
        let steps = self.steps().filter(|step| step["approve"] == true);
        let approval = |step: &Value| {
            let at = forecast.begins[step["name"].as_str().unwrap()].as_secs() + 60;
            json!({"step": step["name"], "at": format!("{at}s")})
        };
        steps.map(approval).collect()
    }

    /// `ds-apply` by the user of the runs.
    fn apply(&self, flags: &[&str]) -> Output {
        self.program("ds-apply", &[&["--yes"], flags].concat(), self.user).output().unwrap()
    }

    fn ds_plan(&self, flags: &[&str]) -> Output {
        self.program("ds-plan", flags, "admin").output().unwrap()
    }

    /// Records the cluster.
    fn record(&self, name: &str) -> String {
        let out = self.folder.path().join(name).to_str().unwrap().to_owned();
        ends(&self.plane.ds_plan(&["snapshot", "--out", &out], &[]), 0, &[]);
        out
    }

    /// A rehearsal of a recording.
    fn rehearsal(&self, recording: &str, approvals: &[Value], flags: &[&str]) -> Command {
        let faults = json!({
            "apiVersion": "ds-plan.dev/v1alpha1", "kind": "Faults", "approvals": approvals,
        });
        self.write("faults.yaml", &faults);
        let more = ["--rehearse", "--snapshot", recording, "--fault", "faults.yaml"];
        self.offline("ds-apply", &[&more, flags].concat())
    }

    fn program(&self, name: &str, arguments: &[&str], user: &str) -> Command {
        let mut command = self.offline(name, arguments);
        command.arg("--kubeconfig").arg(self.plane.kubeconfig_of(user));
        command
    }

    fn offline(&self, name: &str, arguments: &[&str]) -> Command {
        let program =
            if name == "ds-plan" { cargo_bin!("ds-plan") } else { cargo_bin!("ds-apply") };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .args(["-f", "manifest.yaml", "--policy", "policy.yaml"])
            .current_dir(self.folder.path())
            .env_remove("KUBECONFIG")
            .env("DS_APPLY_MIN_READY_SECONDS", "1")
            .stdin(Stdio::null());
        command
    }

    fn write(&self, name: &str, value: &Value) {
        fs::write(self.folder.path().join(name), value.to_string()).unwrap();
    }
}

impl Forecast {
    fn of(plan: &Value) -> Self {
        let time = |value: &Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
        let observed = time(&plan["cluster"]["observedAt"]);
        let one = &plan["forecast"]["daemonSets"][0];
        let from = one["windowOpens"].as_str().map_or(observed, |opens| opens.parse().unwrap());
        let begins = one["steps"].as_array().unwrap().iter().map(|step| {
            let name = step["name"].as_str().unwrap().to_owned();
            (name, time(&step["begins"]).duration_since(observed))
        });
        Self { lasts: time(&one["earliestEnd"]).duration_since(from), begins: begins.collect() }
    }
}

/// A file of the examples.
fn read(path: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(path);
    serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// A manifest whose pods need little time.
fn quick(mut manifest: Value) -> Value {
    let spec = &mut manifest["spec"];
    let annotations = &mut spec["template"]["metadata"]["annotations"];
    annotations["ready-after"] = "2s".into();
    annotations["terminate-after"] = "1s".into();
    faster(spec);
    if spec["updateStrategy"]["type"] == "OnDelete" {
        spec["updateStrategy"] = json!({"type": "RollingUpdate"});
    }
    manifest
}

/// Divides the times of a policy, or of the `spec` of a manifest.
fn faster(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| match &**name {
            "soak" | "maxDuration" => {
                let span: SignedDuration = field.as_str().unwrap().parse().unwrap();
                *field = format!("{}s", (span / FASTER).as_secs()).into();
            }
            "minReadySeconds" => *field = 1.into(),
            _ => faster(field),
        }),
        Value::Array(items) => items.iter_mut().for_each(faster),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
