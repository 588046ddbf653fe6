//! What lies in a journal's folder, by the headers alone: which files are segments in use, and which of them follows which.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::{BLOCK, BLOCK_LEN, Decoded, EntryHeader, Header};
use super::walk::Blocks;
use crate::base::TxId;
use crate::disk::{Disk, JournalFolder};
use crate::{Error, Result};

/// A file with a header.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) name: String,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) header: Header,
    /// Bytes of its whole blocks.
    pub(super) len: u64,
}

/// Everything that was found in a folder.
#[derive(Debug)]
pub(crate) struct Log {
    pub(super) folder: PathBuf,
    /// The segments that follow each other, from the oldest on up to the newest.
    pub(super) path: Vec<Segment>,
    /// Files that nobody needs: without a header, or behind a tear that was gone past. With their lengths.
    pub(super) free: Vec<(String, u64)>,
    /// What the oldest one names as the segment before it, where there is none any more.
    pub(super) missing: Option<u64>,
    /// The highest number that a segment has.
    pub(super) highest: u64,
}

/// Looks at all segments in a folder.
///
/// # Errors
/// A file could not be read; it is of a later version; segments of two journals lie in one folder; or a header that was synced
/// is damaged.
pub(crate) fn read(folder: &dyn JournalFolder) -> Result<Log> {
    let path = folder.path();
    let mut found = Vec::new();
    let mut others = Vec::new();
    let mut names = folder.list().map_err(Error::io("list", Some(path)))?;
    names.sort_unstable();
    for name in names {
        let file = path.join(&name);
        let disk = folder.open(&name).map_err(Error::io("open", Some(&file)))?;
        let len = disk.len().map_err(Error::io("look at", Some(&file)))?;
        let mut first = [0; BLOCK];
        let read = disk.read_at(&mut first, 0).map_err(Error::io("read", Some(&file)))?;
        match Header::decode(&first[..read]) {
            Decoded::Header(header) => {
                found.push(Segment { name, disk, header, len: len - len % BLOCK_LEN });
            }
            Decoded::Version(version) => return Err(Error::JournalVersion { file, found: version }),
            Decoded::None => others.push((name, disk, len)),
        }
    }
    found.sort_by_key(|segment| segment.header.number);
    check_headers(path, &found)?;
    let highest = found.last().map_or(0, |segment| segment.header.number);
    for (name, disk, len) in &others {
        check_headless(&path.join(name), &**disk, *len, highest)?;
    }
    let (path, off_path, missing) = chain(found);
    let others = others.into_iter().map(|(name, _, len)| (name, len));
    let free = others.chain(off_path.into_iter().map(|segment| (segment.name, segment.len))).collect();
    Ok(Log { folder: folder.path().into(), path, free, missing, highest })
}

/// Refuses what no journal writes.
fn check_headers(folder: &Path, found: &[Segment]) -> Result<()> {
    for pair in found.windows(2) {
        let (one, other) = (&pair[0], &pair[1]);
        let file = folder.join(&other.name);
        if one.header.store != other.header.store {
            return Err(damaged(file, 0, format!("it belongs to another journal than {}", one.name)));
        }
        if one.header.number == other.header.number {
            return Err(damaged(file, 0, format!("its number, {}, is that of {}", other.header.number, one.name)));
        }
    }
    match found.iter().find(|segment| segment.header.before.segment >= segment.header.number) {
        Some(odd) => Err(damaged(folder.join(&odd.name), 0, "it follows itself, or a later one".into())),
        None => Ok(()),
    }
}

/// Without a header a file was never used, or its use was just begun. But an entry that was written after the header of its
/// own segment was synced shows that there was one.
fn check_headless(file: &Path, disk: &dyn Disk, len: u64, highest: u64) -> Result<()> {
    let mut blocks = Blocks::new(disk);
    for offset in (BLOCK_LEN..len - len % BLOCK_LEN).step_by(BLOCK) {
        let block = blocks.at(offset).map_err(Error::io("read", Some(file)))?;
        if let Some(entry) = EntryHeader::decode_any(block)
            && entry.synced.segment > highest
        {
            let number = entry.synced.segment;
            return Err(damaged(file.into(), 0, format!("the header of segment {number} was synced, and is damaged")));
        }
    }
    Ok(())
}

/// From the newest segment back to the oldest that can be reached; the others; and what is missing then.
fn chain(mut found: Vec<Segment>) -> (Vec<Segment>, Vec<Segment>, Option<u64>) {
    let (mut path, mut off_path) = (Vec::new(), Vec::new());
    let Some(newest) = found.pop() else { return (path, off_path, None) };
    let mut wanted = newest.header.before.segment;
    path.push(newest);
    while let Some(older) = found.pop() {
        if older.header.number == wanted {
            wanted = older.header.before.segment;
            path.push(older);
        } else {
            off_path.push(older);
        }
    }
    path.reverse();
    (path, off_path, (wanted != 0).then_some(wanted))
}

pub(super) fn damaged(file: PathBuf, offset: u64, what: String) -> Error {
    Error::JournalDamaged { file, offset, what }
}

impl Log {
    /// Whether no segment is in use.
    pub(crate) fn is_empty(&self) -> bool {
        self.path.is_empty()
    }

    /// The last transaction that the newest header knows to be in the database's file.
    pub(crate) fn newest_base(&self) -> Option<TxId> {
        self.path.last().map(|segment| segment.header.contains)
    }
}
