//! Both programs in one executable: `ds-plan`, which never writes to the cluster, and `ds-apply`, if
//! it is called by that name.

use std::process::ExitCode;

/// Decoding a cluster makes millions of small allocations on all cores. The allocator of libc,
/// especially of musl, makes the threads wait for each other.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 3: the milliseconds after which freed memory is returned to the
/// system. Its number is not in the bindings.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// Its default, a second: longer than most runs. In this version, no other option has that value; and a
/// user's own `MIMALLOC_PURGE_DELAY` stays.
const A_SECOND: std::ffi::c_long = 1_000;

fn main() -> ExitCode {
    purge_at_once();
    ds_plan::run().into()
}

/// Returns freed memory to the system at once: a plan takes a third less (`cargo bench --bench whole`).
#[expect(unsafe_code, reason = "the allocator has no safe way to set an option")]
fn purge_at_once() {
    // SAFETY: an option is a number that may be changed while there is only one thread.
    unsafe {
        if libmimalloc_sys::mi_option_get(PURGE_DELAY) == A_SECOND {
            libmimalloc_sys::mi_option_set(PURGE_DELAY, 0);
        }
    }
}
