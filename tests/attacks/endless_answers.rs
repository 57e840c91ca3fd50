//! An API server, or an attacker in its place, with endless answers.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::watched::Watched;
use testkit::fixture;

const HANG: Duration = Duration::from_mins(3);

/// The server's answer to every request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// The first text, then the second one repeatedly.
    Endless(&'static str, &'static str),
    /// An error with this message.
    Refusal(&'static str),
    /// A page without objects, and always another one after it.
    Pages,
    /// A page with a long token for the next one.
    LongToken,
}

/// Answers on a local port until the test ends.
fn serve(answer: Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || while reply(&stream, answer).is_some() {});
        }
    });
    url
}

/// Answers one request; `None` when the client has closed the connection.
fn reply(stream: &TcpStream, answer: Answer) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request).ok().filter(|length| *length > 0)?;
    let mut header = String::new();
    while reader.read_line(&mut header).ok()? > 2 {
        header.clear();
    }
    let token = |text: &str| {
        format!(
            r#"{{"kind":"List","apiVersion":"v1","metadata":{{"continue":"{text}"}},"items":[]}}"#
        )
    };
    let (status, body) = match answer {
        Answer::Endless(body, _) => ("200 OK", body.to_owned()),
        Answer::Refusal(body) => ("403 Forbidden", body.to_owned()),
        Answer::Pages => {
            let number = request.split("continue=").nth(1).unwrap_or("0");
            let number = number.split(['&', ' ']).next().unwrap_or("0").parse::<u64>().unwrap_or(0);
            ("200 OK", token(&(number + 1).to_string()))
        }
        Answer::LongToken => ("200 OK", token(&"x".repeat(1 << 20))),
    };
    let mut stream = stream;
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n");
    let filling = match answer {
        Answer::Endless(_, filling) => filling,
        Answer::Refusal(_) => "x",
        Answer::Pages | Answer::LongToken => {
            let whole = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            return stream.write_all(whole.as_bytes()).ok();
        }
    };
    write!(stream, "{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n", body.len())
        .ok()?;
    let chunk = filling.repeat((1 << 20) / filling.len());
    let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
    // More than any limit, but finite, so that a program without a limit ends too.
    for _ in 0..3 << 10 {
        stream.write_all(chunk.as_bytes()).ok()?;
    }
    None
}

#[test]
fn endless_answers_are_aborted() {
    for answer in [
        Answer::Endless(r#"{"kind":"List","items":[{"a":""#, "x"),
        Answer::Endless(r#"{"kind":"List","items":["#, "1,"),
        Answer::Endless("<html>", "x"),
        Answer::Endless("", " "),
        Answer::Refusal(r#"{"kind":"Status","message":""#),
        Answer::Pages,
        Answer::LongToken,
    ] {
        let sandbox = fixture::sandbox();
        let server = serve(answer);
        sandbox.write(
            "kubeconfig",
            format!(
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
                 clusters: [{{name: c, cluster: {{server: \"{server}\"}}}}]\n\
                 users: [{{name: u, user: {{}}}}]\n\
                 contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
            ),
        );
        for line in ["status -n logging", "plan -f agent.yaml"] {
            let line = format!("{line} --kubeconfig kubeconfig");
            let run = Watched::run(sandbox.ds_plan_command(&line), HANG);
            eprintln!("{answer:?}: {:?} {} MiB", run.took, run.peak >> 20);
            run.expect(1, 2_000);
            run.expect_few_words();
            assert!(run.stderr.contains("error: "), "{answer:?}: {run}");
        }
    }
}
