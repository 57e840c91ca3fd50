//! Reads the last lines of a container's log (`pods/log`).

use std::fmt::Display;

use super::failure::{Failure, Refusal};
use super::request::Call;
use super::{Error, Kind, LiveCluster, Permission, Resource, Verb, uri};
use daemonset::model::{NamespaceName, PodName};

/// The value of `tailLines`.
const LINES: u32 = 20;

/// The value of `limitBytes`.
const BYTES: u32 = 16 << 10;

/// The container whose log is read.
#[derive(Clone, Copy, Debug)]
pub struct LogOf<'a> {
    /// The namespace of the pod.
    pub namespace: &'a NamespaceName,
    /// The name of the pod.
    pub pod: &'a PodName,
    /// The name of the container; `None` for a pod with only one.
    pub container: Option<&'a str>,
    /// Reads the log of the previous, terminated container (kubectl: `--previous`).
    pub previous: bool,
}

impl LiveCluster {
    /// The end of a container's log. Not retried: the log is optional, and an unhealthy node may
    /// be slow to answer.
    ///
    /// # Errors
    /// The user is not permitted to read it, or the server or the kubelet does not have it.
    pub async fn log(&self, of: LogOf<'_>) -> Result<String, Error> {
        let LogOf { namespace, pod, container, previous } = of;
        let path = uri::object(Resource::Of(Kind::Pod), namespace, pod.as_str());
        let container = container.as_ref().map(|name| name as &dyn Display);
        let pairs: [(&str, Option<&dyn Display>); 4] = [
            ("container", container),
            ("previous", previous.then_some(&true)),
            ("tailLines", Some(&LINES)),
            ("limitBytes", Some(&BYTES)),
        ];
        let uri = uri::with_query(format!("{path}/log"), pairs);
        let call = Call::get(Resource::PodLog, uri);
        match self.requests.attempt(&call).await {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(Failure::Status(Refusal { code: 403, message, .. })) => {
                let (verb, resource) = (Verb::Get, Resource::PodLog);
                let namespace = Some(namespace.clone());
                Err(Error::Forbidden {
                    missing: vec![Permission { verb, resource, namespace }],
                    message,
                })
            }
            Err(failure) => Err(self.requests.error(failure, &call)),
        }
    }
}
