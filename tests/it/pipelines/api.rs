//! The comment API of a forge, on a local port.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use serde_json::{Value, json};

/// The content of the API and its requests so far.
#[derive(Default)]
pub(crate) struct State {
    /// Comments on the one request, as the API returns them.
    pub(crate) comments: Vec<Value>,
    /// `METHOD PATH` of each write request, also if it was denied.
    pub(crate) writes: Vec<String>,
    /// The files that can be downloaded, by the end of their path.
    pub(crate) files: Vec<(String, Vec<u8>)>,
    /// The branch and the job of each pipeline of GitLab that has succeeded, the newest last.
    pub(crate) pipelines: Vec<(String, String)>,
    /// Whether the token is read-only.
    pub(crate) read_only: bool,
}

/// The API, which answers until the test ends.
pub(crate) struct Api {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
}

/// The user of the token.
const BOT: u32 = 41;
pub(crate) const TOKEN: &str = "the-token";

impl Api {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                answer(&stream, &shared);
            }
        });
        Self { url, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an existing comment of this user.
    pub(crate) fn add(&self, by: u32, body: &str) {
        let comment = comment(self.state().comments.len(), by, body);
        self.state().comments.push(comment);
    }

    /// The texts of the comments.
    pub(crate) fn bodies(&self) -> Vec<String> {
        let comments = self.state().comments.clone();
        comments.iter().map(|it| it["body"].as_str().unwrap().to_owned()).collect()
    }
}

/// In the format of GitHub and GitLab.
fn comment(id: usize, by: u32, body: &str) -> Value {
    let kind = if by == BOT { "Bot" } else { "User" };
    json!({"id": id, "user": {"id": by, "type": kind}, "author": {"id": by}, "body": body})
}

fn answer(stream: &TcpStream, state: &Mutex<State>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut known) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => known |= value == format!("Bearer {TOKEN}"),
            "private-token" | "job-token" => known |= value == TOKEN,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let (status, response) = state.answer(method, path, &body, known);
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        response.len()
    );
    let mut stream = stream;
    stream.write_all(&[head.as_bytes(), &response].concat()).unwrap();
}

impl State {
    fn answer(&mut self, method: &str, path: &str, body: &[u8], known: bool) -> (u16, Vec<u8>) {
        if !known {
            return (401, b"{}".to_vec());
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        if method != "GET" {
            self.writes.push(format!("{method} {path}"));
            if self.read_only {
                return (403, br#"{"message": "Resource not accessible by integration"}"#.to_vec());
            }
            let body: Value = serde_json::from_slice(body).unwrap();
            let text = body["body"].as_str().unwrap();
            let last = path.rsplit('/').next().unwrap_or_default();
            let id = last.parse().unwrap_or(self.comments.len());
            self.comments.truncate(self.comments.len().max(id));
            let comment = comment(id, BOT, text);
            match self.comments.get_mut(id) {
                Some(old) => *old = comment,
                None => self.comments.push(comment),
            }
            return (200, b"{}".to_vec());
        }
        if path.ends_with("/user") {
            return (200, json!({"id": BOT}).to_string().into_bytes());
        }
        if path.contains("/jobs/artifacts/") && !self.has_artifact(path, query) {
            return (404, br#"{"message": "404 Not found"}"#.to_vec());
        }
        if let Some((_, file)) = self.files.iter().find(|(name, _)| path.ends_with(name)) {
            return (200, file.clone());
        }
        let page = query.split('&').find_map(|it| it.strip_prefix("page="));
        let page: usize = page.map_or(1, |page| page.parse().unwrap());
        let comments: Vec<&Value> = self.comments.iter().skip((page - 1) * 100).take(100).collect();
        (200, serde_json::to_vec(&comments).unwrap())
    }

    /// GitLab looks for the job only in the latest successful pipeline of the branch.
    fn has_artifact(&self, path: &str, query: &str) -> bool {
        let (_, rest) = path.split_once("/jobs/artifacts/").unwrap();
        let (branch, _) = rest.split_once('/').unwrap();
        let latest = self.pipelines.iter().rfind(|(of, _)| of == branch);
        latest.is_some_and(|(_, job)| query == format!("job={job}"))
    }
}
