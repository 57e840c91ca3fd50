//! `apps/v1` ControllerRevision.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::metadata::{Annotated, Pairs};
use super::{Cause, Context};
use crate::Kind;
use daemonset::model::{Revision, RevisionNumber};

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Annotated<'a>,
    #[serde(default)]
    revision: i64,
    #[serde(default)]
    data: Value,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = Revision;
    type Annotations = Pairs<'a>;
    const KIND: Kind = Kind::ControllerRevision;

    fn metadata(&self) -> &Annotated<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Revision, Cause> {
        let (metadata, interner) = (&self.metadata, &mut *context.interner);
        Ok(Revision {
            namespace: metadata.namespace(interner)?,
            name: metadata.name()?.into(),
            uid: metadata.uid()?,
            labels: metadata.labels(interner),
            annotations: metadata.annotations(interner),
            controller: metadata.controller(interner),
            number: RevisionNumber(self.revision),
            created: metadata.creation_timestamp,
            terminating: metadata.is_terminating(),
            data: Arc::new(self.data),
        })
    }
}
