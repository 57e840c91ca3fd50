//! `metadata` from protobuf (`k8s.io.apimachinery.pkg.apis.meta.v1`).

use serde::de::IgnoredAny;

use super::{ManagedFields, Metadata, OwnerReference, Pairs};
use crate::decode::protobuf::{Field, Malformed, Message, push_item};
use crate::decode::text::Text;

/// `ObjectMeta`, without annotations.
impl<'a> Message<'a> for Metadata<'a, IgnoredAny> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.name = Some(field.text("name")?),
            3 => self.namespace = Some(field.text("namespace")?),
            5 => self.uid = Some(field.text("uid")?),
            7 => self.generation = field.int64("generation")?,
            8 => self.creation_timestamp = field.moment("creationTimestamp")?,
            9 => self.deletion_timestamp = field.moment("deletionTimestamp")?,
            11 => self.labels.push(field, "labels")?,
            13 => field.push("ownerReferences", &mut self.owner_references)?,
            17 => field.push("managedFields", &mut self.managed_fields)?,
            _ => {}
        }
        Ok(())
    }
}

/// `OwnerReference`.
impl<'a> Message<'a> for OwnerReference<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.kind = field.text("kind")?,
            3 => self.name = field.text("name")?,
            4 => self.uid = field.text("uid")?,
            6 => self.controller = Some(field.boolean("controller")?),
            _ => {}
        }
        Ok(())
    }
}

/// `ManagedFieldsEntry`, only its time.
impl<'a> Message<'a> for ManagedFields {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number == 4 {
            self.time = field.moment("time")?;
        }
        Ok(())
    }
}

/// An entry of a map of texts.
#[derive(Default)]
struct Entry<'a> {
    key: Text<'a>,
    value: Text<'a>,
}

impl<'a> Message<'a> for Entry<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.key = field.text("key")?,
            2 => self.value = field.text("value")?,
            _ => {}
        }
        Ok(())
    }
}

/// An entry of a map of quantities.
#[derive(Default)]
struct QuantityEntry<'a> {
    key: Text<'a>,
    value: Quantity<'a>,
}

impl<'a> Message<'a> for QuantityEntry<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.key = field.text("key")?,
            2 => field.merge("value", &mut self.value)?,
            _ => {}
        }
        Ok(())
    }
}

/// `k8s.io.apimachinery.pkg.api.resource.Quantity`: the text that JSON has.
#[derive(Default)]
struct Quantity<'a>(Text<'a>);

impl<'a> Message<'a> for Quantity<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number == 1 {
            self.0 = field.text("string")?;
        }
        Ok(())
    }
}

impl<'a> Pairs<'a> {
    /// Adds an entry of a map of texts.
    pub(in crate::decode) fn push(
        &mut self,
        field: Field<'a>,
        name: &str,
    ) -> Result<(), Malformed> {
        let Entry { key, value } = field.message(name)?;
        push_item(name, &mut self.0, (key, value))
    }

    /// Adds an entry of a map of quantities.
    pub(in crate::decode) fn push_quantity(
        &mut self,
        field: Field<'a>,
        name: &str,
    ) -> Result<(), Malformed> {
        let QuantityEntry { key, value: Quantity(value) } = field.message(name)?;
        push_item(name, &mut self.0, (key, value))
    }
}
