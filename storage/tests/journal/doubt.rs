//! What a file says of itself is not believed where that can be told, and where it cannot, that is said: a meta that is
//! damaged, and a freelist that names pages in use.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{assert_check_clean, committed, copy_as_killed};
use boltkv_storage::tools::{FileJournal, JournalState, RawFile, RepairEvent, RepairOptions};
use boltkv_storage::{Db, Durability, Error, JournalOptions, Options};
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: usize = 4096;

/// A file with two acknowledged writes.
fn two_writes() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("doubtful.db");
    let db = Db::open(&file).unwrap();
    for key in ["first", "second"] {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, "v")).unwrap();
    }
    drop(db);
    (folder, file)
}

/// Changes one byte of the newest meta; returns its page.
fn damage_newest_meta(file: &Path) -> u64 {
    let newest = RawFile::open(file, None).unwrap().newest_meta().unwrap();
    let page = newest.txid % 2;
    let mut bytes = fs::read(file).unwrap();
    bytes[usize::try_from(page).unwrap() * PAGE + 16 + 20] ^= 1;
    fs::write(file, bytes).unwrap();
    page
}

// Promises: ops-doubt.
#[test]
fn a_damaged_meta_that_may_have_been_the_newest_is_told_until_a_commit_has_written_over_it() {
    let (_folder, file) = two_writes();
    assert_eq!(Db::open(&file).unwrap().damaged_meta(), None);
    let newest = Db::open(&file).unwrap().stats().txid;
    let page = damage_newest_meta(&file);

    let db = Db::open(&file).unwrap();
    let damaged = db.damaged_meta().expect("one is damaged");
    assert_eq!((damaged.page, damaged.newest_left), (page, newest - 1));
    assert!(committed(&db).get(&[b"b".to_vec()], b"second").unwrap().is_none(), "it is lost indeed");
    assert_check_clean(&db, "what is left is whole");
    drop(db);
    let read_only = Options::new().read_only(true).open(&file).unwrap();
    assert_eq!(read_only.damaged_meta(), Some(damaged), "opening has changed nothing");
    drop(read_only);

    Db::open(&file).unwrap().update(|tx| tx.bucket_mut("b")?.put("third", "v")).unwrap();
    assert_eq!(Db::open(&file).unwrap().damaged_meta(), None);
}

/// The pages of the state before the newest meta are written over by what is committed after it: from there nothing can be
/// done again.
// Promises: ops-doubt-journal.
#[test]
fn a_damaged_meta_that_the_journal_has_is_put_back_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (file, killed) = (folder.path().join("a.db"), folder.path().join("killed.db"));
    let options = Options::new().journal(JournalOptions::new());
    let db = options.clone().open(&file).unwrap();
    let put = |n: u32| {
        let key = format!("{n:04}");
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(&key, [b'v'; 300])).unwrap();
    };
    (0..100).for_each(&put);
    db.checkpoint().unwrap();
    (100..200).for_each(&put);
    db.checkpoint().unwrap();
    let mut tried = 0;
    for n in 200..230 {
        // At first with nothing behind the link: then it is not known whether the meta was ever written.
        if n > 200 {
            copy_as_killed(&file, &killed);
            let page = damage_newest_meta(&killed);
            let read_only = Options::new().read_only(true).open(&killed);
            assert!(matches!(read_only, Err(Error::JournalWaits { .. })), "{read_only:?}");
            let again = options.clone().open(&killed).unwrap();
            let damaged = again.damaged_meta().expect("it is told");
            assert!(damaged.is_known && damaged.page == page, "{damaged:?}");
            assert_check_clean(&again, "what is put back is whole");
            assert_eq!(committed(&again), committed(&db));
            again.close().unwrap();
            assert_eq!(options.clone().open(&killed).unwrap().damaged_meta(), None);
            tried += 1;
        }
        put(n);
    }
    assert_eq!(tried, 29);
}

#[test]
fn a_repair_that_begins_with_what_may_be_an_older_state_says_so() {
    let (folder, file) = two_writes();
    let page = damage_newest_meta(&file);
    let mut doubtful = Vec::new();
    let repair = |options: RepairOptions, name: &str, doubtful: &mut Vec<u64>| {
        let repaired = options.repair(&file, folder.path().join(name), |event| {
            if let RepairEvent::Doubtful(place) = event {
                doubtful.push(place.page);
            }
        });
        repaired.unwrap()
    };
    let repaired = repair(RepairOptions::new(), "new.db", &mut doubtful);
    assert_eq!((repaired.lost, repaired.doubtful, repaired.values), (0, 1, 1));
    assert_eq!(doubtful, [page]);
    // Who has chosen the meta knows.
    let other = u8::try_from(1 - page).unwrap();
    assert_eq!(repair(RepairOptions::new().meta(other), "chosen.db", &mut doubtful).doubtful, 0);
}

/// Adds a page that is in use to the stored freelist.
fn list_a_used_page(file: &Path) {
    let raw = RawFile::open(file, None).unwrap();
    let meta = raw.newest_meta().unwrap();
    let mut bytes = fs::read(file).unwrap();
    let list = usize::try_from(meta.freelist).unwrap() * PAGE;
    let count = usize::from(bytes[list + 10]);
    let ids = list + 16..list + 16 + 8 * count;
    let mut listed: Vec<_> = bytes[ids].chunks(8).map(|id| u64::from_le_bytes(id.try_into().unwrap())).collect();
    listed.push(meta.root);
    listed.sort_unstable();
    bytes[list + 10] = u8::try_from(listed.len()).unwrap();
    for (number, id) in listed.iter().enumerate() {
        bytes[list + 16 + 8 * number..][..8].copy_from_slice(&id.to_le_bytes());
    }
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_stored_freelist_that_names_a_page_in_use_can_be_left_aside() {
    let (_folder, file) = two_writes();
    list_a_used_page(&file);
    let db = Db::open(&file).unwrap();
    assert!(!db.check().unwrap().is_empty(), "the list is believed");
    assert!(matches!(db.update(|tx| tx.bucket_mut("b")?.put("k", "v")), Err(Error::Corrupt { .. }) | Ok(())));
    drop(db);

    let (_folder, file) = two_writes();
    list_a_used_page(&file);
    let options = Options::new().ignore_freelist(true);
    let db = options.open(&file).unwrap();
    let before = committed(&db);
    let reader = db.begin().unwrap();
    for number in 0..20_u8 {
        db.update(|tx| tx.bucket_mut("b")?.put([number], [7; 3000])).unwrap();
        assert_check_clean(&db, "after a commit");
        assert_eq!(crate::common::content(&reader), before, "what a reader sees stays");
    }
    drop((db, reader));
    assert_check_clean(&Db::open(&file).unwrap(), "with the list that was stored since");
}

/// What is to be said of the journal of a file, and its segments, from the oldest on.
fn journal_of(file: &Path) -> (JournalState, Vec<(u64, PathBuf)>) {
    let journal = FileJournal::find(file, None).unwrap().unwrap();
    let mut segments: Vec<_> = journal.segments().map(|it| (it.number, journal.folder().join(it.file))).collect();
    segments.sort();
    (journal.state().unwrap().clone(), segments)
}

/// Without syncs nothing shows that what cannot be read was ever on the disk. Behind it more is recorded, and that is told.
#[test]
fn what_is_recorded_behind_a_segment_that_cannot_be_read_is_not_passed_over_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let (file, killed) = (folder.path().join("a.db"), folder.path().join("killed.db"));
    let journal = JournalOptions::new().checkpoint_size(1 << 20);
    let db = Options::new().durability(Durability::Never).journal(journal).open(&file).unwrap();
    for n in 0..60 {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(format!("{n:02}"), [b'v'; 3000])).unwrap();
    }
    copy_as_killed(&file, &killed);
    drop(db);
    let (whole, segments) = journal_of(&killed);
    assert!(whole.torn.is_none() && whole.records == 60 && segments.len() > 3, "{whole:?}, {segments:?}");
    let mut bytes = fs::read(&segments[1].1).unwrap();
    bytes[100] ^= 1;
    fs::write(&segments[1].1, bytes).unwrap();

    let (cut, _) = journal_of(&killed);
    let (torn, _) = cut.torn.expect("more is recorded");
    assert!(cut.records < 60 && torn == segments[0].1, "{torn:?}");
    let mut told = Vec::new();
    let new = folder.path().join("new.db");
    RepairOptions::new()
        .repair(&killed, &new, |event| {
            if let RepairEvent::JournalTorn { file, .. } = event {
                told.push(file.to_owned());
            }
        })
        .unwrap();
    assert_eq!(told, [torn]);
}

/// A segment has its length before it is used. One that is shorter was cut, and held what was acknowledged.
#[test]
fn what_the_newest_segment_lacks_that_was_cut_is_not_passed_over_in_silence() {
    let folder = tempfile::tempdir().unwrap();
    let (file, killed) = (folder.path().join("a.db"), folder.path().join("killed.db"));
    let options = Options::new().journal(JournalOptions::new());
    let db = options.open(&file).unwrap();
    for n in 0..20 {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put([n], "v")).unwrap();
    }
    copy_as_killed(&file, &killed);
    let (whole, segments) = journal_of(&killed);
    assert!(whole.torn.is_none() && whole.records == 20, "{whole:?}");
    let (_, newest) = segments.last().unwrap();
    let cut_to = |len| fs::OpenOptions::new().write(true).open(newest).unwrap().set_len(len).unwrap();
    // A header, a link and 20 records have a block each. Behind all of them first, then within one, and between two.
    for (len, records) in [(23 * 4096, 20), (18 * 4096 + 300, 16), (12 * 4096, 10)] {
        cut_to(len);
        let (cut, _) = journal_of(&killed);
        assert_eq!((cut.records, cut.torn.is_some()), (records, records < 20), "{len}");
    }
    let db = options.open(&killed).unwrap();
    assert!(db.stats().journal.unwrap().torn);
    drop(db);
    assert!(!options.open(&killed).unwrap().stats().journal.unwrap().torn, "it is told once");
}
