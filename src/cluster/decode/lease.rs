//! `coordination.k8s.io/v1` Lease: only what `ds-apply` remembers in one. Who holds it is the
//! lock's affair.

use serde::Deserialize;

use super::metadata::{Annotated, Pairs};
use super::{Cause, Context};
use crate::cluster::Kind;
use crate::model::{FAILED_TEMPLATES_ANNOTATION, Lease, failed_templates};

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Annotated<'a>,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = Lease;
    type Annotations = Pairs<'a>;
    const KIND: Kind = Kind::Lease;

    fn metadata(&self) -> &Annotated<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Lease, Cause> {
        let remembered = self.metadata.annotation(FAILED_TEMPLATES_ANNOTATION).unwrap_or_default();
        Ok(Lease {
            namespace: self.metadata.namespace(context.interner)?,
            name: self.metadata.name()?.into(),
            failed: failed_templates(remembered).map(Box::from).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::decoded;
    use super::*;

    #[test]
    fn leases_that_remember_nothing_are_not_kept() {
        for (annotations, want) in [
            (
                r#"{"ds-plan.dev/failed-templates":"sha256:a,sha256:b"}"#,
                Some(["sha256:a", "sha256:b"]),
            ),
            (r#"{"ds-plan.dev/failed-templates":""}"#, None),
            (r#"{"ds-plan.dev/failed-templates":null}"#, None),
            ("null", None),
        ] {
            let json = format!(
                r#"{{"metadata":{{"namespace":"ns","name":"l","annotations":{annotations}}}}}"#
            );
            let leases = decoded(&[(Kind::Lease, &json)]).leases;
            let want = want.map(|digests| Lease {
                namespace: "ns".into(),
                name: "l".into(),
                failed: digests.map(Box::from).into(),
            });
            assert_eq!(leases, want.into_iter().collect::<Vec<_>>(), "{annotations}");
        }
    }
}
