//! `ds-apply`: applies DaemonSets from git, node by node.

use std::process::ExitCode;

/// Decoding a cluster makes millions of small allocations on all cores. The allocator of libc,
/// especially of musl, makes the threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ds_plan::cli::ds_apply().into()
}
