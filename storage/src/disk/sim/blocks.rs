//! The room that a file takes: that of the blocks which were ever written, wherever it ends.

use std::collections::BTreeSet;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::Trap;

/// Bytes of a block.
const BLOCK: u64 = 1024;

/// The blocks of a file that take room. Clones are of the same file.
#[derive(Debug, Clone)]
pub(super) struct Blocks(Arc<Mutex<BTreeSet<u64>>>);

impl Blocks {
    /// Those of so many bytes.
    pub(super) fn below(len: u64) -> Self {
        Self(Arc::new(Mutex::new((0..len.div_ceil(BLOCK)).collect())))
    }

    /// Takes room for what these bytes need, or none.
    pub(super) fn take(&self, bytes: Range<u64>, trap: &Trap) -> io::Result<()> {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new: Vec<_> = (bytes.start / BLOCK..bytes.end.div_ceil(BLOCK)).filter(|at| !blocks.contains(at)).collect();
        trap.take_room(new.len() as u64 * BLOCK)?;
        blocks.extend(new);
        Ok(())
    }

    /// Bytes of the file, which has so many, that take no room.
    pub(super) fn missing_below(&self, len: u64) -> u64 {
        let blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        len.div_ceil(BLOCK).saturating_sub(blocks.range(..len.div_ceil(BLOCK)).count() as u64) * BLOCK
    }

    /// The file has no more than so many bytes.
    pub(super) fn give_from(&self, len: u64, trap: &Trap) {
        let mut blocks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = blocks.split_off(&len.div_ceil(BLOCK));
        trap.give_room(gone.len() as u64 * BLOCK);
    }
}
