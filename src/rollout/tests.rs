//! Runs against a cluster in memory: the controller is upstream's own rules (`controller`), kubelet
//! and API server are the few lines in `sim`.

mod budget;
mod careful;
mod failures;
mod gates;
mod laws;
mod others;
mod run;
mod sim;
mod way;
mod writes;
