//! An agent that exports metrics: what the test sets is what Prometheus scrapes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Serves `/metrics` on loopback until the test process ends.
pub(crate) struct Exporter {
    port: u16,
    metrics: Arc<Mutex<String>>,
}

impl Exporter {
    /// An exporter without metrics.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let metrics = Arc::new(Mutex::new(String::new()));
        let served = Arc::clone(&metrics);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let metrics = served.lock().unwrap().clone();
                // Prometheus may have given up.
                let _ = answer(&stream, &metrics);
            }
        });
        Self { port, metrics }
    }

    /// `127.0.0.1:PORT`, which is the label `instance` of its series.
    pub(crate) fn target(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sets all metrics: one line each, such as `agent_errors{node="a"} 0.5`.
    pub(crate) fn set(&self, metrics: &str) {
        *self.metrics.lock().unwrap() = format!("{metrics}\n");
    }
}

fn answer(mut stream: &TcpStream, metrics: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{metrics}",
        metrics.len()
    )
}
