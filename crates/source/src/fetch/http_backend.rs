//! A git server for tests: `git http-backend` behind a small HTTP server on the loopback address,
//! which can require a password and misbehave.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Behaviour of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Answers as git does.
    Serve,
    /// Answers as git did before protocol version 2: commits only by the name of a branch.
    ServeOldProtocol,
    /// Answers only the user `me` with the password `s3cret`.
    Private,
    /// Accepts requests and never answers those with this method.
    Silent(&'static str),
    /// Answers each request with these bytes.
    Answer(String),
    /// The server is down.
    Stopped,
}

struct Shared {
    root: PathBuf,
    environment: Vec<(OsString, OsString)>,
    mode: Mutex<Mode>,
    requests: Mutex<Vec<String>>,
    /// Connections that wait for an answer that never comes.
    unanswered: Mutex<Vec<TcpStream>>,
}

/// Serves the repositories below a folder until it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Incoming {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Server {
    pub(super) fn start(root: PathBuf, environment: Vec<(OsString, OsString)>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            root,
            environment,
            mode: Mutex::new(Mode::Serve),
            requests: Mutex::default(),
            unanswered: Mutex::default(),
        });
        let acceptor = thread::spawn({
            let shared = Arc::clone(&shared);
            move || accept(&listener, &shared)
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    /// URL of a repository, optionally with `user:password@`.
    pub(super) fn url(&self, user: &str, repository: &str) -> String {
        format!("http://{user}{}/{repository}", self.address)
    }

    pub(super) fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
    }

    /// The requests since the last call, `METHOD target`.
    pub(super) fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.requests.lock().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Also when a test has failed and left a lock poisoned.
        *self.shared.mode.lock().unwrap_or_else(PoisonError::into_inner) = Mode::Stopped;
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let mode = shared.mode.lock().unwrap().clone();
        if mode == Mode::Stopped {
            return;
        }
        let shared = Arc::clone(shared);
        // A client may disconnect at any time.
        thread::spawn(move || stream.map(|stream| answer(stream, &mode, &shared)));
    }
}

fn answer(mut stream: TcpStream, mode: &Mode, shared: &Shared) -> Option<()> {
    let request = Incoming::read(&mut BufReader::new(&stream))?;
    shared.requests.lock().unwrap().push(format!("{} {}", request.method, request.target));
    let response = match mode {
        Mode::Private if request.header("authorization") != Some("Basic bWU6czNjcmV0") => {
            b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"fleet\"\r\n\
              Content-Length: 0\r\nConnection: close\r\n\r\n"
                .to_vec()
        }
        Mode::Silent(method) if request.method == *method => {
            shared.unanswered.lock().unwrap().push(stream);
            return None;
        }
        Mode::Answer(response) => response.clone().into_bytes(),
        Mode::Serve | Mode::ServeOldProtocol | Mode::Private | Mode::Silent(_) | Mode::Stopped => {
            request.serve(shared, *mode != Mode::ServeOldProtocol)
        }
    };
    stream.write_all(&response).ok()
}

impl Incoming {
    fn read(stream: &mut impl BufRead) -> Option<Self> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok()?;
            match line.trim_end() {
                "" => break,
                text => lines.push(text.to_owned()),
            }
        }
        let mut first = lines.first()?.split(' ');
        let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
        let headers = lines[1..].iter().filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        let mut request = Self { method, target, headers: headers.collect(), body: Vec::new() };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        request.body.resize(length, 0);
        stream.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Runs `git http-backend` by the rules of CGI.
    fn serve(&self, shared: &Shared, new_protocol: bool) -> Vec<u8> {
        let (path, query) = self.target.split_once('?').unwrap_or((&self.target, ""));
        let header = |name| self.header(name).unwrap_or_default();
        let mut command = Command::new("git");
        command
            .arg("http-backend")
            .env_clear()
            .envs(shared.environment.iter().cloned())
            .env("GIT_PROJECT_ROOT", &shared.root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("REQUEST_METHOD", &self.method)
            .env("CONTENT_TYPE", header("content-type"))
            .env("CONTENT_LENGTH", self.body.len().to_string())
            .env("HTTP_CONTENT_ENCODING", header("content-encoding"));
        if new_protocol {
            command.env("GIT_PROTOCOL", header("git-protocol"));
        }
        let mut backend = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("git is needed");
        // The backend may end before it has read everything.
        let _ = backend.stdin.take().unwrap().write_all(&self.body);
        let mut output = Vec::new();
        backend.stdout.take().unwrap().read_to_end(&mut output).unwrap();
        backend.wait().unwrap();
        let text = String::from_utf8_lossy(&output);
        let status = text.strip_prefix("Status: ").and_then(|rest| rest.lines().next());
        let status = status.unwrap_or("200 OK");
        let mut response = format!("HTTP/1.1 {status}\r\nConnection: close\r\n").into_bytes();
        response.extend(output);
        response
    }
}
