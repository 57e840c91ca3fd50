//! A node from protobuf (`k8s.io.api.core.v1`).

use super::{Spec, Status, Wire, WireTaint};
use crate::decode::protobuf::{Field, Malformed, Message};

/// `Node`.
impl<'a> Message<'a> for Wire<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.merge("metadata", &mut self.metadata),
            2 => field.merge("spec", &mut self.spec),
            3 => field.merge("status", &mut self.status),
            _ => Ok(()),
        }
    }
}

/// `NodeSpec`.
impl<'a> Message<'a> for Spec<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            4 => self.unschedulable = field.boolean("unschedulable")?,
            5 => field.push("taints", &mut self.taints)?,
            _ => {}
        }
        Ok(())
    }
}

/// `Taint`.
impl<'a> Message<'a> for WireTaint<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.key = field.text("key")?,
            2 => self.value = field.optional_text("value")?,
            3 => self.effect = field.text("effect")?,
            _ => {}
        }
        Ok(())
    }
}

/// `NodeStatus`.
impl<'a> Message<'a> for Status<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            2 => self.allocatable.push_quantity(field, "allocatable"),
            4 => field.push("conditions", &mut self.conditions),
            _ => Ok(()),
        }
    }
}
