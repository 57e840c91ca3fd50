//! What answers the checks of a policy is hostile: each answer is unknown, with one clear line, in
//! limited time and memory, and a token goes nowhere else.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::watched::Watched;
use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::Sandbox;

const HANG: Duration = Duration::from_mins(2);
const TOKEN: &str = "s3cr3t-t0k3n";
/// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 -subj
/// /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE`
const CERTIFICATE: &str = include_str!("localhost.pem");

/// What an endpoint does with every request, after it has read it.
#[derive(Clone, Debug)]
enum Answer {
    /// These bytes, then the end of the connection.
    Bytes(Vec<u8>),
    /// The first bytes, then the second ones again and again, so much time apart.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Nothing.
    Silence,
}

/// An endpoint on a local port, and the requests that it has got.
struct Endpoint {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Endpoint {
    fn that(answer: Answer) -> Self {
        Self::serve(answer, None)
    }

    /// The same by TLS, with a certificate for `localhost` that it has signed itself.
    fn that_by_tls(answer: Answer) -> Self {
        let provider = rustls::crypto::ring::default_provider();
        let certificate = CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(include_bytes!("localhost.key")).unwrap();
        let config = ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let Self { address, requests } = Self::serve(answer, Some(Arc::new(config)));
        Self { address: address.replace("127.0.0.1", "localhost"), requests }
    }

    fn serve(answer: Answer, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (answer, seen) = (answer.clone(), Arc::clone(&seen));
                let tls = tls.clone();
                // The other side may go away at any time.
                thread::spawn(move || match tls {
                    Some(tls) => {
                        let server = ServerConnection::new(tls).unwrap();
                        let mut stream = StreamOwned::new(server, stream);
                        reply(&mut stream, &answer, &seen).ok()?;
                        stream.conn.send_close_notify();
                        stream.flush().ok()
                    }
                    None => reply(&stream, &answer, &seen).ok(),
                });
            }
        });
        Self { address, requests }
    }
}

fn reply(
    mut stream: impl Read + Write,
    answer: &Answer,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(&mut stream);
    let (mut request, mut length) = (String::new(), 0);
    loop {
        let before = request.len();
        reader.read_line(&mut request)?;
        let line = request[before..].to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.take(length).read_to_string(&mut request)?;
    seen.lock().unwrap().push(request);
    match answer {
        Answer::Bytes(bytes) => stream.write_all(bytes),
        Answer::Endless(first, again, pause) => {
            stream.write_all(first)?;
            loop {
                thread::sleep(*pause);
                stream.write_all(again)?;
            }
        }
        Answer::Silence => {
            thread::sleep(HANG);
            Ok(())
        }
    }
}

fn ok(headers: &str, body: &[u8]) -> Answer {
    status("200 OK", headers, body)
}

fn status(status: &str, headers: &str, body: &[u8]) -> Answer {
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    Answer::Bytes([head.as_bytes(), body].concat())
}

fn matrix(result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#)
}

const POLICY: &str = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: agents}
spec:
  selects: {names: [logging/agent]}
  gates:
  - name: errors
    prometheus: {address: 'ADDRESS', query: up, max: 1}
";

/// Asks the endpoint by `ds-plan checks`, with a token for it.
fn ask(endpoint: &Endpoint, output: &str) -> Watched {
    ask_at(&format!("http://{}", endpoint.address), endpoint, output, "")
}

/// The same at an address, with a file of the certificates to trust.
fn ask_at(address: &str, endpoint: &Endpoint, output: &str, trusted: &str) -> Watched {
    let cluster = cluster().to_string();
    let policy = POLICY.replace("ADDRESS", address);
    let files = [("cluster.json", cluster.as_str()), ("deploy/agent.yaml", AGENT)];
    let sandbox = Sandbox::with(&files);
    sandbox.write("deploy/policy.yaml", policy);
    sandbox.write("token", TOKEN);
    let line = format!(
        "checks --snapshot cluster.json -f deploy -o {output} --check-token {}=token",
        endpoint.address
    );
    sandbox.write("trusted.pem", trusted);
    let mut command = sandbox.ds_plan_command(&line);
    if !trusted.is_empty() {
        command.env("SSL_CERT_FILE", sandbox.path("trusted.pem"));
    }
    let run = Watched::run(command, HANG);
    let shown = format!("{}{}", run.stdout, run.stderr);
    assert!(!shown.contains(TOKEN), "the token is shown: {run}");
    run
}

/// Asserts that the answer is unknown, with a line that contains `want`.
fn expect_unknown(case: &str, answer: Answer, want: &str) {
    let endpoint = Endpoint::that(answer);
    let run = ask(&endpoint, "text");
    run.expect(8, 400);
    run.expect_few_words();
    let mut lines = run.stdout.lines().filter(|line| line.contains("gate errors: "));
    let line = lines.next().unwrap_or_else(|| panic!("{case}: {run}"));
    assert!(line.contains("unknown: ") && line.contains(want), "{case}: {line}");
    assert!(!run.stdout.contains(|c: char| c.is_control() && c != '\n'), "{case}: {run}");
    assert!(run.stdout.lines().count() < 10, "{case}: {run}");
    assert!(run.took < Duration::from_mins(1), "{case}: {run}");
    assert_eq!(endpoint.requests.lock().unwrap().len(), 1, "{case}: asked once");
}

#[test]
fn what_is_no_answer_is_one_line() {
    let error = r#"{"status":"error","errorType":"e\u001b[2J","error":"no\nstore \u202e"}"#;
    let many = vec![r#"{"metric":{}}"#; 5_001].join(",");
    let deep = "[".repeat(4 << 20);
    let cases = [
        ("nothing", Answer::Bytes(Vec::new()), "broke off its answer"),
        ("no HTTP", Answer::Bytes(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()), "broke off its answer"),
        ("an empty body", ok("", b""), "did not answer as Prometheus does: EOF"),
        ("HTML", ok("Content-Type: text/html\r\n", b"<html><script>"), "a page (HTML)"),
        (
            "a redirect",
            status("302 Found", "Location: https://evil.example/?q=1\r\n", b""),
            "a redirect (status 302) to https://evil.example/, which is not followed",
        ),
        ("a redirect without target", status("308 P", "", b""), "(status 308) to nowhere"),
        ("an error", ok("", error.as_bytes()), "with an error (e\\u{1b}[2J): no store \\u{202e}"),
        ("an error page", status("502 Bad Gateway", "", b"<html>"), "with status 502"),
        ("a login", status("401 Unauthorized", "WWW-Authenticate: Basic\r\n", b""), "status 401"),
        (
            "cut off",
            Answer::Bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec()),
            "broke off its answer",
        ),
        ("cut off by a proxy", ok("", br#"{"status":"success","data":{"#), "EOF"),
        (
            "another type",
            ok("", br#"{"status":"success","data":{"resultType":"vector","result":[]}}"#),
            "a vector, not a matrix",
        ),
        ("not UTF-8", ok("", b"{\"status\":\"\xff\xfe\"}"), "not UTF-8"),
        ("compressed", ok("Content-Encoding: gzip\r\n", &bomb()), "compressed (gzip)"),
        ("too many series", ok("", matrix(&format!("[{many}]")).as_bytes()), "5001 series"),
        ("too deep", ok("", deep.as_bytes()), "did not answer as Prometheus does"),
        ("too deep inside", ok("", matrix(&deep).as_bytes()), "did not answer as Prometheus does"),
        (
            "no number",
            ok("", matrix(r#"[{"metric":{},"value":[1,"1"],"values":[[1,"x"]]}]"#).as_bytes()),
            "did not answer as Prometheus does",
        ),
    ];
    for (case, answer, want) in cases {
        expect_unknown(case, answer, want);
    }
}

/// 64 MiB of zeros, compressed.
fn bomb() -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![b' '; 64 << 20]).unwrap();
    packed.finish().unwrap()
}

#[test]
fn endless_and_slow_answers_end() {
    let head = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}").into_bytes();
    let endless = |first: &str, again: &str| {
        let again = again.repeat((1 << 16) / again.len());
        Answer::Endless(head(first), again.into_bytes(), Duration::ZERO)
    };
    let drip = |first: &str, again: &str| {
        Answer::Endless(head(first), again.as_bytes().to_vec(), Duration::from_millis(100))
    };
    let cases = [
        ("an endless body", endless("\r\n{\"status\":\"", "x"), "more than 8 MiB"),
        ("an endless list", endless("\r\n[", "0,"), "more than 8 MiB"),
        ("endless headers", endless("", "A: b\r\n"), "broke off its answer"),
        ("an endless header", endless("A: ", "b"), "broke off its answer"),
        (
            "endless interim answers",
            Answer::Endless(
                Vec::new(),
                b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(),
                Duration::from_millis(1),
            ),
            "did not answer within 10 s",
        ),
        ("silence", Answer::Silence, "did not answer within 10 s"),
        ("a slow body", drip("\r\n", " "), "did not answer within 10 s"),
        ("slow headers", drip("", "A: b\r\n"), ""),
        ("a slow header", drip("A: ", "b"), "did not answer within 10 s"),
    ];
    // They mostly wait.
    thread::scope(|scope| {
        for (case, answer, want) in cases {
            scope.spawn(move || expect_unknown(case, answer, want));
        }
    });
}

#[test]
fn a_token_does_not_follow_a_redirect() {
    let thief = Endpoint::that(ok("", b"{}"));
    let location = format!("Location: http://{}/api/v1/query_range\r\n", thief.address);
    for code in ["301 M", "302 F", "303 S", "307 T", "308 P"] {
        let endpoint = Endpoint::that(status(code, &location, b""));
        let run = ask(&endpoint, "text");
        run.expect(8, 400);
        let requests = endpoint.requests.lock().unwrap();
        assert!(requests[0].contains(&format!("authorization: Bearer {TOKEN}")), "{requests:?}");
        assert!(requests[0].starts_with("POST /api/v1/query_range HTTP/1.1"), "{requests:?}");
    }
    assert_eq!(thief.requests.lock().unwrap().len(), 0);
}

#[test]
fn labels_and_warnings_are_shown_harmless() {
    let hostile = r"\u001b]0;x\u0007##[error]\u202e\n::error::";
    let series = format!(r#"[{{"metric":{{"a":"{hostile}"}},"values":[]}}]"#);
    let warnings = format!(r#"{{"warnings":["{hostile}"],"#);
    let warned = matrix(&series).replacen('{', &warnings, 1);
    expect_unknown("a warning", ok("", warned.as_bytes()), "the answer may be incomplete: ");
    let endpoint = Endpoint::that(ok("", warned.as_bytes()));
    for output in ["json", "yaml"] {
        let run = ask(&endpoint, output);
        run.expect(8, 400);
        assert!(!run.stdout.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{run}");
    }
}

#[test]
fn a_server_that_is_not_trusted_gets_no_request() {
    let answer = ok("", matrix("[]").as_bytes());
    for (trusted, host, want) in [
        (CERTIFICATE, "localhost", "the query has no series"),
        (CERTIFICATE, "127.0.0.1", "invalid peer certificate: certificate not valid for name"),
        ("", "localhost", ""),
    ] {
        let endpoint = Endpoint::that_by_tls(answer.clone());
        let address = format!("https://{}", endpoint.address.replace("localhost", host));
        let run = ask_at(&address, &endpoint, "text", trusted);
        run.expect(8, 400);
        assert!(run.stdout.contains(want), "{run}");
        let requests = endpoint.requests.lock().unwrap();
        assert_eq!(requests.len(), usize::from(want.contains("no series")), "{run}");
    }
    // And no answer in plain text on a connection that should be secure.
    let endpoint = Endpoint::that(answer);
    let run = ask_at(&format!("https://{}", endpoint.address), &endpoint, "text", CERTIFICATE);
    run.expect(8, 400);
    assert!(run.stdout.contains("cannot be reached: "), "{run}");
}
