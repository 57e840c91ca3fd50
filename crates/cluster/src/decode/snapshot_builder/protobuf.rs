//! Adds objects that are encoded as protobuf.

use super::super::Encoded;
use super::super::protobuf::{Message, envelope, read};
use super::{Cause, Kind, ObjectError, SnapshotBuilder, Wire, explain, node, pod};

/// Whether objects of a kind can be decoded from protobuf: the kinds of which a cluster has many.
/// The others are few, or needed as the JSON that the server has for them.
pub(crate) fn has_protobuf(kind: Kind) -> bool {
    match kind {
        Kind::Node | Kind::Pod => true,
        Kind::Namespace
        | Kind::DaemonSet
        | Kind::ControllerRevision
        | Kind::Service
        | Kind::Lease
        | Kind::DaemonSetRecord
        | Kind::Event => false,
    }
}

impl SnapshotBuilder {
    /// Decodes one object; `index` is its place in the list, from 0.
    ///
    /// # Errors
    /// The object is invalid.
    pub(crate) fn add_encoded(
        &mut self,
        kind: Kind,
        index: usize,
        object: Encoded<'_>,
    ) -> Result<(), ObjectError> {
        match object {
            Encoded::Json(json) => self.add(kind, index, json),
            Encoded::Protobuf(bytes) => self.add_protobuf(kind, index, bytes),
        }
    }

    /// Decodes one object from protobuf; `index` is its place in the list, from 0. An invalid part
    /// is an error, unlike in JSON: clients cannot store a status that is no protobuf.
    ///
    /// # Errors
    /// The object is invalid, or of a kind without a decoder.
    pub(crate) fn add_protobuf(
        &mut self,
        kind: Kind,
        index: usize,
        object: &[u8],
    ) -> Result<(), ObjectError> {
        let decoded = match kind {
            Kind::Node => self.message::<node::Wire<'_>>(object).map(|node| self.nodes.push(node)),
            Kind::Pod => self.message::<pod::Wire<'_>>(object).map(|pod| self.pods.push(pod)),
            Kind::Namespace
            | Kind::DaemonSet
            | Kind::ControllerRevision
            | Kind::Service
            | Kind::Lease
            | Kind::DaemonSetRecord
            | Kind::Event => Err(Cause::Inside("", "is protobuf instead of JSON".to_owned())),
        };
        decoded.map_err(|cause| {
            let name = envelope::name_of(object);
            ObjectError { name, ..explain(kind, index, "", &cause) }
        })
    }

    fn message<'a, W: Wire<'a> + Message<'a> + Default>(
        &mut self,
        object: &'a [u8],
    ) -> Result<W::Slim, Cause> {
        let wire: W = read(object)?;
        // A slim node or pod does not keep its text.
        self.slim(wire, "")
    }
}
