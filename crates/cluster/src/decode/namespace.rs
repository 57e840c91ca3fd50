//! `v1` Namespace.

use serde::Deserialize;

use super::metadata::{Annotated, Pairs};
use super::{Cause, Context, Text};
use crate::Kind;
use daemonset::model::{Namespace, null_as_default};

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct Wire<'a> {
    #[serde(borrow, default)]
    metadata: Annotated<'a>,
    #[serde(borrow, default, deserialize_with = "null_as_default")]
    status: Status<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status<'a> {
    #[serde(borrow)]
    phase: Option<Text<'a>>,
}

impl<'a> super::Wire<'a> for Wire<'a> {
    type Slim = Namespace;
    type Annotations = Pairs<'a>;
    const KIND: Kind = Kind::Namespace;

    fn metadata(&self) -> &Annotated<'a> {
        &self.metadata
    }

    fn slim(self, _json: &str, context: &mut Context<'_>) -> Result<Namespace, Cause> {
        let phase = self.status.phase.as_ref().map(|phase| &*phase.0);
        Ok(Namespace {
            name: self.metadata.name()?.into(),
            annotations: self.metadata.annotations(context.interner),
            terminating: phase == Some("Terminating") || self.metadata.is_terminating(),
        })
    }
}
