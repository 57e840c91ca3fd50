//! Rehearsals of the example fleet: the real program on the embedded cluster, from the command line
//! to an empty plan.

use std::fs;
use std::path::Path;

use daemonset::model::mask::{Salt, mask_annotations, mask_template};
use serde_json::Value;
use testkit::pages::pages;
use testkit::sandbox::{Run, Sandbox};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// One of the examples, by its path in the repository.
fn example(path: &str) -> String {
    Path::new(ROOT).join("examples").join(path).to_str().unwrap().to_owned()
}

fn manifests() -> String {
    format!("-f {}", example("fleet/manifests"))
}

fn rehearse(sandbox: &Sandbox, more: &str) -> Run {
    let snapshot = example("fleet/cluster.json");
    sandbox.ds_apply(&format!("--rehearse --snapshot {snapshot} {} {more}", manifests()))
}

#[test]
fn the_fleet_is_rolled_out_and_nothing_is_left_to_plan() {
    let sandbox = Sandbox::new();
    let run = rehearse(&sandbox, "--save after.json --keep-going");
    assert_eq!(run.code, Some(0), "{run}");
    let again =
        sandbox.ds_plan(&format!("--snapshot after.json {} --detailed-exitcode", manifests()));
    assert_eq!(again.code, Some(0), "{again}");
    let history = sandbox.ds_plan("history --snapshot after.json logging/fluent-bit");
    assert!(history.stdout.lines().any(|line| line.starts_with("4  ")), "{history}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let sandbox = Sandbox::new();
    let faults = example("faults/bad-day.yaml");
    let run = |seed: u32| {
        let only = "logging/fluent-bit";
        let run = rehearse(
            &sandbox,
            &format!("{only} --fault {faults} --save {seed}.json --seed {seed}"),
        );
        (run.to_string(), fs::read(sandbox.path(&format!("{seed}.json"))).unwrap())
    };
    let first = run(1);
    let again = run(1);
    assert_eq!(first.0, again.0);
    assert!(first.1 == again.1, "the clusters afterwards differ");
    assert!(first.1 != run(2).1, "another seed is another run");
}

#[test]
fn a_missing_image_aborts_the_rollout() {
    for faults in ["faults/image-never-pulls.yaml", "faults/crash-loop.yaml"] {
        let sandbox = Sandbox::new();
        let run = rehearse(&sandbox, &format!("logging/fluent-bit --fault {}", example(faults)));
        assert_eq!(run.code, Some(4), "{faults}: {run}");
        assert!(run.stdout.contains("to roll back: ds-apply undo logging/fluent-bit\n"), "{run}");
    }
}

/// Credentials that are no longer accepted: the run waits, and ends with the reason.
#[test]
fn a_run_whose_credentials_expire_ends_with_the_reason() {
    let sandbox = Sandbox::new();
    let faults = "api: [{answer: {refused: 401}, when: {from: 20s}}]";
    let header = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\n";
    sandbox.write("faults.yaml", format!("{header}{faults}\n"));
    let run = rehearse(&sandbox, "logging/fluent-bit --fault faults.yaml");
    assert_eq!(run.code, Some(4), "{run}");
    let why =
        "paused: the cluster could not be observed for 10m: cannot renew the lock: the API server";
    let line = run.stdout.lines().find(|line| line.contains(why)).unwrap_or_default();
    assert!(line.ends_with("does not accept the credentials"), "{run}");
    let reported = "no pods are deleted for now: cannot renew the lock: the API server";
    assert_eq!(run.stdout.matches(reported).count(), 1, "{run}");
    assert!(run.stdout.contains("to resume: "), "{run}");
}

/// It would fail again in the same way.
#[test]
fn a_failed_undo_does_not_suggest_itself() {
    let (snapshot, faults) =
        (example("fleet/cluster.json"), example("faults/image-never-pulls.yaml"));
    let flags = format!("--rehearse --snapshot {snapshot} --fault {faults}");
    let run = Sandbox::new().ds_apply(&format!("undo logging/fluent-bit {flags}"));
    assert_eq!(run.code, Some(4), "{run}");
    assert!(run.stdout.contains("ds-apply undo logging/fluent-bit --to-revision N"), "{run}");
}

/// The recording of the fleet, changed.
fn recording(change: impl Fn(&mut Value)) -> String {
    let text = fs::read_to_string(example("fleet/cluster.json")).unwrap();
    let mut list: Value = serde_json::from_str(&text).unwrap();
    list["items"].as_array_mut().unwrap().iter_mut().for_each(change);
    list.to_string()
}

/// The recording of the fleet as `ds-plan snapshot --mask-values` writes it.
fn masked_recording(salt: &Salt) -> String {
    let masked = recording(|object| {
        let template = match object["kind"].as_str() {
            Some("DaemonSet") => "/spec/template",
            Some("ControllerRevision") => "/data/spec/template",
            _others => return,
        };
        mask_template(object.pointer_mut(template).unwrap(), salt);
        mask_annotations(object, salt);
    });
    let mut list: Value = serde_json::from_str(&masked).unwrap();
    list["dsPlan"]["salt"] = salt.to_string().into();
    list.to_string()
}

/// The digests of the recording are compared with the manifests under its salt, also later, in the
/// saved cluster.
#[test]
fn a_masked_recording_is_rehearsed_as_the_plain_one() {
    let salt = Salt::from_bytes([7; 16]);
    let sandbox = Sandbox::new();
    sandbox.write("masked.json", masked_recording(&salt));
    let flags = format!("{} --keep-going --save after.json", manifests());
    let masked = sandbox.ds_apply(&format!("--rehearse --snapshot masked.json {flags}"));
    assert_eq!(masked.code, Some(0), "{masked}");
    let plain = rehearse(&Sandbox::new(), "--keep-going");
    let decided = |run: &Run| {
        let is_plan = |line: &&str| line.contains("Plan: ");
        let plans: Vec<String> = run.stdout.lines().filter(is_plan).map(str::to_owned).collect();
        let ended = run.stdout.lines().filter_map(|line| line.strip_suffix("  done"));
        let done = ended.filter_map(|line| line.split_once(' ')).map(|(_at, name)| name.to_owned());
        (plans, done.collect::<Vec<String>>())
    };
    assert_eq!(decided(&masked), decided(&plain), "{masked}");
    assert_eq!(decided(&masked).1.len(), 4, "{masked}");

    let saved = fs::read_to_string(sandbox.path("after.json")).unwrap();
    assert!(saved.contains(&salt.to_string()), "the salt is lost");
    assert!(!saved.contains("--config=/etc/trace-agent"), "a value of the manifests is not masked");
    let again =
        sandbox.ds_plan(&format!("--snapshot after.json {} --detailed-exitcode", manifests()));
    assert_eq!(again.code, Some(0), "{again}");
}

/// Conflicts are forced as on a real server, whatever the recording has of the owners.
#[test]
fn conflicts_are_forced_in_a_rehearsal() {
    let applied_by = |manager: &'static str, operation: &'static str| {
        recording(move |object| {
            let entries = object["metadata"]["managedFields"].as_array_mut();
            for entry in entries.into_iter().flatten().filter(|it| it["manager"] == "ds-apply") {
                entry["manager"] = manager.into();
                entry["operation"] = operation.into();
            }
        })
    };
    // As `kubectl get` prints it without --show-managed-fields.
    let unknown = recording(|object| {
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
    });
    for (recording, manager) in [
        (applied_by("helm", "Apply"), "helm"),
        (applied_by("kubectl-client-side-apply", "Update"), "kubectl-client-side-apply"),
        (unknown, "before-first-apply"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("cluster.json", &recording);
        let rehearse = |flags: &str| {
            let only = "--rehearse --snapshot cluster.json logging/fluent-bit";
            sandbox.ds_apply(&format!("{only} {} {flags}", manifests()))
        };
        let blocked = rehearse("");
        assert_eq!(blocked.code, Some(6), "{manager}: {blocked}");
        let run = rehearse(&format!("--force-conflicts={manager}"));
        assert_eq!(run.code, Some(0), "{manager}: {run}");
        assert!(run.stdout.contains("33 nodes replaced"), "{manager}: {run}");
    }
}

/// A recording has no PriorityClasses: those that templates name are taken to exist.
#[test]
fn a_priority_class_is_taken_to_exist() {
    let sandbox = Sandbox::new();
    let manifest = fs::read_to_string(example("fleet/manifests/fluent-bit.yaml")).unwrap();
    let named = manifest.replace("system-node-critical", "agents");
    assert!(named.contains("priorityClassName: agents"), "{named}");
    sandbox.write("agent.yaml", &named);
    let snapshot = example("fleet/cluster.json");
    let run = sandbox.ds_apply(&format!("--rehearse --snapshot {snapshot} -f agent.yaml"));
    assert_eq!(run.code, Some(0), "{run}");
    let unknown = "whether PriorityClass agents exists (not read)";
    assert!(run.stderr.contains(unknown), "{run}");
}

#[test]
fn an_invalid_fault_document_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.write("faults.yaml", "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\nimage: []\n");
    let run = rehearse(&sandbox, "--fault faults.yaml");
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stderr.contains("faults.yaml is not a Faults document: "), "{run}");
    let missing = rehearse(&sandbox, "--fault none.yaml");
    assert!(missing.stderr.contains("cannot read the faults none.yaml"), "{missing}");
}

#[test]
fn the_shown_rehearsal_rolls_the_fleet_out_and_plans_again() {
    let pages = pages();
    let shown = pages
        .iter()
        .flat_map(|(_, page)| page.split("<!-- run by it::rehearsal -->\n```console\n").skip(1));
    let lines: Vec<&str> = shown.map(|block| block.lines().next().unwrap()).collect();
    // Both programs: `cargo run --bin ds-apply` would build the launcher alone.
    let line = "cargo build --release --bins && target/release/ds-apply --rehearse --path \
                examples/fleet/manifests --snapshot examples/fleet/cluster.json --keep-going";
    assert_eq!(lines, [line, line], "in README.md and in the guide");
    let run = rehearse(&Sandbox::new(), "--keep-going");
    assert_eq!(run.code, Some(0), "{run}");
    let plans: Vec<&str> = run.stdout.lines().filter(|it| it.starts_with("Plan: ")).collect();
    let [before, after] = plans.as_slice() else { panic!("{run}") };
    assert!(before.contains("72 to replace"), "{before}");
    let nothing = "Plan: 0 to create, 0 to delete, 0 to replace, 0 to surge, ";
    assert!(after.starts_with(nothing), "{after}");
    assert!(run.stdout.contains("\nAbout "), "{run}");
    let charts = &run.stderr[run.stderr.find("REHEARSAL  nodes over time").unwrap()..];
    assert!(pages.iter().any(|(_, page)| page.contains(charts)), "the guide shows: {charts}");
}

#[test]
fn other_commands_are_rehearsed_too() {
    let sandbox = Sandbox::new();
    let snapshot = example("fleet/cluster.json");
    for (line, code, want) in [
        ("undo logging/fluent-bit", 0, "35 nodes replaced"),
        ("roll gpu/gpu-device-plugin", 0, "of the cluster's time"),
        (
            "roll gpu/gpu-device-plugin",
            0,
            "OnDelete, this run replaces pods, at most 1 unavailable",
        ),
        ("step gpu/gpu-device-plugin --count 1", 0, "of the cluster's time"),
        // Its pod is up to date.
        ("step gpu/gpu-device-plugin --nodes gpu-a-01", 0, "Plan: nothing to do"),
        ("step gpu/gpu-device-plugin --nodes gpu-z-99", 1, "error: node gpu-z-99 not found"),
        ("release logging/fluent-bit", 64, "a release cannot be rehearsed"),
    ] {
        let run = sandbox.ds_apply(&format!("{line} --rehearse --snapshot {snapshot}"));
        assert_eq!(run.code, Some(code), "{line}: {run}");
        assert!(run.to_string().contains(want), "{line}: {run}");
    }
}

/// Nobody takes a rehearsal for the real run, in whatever format and wherever it is read.
#[test]
fn a_rehearsal_says_that_it_is_one() {
    let sandbox = Sandbox::new();
    let text = rehearse(&sandbox, "logging/fluent-bit");
    assert!(text.stdout.starts_with("REHEARSAL  on an embedded copy"), "{text}");
    let lines = || text.stdout.lines().chain(text.stderr.lines());
    for heading in ["ds-plan  1 DaemonSet", "Plan: nothing to do", "nodes over time", "40 nodes: "]
    {
        let found: Vec<&str> = lines().filter(|line| line.contains(heading)).collect();
        assert!(!found.is_empty(), "{heading}: {text}");
        for line in found {
            assert!(line.starts_with("REHEARSAL  "), "{line}");
        }
    }

    let page = rehearse(&sandbox, "logging/fluent-bit -o html").stdout;
    let titles = page.split("<title>").skip(1).chain(page.split("<h1>").skip(1));
    let titles = titles.chain(page.split("<h2 ").skip(1).map(|it| it.split_once('>').unwrap().1));
    let titles: Vec<&str> = titles.map(|it| it.split("</").next().unwrap()).collect();
    assert_eq!(titles.len(), 5, "{titles:?}");
    assert!(titles.iter().all(|title| title.starts_with("REHEARSAL: ")), "{titles:?}");
}

/// The events of a run, each checked against its schema.
fn events(run: &Run) -> Vec<Value> {
    let schema = fs::read_to_string(Path::new(ROOT).join("schemas/run-event.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> = validator.iter_errors(&event).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{line}: {errors:?}");
        assert_eq!(event["apiVersion"], "ds-plan.dev/v1alpha1");
        event
    };
    run.stdout.lines().map(event).collect()
}

#[test]
fn the_events_begin_with_the_plan_and_end_with_the_end() {
    let sandbox = Sandbox::new();
    let aborted = format!("logging/fluent-bit --fault {}", example("faults/crash-loop.yaml"));
    for (flags, code, message, kinds) in [
        ("logging/fluent-bit", 0, "done", &["writing", "deleting", "arrived", "progress"][..]),
        ("tracing/trace-agent", 0, "done", &["arrived"]),
        ("monitoring/node-exporter", 0, "nothing to do", &[]),
        (&aborted, 4, "paused or aborted", &["failed"]),
    ] {
        let run = rehearse(&sandbox, &format!("{flags} -o json"));
        assert_eq!(run.code, Some(code), "{run}");
        let events = events(&run);
        let [first, .., last] = &events[..] else { panic!("{run}") };
        assert_eq!(first["event"], "plan", "{flags}");
        assert_eq!(first["plan"]["rehearsal"], true, "{flags}");
        assert_eq!(last["event"], "runEnded", "{flags}");
        assert_eq!((&last["exitCode"], &last["message"]), (&code.into(), &message.into()));
        assert!(events.iter().all(|event| event["rehearsal"] == true), "{run}");
        for kind in kinds {
            assert!(events.iter().any(|event| event["event"] == *kind), "{flags}: {kind}");
        }
    }
    let missing = sandbox.ds_apply("--rehearse -o json --snapshot none.json -f none");
    let [end] = &events(&missing)[..] else { panic!("{missing}") };
    assert_eq!((&end["event"], &end["exitCode"]), (&"runEnded".into(), &1.into()), "{missing}");
}

/// The charts count what the budget counts. What it does not count is apart, so that no chart seems
/// to break a budget that held.
#[test]
fn the_charts_show_a_budget_that_held() {
    let sandbox = Sandbox::new();
    let run = rehearse(&sandbox, "--keep-going -o json");
    let chart = run.stderr.split("REHEARSAL  nodes over time").nth(1).unwrap();
    let row = |name: &str, what: &str| {
        let mut lines = chart.lines().skip_while(|line| !line.contains(name));
        let row = lines.find(|line| line.contains(what));
        let end = row.unwrap_or_else(|| panic!("{name}, {what}: {run}")).rsplit("at most ");
        end.into_iter().next().unwrap().to_owned()
    };
    let (lost, first) = ("without an available pod", "waiting for their first pod");
    assert_eq!(row("overlay-agent", lost), "1, budget 1; 1 node skipped as NotReady");
    assert_eq!(row("fluent-bit", lost), "4, budget 4");
    assert_eq!(row("fluent-bit", first), "4");
    assert_eq!(row("node-problem-detector", first), "33");
    assert_eq!(row("trace-agent", "with an old and a new pod"), "9, budget 9");

    let page = rehearse(&sandbox, "--keep-going -o html").stdout;
    for (name, what) in [
        ("kube-system/overlay-agent", lost),
        ("logging/fluent-bit", lost),
        ("logging/fluent-bit", first),
        ("monitoring/node-problem-detector", first),
        ("tracing/trace-agent", "with an old and a new pod"),
    ] {
        let chart = format!("aria-label=\"{name}: nodes {what} over time");
        assert_eq!(page.matches(&chart).count(), 1, "{chart}");
    }
    let lost_new = format!("aria-label=\"monitoring/node-problem-detector: nodes {lost}");
    assert!(!page.contains(&lost_new), "new nodes break no budget");
}
