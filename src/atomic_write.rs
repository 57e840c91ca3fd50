//! Atomic writes of files.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use host::special_file;

/// Writes `text` to `path` atomically: the previous content is kept until all of it is written.
/// Only the owner may read the file.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    persist(path, text, |_| Ok(()))
}

/// As [`write()`], for a file that all users may read.
pub(super) fn write_for_all(path: &Path, text: &str) -> io::Result<()> {
    persist(path, text, |file| {
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        let _ = file;
        Ok(())
    })
}

fn persist(path: &Path, text: &str, permit: impl Fn(&File) -> io::Result<()>) -> io::Result<()> {
    if let Some(mut stream) = special_file::open(path)? {
        return stream.write_all(text.as_bytes());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Temporary files are readable by their owner only.
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    permit(file.as_file())?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
