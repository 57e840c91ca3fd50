//! A pod from protobuf (`k8s.io.api.core.v1`).

use super::{
    Affinity, ContainerStatus, NodeAffinity, Required, Requirement, Running, Spec, State, Status,
    Term, Terminated, Waiting, Wire,
};
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
            10 => self.node_name = field.optional_text("nodeName")?,
            18 => field.merge_optional("affinity", &mut self.affinity)?,
            _ => {}
        }
        Ok(())
    }
}

/// `Affinity`.
impl<'a> Message<'a> for Affinity<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.merge_optional("nodeAffinity", &mut self.node_affinity),
            _ => Ok(()),
        }
    }
}

/// `NodeAffinity`.
impl<'a> Message<'a> for NodeAffinity<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
        match field.number {
            1 => field.merge_optional(REQUIRED, &mut self.required),
            _ => Ok(()),
        }
    }
}

/// `NodeSelector`.
impl<'a> Message<'a> for Required<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.push("nodeSelectorTerms", &mut self.node_selector_terms),
            _ => Ok(()),
        }
    }
}

/// `NodeSelectorTerm`.
impl<'a> Message<'a> for Term<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            2 => field.push("matchFields", &mut self.match_fields),
            _ => Ok(()),
        }
    }
}

/// `NodeSelectorRequirement`.
impl<'a> Message<'a> for Requirement<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.key = field.text("key")?,
            2 => self.operator = field.text("operator")?,
            3 => field.push_text("values", &mut self.values)?,
            _ => {}
        }
        Ok(())
    }
}

/// `PodStatus`.
impl<'a> Message<'a> for Status<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.phase = field.optional_text("phase")?,
            2 => field.push("conditions", &mut self.conditions)?,
            3 => self.message = field.optional_text("message")?,
            4 => self.reason = field.optional_text("reason")?,
            7 => self.start_time = field.moment("startTime")?,
            8 => field.push("containerStatuses", &mut self.container_statuses)?,
            10 => field.push("initContainerStatuses", &mut self.init_container_statuses)?,
            _ => {}
        }
        Ok(())
    }
}

/// `ContainerStatus`.
impl<'a> Message<'a> for ContainerStatus<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.name = field.text("name")?,
            2 => field.merge("state", &mut self.state)?,
            3 => field.merge("lastState", &mut self.last_state)?,
            4 => self.ready = field.boolean("ready")?,
            // A negative count is none, as in JSON.
            5 => self.restart_count = field.int32("restartCount")?.try_into().unwrap_or_default(),
            9 => self.started = Some(field.boolean("started")?),
            _ => {}
        }
        Ok(())
    }
}

/// `ContainerState`.
impl<'a> Message<'a> for State<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => field.merge_optional("waiting", &mut self.waiting),
            2 => field.merge_optional("running", &mut self.running),
            3 => field.merge_optional("terminated", &mut self.terminated),
            _ => Ok(()),
        }
    }
}

/// `ContainerStateWaiting`.
impl<'a> Message<'a> for Waiting<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.reason = field.optional_text("reason")?,
            2 => self.message = field.optional_text("message")?,
            _ => {}
        }
        Ok(())
    }
}

/// `ContainerStateRunning`.
impl<'a> Message<'a> for Running {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        if field.number == 1 {
            self.started_at = field.moment("startedAt")?;
        }
        Ok(())
    }
}

/// `ContainerStateTerminated`.
impl<'a> Message<'a> for Terminated<'a> {
    fn field(&mut self, field: Field<'a>) -> Result<(), Malformed> {
        match field.number {
            1 => self.exit_code = field.int32("exitCode")?.into(),
            3 => self.reason = field.optional_text("reason")?,
            4 => self.message = field.optional_text("message")?,
            5 => self.started_at = field.moment("startedAt")?,
            6 => self.finished_at = field.moment("finishedAt")?,
            _ => {}
        }
        Ok(())
    }
}
