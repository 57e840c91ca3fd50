//! The last lines that a container has printed (`pods/log`).

use std::fmt::Display;

use super::failure::{Failure, Refusal};
use super::request::Call;
use super::{Error, Kind, LiveCluster, Permission, Resource, Verb, uri};
use crate::model::{NamespaceName, PodName};

/// So many lines are asked for.
const LINES: u32 = 20;

/// At most so many bytes of them.
const BYTES: u32 = 16 << 10;

/// Whose lines.
#[derive(Clone, Copy, Debug)]
pub struct LogOf<'a> {
    /// Where the pod is.
    pub namespace: &'a NamespaceName,
    /// The pod.
    pub pod: &'a PodName,
    /// Which of its containers; `None` where it has one only.
    pub container: Option<&'a str>,
    /// Of the container before, which has ended.
    pub previous: bool,
}

impl LiveCluster {
    /// The end of what a container has printed. Asked for once: it may be long in coming from a
    /// node that is not well, and is worth having only.
    ///
    /// # Errors
    /// The user may not, or the server or the kubelet has none.
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
