//! Segments that somebody has changed, and given the right checksums: what comes is records or an error.

use std::io::Read as _;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::block::{BLOCK, BLOCK_LEN, Decoded, EntryHeader, Header};
use super::super::{Journal, JournalPosition, Until, read};
use super::{LIMITS, begin, effects, folder, meta};
use crate::disk::JournalFolder;

/// A change of one number in a header or in the header of an entry, of a block, or of the length.
#[derive(Debug, Clone)]
struct Change {
    file: prop::sample::Index,
    block: prop::sample::Index,
    field: u8,
    number: u64,
}

fn numbers() -> impl Strategy<Value = u64> {
    let near = |number: u64| (number.saturating_sub(2)..=number.saturating_add(2)).boxed();
    let kinds = [near(0), near(BLOCK_LEN), near(4 * BLOCK_LEN), near(1 << 40), near(1 << 63), near(u64::MAX)];
    prop_oneof![0..20_u64, prop::strategy::Union::new(kinds), any::<u64>()]
}

fn change() -> impl Strategy<Value = Change> {
    let parts = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..12_u8, numbers());
    parts.prop_map(|(file, block, field, number)| Change { file, block, field, number })
}

/// Records in some segments, several openings, and a link.
fn scene() -> Arc<dyn JournalFolder> {
    let folder = folder();
    for opening in 0..3 {
        let mut journal = begin(&folder, 1);
        for txid in 2 + 4 * opening..6 + 4 * opening {
            let len = usize::try_from(txid).unwrap() * 1500;
            journal.append(txid, txid, &[&effects(txid, len)]).unwrap();
            journal.sync().unwrap();
        }
        if opening == 1 {
            journal.link(5, &meta(20), journal.recorded()).unwrap();
            journal.sync().unwrap();
        }
    }
    folder
}

fn apply(folder: &dyn JournalFolder, change: &Change) {
    let mut names = folder.list().unwrap();
    names.sort_unstable();
    let disk = folder.open(change.file.get::<String>(&names)).unwrap();
    let len = disk.len().unwrap();
    let blocks = usize::try_from(len / BLOCK_LEN).unwrap();
    if change.field == 11 || blocks == 0 {
        return disk.set_len(change.number % (6 * BLOCK_LEN)).unwrap();
    }
    let at = BLOCK_LEN * change.block.index(blocks) as u64;
    let mut block = [0; BLOCK];
    disk.read_at(&mut block, at).unwrap();
    if let Decoded::Header(header) = Header::decode(&block) {
        block.copy_from_slice(&changed_header(header, change).encode());
    } else if let Some(entry) = EntryHeader::decode_any(&block) {
        let sealed = changed_entry(entry, change).seal();
        block[..sealed.len()].copy_from_slice(&sealed);
    } else {
        block[..8].copy_from_slice(&change.number.to_le_bytes());
    }
    disk.write_at(&block, at).unwrap();
}

fn changed_header(mut header: Header, change: &Change) -> Header {
    let number = change.number;
    match change.field {
        0 => header.store = number,
        1 => header.number = number,
        2 => header.generation = number,
        3 => header.epoch = number,
        4 => header.before.segment = number,
        5 => header.before.offset = number,
        6 => header.synced.segment = number,
        7 => header.synced.offset = number,
        8 => header.carried = number,
        9 => header.follows = number,
        _ => header.contains = number,
    }
    header
}

fn changed_entry(mut entry: EntryHeader, change: &Change) -> EntryHeader {
    let number = change.number;
    match change.field {
        0 | 1 => entry.payload = number,
        2 => entry.generation = number,
        3 | 4 => entry.txid = number,
        5 => entry.follows = number,
        6 => entry.synced.segment = number,
        7 => entry.synced.offset = number,
        8 => entry.time_ms = number,
        9 => entry.before_crc = number.to_le_bytes()[0].into(),
        _ => entry.payload_crc = number.to_le_bytes()[0].into(),
    }
    entry
}

proptest! {
    #[test]
    fn whatever_lies_in_the_folder_reading_it_ends_with_records_or_an_error(
        changes in prop::collection::vec(change(), 1..6),
        of in prop::sample::select(vec![1, 20, 99]),
    ) {
        let folder = scene();
        for change in &changes {
            apply(&*folder, change);
        }
        let Ok(log) = read(&folder) else { return Ok(()) };
        let Ok(waiting) = log.after(&meta(of)) else { return Ok(()) };
        let mut last = waiting.contains();
        let mut count = 0;
        for record in waiting.iter() {
            let mut record = record.unwrap();
            prop_assert!(record.txid > last);
            (last, count) = (record.txid, count + 1);
            let said = record.effects.left();
            let read = record.effects.read_to_end(&mut Vec::new()).unwrap();
            prop_assert_eq!(read as u64, said);
        }
        prop_assert_eq!((count, last), (waiting.records(), waiting.last()));
        let contains = waiting.contains();
        if let Ok(mut journal) = Journal::begin(Arc::clone(&folder), &LIMITS, waiting, &meta(of), contains, 0) {
            journal.append(last.saturating_add(1), 0, &[b"more"]).unwrap();
            journal.sync().unwrap();
        }
    }
}

proptest! {
    #[test]
    fn whatever_lies_in_the_folder_reading_from_a_backup_or_a_position_ends_with_records_or_an_error(
        changes in prop::collection::vec(change(), 0..4),
        of in prop::sample::select(vec![1, 20, 99]),
        behind in (0..4_usize, 0..16_u64),
    ) {
        let folder = scene();
        for change in &changes {
            apply(&*folder, change);
        }
        let Ok(log) = read(&folder) else { return Ok(()) };
        let (segment, txid) = behind;
        let epoch = log.segments.get(segment).map_or(0, |segment| segment.header.epoch);
        let from_position = log.clone().behind(JournalPosition { epoch, txid });
        for (waiting, _) in log.since(&meta(of)).into_iter().chain(from_position) {
            let mut last = waiting.contains();
            for record in waiting.iter() {
                let record = record.unwrap();
                prop_assert!(record.txid > last);
                last = record.txid;
                record.effects.read_all().unwrap();
            }
            prop_assert_eq!(last, waiting.last());
            prop_assert_eq!(waiting.stretch(Until::End).unwrap().records, waiting.records());
        }
    }
}
