//! The files shipped with the programs: an action, pipelines to copy, manifests of jobs, an image.
//! Downloads are pinned, tokens do not appear in process lists, and every job has a timeout.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_yaml::Value;

use testkit::pages::pages;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Files below a folder with one of these extensions.
fn files(folder: &str, ends: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(ROOT).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if ends.iter().any(|end| path.to_str().unwrap().ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn every_job_has_a_timeout() {
    let mut jobs = 0;
    let blocks = pages().into_iter().flat_map(|(page, text)| {
        let blocks = text.split("```yaml\n").skip(1).map(|it| it.split("```").next().unwrap());
        blocks.map(|block| (page.clone(), block.to_owned())).collect::<Vec<_>>()
    });
    let manifests = ["deploy", "examples"].into_iter().flat_map(|it| files(it, &[".yaml"]));
    let manifests = manifests.filter(|it| !it.to_str().unwrap().contains("helm/chart"));
    let manifests = manifests.map(|path| (path.clone(), text(&path)));
    for (path, text) in manifests.chain(blocks) {
        for document in serde_yaml::Deserializer::from_str(&text) {
            let Ok(document) = Value::deserialize(document) else { continue };
            let job = match document["kind"].as_str() {
                Some("Job") => &document["spec"],
                Some("CronJob") => &document["spec"]["jobTemplate"]["spec"],
                _ => continue,
            };
            jobs += 1;
            let deadline = job["activeDeadlineSeconds"].as_u64();
            assert!(deadline.is_some_and(|it| it > 0), "{}", path.display());
        }
    }
    assert!(jobs >= 3, "{jobs}");
}

/// `1h30m` in seconds.
fn seconds(time: &str) -> u64 {
    let parts = time.split_inclusive(['h', 'm', 's']);
    let of = |part: &str| {
        let (number, unit) = part.split_at(part.len() - 1);
        let length = match unit {
            "h" => 3600,
            "m" => 60,
            _ => 1,
        };
        number.parse::<u64>().unwrap() * length
    };
    parts.map(of).sum()
}

/// A deadline kills a run, which then cannot pause a surge; its own timeout does. Each retry of a Job
/// has the whole timeout again.
#[test]
fn runs_in_the_cluster_end_before_their_jobs_are_killed() {
    let mut runs = 0;
    for path in files("deploy", &[".yaml"]) {
        for document in serde_yaml::Deserializer::from_str(&text(&path)) {
            let Ok(document) = Value::deserialize(document) else { continue };
            let job = match document["kind"].as_str() {
                Some("Job") => &document["spec"],
                Some("CronJob") => &document["spec"]["jobTemplate"]["spec"],
                _ => continue,
            };
            let pod = &job["template"]["spec"];
            let container = &pod["containers"][0];
            if container["command"][0].as_str() != Some("/ds-apply") {
                continue;
            }
            runs += 1;
            let mut args = container["args"].as_sequence().unwrap().iter();
            let timeout = args.find_map(|it| it.as_str()?.strip_prefix("--timeout=")).map(seconds);
            let of_job = job["activeDeadlineSeconds"].as_u64().unwrap();
            let pods = job["backoffLimit"].as_u64().unwrap() + 1;
            let of_pod = pod["activeDeadlineSeconds"].as_u64();
            let deadline = of_pod.or((pods == 1).then_some(of_job));
            assert!(timeout.is_some() && timeout < deadline, "{}", path.display());
            assert!(deadline.unwrap() * pods <= of_job, "{}: {pods} pods", path.display());
        }
    }
    assert_eq!(runs, 2, "apply and resume");
}

/// The hosted runners of GitLab.com end each job after 3 hours, whatever its timeout.
#[test]
fn runs_at_gitlab_end_before_their_jobs_are_killed() {
    let path = Path::new(ROOT).join("examples/ci/gitlab/ds-plan.gitlab-ci.yml");
    let pipeline: Value = serde_yaml::from_str(&text(&path)).unwrap();
    for name in ["ds-apply", "ds-resume"] {
        let job = &pipeline[name];
        let hours = job["timeout"].as_str().unwrap().strip_suffix(" hours").unwrap();
        let hours: u64 = hours.parse().unwrap();
        let script = job["script"][0].as_str().unwrap();
        let (_, timeout) = script.split_once("--timeout ").unwrap();
        let timeout = seconds(timeout.split_whitespace().next().unwrap());
        assert!(timeout < hours * 3600 && hours <= 3, "{name}: {timeout} s of {hours} h");
    }
}

/// GitHub sets `pipefail` only for a shell that is named.
#[test]
fn a_failure_in_a_pipe_fails_a_step() {
    for folder in ["examples/ci/github", ".github/workflows"] {
        for path in files(folder, &[".yml"]) {
            let workflow: Value = serde_yaml::from_str(&text(&path)).unwrap();
            let shell = workflow["defaults"]["run"]["shell"].as_str();
            assert_eq!(shell, Some("bash"), "{}", path.display());
            // The defaults of a job replace those of its workflow.
            for (name, job) in workflow["jobs"].as_mapping().unwrap() {
                let run = &job["defaults"]["run"];
                let shell = run["shell"].as_str();
                let path = path.display();
                assert!(run.is_null() || shell == Some("bash"), "{path}: {name:?}");
            }
        }
    }
    for path in files("action", &[".sh"]) {
        assert!(text(&path).contains("\nset -euo pipefail\n"), "{}", path.display());
    }
}

/// The runners of macOS have bash 3.2, in which an empty array counts as an unset variable.
#[test]
fn the_scripts_of_the_action_expand_no_array_that_may_be_empty() {
    let mut safe = 0;
    for path in files("action", &[".sh"]) {
        let text = text(&path);
        for (at, _) in text.match_indices("[@]}\"") {
            let start = text[..at].rfind("\"${").unwrap();
            let name = &text[start + 3..at];
            let is_safe = text[..start].ends_with(&format!("${{{name}[@]+"));
            let filled = text.contains(&format!("\n{name}=(-"));
            assert!(is_safe || filled, "{}: {name}", path.display());
            safe += usize::from(is_safe);
        }
    }
    assert_eq!(safe, 3);
}

#[test]
fn actions_and_images_are_pinned_by_digest() {
    let mut seen = 0;
    let workflows = ["examples/ci/github", ".github/workflows"].into_iter();
    let workflows = workflows.flat_map(|folder| files(folder, &[".yml"]));
    for path in workflows.chain([Path::new(ROOT).join("action.yml")]) {
        for line in text(&path).lines().filter(|line| line.contains("uses: ")) {
            let name = line.split("uses: ").nth(1).unwrap();
            if name.starts_with("YOUR-ORG/") {
                continue;
            }
            let (_, version) = name.split_once('@').unwrap();
            let (id, comment) = version.split_once(" # v").unwrap_or_else(|| panic!("{line}"));
            let is_id = id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_id && comment.starts_with(|c: char| c.is_ascii_digit()), "{line}");
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
    for line in text(&Path::new(ROOT).join("Containerfile")).lines() {
        if let Some(image) = line.strip_prefix("FROM ").filter(|image| *image != "scratch") {
            assert!(image.contains("@sha256:"), "{line}");
        }
    }
}

#[test]
fn applies_use_no_cache() {
    let action: Value = serde_yaml::from_str(&text(&Path::new(ROOT).join("action.yml"))).unwrap();
    for step in action["runs"]["steps"].as_sequence().unwrap() {
        if step["uses"].as_str().is_some_and(|uses| uses.starts_with("actions/cache@")) {
            let condition = step["if"].as_str().unwrap();
            assert!(condition.contains("&& inputs.cache == 'true'"), "{condition}");
        }
    }
    let path = Path::new(ROOT).join("examples/ci/github/ds-apply.yml");
    let workflow: Value = serde_yaml::from_str(&text(&path)).unwrap();
    for (_, job) in workflow["jobs"].as_mapping().unwrap() {
        for step in job["steps"].as_sequence().unwrap() {
            let uses = step["uses"].as_str().unwrap_or_default();
            assert!(!uses.starts_with("actions/cache"), "{uses}");
            if uses.contains("/ds-plan@") {
                assert_eq!(step["with"]["cache"].as_str(), Some("false"), "{step:?}");
            }
        }
    }
}

/// All users of a machine can read the arguments of a process.
#[test]
fn tokens_are_in_no_arguments() {
    let scripts = files("action", &[".sh"]).into_iter();
    let scripts = scripts.chain(files("examples/ci", &[".yml"]));
    let mut tokens = 0;
    for path in scripts {
        for line in text(&path).lines().filter(|line| line.contains("_TOKEN")) {
            let line = line.trim();
            if line.starts_with('#') || !line.contains('$') || line.contains(": ${{ ") {
                continue;
            }
            // Into a pipe from which curl reads its header; `printf` is built into the shell.
            assert!(line.contains("--header @<(printf '"), "{}: {line}", path.display());
            tokens += 1;
        }
    }
    assert!(tokens >= 3, "{tokens}");
}

/// The author of a merge request controls the jobs of its pipeline.
#[test]
fn pipelines_of_merge_requests_have_no_token_that_writes() {
    let path = Path::new(ROOT).join("examples/ci/gitlab/ds-plan.gitlab-ci.yml");
    let pipeline: Value = serde_yaml::from_str(&text(&path)).unwrap();
    let mut jobs = 0;
    for (name, job) in pipeline.as_mapping().unwrap() {
        let rules = serde_yaml::to_string(&job["rules"]).unwrap();
        let whole = serde_yaml::to_string(job).unwrap();
        if rules.contains("merge_request_event") {
            jobs += 1;
            assert!(!whole.contains("DS_PLAN_TOKEN"), "{name:?}");
            assert!(!whole.contains("KUBECONFIG"), "{name:?}");
        } else if whole.contains("DS_PLAN_TOKEN") {
            assert!(rules.contains("CI_COMMIT_REF_PROTECTED"), "{name:?}");
        }
    }
    assert_eq!(jobs, 1);
}

/// The version of Go that a module asks for.
fn go_of(module: &Path) -> Vec<u32> {
    let module = text(module);
    let version = module.lines().find_map(|line| line.strip_prefix("go ")).unwrap();
    version.split('.').map(|number| number.parse().unwrap()).collect()
}

/// With an older one, Go downloads another during the job, or fails if `GOTOOLCHAIN` is `local`.
#[test]
fn workflows_install_the_newest_go_that_a_module_asks_for() {
    let modules = ["tests/control_plane/tools", "tests/pipelines"].into_iter();
    let modules = modules.flat_map(|folder| files(folder, &["/go.mod"]));
    let newest = modules.map(|module| go_of(&module)).max().unwrap();
    let (mut installed, mut named) = (0, 0);
    for path in files(".github", &[".yml"]) {
        for line in text(&path).lines() {
            installed += usize::from(line.contains("uses: actions/setup-go@"));
            if let Some(module) = line.trim().strip_prefix("go-version-file: ") {
                let version = go_of(&Path::new(ROOT).join(module));
                assert_eq!(version, newest, "{}: {module}", path.display());
                named += 1;
            }
        }
    }
    assert!(named > 0 && named == installed, "{named} of {installed}");
}
