//! Files that appear when they are complete, and never in part.

use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes `text` to `path`; what was there before stays until all of it is written.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    // Temporary files are for their owner only, and this one stays so.
    let mut file = NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}
