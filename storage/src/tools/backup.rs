//! Hot backups: a snapshot written out as a bolt file of its own, while the database goes on.
//!
//! Pages are read from the disk in pieces, never through the map: among them are free ones, which
//! the writer may be writing. What such a page holds in a backup means nothing, as in the file. Leaves that have patches in
//! memory are written as these say.
//!
//! A file larger than memory goes through it once. What was not in memory before it was read for this is given back, or it
//! would take the place of pages that somebody reads again and again.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::Path;

use crate::disk::MapOptions;
use crate::disk::{Existing, OsFolder, write_file};
use crate::format::{Meta, Page};
use crate::handles::Tx;
use crate::pages::Snapshot;
use crate::{Error, Result};

/// Bytes that are read and written at a time.
const PIECE: u64 = 1 << 20;

/// Bytes of which it is asked together whether they are in memory.
const SLICE: u64 = 1 << 16;

/// Of so many bytes ahead it is asked before they are read: more than the system reads ahead by itself, or that would look
/// like what was there before.
const AHEAD: u64 = 1 << 26;

/// The system keeps what it has read in one go in pieces of up to so many bytes, which it gives back as a whole or not at all.
const LARGEST_FOLIO: u64 = 1 << 21;

impl Tx {
    /// Writes the snapshot to `out` as an ordinary bolt file of [`Self::size`] bytes, which is
    /// returned. Takes memory for 1 MiB, and waits for nobody; but the pages of the snapshot are
    /// kept until the transaction ends, so that the database may grow meanwhile.
    ///
    /// Both meta pages describe the snapshot, the second one under the number before it, as bbolt
    /// does it. Where a journal is kept the copy needs none: it has all of the snapshot.
    ///
    /// # Errors
    /// [`Error::Io`] where the database cannot be read or `out` not be written.
    pub fn write_to<W: Write + ?Sized>(&self, out: &mut W) -> Result<u64> {
        let meta = self.snapshot().meta.closed();
        let before = Meta { txid: meta.txid.saturating_sub(1), ..meta };
        let written = |result: io::Result<()>| result.map_err(Error::io("write the backup", None));
        written(out.write_all(&meta.encode_for(0)))?;
        written(out.write_all(&before.encode_for(1)))?;
        let (mut at, end) = (2 * u64::from(meta.page_size), self.size());
        let mut piece = vec![0; end.saturating_sub(at).min(PIECE) as usize];
        let mut memory = Memory { tx: self, slices: VecDeque::new(), asked: at, run: at };
        while at < end {
            memory.ask(at + PIECE + AHEAD);
            let part = &mut piece[..(end - at).min(PIECE) as usize];
            self.read_exactly(part, at).map_err(Error::io("read pages for the backup", None))?;
            memory.give_back(at, part.len() as u64);
            self.write_patched_anew(part, at);
            written(out.write_all(part))?;
            at += part.len() as u64;
        }
        Ok(end)
    }

    /// Writes what memory has of the pages in `part`, which lie at `at`, over them. A page that the snapshot does not reach
    /// may have become anything: one that does not fit stays as it is.
    fn write_patched_anew(&self, part: &mut [u8], at: u64) {
        let Snapshot { meta, recents, .. } = self.snapshot();
        if recents.is_empty() {
            return;
        }
        let page_size = meta.page_size as usize;
        for (id, page) in (at / page_size as u64..).zip(part.chunks_exact_mut(page_size)) {
            let Some(patch) = recents.find(id) else { continue };
            let written = page.to_vec();
            if let Ok(Page::Leaf(leaf)) = Page::parse(id, &written)
                && leaf.check_fit(patch).is_ok()
            {
                leaf.write_anew(patch, page, id);
            }
        }
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

/// What of the file is in memory, and what is only because it was read for this.
struct Memory<'a> {
    tx: &'a Tx,
    /// Which slices were not there as a whole, from the next piece on.
    slices: VecDeque<bool>,
    /// Up to where it was asked.
    asked: u64,
    /// Where those begin that were not there, up to the next piece.
    run: u64,
}

impl Memory<'_> {
    /// Asks of all up to `upto`.
    fn ask(&mut self, upto: u64) {
        while self.asked < upto.min(self.tx.size()) {
            self.slices.push_back(!self.tx.snapshot().map.is_resident(self.asked, SLICE as usize));
            self.asked += SLICE;
        }
    }

    /// Gives back what was not there before of the piece at `at`, which was read, together with what lies before that.
    fn give_back(&mut self, at: u64, len: u64) {
        let end = at + len;
        for slice in (at..end).step_by(SLICE as usize) {
            if self.slices.pop_front() != Some(true) {
                self.forget_run(slice);
                self.run = slice + SLICE;
            }
        }
        self.forget_run(end);
        // What the next piece begins with may lie in one folio with the end of this one.
        self.run = self.run.max(end.saturating_sub(LARGEST_FOLIO));
    }

    fn forget_run(&self, end: u64) {
        if let Some(len) = end.checked_sub(self.run).filter(|&len| len > 0) {
            self.tx.disk().forget(self.run, len);
        }
    }
}
