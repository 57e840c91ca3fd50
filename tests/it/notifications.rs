//! Notifications about a run (`--notify`): what an endpoint gets, and what it can do to the run:
//! nothing. The runs are rehearsals, which notify as real ones do.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::fixture::{AGENT, cluster_with};
use testkit::sandbox::{Run, Sandbox};

pub(crate) const SECRET: &str = "hunter2-hunter2-hunter2";
pub(crate) const OK: &str = "HTTP/1.1 204 No Content\r\n\r\n";
const ERROR: &str = "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";

/// A posted document, as it arrived.
#[derive(Clone, Debug)]
struct Posted {
    signature: String,
    body: String,
}

impl Posted {
    fn document(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// An endpoint on loopback, and what it has got.
pub(crate) struct Receiver {
    pub(crate) url: String,
    posted: Arc<Mutex<Vec<Posted>>>,
}

impl Receiver {
    /// Answers with these, then always with the last one; an empty one is no answer at all.
    pub(crate) fn answering(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let posted = Arc::new(Mutex::new(Vec::new()));
        let (seen, answers) = (Arc::clone(&posted), answers.iter().map(ToString::to_string));
        let answers: Vec<String> = answers.collect();
        thread::spawn(move || {
            for (at, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                seen.lock().unwrap().push(receive(&stream));
                let answer = answers.get(at).or(answers.last()).unwrap().clone();
                if answer.is_empty() {
                    // The connection stays open.
                    std::mem::forget(stream);
                } else {
                    let _ = (&stream).write_all(answer.as_bytes());
                }
            }
        });
        Self { url: format!("http://127.0.0.1:{port}/PATH-SECRET?token=QUERY-SECRET"), posted }
    }

    fn posted(&self) -> Vec<Posted> {
        self.posted.lock().unwrap().clone()
    }

    pub(crate) fn documents(&self) -> Vec<Value> {
        self.posted().iter().map(Posted::document).collect()
    }

    /// The events, in the order of their arrival.
    fn events(&self) -> Vec<String> {
        let event = |it: &Value| it["event"].as_str().unwrap().to_owned();
        self.documents().iter().map(event).collect()
    }
}

fn receive(stream: &TcpStream) -> Posted {
    let mut reader = BufReader::new(stream);
    let (mut signature, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(": ") else {
            if line.trim().is_empty() {
                break;
            }
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "x-ds-plan-signature-256" => value.clone_into(&mut signature),
            _other => {}
        }
    }
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body).unwrap();
    Posted { signature, body }
}

/// HMAC-SHA256 as RFC 2104 defines it.
pub(crate) fn hmac(secret: &[u8], body: &[u8]) -> String {
    let mut key = [0; 64];
    key[..secret.len()].copy_from_slice(secret);
    let hash = |pad: u8, rest: &[u8]| {
        let padded = key.map(|byte| byte ^ pad);
        Sha256::new().chain_update(padded).chain_update(rest).finalize()
    };
    let bytes = hash(0x5c, &hash(0x36, body));
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

const POLICY: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: agents}
spec: {selects: {names: [logging/agent]}, steps: [{name: canary, nodes: 1, soak: 30m}]}
";

/// Version 1 runs on two nodes; version 2 is in the source, with a secret that is its image, which
/// kubelets quote.
pub(crate) fn sandbox() -> Sandbox {
    let next = AGENT.replace(
        "image: registry.example/agent:1",
        "image: registry.example/agent:2\n          args: [--token=registry.example/agent:2]",
    );
    let cluster = cluster_with(AGENT, &["node-1", "node-2"]).to_string();
    let sandbox = Sandbox::with(&[("cluster.json", &cluster), ("deploy/agent.yaml", &next)]);
    sandbox.write("secret", format!("{SECRET}\n"));
    sandbox
}

const LINE: &str = "--rehearse --snapshot cluster.json -f deploy --notify-secret-file secret \
                    --force-conflicts=before-first-apply";

/// Rehearses with this endpoint; what must never be shown, is not.
fn run(sandbox: &Sandbox, receiver: &Receiver, more: &str) -> Run {
    let run = sandbox.ds_apply(&format!("{LINE} --notify {} {more}", receiver.url));
    for secret in [SECRET, "PATH-SECRET", "QUERY-SECRET"] {
        assert!(!run.to_string().contains(secret), "{run}");
    }
    run
}

#[test]
fn a_run_posts_its_start_its_waits_and_its_end_in_order() {
    let (sandbox, receiver) = (sandbox(), Receiver::answering(&[OK]));
    sandbox.write("deploy/policy.yaml", POLICY);
    let done = run(&sandbox, &receiver, "--wait 2h");
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(receiver.events(), ["started", "waitingFor", "ended", "runEnded"], "{done}");
    let documents = receiver.documents();
    assert_eq!(documents[0]["nodes"], 2);
    assert_eq!(documents[1]["waitsFor"][0]["kind"], "soak");
    assert_eq!(documents[1]["waitsFor"][0]["step"], "canary");
    assert_eq!((&documents[2]["exitCode"], &documents[2]["replaced"]), (&json!(0), &json!(2)));
    for document in &documents[..3] {
        assert_eq!(document["daemonSet"], "logging/agent");
    }
    let schema = include_str!("../../schemas/run-event.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    for Posted { signature, body } in receiver.posted() {
        assert_eq!(signature, format!("sha256={}", hmac(SECRET.as_bytes(), body.as_bytes())));
        let document: Value = serde_json::from_str(&body).unwrap();
        assert!(jsonschema::is_valid(&schema, &document), "{body}");
        assert_eq!(document["rehearsal"], true, "{body}");
        assert!(!body.contains("-SECRET") && !body.contains(SECRET), "{body}");
    }

    // The next run has nothing to do, and posts nothing.
    let again = sandbox.ds_apply(&format!("{LINE} --save after.json --wait 2h"));
    assert_eq!(again.code, Some(0), "{again}");
    let quiet = Receiver::answering(&[OK]);
    let line = LINE.replace("cluster.json", "after.json");
    let done = sandbox.ds_apply(&format!("{line} --notify {}", quiet.url));
    assert_eq!((done.code, quiet.events().len()), (Some(0), 0), "{done}");
}

#[test]
fn a_run_that_leaves_a_wait_behind_says_what_for() {
    let (sandbox, receiver) = (sandbox(), Receiver::answering(&[OK]));
    sandbox.write("deploy/policy.yaml", POLICY.replace("soak: 30m", "approve: true"));
    let waits = run(&sandbox, &receiver, "-o json");
    assert_eq!(waits.code, Some(9), "{waits}");
    assert_eq!(receiver.events(), ["started", "ended", "runEnded"], "{waits}");
    let ended = &receiver.documents()[1];
    assert_eq!(ended["exitCode"], 9, "{ended}");
    assert_eq!(ended["waitsFor"], json!([{"kind": "approval", "step": "canary"}]), "{ended}");
    // They are lines of `-o json`, too.
    let printed: Vec<Value> =
        waits.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for document in receiver.documents() {
        assert!(printed.contains(&document), "{document}: {waits}");
    }
}

#[test]
fn a_failure_is_posted_at_once_and_without_secret_values() {
    let (sandbox, receiver) = (sandbox(), Receiver::answering(&[OK]));
    let faults = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\nimages:\n\
                  - {fault: neverPulls, image: 'registry.example/agent:2'}\n";
    sandbox.write("faults.yaml", faults);
    let failed = run(&sandbox, &receiver, "--fault faults.yaml --progress-deadline 1m");
    assert_eq!(failed.code, Some(4), "{failed}");
    assert_eq!(receiver.events(), ["started", "failed", "ended", "runEnded"], "{failed}");
    let documents = receiver.documents();
    let message = documents[1]["message"].as_str().unwrap();
    assert!(
        message.contains("ImagePullBackOff") && message.contains("(sensitive value)"),
        "{message}"
    );
    assert!(failed.stdout.contains("registry.example/agent:2"), "{failed}");
    assert!(receiver.posted().iter().all(|it| !it.body.contains("agent:2")), "{failed}");
    assert_eq!(documents[2]["exitCode"], 4);
    assert_eq!(
        documents[3],
        json!({
            "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RunEvent", "time": documents[3]["time"],
            "rehearsal": true, "message": "paused or aborted", "event": "runEnded", "exitCode": 4,
        })
    );
}

/// The gate of version 2 fails. The kubelet then quotes an argument of version 1, which the source does
/// not have any more.
#[test]
fn a_rollback_that_fails_is_posted_without_secret_values_of_the_earlier_version() {
    let live =
        AGENT.replace("agent:1", "agent:1\n          args: [--token=registry.example/agent:1]");
    let next = live.replace("image: registry.example/agent:1", "image: registry.example/agent:2");
    let next = next.replace("--token=registry.example/agent:1", "--token=of-version-2");
    let cluster = cluster_with(&live, &["node-1", "node-2"]).to_string();
    let sandbox = Sandbox::with(&[("cluster.json", &cluster), ("deploy/agent.yaml", &next)]);
    sandbox.write("secret", format!("{SECRET}\n"));
    let policy = POLICY.replace(
        "soak: 30m}]",
        "soak: 30m}], onFailure: rollback, gates: [{name: errors, prometheus: \
         {address: 'https://prom.example', query: 'rate(errors[5m])', max: 0.5}}]",
    );
    sandbox.write("deploy/policy.yaml", policy);
    let faults = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\n\
                  checks: [{check: errors, from: 5m, answer: fail}]\nimages:\n\
                  - {fault: neverPulls, image: 'registry.example/agent:1'}\n";
    sandbox.write("faults.yaml", faults);
    let receiver = Receiver::answering(&[OK]);
    let failed = run(&sandbox, &receiver, "--fault faults.yaml --wait 2h");
    assert_eq!(failed.code, Some(4), "{failed}");
    assert!(failed.stdout.contains("but rolling back failed on 1 node"), "{failed}");
    let quoted = "Back-off pulling image";
    assert!(failed.stdout.contains(&format!("{quoted} \"registry.example/agent:1\"")), "{failed}");
    let documents = receiver.documents();
    let document = documents.iter().find(|it| it["event"] == "failed").unwrap();
    let message = document["message"].as_str().unwrap();
    assert!(message.contains(&format!("{quoted} \"(sensitive value)\"")), "{message}");
    assert!(receiver.posted().iter().all(|it| !it.body.contains("agent:1")), "{failed}");
}

#[test]
fn an_error_of_the_run_is_posted_without_its_words() {
    let (sandbox, receiver) = (sandbox(), Receiver::answering(&[OK]));
    let manifest = AGENT.replace("image: registry", "imageS: SOURCE-SECRET");
    sandbox.write("deploy/agent.yaml", manifest);
    let failed = run(&sandbox, &receiver, "");
    assert_eq!(failed.code, Some(1), "{failed}");
    let documents = receiver.documents();
    assert_eq!(receiver.events(), ["runEnded"], "{failed}");
    assert_eq!(documents[0]["message"], "failed", "{failed}");
}

#[test]
fn errors_that_pass_are_retried_and_others_are_one_line_of_warning() {
    let warnings = |run: &Run| {
        let all = run.stderr.lines().filter(|line| line.starts_with("warning: "));
        all.map(str::to_owned).collect::<Vec<_>>()
    };
    let busy = Receiver::answering(&[ERROR, OK]);
    let done = run(&sandbox(), &busy, "");
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(warnings(&done), [""; 0], "{done}");
    assert_eq!(busy.events(), ["started", "started", "ended", "runEnded"]);
    assert_eq!(busy.posted()[0].body, busy.posted()[1].body, "the same document");

    let thief = Receiver::answering(&[OK]);
    let location = format!("HTTP/1.1 307 T\r\nLocation: {}\r\n\r\n", thief.url);
    let hostile = "HTTP/1.1 302 F\r\nLocation: https://evil.example/\u{202e}::error::x\r\n\r\n";
    for (answer, want) in [
        (location.as_str(), "answered with a redirect (status 307) to http://127.0.0.1:"),
        (hostile, "answered with a redirect (status 302) to https://evil.example, which"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n\u{1b}c", "status 404"),
    ] {
        let receiver = Receiver::answering(&[answer]);
        let done = run(&sandbox(), &receiver, "");
        assert_eq!(done.code, Some(0), "{done}");
        let warnings = warnings(&done);
        assert_eq!(warnings.len(), 1, "{done}");
        assert!(warnings[0].starts_with("warning: 3 of 3 notifications not delivered: "), "{done}");
        assert!(warnings[0].contains(want), "{done}");
        assert!(!done.stderr.contains(['\u{1b}', '\u{202e}']), "{done}");
        assert_eq!(receiver.posted().len(), 3, "{answer:?}: each is tried once");
    }
    assert_eq!(thief.posted().len(), 0);
}

/// Four attempts make one delivery, with 10 s for each answer: whoever waited for the first document
/// would see all four.
#[test]
fn an_endpoint_that_never_answers_holds_up_neither_the_deletes_nor_other_endpoints() {
    const ATTEMPTS: usize = 4;
    let (slow, good) = (Receiver::answering(&[""]), Receiver::answering(&[OK]));
    let sandbox = sandbox();
    let line = format!("{LINE} --notify {} --notify {}", slow.url, good.url);
    let mut command = sandbox.ds_apply_command(&line);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let last = |line: &String| line.ends_with("logging/agent  done");
    assert!(lines.into_iter().any(|line| last(&line)));
    assert!(slow.posted().len() < ATTEMPTS, "the rollout does not wait for an answer");
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    let tried = slow.posted().len();
    assert!((1..ATTEMPTS).contains(&tried), "the end waits, but not for all: {tried} attempts");
    assert_eq!(good.events(), ["started", "ended", "runEnded"]);
    let want = "warning: 3 of 3 notifications not delivered: http://127.0.0.1:";
    assert!(stderr.contains(want) && stderr.contains("did not answer in time\n"), "{stderr}");
}

#[test]
fn what_cannot_be_used_is_an_error_before_anything_begins() {
    let sandbox = sandbox();
    sandbox.write("short", "hunter2");
    let run = |line: &str| {
        let run = sandbox.ds_apply(&format!("--rehearse --snapshot cluster.json -f deploy {line}"));
        assert!(!run.to_string().contains("hunter2") && run.stdout.is_empty(), "{run}");
        assert!(!run.to_string().contains("PATH-SECRET"), "{run}");
        (run.code, run.stderr)
    };
    for (line, code, want) in [
        ("--notify https://hooks.example/PATH-SECRET", 64, "--notify-secret-file"),
        (
            "--notify http://hooks.example/PATH-SECRET --notify-secret-file secret",
            1,
            "--notify cannot be used: http is only for this machine",
        ),
        (
            "--notify https://me:hunter2@hooks.example/PATH-SECRET --notify-secret-file secret",
            1,
            "the address of hooks.example contains a user name",
        ),
        ("--notify PATH-SECRET --notify-secret-file secret", 1, "not an address such as"),
        (
            "--notify https://h.example --notify-secret-file none",
            1,
            "cannot read the secret in none",
        ),
        ("--notify https://h.example --notify-secret-file short", 1, "fewer than 16 characters"),
    ] {
        let (found, stderr) = run(line);
        assert_eq!(found, Some(code), "{line}: {stderr}");
        assert!(stderr.contains(want), "{line}: {stderr}");
    }
}
