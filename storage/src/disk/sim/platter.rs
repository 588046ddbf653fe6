//! What a crash may leave of a file.
//!
//! What was synced is there. Of the rest any part may be: writes reach the disk in any order, cut
//! at the borders of sectors, and the length is any that the file had since. One sector that was on its
//! way may be shorn (its first bytes are new, the others old), or destroyed: then it holds anything, also
//! where the write was not to change it. Bytes that the length takes in before their data has come are
//! zeros; data that came before its length is lost.

use std::ops::Range;

/// What a disk that keeps its word writes whole or not at all, in bytes.
const SECTOR: usize = 512;

/// A change of a file.
#[derive(Debug, Clone)]
pub(crate) enum FileOp {
    Write { offset: usize, data: Box<[u8]> },
    SetLen(usize),
}

/// The smallest part of a change that comes or is lost by itself: a sector of a write, or a
/// change of the length as far as it cuts something off.
#[derive(Debug, Clone)]
struct Piece {
    op: usize,
    /// Bytes of the write's data.
    part: Range<usize>,
}

/// One way in which a crash may go: what of the unsynced changes is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Loss {
    /// For each piece, in the order of the changes, whether it came through.
    pub(crate) kept: Vec<bool>,
    /// A piece that came through, but not as it was written, and what became of it.
    pub(crate) harmed: Option<(usize, Harm)>,
    /// Bytes of the file.
    pub(crate) len: usize,
}

/// What a crash may make of the sector that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Harm {
    /// Only the first bytes of the piece are new: so many.
    Shorn(usize),
    /// The whole sector holds something else, which this number tells.
    Destroyed(u64),
}

/// A file as the disk has it: what it holds for certain, and what is on its way.
#[derive(Debug, Clone)]
pub(crate) struct Platter {
    synced: Vec<u8>,
    pending: Vec<FileOp>,
    pieces: Vec<Piece>,
    /// Every length that the file had since it was synced, from then to now.
    lengths: Vec<usize>,
}

impl Platter {
    pub(crate) fn new(synced: Vec<u8>) -> Self {
        Self { lengths: vec![synced.len()], synced, pending: Vec::new(), pieces: Vec::new() }
    }

    pub(crate) fn push(&mut self, change: FileOp) {
        let op = self.pending.len();
        let len = match &change {
            FileOp::Write { offset, data } => {
                let mut from = 0;
                while from < data.len() {
                    let to = data.len().min(from + SECTOR - (offset + from) % SECTOR);
                    self.pieces.push(Piece { op, part: from..to });
                    from = to;
                }
                self.len().max(offset + data.len())
            }
            FileOp::SetLen(len) => {
                self.pieces.push(Piece { op, part: 0..0 });
                *len
            }
        };
        if len != self.len() {
            self.lengths.push(len);
        }
        self.pending.push(change);
    }

    pub(crate) fn sync(&mut self) {
        // In place: a file is synced far more often than it is crashed.
        let (mut bytes, len) = (std::mem::take(&mut self.synced), self.len());
        for piece in &self.pieces {
            piece.write_to(&mut bytes, &self.pending, None);
        }
        set_len(&mut bytes, len);
        *self = Self::new(bytes);
    }

    /// The last change comes to the disk, and says nothing of any before it.
    pub(crate) fn sync_change(&mut self) {
        assert_eq!(self.pending.len(), 1, "what was not synced is not covered by a write that syncs itself");
        self.sync();
    }

    /// The length that the file has while nothing crashes.
    pub(crate) fn len(&self) -> usize {
        *self.lengths.last().expect("the first is there from the beginning")
    }

    /// What is there for certain.
    pub(crate) fn synced(&self) -> &[u8] {
        &self.synced
    }

    pub(crate) fn lengths(&self) -> &[usize] {
        &self.lengths
    }

    /// For each unsynced change, which pieces are its.
    pub(crate) fn changes(&self) -> Vec<Range<usize>> {
        let mut end = 0;
        let counts = self.pieces.chunk_by(|a, b| a.op == b.op).map(<[Piece]>::len);
        counts.map(|count| (end..end + count, end += count).0).collect()
    }

    /// How many pieces a crash may lose.
    pub(crate) fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// What the file holds while nothing crashes.
    pub(crate) fn newest(&self) -> Vec<u8> {
        self.after(&Loss { kept: vec![true; self.pieces.len()], harmed: None, len: self.len() })
    }

    /// What the file holds after a crash.
    pub(crate) fn after(&self, loss: &Loss) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        for (at, piece) in self.pieces.iter().enumerate().filter(|(at, _)| loss.kept[*at]) {
            let harm = loss.harmed.filter(|&(harmed, _)| harmed == at).map(|(_, harm)| harm);
            piece.write_to(&mut bytes, &self.pending, harm);
        }
        set_len(&mut bytes, loss.len);
        bytes
    }
}

impl Piece {
    /// Makes its part of its change, or what the harm leaves of that.
    fn write_to(&self, bytes: &mut Vec<u8>, pending: &[FileOp], harm: Option<Harm>) {
        let (offset, data) = match &pending[self.op] {
            FileOp::Write { offset, data } => (offset, data),
            FileOp::SetLen(len) => return bytes.truncate(*len),
        };
        let Range { start, mut end } = self.part;
        if let Some(Harm::Shorn(bytes)) = harm {
            end = end.min(start + bytes);
        }
        if bytes.len() < offset + end {
            set_len(bytes, offset + end);
        }
        bytes[offset + start..offset + end].copy_from_slice(&data[start..end]);
        if let Some(Harm::Destroyed(seed)) = harm {
            let sector = (offset + start) / SECTOR * SECTOR;
            let end = bytes.len().min(sector + SECTOR);
            destroy(&mut bytes[sector..end], seed);
        }
    }
}

/// What a destroyed sector holds: zeros, ones, noise, or what it was to hold with one bit that is wrong.
fn destroy(sector: &mut [u8], seed: u64) {
    let number = seed / 4;
    match seed % 4 {
        0 => sector.fill(0),
        1 => sector.fill(0xFF),
        2 => {
            for (at, chunk) in sector.chunks_mut(8).enumerate() {
                let noise = (number + at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let noise = (noise ^ (noise >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                chunk.copy_from_slice(&noise.to_be_bytes()[..chunk.len()]);
            }
        }
        _ => {
            let bit = usize::try_from(number).unwrap_or(0) % (8 * sector.len());
            sector[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// As `resize`, which without optimisation fills byte by byte.
fn set_len(bytes: &mut Vec<u8>, len: usize) {
    const ZEROS: [u8; 4096] = [0; 4096];
    while bytes.len() < len {
        let more = (len - bytes.len()).min(ZEROS.len());
        bytes.extend_from_slice(&ZEROS[..more]);
    }
    bytes.truncate(len);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(offset: usize, byte: u8, len: usize) -> FileOp {
        FileOp::Write { offset, data: vec![byte; len].into() }
    }

    fn after(platter: &Platter, kept: &[bool], len: usize) -> Vec<u8> {
        platter.after(&Loss { kept: kept.to_vec(), harmed: None, len })
    }

    #[test]
    fn a_write_is_torn_at_the_borders_of_sectors() {
        let mut platter = Platter::new(vec![1; 1024]);
        platter.push(write(500, 2, 524));
        assert_eq!(platter.pieces(), 2);
        let torn = after(&platter, &[true, false], 1024);
        assert_eq!((torn[499], torn[500], torn[511], torn[512]), (1, 2, 2, 1));
        let torn = after(&platter, &[false, true], 1024);
        assert_eq!((torn[511], torn[512], torn[1023]), (1, 2, 2));
    }

    #[test]
    fn a_shorn_sector_is_new_at_its_beginning_only() {
        let mut platter = Platter::new(vec![1; 1024]);
        platter.push(write(0, 2, 1024));
        let shorn = platter.after(&Loss { kept: vec![true, true], harmed: Some((1, Harm::Shorn(8))), len: 1024 });
        assert_eq!((shorn[511], shorn[519], shorn[520]), (2, 2, 1));
    }

    #[test]
    fn a_destroyed_sector_holds_anything_and_the_sectors_beside_it_what_they_did() {
        let mut platter = Platter::new(vec![1; 2048]);
        platter.push(write(600, 2, 100));
        let after =
            |seed| platter.after(&Loss { kept: vec![true], harmed: Some((0, Harm::Destroyed(seed))), len: 2048 });
        for seed in 0..100 {
            let left = after(seed);
            assert_eq!((&left[..512], &left[1024..]), (&[1; 512][..], &[1; 1024][..]), "{seed}: not what was written");
            assert_ne!(left, platter.newest(), "{seed}: it came through");
            assert_ne!(left, platter.synced(), "{seed}: it was lost");
            assert_eq!(left, after(seed), "{seed}: the same seed, something else");
        }
        let all: Vec<_> = (0..100).map(after).collect();
        assert!(all.iter().any(|left| left[512] != 1), "what the write did not touch is destroyed, too");
        assert!(all.iter().any(|left| left[512..1024] == [0; 512]));
    }

    #[test]
    fn a_sector_that_is_on_the_disk_is_not_destroyed_by_what_is_written_elsewhere() {
        let mut platter = Platter::new(Vec::new());
        platter.push(write(0, 2, 512));
        platter.sync();
        platter.push(write(512, 3, 512));
        let harmed = Some((0, Harm::Destroyed(2)));
        assert_eq!(platter.after(&Loss { kept: vec![true], harmed, len: 1024 })[..512], [2; 512]);
    }

    #[test]
    fn the_later_of_two_writes_wins_unless_it_is_lost() {
        let mut platter = Platter::new(vec![1; 512]);
        platter.push(write(0, 2, 512));
        platter.push(write(0, 3, 512));
        let seen =
            [[true, true], [true, false], [false, true], [false, false]].map(|kept| after(&platter, &kept, 512)[0]);
        assert_eq!(seen, [3, 2, 3, 1]);
    }

    #[test]
    fn length_and_data_come_without_each_other() {
        let mut platter = Platter::new(vec![1; 512]);
        platter.push(FileOp::SetLen(1536));
        platter.push(write(512, 2, 512));
        assert_eq!(platter.lengths(), [512, 1536]);
        assert_eq!(platter.changes(), [0..1, 1..2]);
        assert_eq!(after(&platter, &[true, true], 512), [1; 512], "the data is cut off");
        assert_eq!(after(&platter, &[true, false], 1536)[512..], [0; 1024], "the length alone brings zeros");
    }

    #[test]
    fn a_file_that_was_cut_and_grew_again_has_zeros_or_what_it_had() {
        let mut platter = Platter::new(vec![1; 1024]);
        platter.push(FileOp::SetLen(512));
        platter.push(FileOp::SetLen(1024));
        assert_eq!(after(&platter, &[true, true], 1024)[512..], [0; 512]);
        assert_eq!(after(&platter, &[false, true], 1024)[512..], [1; 512]);
        assert_eq!(platter.newest()[512..], [0; 512]);
    }

    #[test]
    fn what_was_synced_stays() {
        let mut platter = Platter::new(Vec::new());
        platter.push(write(0, 2, 700));
        platter.sync();
        assert_eq!((platter.pieces(), platter.lengths()), (0, &[700][..]));
        assert_eq!(platter.newest(), [2; 700]);
    }
}
