//! Missing permissions: reported at once and before anything is written. If a permission is
//! withdrawn during the run, the run stops in a state that can be resumed.

use std::path::Path;
use std::sync::{Arc, Mutex};

use daemonset::model::UpdateStrategy;
use ds_plan::{Ended, Exit, ds_apply_at};
use embedded::{
    Denial, Fault, Hook, Kind, Reason, Rehearsal, Route, Seen, Status, Store, World,
    on_virtual_time,
};
use tokio::sync::mpsc;

use crate::cluster::{self, NAMESPACE};
use crate::crash::scenario;
use crate::objects::live;
use crate::scenario::Scenario;

/// The user of these tests.
const WORKER: &str = "worker";

/// The requests that changed something (no reviews, no dry runs).
#[derive(Clone, Default)]
struct Writes(Arc<Mutex<Vec<String>>>);

/// Records writes, and lets some requests fail.
struct Gate<F> {
    writes: Writes,
    fails: F,
}

impl<F: FnMut(&Seen) -> Option<Fault> + Send> Hook for Gate<F> {
    fn before(&mut self, request: &Seen, _store: &Store) -> Vec<Fault> {
        (self.fails)(request).into_iter().collect()
    }

    fn after(&mut self, request: &Seen, code: u16, _store: &Store) -> Vec<Fault> {
        if let Route::Objects(objects) = &request.route
            && matches!(request.verb, "create" | "update" | "patch" | "delete")
            && (!request.dry_run && request.user == WORKER && code < 300)
        {
            self.writes.0.lock().unwrap().push(format!("{} {}", request.verb, objects.resource()));
        }
        Vec::new()
    }
}

fn forbidden(what: &str) -> Fault {
    let why = format!("{what} is forbidden: User \"worker\" cannot do that");
    Fault::Answer(Status::new(Reason::Forbidden, why))
}

fn is_question(request: &Seen) -> bool {
    request.route == Route::AccessReview
}

fn denied(verb: &str, resource: &str) -> Denial {
    let list = |word: &str| vec![word.to_owned()];
    Denial {
        users: list(WORKER),
        verbs: list(verb),
        resources: list(resource),
        namespaces: Vec::new(),
    }
}

/// The result of a run.
struct Came {
    ended: Ended,
    writes: Vec<String>,
    strategy: Option<UpdateStrategy>,
}

/// Runs a scenario's change as a user who does not have all permissions.
fn run(
    scenario: &Scenario,
    denials: Vec<Denial>,
    fails: impl FnMut(&Seen) -> Option<Fault> + Send + 'static,
    line: &[&str],
) -> Came {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agents.yaml"), cluster::manifests(scenario)).unwrap();
    let snapshot = cluster::snapshot(scenario);
    on_virtual_time(async {
        let world = World::begin(&snapshot, Rehearsal::default()).unwrap();
        let writes = Writes::default();
        world.server().deny(denials);
        world.server().set_hook(Some(Box::new(Gate { writes: writes.clone(), fails })));
        let ended = as_worker(&world, folder.path(), line).await;
        let strategy = live("agent", &world.server().store()).map(|live| live.spec.update_strategy);
        let writes = writes.0.lock().unwrap().clone();
        Came { ended, writes, strategy }
    })
    .unwrap()
}

async fn as_worker(world: &World, folder: &Path, line: &[&str]) -> Ended {
    ds_apply_at(world, WORKER, folder, mpsc::channel(1).1, line).await
}

const APPLY: [&str; 3] = ["-f", "agents.yaml", "--yes"];

/// All permissions are checked in one request and reported in one error, including those for the
/// lock.
#[test]
fn missing_permissions_are_reported_at_once_and_nothing_is_written() {
    let missing = vec![
        denied("delete", "pods"),
        denied("patch", "leases"),
        denied("watch", "controllerrevisions"),
    ];
    let came = run(&scenario("image"), missing, |_| None, &APPLY);
    assert_eq!(came.ended.exit, Exit::Failed);
    let error = came.ended.messages();
    for words in [
        format!("delete pods in namespace {NAMESPACE}: replacing pods"),
        format!("patch leases.coordination.k8s.io in namespace {NAMESPACE}: the lock"),
        format!("watch controllerrevisions.apps in namespace {NAMESPACE}"),
        "ClusterRole ds-apply (deploy/ds-apply.yaml)".to_owned(),
    ] {
        assert!(error.contains(&words), "{words}\n{error}");
    }
    assert_eq!(came.writes, Vec::<String>::new());
}

#[test]
fn each_missing_permission_is_reported_before_any_write() {
    let beside = [
        ("list", "nodes"),
        ("watch", "nodes"),
        ("list", "pods"),
        ("watch", "pods"),
        ("delete", "pods"),
        ("list", "daemonsets"),
        ("watch", "daemonsets"),
        ("patch", "daemonsets"),
        ("list", "controllerrevisions"),
        ("watch", "controllerrevisions"),
        ("patch", "controllerrevisions"),
        ("get", "leases"),
        ("create", "leases"),
        ("patch", "leases"),
    ];
    let instead = [
        ("get", "configmaps"),
        ("list", "configmaps"),
        ("watch", "configmaps"),
        ("create", "configmaps"),
        ("patch", "configmaps"),
        ("get", "pods"),
        ("create", "pods"),
        ("patch", "pods"),
        ("get", "controllerrevisions"),
        ("create", "controllerrevisions"),
        ("patch", "controllerrevisions"),
        ("delete", "controllerrevisions"),
    ];
    let beside = beside.map(|right| ("image", right, &APPLY[..]));
    let managed = [&APPLY[..], &["--managed-by", "ds-apply"]].concat();
    let instead = instead.map(|right| ("no controller", right, &managed[..]));
    let made = [("new", ("create", "daemonsets"), &APPLY[..])];
    for (name, (verb, resource), line) in beside.into_iter().chain(instead).chain(made) {
        let came = run(&scenario(name), vec![denied(verb, resource)], |_| None, line);
        let error = came.ended.messages();
        assert_eq!(came.ended.exit, Exit::Failed, "{verb} {resource}: {error}");
        assert!(error.contains(&format!("{verb} {resource}")), "{verb} {resource}: {error}");
        assert_eq!(came.writes, Vec::<String>::new(), "{verb} {resource}");
    }
}

/// A run without changes needs no permission to write.
#[test]
fn a_run_without_changes_needs_no_write_permission() {
    let may_not = vec![denied("delete", "pods"), denied("patch", "daemonsets")];
    let came = run(&scenario("nothing"), may_not, |_| None, &APPLY);
    assert_eq!((came.ended.exit, came.ended.errors), (Exit::Done, Vec::new()));
}

/// Optional permissions may be missing.
#[test]
fn optional_permissions_may_be_missing() {
    let may_not = vec![
        denied("watch", "events"),
        denied("create", "pods"),
        denied("list", "services"),
        denied("list", "leases"),
    ];
    let came = run(&scenario("image"), may_not, |_| None, &APPLY);
    assert_eq!((came.ended.exit, came.ended.errors), (Exit::Done, Vec::new()));
}

/// A server that forbids access reviews.
#[test]
fn a_run_continues_without_access_reviews() {
    let fails = |request: &Seen| is_question(request).then(|| forbidden("asking"));
    let came = run(&scenario("image"), Vec::new(), fails, &APPLY);
    assert_eq!((came.ended.exit, came.ended.errors), (Exit::Done, Vec::new()));
}

/// Deletes are refused from the second one on, as when a role is removed during the run.
#[test]
fn a_permission_withdrawn_during_the_run_stops_it() {
    let mut deletes = 0;
    let fails = move |request: &Seen| {
        let is_delete = request.verb == "delete"
            && matches!(&request.route, Route::Objects(objects) if objects.kind == Kind::Pod);
        deletes += u32::from(is_delete && request.user == WORKER);
        (is_delete && deletes > 1).then(|| forbidden("pods"))
    };
    let came = run(&scenario("image"), Vec::new(), fails, &APPLY);
    assert_eq!((came.ended.exit, came.ended.errors), (Exit::Paused, Vec::new()));
    assert_eq!(came.strategy, Some(UpdateStrategy::OnDelete));
    assert_eq!(came.writes.iter().filter(|write| *write == "delete pods").count(), 1);
}

/// The strategy cannot be restored: the pods are new, and the DaemonSet stays paused.
#[test]
fn a_strategy_that_cannot_be_restored_stops_the_run() {
    let mut patches = 0;
    let fails = move |request: &Seen| {
        let is_patch = request.verb == "patch"
            && matches!(&request.route, Route::Objects(objects) if objects.kind == Kind::DaemonSet);
        patches += u32::from(is_patch && request.user == WORKER && !request.dry_run);
        (is_patch && patches > 1).then(|| forbidden("daemonsets"))
    };
    let came = run(&scenario("image"), Vec::new(), fails, &APPLY);
    assert_eq!((came.ended.exit, came.ended.errors), (Exit::Paused, Vec::new()));
    assert_eq!(came.strategy, Some(UpdateStrategy::OnDelete));
}

/// With several commands and DaemonSets, no write happens before all permissions are checked.
#[test]
fn all_permissions_are_checked_before_the_first_write() {
    let one = scenario("image");
    let mut agents = one.agents.clone();
    agents.push(crate::scenario::AgentSpec { name: "probe", live: false, ..agents[0].clone() });
    let both = Scenario { agents, ..one };
    // The second DaemonSet has to be created.
    let came = run(&both, vec![denied("create", "daemonsets")], |_| None, &APPLY);
    let error = came.ended.messages();
    assert!(error.contains("create daemonsets.apps"), "{error}");
    assert_eq!((came.ended.exit, came.writes), (Exit::Failed, Vec::new()));
}
