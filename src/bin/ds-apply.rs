//! Placeholder of the first commit; the shell comes with `cli`.
fn main() {}
