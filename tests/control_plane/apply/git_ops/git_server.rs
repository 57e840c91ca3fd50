//! A server of git repositories: its own `git http-backend`, as a web server runs it.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use testkit::sandbox::Sandbox;

/// Serves until the test process ends.
pub(super) struct GitServer {
    port: u16,
}

impl GitServer {
    /// A server of the repositories below this folder.
    pub(super) fn start(root: PathBuf) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // The client may have stopped waiting.
                let _ = answer(&stream, &root);
            }
        });
        Self { port }
    }

    /// `http://127.0.0.1:PORT`.
    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

fn answer(mut stream: &TcpStream, root: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = headers(&mut reader)?;
    let header = |name: &str| headers.get(name).map_or("", String::as_str);
    let mut body = vec![0; header("content-length").parse().unwrap_or_default()];
    reader.read_exact(&mut body)?;
    let mut git = Command::new("git");
    git.arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("CONTENT_LENGTH", body.len().to_string());
    let mut git = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    // It reads all of it before it answers.
    git.stdin.take().expect("it is piped").write_all(&body)?;
    let answer = git.wait_with_output()?.stdout;
    // Its status is the first header, unless it is 200.
    let status = answer.strip_prefix(b"Status: ");
    let status = status.and_then(|rest| rest.split(|byte| *byte == b'\r').next());
    let status = status.map_or("200 OK".into(), String::from_utf8_lossy);
    write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n")?;
    stream.write_all(&answer)
}

/// The headers of a request, by their names in lower case.
fn headers(reader: &mut impl io::BufRead) -> io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    for line in reader.lines() {
        let line = line?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    Ok(headers)
}

#[test]
fn a_commit_is_fetched() {
    let source = Sandbox::with(&[("fleet.yaml", "a: 1")]);
    source.commit();
    let server = GitServer::start(source.path(""));
    let clone = Sandbox::new();
    clone.git(&["clone", "-q", &format!("{}/.git", server.url()), "copy"]);
    assert_eq!(clone.git(&["-C", "copy", "rev-parse", "HEAD"]), source.git(&["rev-parse", "HEAD"]));
    let absent = format!("{}/absent", server.url());
    let absent = Command::new("git").args(["ls-remote", &absent]).output().unwrap();
    let message = String::from_utf8_lossy(&absent.stderr).into_owned();
    assert!(!absent.status.success() && message.contains("not found"), "{message}");
}
