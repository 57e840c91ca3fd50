#![doc = include_str!("../README.md")]
//!
//! # How it works
//!
//! The `store` keeps objects and their history; `verbs` are the API's rules, for HTTP and for
//! controllers; `http` is a service for a real `kube::Client`. The store and the verbs are pure:
//! time is an argument, and all random values come from a seed. Unsupported requests are answered
//! with 404 or 501 and a message. `world` puts everything together.
//!
//! [`World`] holds the objects of a snapshot in a store, an HTTP service over it, and one task that
//! plays the DaemonSet controller, the scheduler, the kubelets and the garbage collector. That task
//! is a loop of discrete events, in the order of time, and in the order of arrival in case of a tie.
//! It receives changes some milliseconds late, as informers do, decides by the rules of the DaemonSet
//! controller, and writes through the same verbs as HTTP does. A sync of the DaemonSet controller is a
//! list of requests in upstream's order and batches, sent at the controller manager's own rate (20 a
//! second after a burst of 30). Time is tokio's paused clock, which jumps when no task has work.
//!
//! A sync takes time in proportion to the nodes, as upstream's does, and events that arrive
//! meanwhile cause one further sync. `ds-apply` also rests after each evaluation of a large
//! cluster, one millisecond per fifty nodes, and handles the events of that time together; without
//! that, thousands of changes would each cost an evaluation of thousands of nodes. Interrupts, a
//! lost lock and failed creates of the controller are handled at once.
//!
//! Each random number is a function of the seed and of its purpose, so one more pod does not change
//! the numbers of others. Pods start as fast as those in the snapshot did, by image without its
//! tag; in 8 s if nothing is known.
//!
//! The store keeps the JSON text of each object next to its slim view: lists and watches serve the
//! text, which takes a fifth of the memory of a tree of values. Writers parse it, without the
//! `spec` where that does not change, as in every status write: versions share it. Recent events
//! are a bounded log per kind; pages of a continued list are reconstructed from it, or expire.
//!
//! # Answers that differ from those of a real server
//!
//! The control-plane tests send both the same requests and compare whole answers. The differences:
//!
//! - Only DaemonSets have `managedFields` and can be applied, because only their schema is known;
//!   unknown fields are reported only for them.
//! - There are no service accounts, so pods mount no token.
//! - Services cannot be created, because nothing gives them addresses.
//! - Strategic merge patches are answered with 415; evictions and API discovery with 404; deletes of
//!   collections and of namespaces, lists of a `resourceVersion` other than 0, and watches with
//!   `sendInitialEvents` with 501; `>` and `<` in label selectors with 400.
//! - The wording of Go's decoder, of its router and of diffs of pod specs is ours.
//!
//! # Behaviour that differs from that of a real cluster
//!
//! The same scenarios run here and on a real control plane (`tests/control_plane/fidelity`). After
//! each step the status, the revisions, and for each node the pods and what happened to them have
//! to be the same. The differences:
//!
//! | Here | Because |
//! |---|---|
//! | among equal nodes, the first by name is chosen | upstream iterates over a hash map; such nodes are compared as a set |
//! | another hash for a template | upstream's hash depends on the Go types of its version; only equality of templates matters |
//! | two changes within milliseconds are observed as one | requests take no virtual time, and the controller receives both at once; a real one may make a revision of each |
//! | whether a pod is bound, or an old one deleted, before the next step of the controller | scheduler, kubelets, garbage collector and controller race on both; not compared |
//! | one worker per DaemonSet | two DaemonSets, or their retries, do not wait for each other, as they might for upstream's two workers |
//! | a lost node gets its `NoExecute` taint within 5 s | upstream taints one node in ten seconds per zone, and fewer when many are lost; its zones are not modelled |
//! | pressure on a node's memory, disk or processes causes no taint | no component here reports any |
//! | a node that is not Ready in the snapshot has a dead kubelet, and kubelets write no heartbeats | a snapshot does not contain the cause; heartbeats would be most of the traffic |
//! | a pod of the snapshot whose containers have just started becomes ready at the time that is known for its images; an older one that is not ready stays so | a snapshot does not contain the cause |
//! | the scheduler counts neither resources nor ports, and binds only pods that are bound to one node by affinity | the slim pods of a snapshot have no requests; pods of other owners stay as they are |
//! | of Kubernetes events, only the warnings of the DaemonSet controller | thousands of pods would report success |

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
pub use http::{
    AnswerBody, Fault, Hook, Objects, Query, Route, Seen, Server, StoreGuard, Watching,
};
pub use kind::{Group, Kind};
pub use object::{Meta, Object, ObjectKey, Owner, UnreadableObject};
pub use rules::Denial;
pub use status::{Cause, Reason, Status};
pub use store::{Change, Event, Expired, Store};
pub use timings::{DEFAULT_START, Timings};
pub use world::{Rehearsal, World};

use kind::GroupResource;
use selector::Selector;
use verbs::{DeleteOptions, Deleted, Part, Target, Verbs};
