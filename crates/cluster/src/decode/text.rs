//! The texts of both formats.

use std::borrow::Cow;

use arcstr::ArcStr;
use serde::Deserialize;

use daemonset::model::Interner;

/// Text that is borrowed from the page unless it has escapes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl Text<'_> {
    pub(super) fn shared(&self, interner: &mut Interner) -> ArcStr {
        interner.share(&self.0)
    }
}
