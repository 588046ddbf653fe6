//! How much room there is, for who is told that there is too little.

use std::io;
use std::path::Path;

use rustix::fs::StatVfs;
use rustix::process::{Resource, getrlimit};

/// Bytes that are free on the disk of a file or folder, as far as this user may take them.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    Ok(free(&rustix::fs::statvfs(path)?))
}

pub(super) fn free(disk: &StatVfs) -> u64 {
    disk.f_bavail.saturating_mul(disk.f_frsize)
}

/// Bytes that a file of this process may have, where that is limited.
pub(super) fn largest_file() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// Whether the disk is full, or a limit of the user or the process is reached.
pub(crate) fn is_no_room(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Whether the process, or the system, has no descriptor left for another open file.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    [libc::EMFILE, libc::ENFILE].map(Some).contains(&error.raw_os_error())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

    use super::*;

    #[test]
    fn what_is_short_is_told_apart() {
        let os = io::Error::from_raw_os_error;
        assert!(is_out_of_files(&os(libc::EMFILE)) && is_out_of_files(&os(libc::ENFILE)));
        assert!(is_no_room(&os(libc::ENOSPC)) && is_no_room(&os(libc::EDQUOT)) && is_no_room(&os(libc::EFBIG)));
        assert!(!is_out_of_files(&os(libc::EIO)) && !is_no_room(&os(libc::EIO)) && !is_no_room(&os(libc::EMFILE)));
    }

    #[test]
    fn a_disk_has_some_room_and_what_is_missing_none() {
        assert!(free_bytes(Path::new("/")).is_ok());
        assert!(free_bytes(Path::new("/nobody has this")).is_err());
    }
}
