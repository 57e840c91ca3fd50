//! The tolerations of a daemon pod: its own and the automatic ones (upstream:
//! `AddOrUpdateDaemonPodTolerations`, `ToleratesTaint`).

use crate::model::{PodPlacement, Taint, TaintEffect, Toleration};

/// The pods that get an automatic toleration.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    EveryPod,
    HostNetworkOnly,
}

/// The automatic tolerations, in the order in which they are applied.
const AUTOMATIC: [(&str, TaintEffect, For); 7] = [
    ("node.kubernetes.io/not-ready", TaintEffect::NoExecute, For::EveryPod),
    ("node.kubernetes.io/unreachable", TaintEffect::NoExecute, For::EveryPod),
    ("node.kubernetes.io/disk-pressure", TaintEffect::NoSchedule, For::EveryPod),
    ("node.kubernetes.io/memory-pressure", TaintEffect::NoSchedule, For::EveryPod),
    ("node.kubernetes.io/pid-pressure", TaintEffect::NoSchedule, For::EveryPod),
    ("node.kubernetes.io/unschedulable", TaintEffect::NoSchedule, For::EveryPod),
    ("node.kubernetes.io/network-unavailable", TaintEffect::NoSchedule, For::HostNetworkOnly),
];

/// A toleration of a created pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodToleration<'a> {
    /// The unchanged entry of the template at this index.
    Template(usize, &'a Toleration),
    /// An automatic toleration of this key and effect: operator `Exists`, without value and
    /// seconds.
    Automatic(&'static str, TaintEffect),
}

/// The tolerations of a pod made from `template`, in order.
///
/// Every toleration of the template that equals an automatic one in key, effect, operator and value
/// is replaced in place and so loses its `tolerationSeconds`; otherwise the automatic one is
/// appended. As upstream, `not-ready` and `unreachable` with effect `NoSchedule` are not tolerated
/// automatically.
pub fn of_pod(template: &PodPlacement) -> Vec<PodToleration<'_>> {
    let own = template.tolerations.iter().enumerate();
    let mut all: Vec<_> = own.map(|(at, own)| PodToleration::Template(at, own)).collect();
    for (key, effect, who) in AUTOMATIC {
        if who == For::HostNetworkOnly && !template.host_network {
            continue;
        }
        let automatic = PodToleration::Automatic(key, effect);
        let mut found = false;
        for entry in &mut all {
            if is_equal_to_automatic(*entry, key, effect) {
                *entry = automatic;
                found = true;
            }
        }
        if !found {
            all.push(automatic);
        }
    }
    all
}

fn is_equal_to_automatic(entry: PodToleration<'_>, key: &str, effect: TaintEffect) -> bool {
    match entry {
        PodToleration::Automatic(..) => false, // each key and effect comes once
        PodToleration::Template(_, own) => {
            own.key == key
                && own.effect == effect.as_str()
                && own.operator == "Exists"
                && own.value.is_empty()
        }
    }
}

impl PodToleration<'_> {
    /// Whether a pod with this toleration tolerates `taint`.
    pub fn tolerates(self, taint: &Taint) -> bool {
        match self {
            Self::Template(_, own) => tolerates(own, taint),
            Self::Automatic(key, effect) => *taint.key == *key && taint.effect == effect,
        }
    }
}

/// Whether `toleration` tolerates `taint` (upstream: `ToleratesTaint`).
///
/// An empty effect matches every effect, an empty key every key. `tolerationSeconds` is ignored.
/// The operators `Gt` and `Lt` need a feature that is off by default in 1.36; without it they
/// tolerate nothing, as any unknown operator.
pub fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    if !toleration.effect.is_empty() && toleration.effect != taint.effect.as_str() {
        return false;
    }
    if !toleration.key.is_empty() && toleration.key != *taint.key {
        return false;
    }
    match toleration.operator.as_str() {
        "" | "Equal" => toleration.value == *taint.value,
        "Exists" => true,
        _unknown => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::taint;

    fn toleration(key: &str, operator: &str, value: &str, effect: &str) -> Toleration {
        Toleration {
            key: key.to_owned(),
            operator: operator.to_owned(),
            value: value.to_owned(),
            effect: effect.to_owned(),
            toleration_seconds: None,
        }
    }

    #[test]
    fn taints_that_a_toleration_tolerates() {
        let gpu = taint("gpu=a100:NoSchedule");
        for (key, operator, value, effect, want) in [
            ("gpu", "Equal", "a100", "NoSchedule", true),
            ("gpu", "", "a100", "NoSchedule", true),
            ("gpu", "Equal", "h100", "NoSchedule", false),
            ("gpu", "Equal", "", "NoSchedule", false),
            ("gpu", "Exists", "", "NoSchedule", true),
            ("gpu", "Exists", "h100", "NoSchedule", true), // the value is ignored
            ("gpu", "Exists", "", "", true),
            ("gpu", "Exists", "", "NoExecute", false),
            ("cpu", "Exists", "", "NoSchedule", false),
            ("", "Exists", "", "", true),
            ("", "Equal", "a100", "", true),
            ("gpu", "exists", "", "", false),
            ("gpu", "Gt", "1", "", false),
        ] {
            let got = tolerates(&toleration(key, operator, value, effect), &gpu);
            assert_eq!(got, want, "{key} {operator} {value} {effect}");
        }
        let cores = taint("cores=8:NoSchedule");
        for operator in ["Gt", "Lt"] {
            assert!(!tolerates(&toleration("cores", operator, "4", ""), &cores), "{operator}");
        }
    }

    /// Key, effect, seconds of each.
    fn written(template: &PodPlacement) -> Vec<(String, String, Option<i64>)> {
        let written = |toleration: PodToleration<'_>| match toleration {
            PodToleration::Template(_, own) => {
                (own.key.clone(), own.effect.clone(), own.toleration_seconds)
            }
            PodToleration::Automatic(key, effect) => {
                (key.to_owned(), effect.as_str().to_owned(), None)
            }
        };
        of_pod(template).into_iter().map(written).collect()
    }

    fn automatic(name: &str, effect: &str) -> (String, String, Option<i64>) {
        (format!("node.kubernetes.io/{name}"), effect.to_owned(), None)
    }

    #[test]
    fn automatic_ones_are_appended_in_order() {
        let mut template = PodPlacement::default();
        let mut want = vec![
            automatic("not-ready", "NoExecute"),
            automatic("unreachable", "NoExecute"),
            automatic("disk-pressure", "NoSchedule"),
            automatic("memory-pressure", "NoSchedule"),
            automatic("pid-pressure", "NoSchedule"),
            automatic("unschedulable", "NoSchedule"),
        ];
        assert_eq!(written(&template), want);
        template.host_network = true;
        want.push(automatic("network-unavailable", "NoSchedule"));
        assert_eq!(written(&template), want);
    }

    #[test]
    fn every_equal_one_is_replaced_in_place() {
        let unreachable = "node.kubernetes.io/unreachable";
        let with_seconds = Toleration {
            toleration_seconds: Some(300),
            ..toleration(unreachable, "Exists", "", "NoExecute")
        };
        let template = PodPlacement {
            tolerations: vec![
                toleration("gpu", "Exists", "", ""),
                with_seconds.clone(),
                // Not equal: another effect, another operator.
                toleration(unreachable, "Exists", "", ""),
                toleration("node.kubernetes.io/not-ready", "Equal", "", "NoExecute"),
                with_seconds,
            ],
            ..PodPlacement::default()
        };
        let got = written(&template);
        let want = [
            ("gpu".to_owned(), String::new(), None),
            automatic("unreachable", "NoExecute"),
            automatic("unreachable", ""),
            automatic("not-ready", "NoExecute"),
            automatic("unreachable", "NoExecute"),
            automatic("not-ready", "NoExecute"),
            automatic("disk-pressure", "NoSchedule"),
        ];
        assert_eq!(got[..want.len()], want);
        assert_eq!(got.len(), want.len() + 3);
    }
}
