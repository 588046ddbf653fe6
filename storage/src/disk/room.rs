//! How much room there is, for who is told that there is too little.

use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};

/// Bytes that are free on the disk of a file or folder, as far as this user may take them.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(path)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Bytes that a file of this process may have, where that is limited.
pub(crate) fn largest_file() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

    use super::*;

    #[test]
    fn a_disk_has_some_room_and_what_is_missing_none() {
        assert!(free_bytes(Path::new("/")).is_ok());
        assert!(free_bytes(Path::new("/nobody has this")).is_err());
    }
}
