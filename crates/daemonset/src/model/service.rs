//! A Service, with the fields that decide which pods are its endpoints.

use super::{Labels, NamespaceName};

/// One Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `spec.selector`; empty if pods are never its endpoints: without a selector, or for the type
    /// `ExternalName`, whose selector upstream's controllers ignore.
    pub selector: Labels,
    /// `spec.clusterIP` is `None`: its name resolves to the addresses of the pods.
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
    fn a_selector_requires_all_of_its_pairs_and_an_empty_one_selects_nothing() {
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
