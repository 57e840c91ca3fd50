//! `v1` Service.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::metadata::{Metadata, Pairs};
use super::{Cause, Context, Text};
use crate::Kind;
use daemonset::model::{Labels, Service, null_as_default};

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Metadata<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    spec: Spec<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Spec<'a> {
    #[serde(borrow)]
    selector: Pairs<'a>,
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow, rename = "clusterIP")]
    cluster_ip: Option<Text<'a>>,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = Service;
    type Annotations = IgnoredAny;
    const KIND: Kind = Kind::Service;

    fn metadata(&self) -> &Metadata<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Service, Cause> {
        let is = |field: Option<&Text<'_>>, word: &str| field.is_some_and(|text| text.0 == word);
        let Spec { selector, kind, cluster_ip } = &self.spec;
        Ok(Service {
            namespace: self.metadata.namespace(context.interner)?,
            name: self.metadata.name()?.into(),
            selector: if is(kind.as_ref(), "ExternalName") {
                Labels::default()
            } else {
                selector.shared(context.interner)
            },
            headless: is(cluster_ip.as_ref(), "None"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::decoded;
    use super::*;

    #[test]
    fn the_selector_of_a_service_and_whether_it_is_headless() {
        for (spec, selector, headless) in [
            (r#"{"selector":{"app":"a"},"clusterIP":"10.0.0.1"}"#, &[("app", "a")][..], false),
            (r#"{"selector":{"app":"a"},"clusterIP":"None"}"#, &[("app", "a")], true),
            (r#"{"selector":{"app":"a"},"type":"ExternalName"}"#, &[], false),
            (r#"{"selector":null,"clusterIP":null}"#, &[], false),
            ("null", &[], false),
        ] {
            let json = format!(r#"{{"metadata":{{"namespace":"ns","name":"s"}},"spec":{spec}}}"#);
            let services = decoded(&[(Kind::Service, &json)]).services;
            let want: Labels = selector.iter().copied().collect();
            let want =
                Service { namespace: "ns".into(), name: "s".into(), selector: want, headless };
            assert_eq!(services, [want], "{spec}");
        }
    }
}
