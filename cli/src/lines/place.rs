//! What the name of an output leads to: standard output, a file, or what is no file and is written as it is.

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::file::same_file;
use crate::permission::folder_of;

/// As many links as the system follows.
const MOST_LINKS: usize = 40;
/// The mode of a new file, of which the umask takes its part, as of what a shell makes.
pub(super) const NEW_MODE: u32 = 0o666;

/// What a name leads to.
pub(super) enum Place {
    Stdout,
    /// A device, a pipe, or what a process has open. A file among these may have something in it: more comes behind that.
    AsItIs {
        append: bool,
    },
    /// A file that is there or can be made: its name, behind all links.
    File(PathBuf),
}

impl Place {
    /// Follows the name, and opens nothing.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        if is_stdout(path) {
            return Ok(Self::Stdout);
        }
        let is_file = path.metadata().ok().map(|found| found.is_file());
        Ok(match behind_links(path)? {
            Some(file) if is_file != Some(false) => Self::File(file),
            _ => Self::AsItIs { append: is_file == Some(true) },
        })
    }
}

/// Whether lines that are to go there go to standard output. It has no name of its own to be taken: `/dev/stdout` may lead to
/// a file.
pub(super) fn is_stdout(path: &Path) -> bool {
    path == Path::new("-") || same_file(path, Path::new("/proc/self/fd/1"))
}

/// The name behind all links, of something that need not be there; none of what a process has open.
fn behind_links(path: &Path) -> io::Result<Option<PathBuf>> {
    let named = path;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let folder = folder_of(&path).canonicalize().map_err(|error| {
            let is_link = path != named;
            if is_link {
                io::Error::new(error.kind(), format!("it leads to {}: {error}", path.display()))
            } else {
                error
            }
        })?;
        if folder.starts_with("/proc") {
            return Ok(None);
        }
        match path.read_link() {
            Ok(target) => path = folder.join(target),
            Err(_) => return Ok(Some(path)),
        }
    }
    Err(io::Error::other("it leads through too many links"))
}

/// A file beside this one, which is to take its place.
pub(super) fn beside(file: &Path) -> io::Result<NamedTempFile> {
    let new = tempfile::Builder::new().permissions(Permissions::from_mode(NEW_MODE)).tempfile_in(folder_of(file))?;
    keep_mode(new.as_file(), file)?;
    Ok(new)
}

/// Gives a file the mode of the one whose place it is to take, if that is there.
pub(super) fn keep_mode(new: &File, old: &Path) -> io::Result<()> {
    old.metadata().map_or(Ok(()), |old| new.set_permissions(old.permissions()))
}
