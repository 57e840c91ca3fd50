//! Both programs in one executable: `ds-plan`, which never writes to the cluster, and `ds-apply`, if
//! it is called by that name.

use std::process::ExitCode;

/// Decoding a cluster makes millions of small allocations on all cores. The allocator of libc,
/// especially of musl, makes the threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ds_plan::run().into()
}
