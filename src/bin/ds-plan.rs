//! `ds-plan`: says what applying DaemonSets from git would do to every node. Never writes to the
//! cluster.

use std::process::ExitCode;

/// Decoding a cluster is millions of small allocations on all cores; libc's allocator, musl's above
/// all, makes the threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ds_plan::cli::ds_plan().into()
}
