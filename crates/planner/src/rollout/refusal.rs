//! Tells a rejected pod from a request that did not reach the server, by the message of a
//! `FailedCreate` event (upstream: `RealPodControl.createPods`, whose warning ends in the error).
//!
//! Only a rejection lasts until the user changes something, so only a rejection shortens a
//! deadline. Unknown messages are not rejections.

/// Fragments of messages that reject the pod: admission, quota, validation, RBAC.
const REFUSALS: [&str; 3] = [" is forbidden: ", " denied the request", " is invalid: "];

/// Fragments of transient errors, of failed requests and of a server that has just started. Some
/// occur inside a rejection, as the reason why a lookup failed.
const PASSING: [&str; 21] = [
    "Internal error occurred",
    "ServiceUnavailable",
    "the server is currently unable to handle the request",
    "the server was unable to return a response in the time allotted",
    "Too many requests",
    "etcdserver: ",
    "dial tcp",
    "connection refused",
    "connection reset by peer",
    "broken pipe",
    "no such host",
    "no route to host",
    "network is unreachable",
    "client connection lost",
    "TLS handshake timeout",
    "i/o timeout",
    "Client.Timeout exceeded",
    "context deadline exceeded",
    "context canceled",
    ": EOF",
    "not yet ready to handle request",
];

/// Transient errors that need two fragments: a server with empty caches knows no roles, and quotas
/// whose usage is not counted yet reject everything.
const NOT_YET_KNOWN: [(&str, &str); 2] =
    [("RBAC: ", " not found"), ("status unknown for quota: ", "")];

/// Whether the message is a rejection of the pod itself.
pub(super) fn is_refusal(message: &str) -> bool {
    let has = |text: &&str| message.contains(*text);
    let unknown = |(text, end): &(&str, &str)| message.contains(text) && message.contains(end);
    REFUSALS.iter().any(has) && !PASSING.iter().any(has) && !NOT_YET_KNOWN.iter().any(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as of Kubernetes 1.36.
    #[test]
    fn only_messages_about_the_pod_are_refusals() {
        let post = "Post \"https://10.0.0.1:6443/api/v1/namespaces/x/pods\": ";
        let transport = |error: &str| format!("{post}{error}");
        let pod = |why: &str| format!("pods \"agent-\" is forbidden: {why}");
        let refusals = [
            pod("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
            pod("insufficient quota to match these scopes: [{PriorityClass In [a]}]"),
            pod("violates PodSecurity \"restricted:latest\": host namespaces (hostNetwork=true)"),
            pod("maximum memory usage per Container is 1Gi, but limit is 2Gi"),
            pod("no PriorityClass with name none was found"),
            pod("error looking up service account x/none: serviceaccount \"none\" not found"),
            pod("ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
            pod("pod node label selector conflicts with its namespace node label selector"),
            "pods is forbidden: User \"system:serviceaccount:kube-system:daemon-set-controller\" \
             cannot create resource \"pods\" in API group \"\" in the namespace \"x\""
                .to_owned(),
            "admission webhook \"policy.example\" denied the request: no root".to_owned(),
            "admission webhook \"policy.example\" denied the request without explanation"
                .to_owned(),
            "Pod \"agent-x\" is invalid: spec.containers[0].image: Required value".to_owned(),
        ];
        let passing = [
            transport("dial tcp 10.0.0.1:6443: connect: connection refused"),
            transport("read tcp 10.0.0.2:41522->10.0.0.1:6443: read: connection reset by peer"),
            transport("dial tcp: lookup api.example on 10.0.0.53:53: no such host"),
            transport("dial tcp 10.0.0.1:6443: i/o timeout"),
            transport("net/http: TLS handshake timeout"),
            transport(
                "net/http: request canceled (Client.Timeout exceeded while awaiting headers)",
            ),
            transport("http2: client connection lost"),
            transport("context deadline exceeded"),
            transport("unexpected EOF"),
            transport("EOF"),
            transport("Forbidden"),
            "etcdserver: request timed out".to_owned(),
            "etcdserver: leader changed".to_owned(),
            "rpc error: code = Unavailable desc = error reading from server: EOF".to_owned(),
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request (post pods)"
                .to_owned(),
            "the server is currently unable to handle the request (post pods)".to_owned(),
            "Timeout: request did not complete within requested timeout".to_owned(),
            "Internal error occurred: failed calling webhook \"policy.example\": failed to call \
             webhook: Post \"https://policy.x.svc:443/?timeout=10s\": dial tcp 10.0.0.7:443: \
             connect: connection refused"
                .to_owned(),
            "Internal error occurred: resource quota evaluation timed out".to_owned(),
            pod("not yet ready to handle request"),
            pod("status unknown for quota: q, resources: pods"),
            pod("error looking up service account x/agent: Get \"https://10.0.0.1:6443/api/v1/\
                 namespaces/x/serviceaccounts/agent\": dial tcp 10.0.0.1:6443: connect: \
                 connection refused"),
            "pods is forbidden: User \"system:serviceaccount:kube-system:daemon-set-controller\" \
             cannot create resource \"pods\" in API group \"\" in the namespace \"x\": RBAC: \
             clusterrole.rbac.authorization.k8s.io \"system:controller:daemon-set-controller\" not \
             found"
                .to_owned(),
            "Unauthorized".to_owned(),
            "an unknown message".to_owned(),
            String::new(),
        ];
        for (messages, want) in [(&refusals[..], true), (&passing[..], false)] {
            for message in messages {
                let message = format!("Error creating: {message}");
                assert_eq!(is_refusal(&message), want, "{message}");
            }
        }
    }
}
