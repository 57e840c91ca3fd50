//! Files to write that are none: devices, pipes, and descriptors of a process.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::AsFd as _;
use std::path::Path;

/// Opens a path that leads to one: what is written goes into it, and nothing takes its place. `None`
/// for a path of a plain file, there or not.
pub(crate) fn open(path: &Path) -> io::Result<Option<File>> {
    #[cfg(unix)]
    if let Some(own) = own(path)? {
        return Ok(Some(own));
    }
    // What they lead to may be a plain file, when a shell has redirected it.
    let is_of_system = path.starts_with("/dev") || path.starts_with("/proc");
    let is_special = || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_of_system || is_special() {
        return File::options().append(true).open(path).map(Some);
    }
    Ok(None)
}

/// This process's own output, which goes on where it was: another descriptor of the same file would
/// begin at its start.
#[cfg(unix)]
fn own(path: &Path) -> io::Result<Option<File>> {
    let is = |names: [&str; 3]| names.into_iter().any(|name| path == Path::new(name));
    let descriptor = if is(["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]) {
        io::stdout().as_fd().try_clone_to_owned()?
    } else if is(["/dev/stderr", "/dev/fd/2", "/proc/self/fd/2"]) {
        io::stderr().as_fd().try_clone_to_owned()?
    } else {
        return Ok(None);
    };
    Ok(Some(descriptor.into()))
}
