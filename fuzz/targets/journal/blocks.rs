//! The blocks of a journal as `docs/journal.md` describes them, read and written without the engine's own code.

use arbitrary::Arbitrary;

pub const BLOCK: usize = 4096;
const MAGIC: &[u8; 8] = b"boltkvJ\n";
/// Where a header and an entry end with their checksum.
const HEADER: usize = 180;
const ENTRY: usize = 68;
const PAYLOAD: usize = 72;

/// What a segment's first block says.
pub struct Header {
    pub number: u64,
    pub synced: (u64, u64),
    generation: u64,
    carried: u64,
}

pub struct Entry {
    pub offset: usize,
    /// Where it ends, if that is in the same segment.
    pub end: Option<u64>,
    pub is_record: bool,
    pub txid: u64,
    pub synced: (u64, u64),
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn is_sealed(block: &[u8], at: usize) -> bool {
    crc32c::crc32c(&block[..at]).to_le_bytes() == block[at..at + 4]
}

fn seal(block: &mut [u8], at: usize) {
    let crc = crc32c::crc32c(&block[..at]);
    block[at..at + 4].copy_from_slice(&crc.to_le_bytes());
}

pub fn header(segment: &[u8]) -> Option<Header> {
    let block = segment.get(..BLOCK)?;
    (block.starts_with(MAGIC) && is_sealed(block, HEADER)).then(|| Header {
        number: number(block, 24),
        generation: number(block, 32),
        synced: (number(block, 72), number(block, 80)),
        carried: number(block, 88),
    })
}

/// The entries of a segment that nobody has damaged.
pub fn entries(segment: &[u8], header: &Header) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut at =
        BLOCK + usize::try_from(header.carried).unwrap_or(usize::MAX).min(segment.len()).next_multiple_of(BLOCK);
    while let Some(block) = segment.get(at..at + BLOCK) {
        if number(block, 0) != header.generation || !is_sealed(block, ENTRY) {
            break;
        }
        let len = (number(block, 16) + PAYLOAD as u64).next_multiple_of(BLOCK as u64);
        let end = at as u64 + len;
        entries.push(Entry {
            offset: at,
            end: (end <= segment.len() as u64).then_some(end),
            is_record: block[8] == 1,
            txid: number(block, 24),
            synced: (number(block, 48), number(block, 56)),
        });
        at = usize::try_from(end).expect("it was written to memory");
    }
    entries
}

/// Sets one of the numbers of a header or of an entry, and its checksum; of any other block the first number.
pub fn change(block: &mut [u8], field: u8, to: u64) {
    let (fields, end) = match () {
        () if block.starts_with(MAGIC) && is_sealed(block, HEADER) => (12, HEADER),
        () if is_sealed(block, ENTRY) => (7, ENTRY),
        () => (0, 8),
    };
    // A header's first number is its magic; its version and its block's length are left as they are, too.
    let at = match fields {
        12 => 16 + 8 * usize::from(field % 12),
        7 => [0, 12, 16, 24, 32, 48, 56][usize::from(field % 7)],
        _ => 0,
    };
    let bytes = if fields == 7 && at == 12 { 4 } else { 8 };
    block[at..at + bytes].copy_from_slice(&to.to_le_bytes()[..bytes]);
    if fields > 0 {
        seal(block, end);
    }
}

/// A number near those at which something ends.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub enum Number {
    Small(u8),
    Blocks(u8),
    NearBlocks(u8),
    Large(u8),
    Any(u64),
}

impl Number {
    pub fn value(self) -> u64 {
        match self {
            Self::Small(number) => number.into(),
            Self::Blocks(blocks) => BLOCK as u64 * u64::from(blocks % 32),
            Self::NearBlocks(blocks) => (BLOCK as u64 * u64::from(blocks % 32)).wrapping_sub(PAYLOAD as u64),
            Self::Large(less) => u64::MAX - u64::from(less),
            Self::Any(number) => number,
        }
    }
}

/// A segment that is made up: all its checksums are right, and each entry follows the one before in its segment.
#[derive(Debug, Arbitrary)]
pub struct Made {
    number: u8,
    before: (Number, Number),
    before_crc: Number,
    synced: (Number, Number),
    carried: Number,
    follows: Number,
    contains: Number,
    /// Whether its base is the file's meta.
    fits: bool,
    entries: Vec<MadeEntry>,
}

#[derive(Debug, Arbitrary)]
struct MadeEntry {
    kind: u8,
    /// Blocks before it that are no entry.
    gap: u8,
    claimed: Option<Number>,
    txid: u8,
    follows: Option<Number>,
    synced: (Number, Number),
    payload: Vec<u8>,
}

/// The newest meta of a new database with pages of 1 KiB.
#[derive(Clone, Copy)]
pub struct MetaOf<'a>(pub &'a [u8]);

impl Made {
    pub fn bytes(&self, MetaOf(file): MetaOf<'_>) -> Vec<u8> {
        let mut header = vec![0; BLOCK];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&1_u32.to_le_bytes());
        header[12..16].copy_from_slice(&(BLOCK as u32).to_le_bytes());
        let generation = u64::from(self.number) + 1;
        let ((before, before_end), (synced, synced_end)) = (self.before, self.synced);
        let numbers = [before, before_end, synced, synced_end, self.carried, self.follows, self.contains];
        let numbers = numbers.into_iter().map(Number::value);
        for (at, number) in [7, self.number.into(), generation, 1, 0].into_iter().chain(numbers).enumerate() {
            header[16 + 8 * at..][..8].copy_from_slice(&number.to_le_bytes());
        }
        if self.fits {
            header[112..176].copy_from_slice(&file[1024 + 16..1024 + 80]);
        }
        header[176..180].copy_from_slice(&self.before_crc.value().to_le_bytes()[..4]);
        seal(&mut header, HEADER);
        let (mut bytes, mut crc) = (header, self.before_crc.value() as u32);
        for entry in &self.entries {
            entry.add(&mut bytes, generation, &mut crc, file);
        }
        bytes
    }
}

impl MadeEntry {
    fn add(&self, bytes: &mut Vec<u8>, generation: u64, before: &mut u32, file: &[u8]) {
        bytes.resize(bytes.len() + BLOCK * usize::from(self.gap % 3), 0);
        let kind = 1 + u32::from(self.kind % 3);
        // A link that names the file's meta is worth more than one that names none.
        let payload = if kind == 2 && self.payload.is_empty() { &file[1024 + 16..1024 + 80] } else { &self.payload };
        let claimed = self.claimed.map_or(payload.len() as u64, Number::value);
        let txid = u64::from(self.txid);
        let follows = self.follows.map_or(txid.saturating_sub(1), Number::value);
        let mut entry = vec![0; PAYLOAD];
        entry[8..12].copy_from_slice(&kind.to_le_bytes());
        entry[12..16].copy_from_slice(&before.to_le_bytes());
        let (synced, synced_end) = self.synced;
        let numbers = [(0, generation), (16, claimed), (24, txid), (32, follows), (48, synced.value())];
        for (at, number) in numbers.into_iter().chain([(56, synced_end.value())]) {
            entry[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        entry[64..68].copy_from_slice(&crc32c::crc32c(payload).to_le_bytes());
        seal(&mut entry, ENTRY);
        *before = crc32c::crc32c(&entry[..ENTRY]);
        entry.extend_from_slice(payload);
        entry.resize(entry.len().next_multiple_of(BLOCK), 0);
        bytes.append(&mut entry);
    }
}
