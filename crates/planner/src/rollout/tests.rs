//! Tests of runs on an in-memory cluster: the controller uses the rules in `controller`, and `sim`
//! has a minimal kubelet and API server.

mod budget;
mod careful;
mod check_laws;
mod checks;
mod ended;
mod failed_requests;
mod failing_before;
mod failures;
mod laws;
mod new_pods;
mod notes;
mod observed_checks;
mod others;
mod outages;
mod pre_pull;
mod roll;
mod run;
mod shared_budget;
mod sim;
mod step_cases;
mod step_here;
mod step_laws;
mod step_observer;
mod step_rules;
mod steps;
mod surge;
mod timed_out;
mod unknown_checks;
mod way;
mod without_controller;
mod writes;
