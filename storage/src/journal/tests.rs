//! What is appended is read again, from segment to segment and from opening to opening; and whatever lies in the folder, reading it
//! ends.

mod hostile;
mod kept;
mod small;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::ENTRY_HEADER;
use super::{Journal, JournalKeep, JournalLimits, MetaBytes, Waiting, read};
use crate::base::TxId;
use crate::disk::sim::{Fault, SimFolder, SimJournalFolder, Trap};
use crate::disk::{JournalFolder, OsJournalFolder};
use crate::{Error, Result};

const LIMITS: JournalLimits = JournalLimits {
    segment_size: 4 * 4096,
    checkpoint_size: 1 << 20,
    keep: JournalKeep::UntilCheckpoint,
    ahead: false,
};

fn meta(number: TxId) -> MetaBytes {
    let mut bytes = [7; 64];
    bytes[48..56].copy_from_slice(&number.to_le_bytes());
    MetaBytes(bytes)
}

fn folder() -> Arc<dyn JournalFolder> {
    folder_with(&Trap::default())
}

fn folder_with(trap: &Trap) -> Arc<dyn JournalFolder> {
    let folder = SimFolder::new(BTreeMap::new(), &[], true, trap);
    Arc::new(SimJournalFolder::new(Arc::new(folder), Path::new("db-journal"), 1))
}

fn waiting(folder: &Arc<dyn JournalFolder>, base: TxId) -> Result<Waiting> {
    read(folder)?.after(&meta(base))
}

fn begin(folder: &Arc<dyn JournalFolder>, base: TxId) -> Journal {
    let waiting = waiting(folder, base).unwrap();
    let contains = waiting.contains();
    Journal::begin(Arc::clone(folder), &LIMITS, waiting, &meta(base), contains, 0).unwrap()
}

fn records(waiting: &Waiting) -> Vec<(TxId, Vec<u8>)> {
    let record = |record: Result<super::Record<'_>>| {
        let mut record = record.unwrap();
        let mut effects = Vec::new();
        record.effects.read_to_end(&mut effects).unwrap();
        (record.txid, effects)
    };
    waiting.iter().map(record).collect()
}

/// Effects of a transaction, recognizable, of any length.
fn effects(txid: TxId, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at as u64).wrapping_mul(txid).to_le_bytes()[0]).collect()
}

#[test]
fn what_was_appended_is_read_again_however_long_it_is() {
    let folder = folder();
    let mut journal = begin(&folder, 1);
    let lens = [0, 1, 4024, 4025, 100, 8000, 12_000, 12_216, 12_217, 50_000, 3, 0, 200_000, 1];
    let mut expected = Vec::new();
    for (txid, len) in (2..).zip(lens) {
        let effects = effects(txid, len);
        journal.append(txid, 1000 + txid, &[&effects[..len / 3], &effects[len / 3..]]).unwrap();
        journal.sync().unwrap();
        expected.push((txid, effects));
        let waiting = waiting(&folder, 1).unwrap();
        assert_eq!(records(&waiting), expected);
        // What fills a block counts as far as it makes an entry half as long as what it takes.
        let own: u64 = expected.iter().map(|(_, effects)| (effects.len() + ENTRY_HEADER) as u64).sum();
        let counts = journal.since_checkpoint();
        assert!((own.max(waiting.bytes() / 2)..=waiting.bytes()).contains(&counts), "{counts}");
        assert_eq!(waiting.last(), txid);
        assert_eq!(waiting.torn_at(), None);
    }
}

#[test]
fn an_opening_goes_on_in_a_segment_of_its_own() {
    let folder = folder();
    let mut expected = Vec::new();
    for txid in 2..10 {
        let mut journal = begin(&folder, 1);
        journal.append(txid, 0, &[&effects(txid, 3000 * usize::try_from(txid).unwrap())]).unwrap();
        expected.push((txid, effects(txid, 3000 * usize::try_from(txid).unwrap())));
        assert_eq!(records(&waiting(&folder, 1).unwrap()), expected);
    }
}

#[test]
fn a_link_says_which_records_its_meta_contains() {
    let folder = folder();
    let mut journal = begin(&folder, 2);
    for txid in 3..6 {
        journal.append(txid, 0, &[b"before"]).unwrap();
    }
    journal.link(5, &meta(6), journal.recorded()).unwrap();
    journal.append(7, 0, &[b"after"]).unwrap();
    journal.sync().unwrap();
    assert_eq!(records(&waiting(&folder, 6).unwrap()), [(7, b"after".to_vec())]);
    assert_eq!(waiting(&folder, 2).unwrap().records(), 4, "the meta may not have reached the disk");
    let Err(Error::JournalDoesNotFit { file: 9, found, .. }) = waiting(&folder, 9) else { panic!("nothing names it") };
    assert_eq!(found, [6, 2]);
}

#[test]
fn a_link_finds_room_on_a_full_disk_where_a_record_does_not() {
    let trap = Trap::default();
    let folder = folder_with(&trap);
    let mut journal = begin(&folder, 1);
    // One record to a block, and one block left.
    for txid in 2..4 {
        journal.reserve(Some(8)).unwrap();
        journal.append(txid, 0, &[&effects(txid, 8)]).unwrap();
    }
    trap.limit_room(0);
    let refused = journal.reserve(Some(8)).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
    journal.reserve(None).unwrap();
    journal.link(3, &meta(4), journal.recorded()).unwrap();
    journal.sync().unwrap();
    assert!(waiting(&folder, 4).unwrap().is_empty());
}

/// Records one to a block, until there is no room; answers the last.
fn record_until_full(journal: &mut Journal, mut txid: TxId) -> TxId {
    while journal.reserve(Some(8)).is_ok() {
        txid += 1;
        journal.append(txid, 0, &[&effects(txid, 8)]).unwrap();
        journal.sync().unwrap();
    }
    txid
}

fn checkpoint(journal: &mut Journal, txid: TxId) {
    journal.reserve(None).unwrap();
    journal.link(txid, &meta(txid), journal.recorded()).unwrap();
    journal.sync().unwrap();
    journal.checkpointed();
}

/// The journal takes all that the disk has: one segment, and the shortest, which is kept for the last.
#[test]
fn on_a_disk_that_it_has_filled_it_goes_on_after_each_checkpoint_and_after_each_kill() {
    let trap = Trap::default();
    let limits = JournalLimits { segment_size: 16 * 4096, ..LIMITS };
    trap.limit_room(limits.segment_size + limits.shortest());
    let folder = folder_with(&trap);
    let (mut last, mut base) = (1, 1);
    for life in 0..20 {
        let waiting = waiting(&folder, base).unwrap();
        assert_eq!(waiting.last(), last);
        let mut journal = Journal::begin(Arc::clone(&folder), &limits, waiting, &meta(base), base, 0).unwrap();
        if last > base {
            // As an opening does it.
            checkpoint(&mut journal, last);
            base = last;
        }
        for _ in 0..life % 4 {
            let full = record_until_full(&mut journal, last);
            assert!(full > last, "life {life}: there is room after a checkpoint");
            checkpoint(&mut journal, full);
            (last, base) = (full, full);
        }
        last = record_until_full(&mut journal, last);
        assert_eq!(folder.list().unwrap().len(), 2);
    }
}

/// Where there is no room for a segment of the length that others have.
#[test]
fn on_a_full_disk_a_record_goes_into_some_short_segments_but_not_into_many() {
    let trap = Trap::default();
    let limits = JournalLimits { segment_size: 1 << 20, ..LIMITS };
    trap.limit_room(limits.segment_size + 20 * limits.shortest());
    let folder = folder_with(&trap);
    let waiting_now = waiting(&folder, 1).unwrap();
    let mut journal = Journal::begin(Arc::clone(&folder), &limits, waiting_now, &meta(1), 1, 0).unwrap();
    let mut expected = Vec::new();
    // The first fills the segment that is there, all but a little.
    for (txid, len) in [(2, 1_000_000), (3, 60_000), (4, 300_000)] {
        journal.reserve(Some(len as u64)).unwrap();
        let effects = effects(txid, len);
        journal.append(txid, 0, &[&effects]).unwrap();
        journal.sync().unwrap();
        expected.push((txid, effects));
    }
    assert_eq!(records(&waiting(&folder, 1).unwrap()), expected);
    let files = folder.list().unwrap().len();
    let refused = journal.reserve(Some(600_000)).unwrap_err();
    assert_eq!((refused.kind(), folder.list().unwrap().len()), (std::io::ErrorKind::StorageFull, files));
    journal.reserve(Some(8)).unwrap();
    // What they held is in the file: the one that is as long as others is written again, and they go.
    checkpoint(&mut journal, 4);
    journal.reserve(Some(900_000)).unwrap();
    journal.append(5, 0, &[&effects(5, 900_000)]).unwrap();
    let files = folder.list().unwrap();
    assert!(files.len() <= 3, "{files:?}");
}

#[test]
fn a_segment_counts_once_it_is_there_and_not_where_it_could_not_be_made() {
    for room in [LIMITS.segment_size, u64::MAX] {
        let trap = Trap::default();
        trap.limit_room(room);
        let folder = folder_with(&trap);
        let limits = JournalLimits { ahead: true, ..LIMITS };
        let waiting = waiting(&folder, 1).unwrap();
        let mut journal = Journal::begin(Arc::clone(&folder), &limits, waiting, &meta(1), 1, 0).unwrap();
        if room == u64::MAX {
            // It waits for the one that is made.
            journal.reserve(Some(3 * 4096)).unwrap();
        }
        let stats = journal.stats();
        assert_eq!(stats.segments, folder.list().unwrap().len() as u64);
        assert_eq!(stats.bytes, stats.segments * LIMITS.segment_size);
    }
}

#[test]
fn where_the_disk_has_room_for_short_segments_only_small_records_go_on_in_few_of_them() {
    let trap = Trap::default();
    let folder = folder_with(&trap);
    let limits = JournalLimits { segment_size: 64 * 4096, ..LIMITS };
    let mut journal =
        Journal::begin(Arc::clone(&folder), &limits, waiting(&folder, 1).unwrap(), &meta(1), 1, 0).unwrap();
    trap.limit_room(2 * 8 * 4096);
    let mut newest = 1;
    let mut checkpoint = |journal: &mut Journal, txid: TxId| {
        newest = txid + 1;
        journal.link(txid, &meta(newest), journal.recorded()).unwrap();
        journal.sync().unwrap();
        journal.checkpointed();
    };
    for txid in (2..4_000).step_by(2) {
        // As the store does it, which refuses what finds no room until there was a checkpoint.
        if journal.reserve(Some(8)).is_err() {
            journal.reserve(None).unwrap();
            checkpoint(&mut journal, txid - 2);
            journal.reserve(Some(8)).unwrap();
        }
        journal.append(txid, 0, &[&effects(txid, 8)]).unwrap();
        let refused = journal.reserve(Some(800_000)).unwrap_err();
        assert!(refused.to_string().contains("262144 bytes"), "{refused}");
    }
    assert!(folder.list().unwrap().len() <= 3, "{:?}", folder.list().unwrap());
    journal.sync().unwrap();
    let waiting = waiting(&folder, newest).unwrap();
    assert_eq!(waiting.last(), 3_998);
    assert!(!waiting.is_empty());
}

#[test]
fn a_sync_that_failed_beside_the_writer_is_not_followed_by_one_that_is_believed() {
    let trap = Trap::default();
    let folder = folder_with(&trap);
    let mut journal = begin(&folder, 1);
    journal.append(2, 0, &[b"lost"]).unwrap();
    let pending = journal.begin_sync().unwrap();
    trap.arm(0, Fault::Broken);
    pending.run().unwrap_err();
    trap.disarm();
    // The disk says of this one that all is well.
    journal.sync().unwrap_err();
    journal.append(3, 0, &[b"after it"]).unwrap_err();
}

#[test]
fn segments_are_used_again_once_their_records_are_in_the_file() {
    let folder = folder();
    let mut journal = begin(&folder, 1);
    let mut newest = 1;
    for txid in 2..200 {
        journal.append(txid * 2, 0, &[&effects(txid, 5000)]).unwrap();
        if txid % 10 == 0 {
            newest = txid * 2 + 1;
            journal.link(txid * 2, &meta(newest), journal.recorded()).unwrap();
            journal.sync().unwrap();
            journal.checkpointed();
            assert!(waiting(&folder, newest).unwrap().is_empty());
            assert_eq!(journal.since_checkpoint(), 0);
        }
    }
    assert!(folder.list().unwrap().len() < 12, "{:?}", folder.list().unwrap());
    let waiting = waiting(&folder, newest).unwrap();
    assert_eq!(waiting.records(), 9);
}

/// A file, and where its journal's folder will be.
fn beside_a_file() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("db");
    std::fs::write(&file, "").unwrap();
    let path = crate::disk::journal_path(&file).unwrap();
    (temporary, file, path)
}

/// As a program does that was just started from this process, until it runs.
#[test]
fn who_holds_the_folder_for_a_moment_is_waited_for() {
    let (_temporary, file, path) = beside_a_file();
    let held = OsJournalFolder::open_or_create(&path, &file).unwrap();
    let holder = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        drop(held);
    });
    assert!(OsJournalFolder::open_or_create(&path, &file).is_ok());
    holder.join().unwrap();
}

#[test]
fn a_folder_of_the_file_system_is_locked_and_has_the_files_mode() {
    use std::os::unix::fs::MetadataExt as _;
    let (_temporary, file, path) = beside_a_file();
    assert!(OsJournalFolder::open(&path).unwrap().is_none());
    let os = OsJournalFolder::open_or_create(&path, &file).unwrap();
    assert!(os.is_on_device_of(&file).unwrap());
    assert!(matches!(OsJournalFolder::open_or_create(&path, &file), Err(Error::JournalInUse { .. })));
    let folder: Arc<dyn JournalFolder> = Arc::new(os);
    let mut journal = begin(&folder, 1);
    for txid in 2..9 {
        journal.append(txid, 0, &[&effects(txid, 5000)]).unwrap();
        journal.sync().unwrap();
    }
    assert_eq!(waiting(&folder, 1).unwrap().records(), 7);
    let mode = file.metadata().unwrap().mode();
    for name in folder.list().unwrap() {
        assert_eq!(path.join(name).metadata().unwrap().mode(), mode);
    }
}
