//! Everything that lies in a journal's folder, segment by segment and entry by entry, for people who look at it. Nothing is
//! decided here, and nothing is taken for the end: what is not whole is told, and passed over.

use std::path::{Path, PathBuf};

use super::block::{BLOCK_LEN, ENTRY_HEADER, EntryHeader, Header};
use super::log::{Chain, Log, Segment, limit, unreadable};
use super::walk::{Blocks, Found, Payload, entry_at};
use crate::Result;

/// The segments of a folder.
#[derive(Debug)]
pub(crate) struct Listing {
    folder: PathBuf,
    /// Those that follow each other, from the oldest to the newest.
    path: Vec<Segment>,
    /// Those that nothing follows.
    dead: Vec<Segment>,
    headless: Vec<(String, u64)>,
}

/// An entry, and whether it and all before it in its segment are whole.
pub(crate) struct Listed<'a> {
    pub(crate) segment: &'a Header,
    pub(crate) offset: u64,
    pub(crate) entry: EntryHeader,
    pub(crate) is_whole: bool,
    payload: Payload<'a>,
    file: PathBuf,
}

impl Log {
    /// All of it, to be looked at.
    pub(crate) fn listing(self) -> Listing {
        let Self { folder, segments, headless, .. } = self;
        let Chain { folder, path, others: dead, .. } = Chain::new(folder, segments);
        Listing { folder, path, dead, headless }
    }
}

impl Listing {
    /// Nothing, where there is no such folder.
    pub(crate) fn none(folder: PathBuf) -> Self {
        Self { folder, path: Vec::new(), dead: Vec::new(), headless: Vec::new() }
    }

    /// Name, header and length of each segment, and whether others lead to it: first those to which they do, from the oldest
    /// to the newest.
    pub(crate) fn segments(&self) -> impl Iterator<Item = (&str, &Header, u64, bool)> {
        let all =
            self.path.iter().map(|segment| (segment, true)).chain(self.dead.iter().map(|segment| (segment, false)));
        all.map(|(segment, is_reached)| (segment.file.name(), &segment.header, segment.len, is_reached))
    }

    /// Names and lengths of the files without a header.
    pub(crate) fn spares(&self) -> &[(String, u64)] {
        &self.headless
    }

    /// Hands over every entry of the segment of that number which others lead to.
    ///
    /// # Errors
    /// A segment could not be read; what `each` returns.
    pub(crate) fn entries<E: From<crate::Error>>(
        &self,
        number: u64,
        mut each: impl FnMut(Listed<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(index) = self.path.iter().position(|segment| segment.header.number == number) else { return Ok(()) };
        let segment = &self.path[index];
        let (end, mut at) = (limit(&self.path, index), segment.first_entry());
        let (mut blocks, mut buffer, mut is_whole) = (Blocks::new(&segment.file), Vec::new(), true);
        while at < end {
            let block = blocks.at(at).map_err(unreadable(&self.folder, segment))?;
            let Some(entry) = EntryHeader::decode(block, segment.header.generation) else {
                at += BLOCK_LEN;
                continue;
            };
            // What lies behind something that is not whole is not read: each could claim all the rest.
            let found = if is_whole {
                entry_at(&self.path, index, at, None, &mut buffer).map_err(unreadable(&self.folder, segment))?
            } else {
                Found::Nothing
            };
            is_whole = matches!(found, Found::Entry(..));
            let payload = Payload::new(&self.path, index, at, &entry);
            let file = self.folder.join(segment.file.name());
            each(Listed { segment: &segment.header, offset: at, entry, is_whole, payload, file })?;
            at = match found {
                Found::Entry(_, (then, offset)) if then == index => offset,
                Found::Entry(..) => end,
                Found::Nothing => at + BLOCK_LEN,
            };
        }
        // With what its last entry goes on in.
        self.path[index..].iter().take_while(|segment| segment.file.close()).for_each(drop);
        Ok(())
    }
}

impl Listed<'_> {
    /// The segment's file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Bytes of header and payload.
    pub(crate) fn len(&self) -> u64 {
        self.entry.payload.saturating_add(ENTRY_HEADER as u64)
    }

    /// All bytes of a whole entry's payload.
    ///
    /// # Errors
    /// They could not be read, have changed meanwhile, or are more than memory takes.
    pub(crate) fn payload(mut self) -> Result<Vec<u8>> {
        let failed = |error| crate::Error::journal_io("read", &self.file)(error);
        let too_large = || failed(std::io::ErrorKind::OutOfMemory.into());
        let len = usize::try_from(self.payload.left()).map_err(|_| too_large())?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| too_large())?;
        bytes.resize(len, 0);
        let mut filled = 0;
        while filled < len {
            match self.payload.read(&mut bytes[filled..]).map_err(failed)? {
                0 => return Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
                read => filled += read,
            }
        }
        Ok(bytes)
    }
}
