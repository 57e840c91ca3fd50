//! The same pod from protobuf (`k8s.io.api.core.v1`).

use super::{Container, Resources, Spec, Status, Wire};
use crate::decode::protobuf::{Field, Malformed, Message};

/// `Pod`.
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

/// `PodSpec`.
impl<'a> Message<'a> for Spec<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            2 => field.push("containers", &mut self.containers)?,
            10 => self.node_name = field.optional_text("nodeName")?,
            20 => field.push("initContainers", &mut self.init_containers)?,
            40 => field.merge("resources", &mut self.resources)?,
            _ => {}
        }
        Ok(())
    }
}

/// `Container`.
impl<'a> Message<'a> for Container<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            8 => field.merge("resources", &mut self.resources),
            _ => Ok(()),
        }
    }
}

/// `ResourceRequirements`.
impl<'a> Message<'a> for Resources<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            2 => self.requests.push_quantity(field, "requests"),
            _ => Ok(()),
        }
    }
}

/// `PodStatus`.
impl<'a> Message<'a> for Status<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.phase = field.optional_text("phase")?,
            2 => field.push("conditions", &mut self.conditions)?,
            7 => self.start_time = field.moment("startTime")?,
            _ => {}
        }
        Ok(())
    }
}
