//! What lies in a journal's folder, by the headers alone: which files are segments in use, and which of them follows which.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{BLOCK, BLOCK_LEN, Decoded, EntryHeader, Header};
use super::file::SegmentFile;
use super::walk::Blocks;
use crate::disk::JournalFolder;
use crate::{Error, Result};

/// A file with a header.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) file: SegmentFile,
    pub(super) header: Header,
    /// Bytes of its whole blocks.
    pub(super) len: u64,
}

/// Everything that was found in a folder.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    pub(super) folder: PathBuf,
    pub(super) files: Arc<dyn JournalFolder>,
    /// All segments with a header, by their numbers.
    pub(super) segments: Vec<Segment>,
    /// Files without one, and their lengths.
    pub(super) headless: Vec<(String, u64)>,
}

/// Segments that follow each other.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) folder: PathBuf,
    /// From the oldest to the newest.
    pub(super) path: Vec<Segment>,
    /// The segments that are not among them, by their numbers.
    pub(super) others: Vec<Segment>,
    /// What the oldest one follows, where that is not there.
    pub(super) missing: Option<u64>,
}

/// Looks at all segments in a folder.
///
/// # Errors
/// A file could not be read; it is of a later version; segments of two journals lie in one folder; or a header that was synced
/// is damaged.
pub(crate) fn read(folder: &Arc<dyn JournalFolder>) -> Result<Log> {
    let log = scan(folder)?;
    log.check()?;
    Ok(log)
}

/// The same, whatever the segments are to one another.
///
/// # Errors
/// A file could not be read, or is of a later version.
pub(crate) fn scan(folder: &Arc<dyn JournalFolder>) -> Result<Log> {
    let path = folder.path();
    let (mut segments, mut headless) = (Vec::new(), Vec::new());
    let mut names = folder.list().map_err(Error::journal_io("list the journal in", path))?;
    names.sort_unstable();
    for name in names {
        let file = path.join(&name);
        let disk = folder.open(&name).map_err(Error::journal_io("open", &file))?;
        let len = disk.len().map_err(Error::journal_io("look at", &file))?;
        let mut first = [0; BLOCK];
        let read = disk.read_at(&mut first, 0).map_err(Error::journal_io("read", &file))?;
        match Header::decode(&first[..read]) {
            Decoded::Header(header) => {
                let file = SegmentFile::new(folder, name);
                segments.push(Segment { file, header, len: len - len % BLOCK_LEN });
            }
            Decoded::Version(version) => return Err(Error::JournalVersion { file, found: version }),
            Decoded::None => headless.push((name, len)),
        }
    }
    segments.sort_by_key(|segment| segment.header.number);
    Ok(Log { folder: path.into(), files: Arc::clone(folder), segments, headless })
}

/// Refuses what no journal writes.
fn check_headers(folder: &Path, found: &[Segment]) -> Result<()> {
    for pair in found.windows(2) {
        let (one, other) = (&pair[0], &pair[1]);
        let file = folder.join(other.file.name());
        if one.header.store != other.header.store {
            return Err(damaged(file, 0, format!("it belongs to another journal than {}", one.file.name())));
        }
        if one.header.number == other.header.number {
            return Err(damaged(
                file,
                0,
                format!("its number, {}, is that of {}", other.header.number, one.file.name()),
            ));
        }
    }
    match found.iter().find(|segment| segment.header.before.segment >= segment.header.number) {
        Some(odd) => Err(damaged(folder.join(odd.file.name()), 0, "it follows itself, or a later one".into())),
        None => Ok(()),
    }
}

/// Without a header a file was never used, or its use was just begun. But an entry that was written after the header of its
/// own segment was synced shows that there was one.
fn check_headless(path: &Path, file: &SegmentFile, len: u64, highest: u64) -> Result<()> {
    let mut blocks = Blocks::new(file);
    for offset in (BLOCK_LEN..len - len % BLOCK_LEN).step_by(BLOCK) {
        let block = blocks.at(offset).map_err(Error::journal_io("read", path))?;
        if let Some(entry) = EntryHeader::decode_any(block)
            && entry.synced.segment > highest
        {
            let number = entry.synced.segment;
            return Err(damaged(path.into(), 0, format!("the header of segment {number} was synced, and is damaged")));
        }
    }
    Ok(())
}

/// Where a segment says that the one of that number was synced.
pub(super) fn shows_a_sync_of(segment: &Segment, number: u64) -> io::Result<Option<u64>> {
    if segment.header.synced.segment >= number {
        return Ok(Some(0));
    }
    let mut blocks = Blocks::new(&segment.file);
    for offset in (BLOCK_LEN..segment.len).step_by(BLOCK) {
        if EntryHeader::decode(blocks.at(offset)?, segment.header.generation)
            .is_some_and(|entry| entry.synced.segment >= number)
        {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}

pub(super) fn unreadable(folder: &Path, segment: &Segment) -> impl FnOnce(io::Error) -> Error {
    let file = folder.join(segment.file.name());
    move |error| Error::journal_io("read", &file)(error)
}

pub(super) fn damaged(file: PathBuf, offset: u64, what: String) -> Error {
    Error::JournalDamaged { file, offset, what }
}

impl Segment {
    pub(super) fn name_and_len(&self) -> (String, u64) {
        (self.file.name().to_owned(), self.len)
    }

    /// Where the first entry of its own may begin.
    pub(super) fn first_entry(&self) -> u64 {
        self.header.first_entry().min(self.len)
    }
}

/// Where the entries of a segment end behind which the next one was begun.
pub(super) fn limit(path: &[Segment], index: usize) -> u64 {
    let len = path[index].len;
    path.get(index + 1).map_or(len, |next| next.header.before.offset.min(len))
}

/// Closes those before this one that were read on the way to it: of what is kept there may be more than a process may have
/// open.
pub(super) fn close_before(path: &[Segment], index: usize) {
    path[..index].iter().rev().take_while(|segment| segment.file.close()).for_each(drop);
}

impl Chain {
    /// From the newest segment back to the oldest that can be reached.
    pub(super) fn new(folder: PathBuf, mut segments: Vec<Segment>) -> Self {
        let (mut path, mut others) = (Vec::new(), Vec::new());
        let mut wanted = segments.last().map_or(0, |newest| newest.header.number);
        while let Some(segment) = segments.pop() {
            if segment.header.number == wanted {
                wanted = segment.header.before.segment;
                path.push(segment);
            } else {
                others.push(segment);
            }
        }
        path.reverse();
        others.reverse();
        // A segment is left when it is full: what its file has behind that was put there by others.
        for index in 1..path.len() {
            let Header { epoch, before, .. } = path[index].header;
            let full = &mut path[index - 1];
            if full.header.epoch == epoch {
                full.len = full.len.min(before.offset);
            }
        }
        Self { folder, path, others, missing: (wanted != 0).then_some(wanted) }
    }
}

impl Log {
    /// Refuses what no journal writes, and headers that were synced and are damaged.
    pub(crate) fn check(&self) -> Result<()> {
        check_headers(&self.folder, &self.segments)?;
        let highest = self.segments.last().map_or(0, |segment| segment.header.number);
        for (name, len) in &self.headless {
            let file = SegmentFile::new(&self.files, name.clone());
            check_headless(&self.folder.join(name), &file, *len, highest)?;
        }
        Ok(())
    }

    /// Whether no segment is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }
}
