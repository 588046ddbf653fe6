//! The folder of a journal: files that are made once, to be written over again and again.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use super::folder::{lock_within, sync_folder_of};
use super::room::largest_file;
use super::{Disk, FileDisk, Folder as _, MapOptions, OsFolder};
use crate::{Error, Result};

/// What a segment's name begins with. Nothing but the header says which segment a file is.
const SEGMENT: &str = "segment-";
/// What the folder's name has more than the file's.
const SUFFIX: &str = "-journal";

/// A program that is just being started from this process holds what was locked here a moment ago, until it runs: within this
/// time.
const LET_GO: Duration = Duration::from_millis(250);

/// What a journal asks of the file system.
pub(crate) trait JournalFolder: fmt::Debug + Send + Sync {
    /// The names of all segments, in any order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The segment of that name.
    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>>;

    /// A new, empty segment under a name that no other has.
    fn create(&self) -> io::Result<(String, Arc<dyn Disk>)>;

    /// Removes a segment's name.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when all names would survive a power cut.
    fn sync(&self) -> io::Result<()>;

    /// Whether a segment that was opened or made is still there under its name: somebody may have moved or removed it, or the
    /// whole folder, and what is written to it meanwhile would not be found again. What cannot be reached is not there.
    fn holds(&self, name: &str) -> bool;

    /// A number that nobody can foresee.
    fn random(&self) -> io::Result<u64>;

    /// As [`Disk::max_len`], of each segment.
    fn max_len(&self) -> Option<u64> {
        None
    }

    /// What an error names.
    fn path(&self) -> &Path;
}

/// Where the journal of a database file lies, unless it is told: `NAME-journal` beside the file itself, wherever links to it
/// are. One that lies beside a link instead was left behind when the file was moved: that is an error.
pub(crate) fn journal_path(file: &Path) -> io::Result<PathBuf> {
    let (usual, beside) = (journal_of(&file.canonicalize()?), journal_of(file));
    if !usual.exists() && beside.is_dir() && file.is_symlink() {
        let (beside, usual) = (beside.display(), usual.display());
        let what =
            format!("{beside} lies beside a link to the file; its journal belongs at {usual}: move it there, or away");
        return Err(io::Error::other(what));
    }
    Ok(usual)
}

/// The same for a path without links, whether there is a file or not.
pub(crate) fn journal_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_os_string();
    name.push(SUFFIX);
    file.with_file_name(name)
}

/// A folder of the file system, locked.
#[derive(Debug)]
pub(crate) struct OsJournalFolder {
    path: PathBuf,
    /// Holds the lock.
    folder: File,
    /// What new segments get: that of the database file.
    mode: u32,
    owner: Option<(u32, u32)>,
}

impl OsJournalFolder {
    /// Opens and locks the folder at `path`, to read what is there; `None` where there is none.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        match open_folder(path) {
            Ok(folder) => Self::locked(path, folder, true, 0o600, None).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::journal_io("open the journal's folder", path)(error)),
        }
    }

    /// Opens the folder at `path` without a lock, to look at what is there, which may change meanwhile; `None` where there is
    /// none.
    pub(crate) fn look(path: &Path) -> Result<Option<Self>> {
        match open_folder(path) {
            Ok(folder) => Ok(Some(Self { path: path.into(), folder, mode: 0o600, owner: None })),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(Error::journal_io("open", path)(error)),
        }
    }

    /// Opens and locks the folder at `path`, to write in it; makes it where it is missing. It and its segments get mode and
    /// owner of the database's `file`.
    pub(crate) fn open_or_create(path: &Path, file: &Path) -> Result<Self> {
        let like = file.metadata().map_err(Error::io("look at", Some(file)))?;
        let (mode, owner) = (like.mode() & 0o777, (like.uid(), like.gid()));
        let create = || -> io::Result<()> {
            match fs::DirBuilder::new().mode(0o700).create(path) {
                Ok(()) => {
                    give(path, mode | (mode & 0o444) >> 2, owner)?;
                    sync_folder_of(path)
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.exists() => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(io::Error::new(io::ErrorKind::NotFound, "it is a link, and what it leads to is not there"))
                }
                Err(error) => Err(error),
            }
        };
        create().map_err(Error::journal_io("make the journal's folder", path))?;
        let folder = open_folder(path).map_err(Error::journal_io("open the journal's folder", path))?;
        // Segments that are there are written over. That none can be made would be noticed in the middle of a commit.
        writable(path).map_err(Error::journal_io("write in the journal's folder", path))?;
        Self::locked(path, folder, false, mode, Some(owner))
    }

    fn locked(path: &Path, folder: File, shared: bool, mode: u32, owner: Option<(u32, u32)>) -> Result<Self> {
        if lock_within(&folder, shared, Some(LET_GO)).map_err(Error::journal_io("lock the journal's folder", path))? {
            return Ok(Self { path: path.into(), folder, mode, owner });
        }
        // Whoever may use the folder holds the lock of the database file, which we have: another database was told to keep its
        // journal here.
        Err(Error::JournalInUse { folder: path.into() })
    }

    /// Whether the folder is on the same device as the database's `file`. Where it is not, one of the two may be mounted, or
    /// moved, without the other.
    pub(crate) fn is_on_device_of(&self, file: &Path) -> Result<bool> {
        let folder = self.folder.metadata().map_err(Error::journal_io("look at", &self.path))?;
        let file = file.metadata().map_err(Error::io("look at", Some(file)))?;
        Ok(folder.dev() == file.dev())
    }
}

/// Whether this process may make files in a folder.
fn writable(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use rustix::io::Errno;
    match accessat(CWD, folder, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        // A system that cannot be asked in this way tells when it has to.
        Ok(()) | Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

impl JournalFolder for OsJournalFolder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            if let Some(name) = name.to_str().filter(|name| name.starts_with(SEGMENT)) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        let (folder, path) = (OsFolder { map: MapOptions::default() }, self.path.join(name));
        let is_written = self.owner.is_some();
        let disk = folder.open(&path, is_written)?;
        Ok(Arc::new(if is_written { disk.with_way_through(path) } else { disk }))
    }

    fn create(&self) -> io::Result<(String, Arc<dyn Disk>)> {
        for number in 1..u32::MAX {
            let name = format!("{SEGMENT}{number:06}");
            let path = self.path.join(&name);
            let options = OpenOptions::new().read(true).write(true).create_new(true).mode(self.mode).open(&path);
            match options {
                Ok(file) => {
                    if let Some(owner) = self.owner {
                        give(&path, self.mode, owner)?;
                    }
                    return Ok((name, Arc::new(FileDisk::new(file, MapOptions::default()).with_way_through(path))));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("there are too many segments"))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        self.folder.sync_all()
    }

    fn holds(&self, name: &str) -> bool {
        let is_ours = |there: Metadata, ours: Metadata| (there.dev(), there.ino()) == (ours.dev(), ours.ino());
        let folder = self.path.metadata().and_then(|there| Ok(is_ours(there, self.folder.metadata()?)));
        folder.unwrap_or(false) && self.path.join(name).symlink_metadata().is_ok()
    }

    fn random(&self) -> io::Result<u64> {
        let mut number = [0; 8];
        let got = rustix::rand::getrandom(&mut number, rustix::rand::GetRandomFlags::empty())?;
        if got < number.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(u64::from_le_bytes(number)) }
    }

    fn max_len(&self) -> Option<u64> {
        largest_file()
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

/// Whatever else has that name is refused at once; to open a pipe would wait for who writes to it.
fn open_folder(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(path)
}

/// Gives what is new at `path` a mode, whatever the process's mask, and an owner, where the process may.
fn give(path: &Path, mode: u32, (user, group): (u32, u32)) -> io::Result<()> {
    let found = path.metadata()?;
    if (found.uid(), found.gid()) != (user, group) {
        match std::os::unix::fs::chown(path, Some(user), Some(group)) {
            // Who may write another user's file cannot give away files.
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            _ => {}
        }
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}
