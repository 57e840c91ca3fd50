//! Behaviour that the differential tests on a real server cannot show: faults, denials, expired
//! versions, and that `ds-plan`'s own client runs on the embedded cluster unchanged.

mod client;
mod garbage;
mod serving;
mod storing;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Kind, Server, Store};

/// An arbitrary time.
fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// A store with the namespaces `kube-system` and `team`.
fn store() -> Store {
    let mut store = Store::new(1);
    for name in ["kube-system", "team"] {
        let namespace = json!({"metadata": {"name": name}});
        store.verbs(now(), "test").create(Kind::Namespace, "", namespace).unwrap();
    }
    store
}

/// A cluster whose clock is tokio's.
fn server(store: Store) -> Server {
    let (began, at) = (tokio::time::Instant::now(), now());
    Server::new(store, move || at + began.elapsed())
}

fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"app": "agent"}},
        "spec": {"nodeName": "n", "containers": [{"name": "agent", "image": "agent:1"}]},
    })
}

fn daemon_set(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"namespace": "team", "name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "agent", "image": image}]},
            },
        },
    })
}
