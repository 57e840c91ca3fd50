//! The embedded cluster: a subset of the API server behind the same HTTP API, and the controllers
//! and kubelets that act on it, on virtual time.
//!
//! The `store` keeps objects and their history; `verbs` are the API's rules, for HTTP and for
//! controllers; `http` is a service for a real `kube::Client`. The store and the verbs are pure:
//! time is an argument, and all random values come from a seed. Unsupported requests are answered
//! with 404 or 501 and a message. `world` puts everything together.

mod clock;
mod controllers;
mod faults;
mod http;
mod kind;
mod load;
mod object;
mod rules;
mod seeded;
mod selector;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod timings;
mod verbs;
mod world;

pub use clock::{VirtualClock, on_virtual_time};
pub use controllers::Controllers;
pub use http::{
    AnswerBody, Discovery, Fault, Hook, Objects, Query, Route, Seen, Server, StoreGuard, Watching,
};
pub use kind::{Group, GroupResource, Kind};
pub use load::objects;
pub use object::{Meta, Object, ObjectKey, Owner, UnreadableObject};
pub use rules::{Attributes, Denial};
pub use selector::Selector;
pub use status::{Cause, Reason, Status};
pub use store::{Change, Event, Expired, Store};
pub use timings::{DEFAULT_START, Timings};
pub use verbs::{
    DeleteOptions, Deleted, ListOptions, Page, Part, Patch, Propagation, Target, Verbs,
    WriteOptions,
};
pub use world::{Rehearsal, World};
