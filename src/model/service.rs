//! A Service, as slim as planning needs it: which pods become its endpoints.

use super::{Labels, NamespaceName};

/// One Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.selector`; empty when nobody makes endpoints of pods for it: it has none, or is an
    /// `ExternalName`, of which upstream's controllers pass the selector over.
    pub selector: Labels,
    /// `spec.clusterIP` is `None`: its name resolves to each pod by itself.
    pub headless: bool,
}

impl Service {
    /// Whether pods with these labels are its endpoints (upstream: `GetPodServiceMemberships`).
    pub fn selects(&self, labels: &Labels) -> bool {
        let has = |(key, value): (&str, &str)| labels.get(key) == Some(value);
        !self.selector.is_empty() && self.selector.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_wants_all_of_its_pairs_and_an_empty_one_selects_nothing() {
        let labels = |pairs: &[(&str, &str)]| -> Labels { pairs.iter().copied().collect() };
        let pod = labels(&[("app", "a"), ("tier", "b")]);
        for (selector, want) in [
            (&[("app", "a")][..], true),
            (&[("app", "a"), ("tier", "b")], true),
            (&[("app", "a"), ("tier", "c")], false),
            (&[("app", "a"), ("zone", "")], false),
            (&[], false),
        ] {
            let selector = labels(selector);
            let service =
                Service { namespace: "ns".into(), name: "s".into(), selector, headless: false };
            assert_eq!(service.selects(&pod), want, "{:?}", service.selector);
        }
    }
}
