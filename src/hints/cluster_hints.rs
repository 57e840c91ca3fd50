//! Hints for errors of reading a cluster or a recording of one.

use cluster::Error;

/// The hint for `error`; `None` if its message says enough.
pub(super) fn hint(error: &Error) -> Option<String> {
    let text = match error {
        Error::NoKubeconfig { .. } | Error::NoSuchContext { .. } => {
            "set KUBECONFIG or --kubeconfig, or plan on a recording: `ds-plan --snapshot FILE`"
                .into()
        }
        Error::NoContext { path: _, known } | Error::UnknownContext { path: _, name: _, known } => {
            match known.as_slice() {
                [] => return None,
                known => format!("choose one with --context: {}", known.join(", ")),
            }
        }
        Error::PluginMissing { command, .. } => format!("install `{command}`, or put it on PATH"),
        Error::PluginFailed { .. } | Error::Unauthorized { .. } => {
            "log in again; does `kubectl get nodes` work?".into()
        }
        Error::Unreachable { .. } | Error::Timeout { .. } | Error::BrokenOff { .. } => {
            "is it the right context? `kubectl config current-context`; or plan on a recording: \
             `ds-plan --snapshot FILE`"
                .into()
        }
        Error::Tls { .. } => {
            "check `certificate-authority` of the cluster in the kubeconfig".into()
        }
        Error::Forbidden { .. } => {
            "bind a role that may get and list these, or use a recording of another user".into()
        }
        Error::Expired { .. } => "the cluster changes faster than it is read: run again".into(),
        Error::Empty { .. }
        | Error::CutOff { .. }
        | Error::Damaged { .. }
        | Error::NoMoment { .. } => "record it again: `ds-plan snapshot > FILE`".into(),
        Error::Encoding { .. } => "save it as UTF-8, or record it again in another shell".into(),
        Error::Syntax { .. }
        | Error::NotAList { .. }
        | Error::NoNodes { .. }
        | Error::Incomplete { .. } => "record one with `ds-plan snapshot`, or with `kubectl get \
             nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases \
             -A -o json --show-managed-fields`"
            .into(),
        Error::Kubeconfig { .. }
        | Error::Context { .. }
        | Error::ServiceAccount { .. }
        | Error::Refused { .. }
        | Error::EndlessList { .. }
        | Error::AnswerTooLarge { .. }
        | Error::NotAnAnswer { .. }
        | Error::Open { .. }
        | Error::Read { .. }
        | Error::Version { .. }
        | Error::Object { .. }
        | Error::Duplicate { .. }
        | Error::Write(_) => return None,
    };
    Some(text)
}
