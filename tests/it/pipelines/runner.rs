//! A runner of GitHub with a composite action, as far as `action.yml` needs it: replaces inputs and
//! outputs, and runs each step's shell with the runner's environment variables.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};

use super::api::{Api, TOKEN};
use testkit::sandbox::{Run, Sandbox};

pub(crate) const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A job on a pull request, after its checkout.
pub(crate) struct Runner<'a> {
    pub(crate) sandbox: &'a Sandbox,
    /// The folder of the checkout.
    pub(crate) checkout: PathBuf,
    pub(crate) api: &'a Api,
    /// The repository of the request's branch.
    pub(crate) head: &'static str,
    /// The target branch of the request; empty for a push.
    pub(crate) base: &'static str,
    /// Whether ds-plan is on `PATH`.
    pub(crate) installed: bool,
}

/// The result of a job with the action.
#[derive(Debug, Default)]
pub(crate) struct Job {
    /// The exit status of the step that failed.
    pub(crate) failed: Option<i32>,
    /// The job's log.
    pub(crate) log: String,
    pub(crate) summary: String,
    outputs: BTreeMap<String, String>,
}

impl Job {
    /// An output of a step.
    pub(crate) fn output(&self, step: &str, name: &str) -> &str {
        self.outputs.get(&format!("steps.{step}.outputs.{name}")).map_or("", String::as_str)
    }

    /// The workflow commands in the log.
    pub(crate) fn orders(&self) -> Vec<&str> {
        self.log.lines().filter(|line| line.trim_start().starts_with("::")).collect()
    }
}

impl Runner<'_> {
    /// Runs the action with these inputs.
    pub(crate) fn run(&self, inputs: &[(&str, &str)]) -> Job {
        let action = yaml(&Path::new(ROOT).join("action.yml"));
        let mut values: BTreeMap<String, String> = BTreeMap::new();
        values.insert("github.token".to_owned(), TOKEN.to_owned());
        for (name, input) in action["inputs"].as_object().unwrap() {
            let default = filled(input["default"].as_str().unwrap_or_default(), &values);
            values.insert(format!("inputs.{name}"), default);
        }
        for (name, value) in inputs {
            let old = values.insert(format!("inputs.{name}"), (*value).to_owned());
            assert!(old.is_some(), "the action has no input {name}");
        }
        let mut job = Job { outputs: values, ..Job::default() };
        for step in action["runs"]["steps"].as_array().unwrap() {
            if job.failed.is_none() && holds(step["if"].as_str(), &job.outputs) {
                self.step(step, &mut job);
            }
        }
        job
    }

    fn step(&self, step: &Value, job: &mut Job) {
        // Steps that use other actions are not tested.
        let Some(script) = step["run"].as_str() else { return };
        assert!(!script.contains("${{"), "untrusted text must be passed in `env`: {script}");
        let [output, summary] = ["output", "summary"].map(|name| self.sandbox.path(name));
        fs::write(&output, "").unwrap();
        let mut bash = bash(&self.checkout, options(step, &Value::Null, &Value::Null), script);
        self.surround(&mut bash, &output, &summary);
        for (name, value) in step["env"].as_object().into_iter().flatten() {
            bash.env(name, filled(value.as_str().unwrap(), &job.outputs));
        }
        let run = self.sandbox.run(bash);
        job.log.push_str(&run.stdout);
        job.log.push_str(&run.stderr);
        job.failed = run.code.filter(|code| *code != 0);
        job.summary = fs::read_to_string(&summary).unwrap_or_default();
        let id = step["id"].as_str().unwrap_or("none");
        for line in fs::read_to_string(&output).unwrap().lines() {
            let (name, value) = line.split_once('=').unwrap();
            job.outputs.insert(format!("steps.{id}.outputs.{name}"), value.to_owned());
        }
    }

    /// Sets the variables of a runner.
    fn surround(&self, bash: &mut Command, output: &Path, summary: &Path) {
        let event = json!({"pull_request": {
            "number": 7, "head": {"repo": {"full_name": self.head}},
        }});
        self.sandbox.write("event.json", event.to_string());
        fs::create_dir_all(self.sandbox.path("temp")).unwrap();
        if !self.installed {
            bash.env("PATH", system_path());
        }
        bash.env("CI", "true")
            .env("GITHUB_ACTIONS", "true")
            .env("GITHUB_ACTION_PATH", ROOT)
            .env("GITHUB_API_URL", &self.api.url)
            .env("GITHUB_BASE_REF", self.base)
            .env("GITHUB_EVENT_PATH", self.sandbox.path("event.json"))
            .env("GITHUB_OUTPUT", output)
            .env("GITHUB_PATH", self.sandbox.path("path"))
            .env("GITHUB_REPOSITORY", "octo/fleet")
            .env("GITHUB_STEP_SUMMARY", summary)
            .env("RUNNER_TEMP", self.sandbox.path("temp"));
    }
}

/// The options of bash for a step that names its shell, and for each job of GitLab.
pub(crate) const PIPEFAIL: &[&str] = &["--noprofile", "--norc", "-eo", "pipefail"];

/// The options of bash for a step. GitHub sets `pipefail` only if the shell is named: by the step, or
/// in the defaults of its job, which replace those of the workflow.
pub(crate) fn options(step: &Value, job: &Value, workflow: &Value) -> &'static [&'static str] {
    let mut defaults = [job, workflow].into_iter().map(|it| &it["defaults"]["run"]);
    let shell = defaults.find(|run| !run.is_null()).and_then(|run| run["shell"].as_str());
    match step["shell"].as_str().or(shell) {
        Some("bash") => PIPEFAIL,
        None => &["-e"],
        Some(other) => panic!("unsupported shell: {other}"),
    }
}

/// A script as the runners of GitHub and GitLab start one, with ds-plan and ds-apply on `PATH`.
pub(crate) fn bash(folder: &Path, options: &[&str], script: &str) -> Command {
    let programs = cargo_bin!("ds-plan").parent().unwrap();
    let mut bash = Command::new("bash");
    bash.args(options).args(["-c", script]);
    bash.current_dir(folder).env_clear();
    bash.env("PATH", format!("{}:{}", programs.display(), system_path()));
    bash
}

#[expect(clippy::disallowed_methods, reason = "git, curl and jq are found on the PATH")]
fn system_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

/// Runs such a script to its end, with further variables.
pub(crate) fn ran(
    sandbox: &Sandbox,
    options: &[&str],
    script: &str,
    variables: &[(&str, &str)],
) -> Run {
    let mut bash = bash(&sandbox.path("checkout"), options, script);
    bash.env("HOME", sandbox.path("home"));
    bash.envs(variables.iter().copied());
    sandbox.run(bash)
}

/// A YAML file as JSON.
pub(crate) fn yaml(file: &Path) -> Value {
    serde_yaml::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// `text` with each `${{ NAME }}` replaced by its value.
fn filled(text: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    for (nth, piece) in text.split("${{").enumerate() {
        match piece.split_once("}}") {
            Some((name, rest)) if nth > 0 => {
                filled.push_str(values.get(name.trim()).map_or("", String::as_str));
                filled.push_str(rest);
            }
            _ => filled.push_str(piece),
        }
    }
    filled
}

/// Evaluates `NAME == 'TEXT'` or `NAME != 'TEXT'`; `true` without a condition.
fn holds(condition: Option<&str>, values: &BTreeMap<String, String>) -> bool {
    let Some(condition) = condition else { return true };
    if let Some((one, other)) = condition.split_once(" && ") {
        return holds(Some(one), values) && holds(Some(other), values);
    }
    let words: Vec<&str> = condition.split(' ').collect();
    let [name, operator, text] = words[..] else { panic!("unsupported condition: {condition}") };
    let same = values.get(name).map_or("", String::as_str) == text.trim_matches('\'');
    match operator {
        "==" => same,
        "!=" => !same,
        _ => panic!("unsupported condition: {condition}"),
    }
}
