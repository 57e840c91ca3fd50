//! kube clients of a control plane.
//!
//! They use the harness's own runtime, which is never shut down. So a test may be async or not, and
//! a client may be handed from one test's runtime to another's.

use std::path::Path;
use std::sync::{LazyLock, mpsc};

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime needs only a thread")
});

/// Runs a future to its end, also from within another runtime.
pub(crate) fn block_on<F>(future: F) -> F::Output
where
    F: Future<Output: Send> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel();
    RUNTIME.spawn(async move { sender.send(future.await) });
    receiver.recv().expect("the future panicked; see above")
}

/// Runs a future in the background.
pub(super) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    RUNTIME.spawn(future).abort_handle()
}

/// A client that authenticates as the user of `kubeconfig`.
pub(crate) fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("the harness wrote it");
    let config =
        async { Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await };
    let mut config = block_on(config).expect("the harness wrote it");
    config.proxy_url = None; // ignores the environment: the server is local
    let _on_runtime = RUNTIME.enter();
    Client::try_from(config).expect("a plain configuration makes a client")
}
