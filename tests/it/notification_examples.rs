//! The receiver and the relay to Slack of `examples/notifications`, started as the guide says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::notifications::{OK, Receiver, SECRET, sandbox};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/notifications").join(name)
}

/// The receiver, which ends with the test.
struct Relay {
    child: Child,
    port: u16,
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn relay(secret: &Path, slack: &str) -> Relay {
    let mut command = Command::new("node");
    command.arg(example("receiver.mjs")).arg(secret).arg("0").arg(example("to-slack.sh"));
    command.env("SLACK_WEBHOOK_URL", slack).stdout(Stdio::piped());
    let mut child = command.spawn().expect("node is installed");
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit(' ').next().unwrap().parse().unwrap();
    Relay { child, port }
}

#[test]
fn slack_gets_the_failure_of_a_run_as_text() {
    let (sandbox, slack) = (sandbox(), Receiver::answering(&[OK]));
    let faults = "apiVersion: ds-plan.dev/v1alpha1\nkind: Faults\nimages:\n\
                  - {fault: neverPulls, image: 'registry.example/agent:2'}\n";
    sandbox.write("faults.yaml", faults);
    let relay = relay(&sandbox.path("secret"), &slack.url);
    let run = sandbox.ds_apply(&format!(
        "--rehearse --snapshot cluster.json -f deploy --force-conflicts=before-first-apply \
         --fault faults.yaml --progress-deadline 1m --notify http://127.0.0.1:{} \
         --notify-secret-file secret",
        relay.port
    ));
    assert_eq!(run.code, Some(4), "{run}");
    assert!(!run.stderr.contains("not delivered"), "{run}");
    let texts: Vec<Value> = slack.documents().iter().map(|it| it["text"].clone()).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    let started = texts[0].as_str().unwrap();
    let want = ":arrow_forward:  REHEARSAL  *logging/agent*  rollout started  at sha256:";
    assert!(started.starts_with(want), "{started}");
    let failed = texts[1].as_str().unwrap();
    assert!(failed.starts_with(":x:  REHEARSAL  *logging/agent*  node-"), "{failed}");
    let ended = texts[2].as_str().unwrap();
    assert!(ended.starts_with(":x:  REHEARSAL  *logging/agent*  aborted: new pods"), "{ended}");
}

/// Posts a body with this signature; returns the status.
fn post(port: u16, body: &str, signature: &str) -> u16 {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\
         X-Ds-Plan-Signature-256: {signature}\r\n\r\n{body}"
    )
    .unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_receiver_accepts_only_what_is_signed_and_new() {
    let (sandbox, slack) = (sandbox(), Receiver::answering(&[OK]));
    let relay = relay(&sandbox.path("secret"), &slack.url);
    let event = json!({
        "event": "ended", "exitCode": 9, "rehearsal": true, "time": "2026-01-01T00:00:00Z",
        "cluster": "prod", "daemonSet": "a/b", "message": "<!channel> & <http://evil.example|x>",
    });
    let signed = |body: &str| {
        let digest = crate::notifications::hmac(SECRET.as_bytes(), body.as_bytes());
        (body.to_owned(), format!("sha256={digest}"))
    };
    let (body, signature) = signed(&event.to_string());
    assert_eq!(post(relay.port, &body, &signature), 204);
    let text = ":raised_hand:  REHEARSAL  prod  *a/b*  \
                &lt;!channel&gt; &amp; &lt;http://evil.example|x&gt;";
    assert_eq!(slack.documents(), [json!({"text": text})]);
    for signature in ["", "sha256=00", &signature.replace("sha256", "sha1")] {
        assert_eq!(post(relay.port, &body, signature), 401, "{signature}");
    }
    assert_eq!(post(relay.port, &body.replace("prod", "test"), &signature), 401);
    let mut old = event;
    old["rehearsal"] = false.into();
    let (body, signature) = signed(&old.to_string());
    assert_eq!(post(relay.port, &body, &signature), 400);
    assert_eq!(slack.documents().len(), 1);
}
