//! `coordination.k8s.io/v1` Lease: the failed templates that `ds-apply` stores in it, and the
//! holder if it is a run of `ds-apply`. Not here: locking (`lock`).

use serde::Deserialize;

use super::metadata::{Annotated, Pairs};
use super::{Cause, Context};
use crate::Kind;
use crate::lock::{HOLDER_ANNOTATION, LeaseSpec, lock_holder};
use daemonset::model::{
    FAILED_TEMPLATES_ANNOTATION, Lease, STEPS_ANNOTATION, StepsNote, failed_templates,
    null_as_default,
};

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Annotated<'a>,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: LeaseSpec,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = Lease;
    type Annotations = Pairs<'a>;
    const KIND: Kind = Kind::Lease;

    fn metadata(&self) -> &Annotated<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Lease, Cause> {
        // Other controllers hold leases too; only ours have the annotation.
        let reported = self.metadata.annotation(HOLDER_ANNOTATION);
        let holder = reported.and_then(|reported| lock_holder(&self.spec, Some(reported)));
        let remembered = self.metadata.annotation(FAILED_TEMPLATES_ANNOTATION).unwrap_or_default();
        Ok(Lease {
            namespace: self.metadata.namespace(context.interner)?,
            name: self.metadata.name()?.into(),
            failed: failed_templates(remembered).map(Box::from).collect(),
            steps: self.metadata.annotation(STEPS_ANNOTATION).and_then(StepsNote::read),
            holder,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::decoded;
    use super::*;

    #[test]
    fn leases_without_failed_templates_are_not_kept() {
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
                steps: None,
                holder: None,
            });
            assert_eq!(leases, want.into_iter().collect::<Vec<_>>(), "{annotations}");
        }
    }

    #[test]
    fn the_holder_of_our_lease_is_kept_and_other_leases_are_not() {
        let reported = r#"{\"host\":\"h\",\"pid\":1,\"user\":\"a\",\"id\":\"x\"}"#;
        for (annotations, holder, kept) in [
            (
                format!(r#"{{"ds-plan.dev/holder":"{reported}"}}"#),
                "h_1_x",
                Some("a on h (process 1)"),
            ),
            // Taken by a client without our annotation.
            (format!(r#"{{"ds-plan.dev/holder":"{reported}"}}"#), "other", Some("other")),
            // Released.
            (format!(r#"{{"ds-plan.dev/holder":"{reported}"}}"#), "", None),
            ("{}".to_owned(), "some-controller", None),
        ] {
            let json = format!(
                r#"{{"metadata":{{"namespace":"ns","name":"l","annotations":{annotations}}},
                "spec":{{"holderIdentity":"{holder}","leaseDurationSeconds":15,
                "acquireTime":"2026-01-01T00:00:00.000000Z","renewTime":"soon"}}}}"#
            );
            let leases = decoded(&[(Kind::Lease, &json)]).leases;
            let holder = leases.first().and_then(|lease| lease.holder.as_ref());
            assert_eq!(holder.map(|it| &*it.name), kept, "{annotations}");
            if let Some(holder) = holder {
                let since = holder.since.map(|it| it.to_string());
                assert_eq!(since.as_deref(), Some("2026-01-01T00:00:00Z"));
                assert_eq!((holder.renewed, holder.lease_seconds), (None, 15));
            }
        }
    }
}
