//! Output paths that are not regular files: devices, pipes, and descriptors of a process.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::AsFd as _;
use std::path::Path;

/// Opens such a path for appending, so that it is not replaced by a regular file. `None` for the
/// path of a regular file, whether it exists or not.
pub fn open(path: &Path) -> io::Result<Option<File>> {
    #[cfg(unix)]
    if let Some(own) = own(path)? {
        return Ok(Some(own));
    }
    // These paths may refer to a regular file if the shell redirected the descriptor.
    let is_of_system = path.starts_with("/dev") || path.starts_with("/proc");
    let is_special = || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
    if is_of_system || is_special() {
        return File::options().append(true).open(path).map(Some);
    }
    Ok(None)
}

/// A duplicate of this process's own output descriptor, which keeps its offset: reopening the same
/// file would start at its beginning.
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
