//! A proxy to the API server that injects faults.
//!
//! Plain HTTP on loopback to the client, the usual connection to the server behind it. A test
//! chooses the fault for each request, and can cut all connections at once.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::Client;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::client;
use super::control_plane::ControlPlane;

/// The fault of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The server does not receive it; the answer is this status, with `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// The server does not receive it; the connection closes without an answer.
    Lost,
    /// The server applies it; the connection closes without an answer.
    AnswerLost,
    /// The server does not receive it; no answer comes.
    Silence,
    /// The server receives it with this delay.
    Late(Duration),
}

/// Chooses the fault, by method and path with query.
type Faults = Arc<Mutex<Box<dyn FnMut(&Method, &str) -> Option<Fault> + Send>>>;

/// A proxy of one control plane; stopped when dropped.
pub(crate) struct Proxy {
    kubeconfig: PathBuf,
    faults: Faults,
    connections: Arc<Mutex<JoinSet<()>>>,
    listening: tokio::task::AbortHandle,
}

impl Proxy {
    /// Starts a proxy that authenticates as `user` and forwards everything.
    pub(crate) fn start(plane: &ControlPlane, user: &str) -> Self {
        let behind = behind(&plane.kubeconfig_of(user));
        let listener = async { TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await };
        let listener = client::block_on(listener).expect("loopback has free ports");
        let port = listener.local_addr().expect("it is bound").port();
        let kubeconfig = plane.folder().join(format!("proxy-{port}.kubeconfig"));
        fs::write(&kubeconfig, kubeconfig_of(port)).expect("the folder is ours");
        let faults: Faults = Arc::new(Mutex::new(Box::new(|_, _| None)));
        let connections = Arc::new(Mutex::new(JoinSet::new()));
        let serving = serve(listener, behind, Arc::clone(&faults), Arc::clone(&connections));
        Self { kubeconfig, faults, connections, listening: client::spawn(serving) }
    }

    /// The kubeconfig of clients that use the proxy.
    pub(crate) fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// Sets the function that chooses the faults from now on.
    pub(crate) fn fault(
        &self,
        faults: impl FnMut(&Method, &str) -> Option<Fault> + Send + 'static,
    ) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(faults);
    }

    /// Ends all faults.
    pub(crate) fn fix(&self) {
        self.fault(|_, _| None);
    }

    /// Cuts all connections at once, including watches. New ones are accepted.
    pub(crate) fn cut(&self) {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
        self.cut();
    }
}

/// The client behind the proxy, which does not retry.
fn behind(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the harness wrote it");
    let config = async move {
        let options = KubeConfigOptions::default();
        kube::Config::from_custom_kubeconfig(kubeconfig, &options).await
    };
    let mut config = client::block_on(config).expect("the harness wrote it");
    config.proxy_url = None;
    config.default_retry = false;
    client::block_on(async { Client::try_from(config) }).expect("a plain configuration")
}

fn kubeconfig_of(port: u16) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- {{name: test, cluster: {{server: 'http://127.0.0.1:{port}'}}}}
users:
- {{name: user, user: {{}}}}
contexts:
- {{name: test, context: {{cluster: test, user: user}}}}
current-context: test
"
    )
}

async fn serve(
    listener: TcpListener,
    behind: Client,
    faults: Faults,
    connections: Arc<Mutex<JoinSet<()>>>,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let connection = connection(stream, behind.clone(), Arc::clone(&faults));
        connections.lock().unwrap_or_else(PoisonError::into_inner).spawn(connection);
    }
}

async fn connection(stream: TcpStream, behind: Client, faults: Faults) {
    let service = service_fn(move |request: Request<Incoming>| {
        let uri = request.uri().to_string();
        let mut decide = faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = decide(request.method(), &uri);
        pass(request, behind.clone(), fault)
    });
    // Broken connections are normal for a proxy.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Forwards a request; an error closes the connection without an answer.
async fn pass(
    request: Request<Incoming>,
    behind: Client,
    fault: Option<Fault>,
) -> Result<Response<Body>, String> {
    let lose = match fault {
        None => false,
        Some(Fault::Status(code, retry_after)) => return Ok(status(code, retry_after)),
        Some(Fault::Lost) => return Err("lost".to_owned()),
        Some(Fault::AnswerLost) => true,
        Some(Fault::Silence) => std::future::pending().await,
        Some(Fault::Late(delay)) => {
            tokio::time::sleep(delay).await;
            false
        }
    };
    let (mut head, body) = request.into_parts();
    let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
    // These belong to the connection, not to the request.
    head.headers.remove(http::header::HOST);
    let answer = behind.send(Request::from_parts(head, Body::from(body))).await;
    let answer = answer.map_err(|error| error.to_string())?;
    if lose { Err("the answer is lost".to_owned()) } else { Ok(answer) }
}

fn status(code: u16, retry_after: Option<u32>) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "message": "the test wants it so",
    });
    let mut answer = Response::builder().status(code);
    if let Some(seconds) = retry_after {
        answer = answer.header("Retry-After", seconds);
    }
    answer.body(Body::from(status.to_string().into_bytes())).expect("a plain answer")
}
