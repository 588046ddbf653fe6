//! Hot backups: a snapshot written out as a bolt file of its own, while the database goes on.
//!
//! Pages are read from the disk in pieces, never through the map: among them are free ones, which
//! the writer may be writing. What such a page holds in a backup means nothing, as in the file.
//!
//! A file larger than memory goes through it once. What was not in memory before it was read for this is given back, or it
//! would take the place of pages that somebody reads again and again.

use std::io::{self, Write};
use std::path::Path;

use crate::disk::MapOptions;
use crate::disk::{Existing, OsFolder, write_file};
use crate::format::Meta;
use crate::handles::Tx;
use crate::{Error, Result};

/// Bytes that are read and written at a time.
const PIECE: u64 = 1 << 20;

/// Bytes of which it is asked together whether they are in memory.
const PATCH: u64 = 1 << 16;

impl Tx {
    /// Writes the snapshot to `out` as an ordinary bolt file of [`Self::size`] bytes, which is
    /// returned. Takes memory for 1 MiB, and waits for nobody; but the pages of the snapshot are
    /// kept until the transaction ends, so that the database may grow meanwhile.
    ///
    /// Both meta pages describe the snapshot, the second one under the number before it, as bbolt
    /// does it.
    ///
    /// # Errors
    /// [`Error::Io`] where the database cannot be read or `out` not be written.
    pub fn write_to<W: Write + ?Sized>(&self, out: &mut W) -> Result<u64> {
        let meta = self.snapshot().meta;
        let before = Meta { txid: meta.txid.saturating_sub(1), ..meta };
        let written = |result: io::Result<()>| result.map_err(Error::io("write the backup", None));
        written(out.write_all(&meta.encode_for(0)))?;
        written(out.write_all(&before.encode_for(1)))?;
        let (mut at, end) = (2 * u64::from(meta.page_size), self.size());
        let mut piece = vec![0; end.saturating_sub(at).min(PIECE) as usize];
        let mut cold = self.cold_patches(at);
        while at < end {
            // Asked before anything is read: the system reads ahead, which would look like what was there before.
            let next_cold = self.cold_patches(at + PIECE);
            let part = &mut piece[..(end - at).min(PIECE) as usize];
            self.read_exactly(part, at).map_err(Error::io("read pages for the backup", None))?;
            for patch in std::mem::replace(&mut cold, next_cold) {
                self.disk().forget(patch, PATCH);
            }
            written(out.write_all(part))?;
            at += part.len() as u64;
        }
        Ok(end)
    }

    /// Where patches begin, of the piece at `at`, that are not in memory as a whole.
    fn cold_patches(&self, at: u64) -> Vec<u64> {
        let patches = (at..(at + PIECE).min(self.size())).step_by(PATCH as usize);
        patches.filter(|&patch| !self.snapshot().map.is_resident(patch, PATCH as usize)).collect()
    }

    fn read_exactly(&self, part: &mut [u8], at: u64) -> io::Result<()> {
        let read = self.disk().read_at(part, at)?;
        if read < part.len() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    /// Writes the snapshot to a new file with the permissions `mode` (before the process's umask),
    /// and returns its size in bytes; see [`Self::write_to`]. The file has its name only once all of
    /// it is on the disk; after a crash there may be one with a temporary name beside it.
    ///
    /// # Errors
    /// As [`Self::write_to`]; [`Error::Io`] of the kind `AlreadyExists` where there is such a file,
    /// which is left as it is.
    pub fn copy_file(&self, path: impl AsRef<Path>, mode: u32) -> Result<u64> {
        self.copy(path.as_ref(), mode, Existing::Refuse)
    }

    /// As [`Self::copy_file`], but a file that is there is replaced, in one step: at any moment the
    /// name leads to the old file or to the whole backup.
    ///
    /// # Errors
    /// As [`Self::write_to`]; [`Error::Io`] of the kind `AlreadyExists` where the path leads to the database's own file,
    /// through links too: those who have it open would go on writing to a file without a name.
    pub fn copy_file_replacing(&self, path: impl AsRef<Path>, mode: u32) -> Result<u64> {
        self.copy(path.as_ref(), mode, Existing::Replace)
    }

    fn copy(&self, path: &Path, mode: u32, existing: Existing) -> Result<u64> {
        if self.disk().is_at(path).map_err(Error::io("look at", Some(path)))? {
            return Err(Error::io("write a backup over the database itself,", Some(path))(
                rustix::io::Errno::EXIST.into(),
            ));
        }
        let folder = OsFolder { map: MapOptions::default() };
        write_file(&folder, path, mode, existing, |file| self.write_to(file))
    }
}
