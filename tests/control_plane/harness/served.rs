//! A small HTTP server on loopback: the same content at every path.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Serves until the test process ends.
pub(crate) struct Served {
    port: u16,
    content: Arc<Mutex<Vec<u8>>>,
}

impl Served {
    /// A server of content of this type, which is empty at first.
    pub(crate) fn start(content_type: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let content = Arc::<Mutex<Vec<u8>>>::default();
        let served = Arc::clone(&content);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let content = served.lock().unwrap().clone();
                // The client may have stopped waiting.
                let _ = answer(&stream, content_type, &content);
            }
        });
        Self { port, content }
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Serves this from now on.
    pub(crate) fn set(&self, content: impl Into<Vec<u8>>) {
        *self.content.lock().unwrap() = content.into();
    }
}

fn answer(mut stream: &TcpStream, content_type: &str, content: &[u8]) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        content.len()
    )?;
    stream.write_all(content)
}
