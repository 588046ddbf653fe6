mod gone;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::super::What;
use super::*;
use crate::base::shared::Arc;
use crate::format::PageWriter;
use crate::{Db, Durability, FreelistStored, JournalOptions, Options};

/// With so much memory.
fn with_memory(bytes: usize) -> Options {
    Options::new().page_size(1024).journal(JournalOptions::new().memory(bytes))
}

/// A database whose buckets lie on pages, so that nothing of them is in memory.
fn database(folder: &tempfile::TempDir, options: &Options, buckets: &[&str], keys: u32) -> Db {
    let db = options.open(folder.path().join("a.db")).unwrap();
    db.update(|tx| {
        for bucket in buckets {
            let mut bucket = tx.create_bucket(bucket)?;
            (0..keys).try_for_each(|key| bucket.put(key.to_be_bytes(), [0; 40]))?;
        }
        Ok(())
    })
    .unwrap();
    db.checkpoint().unwrap();
    db
}

fn put(db: &Db, bucket: &str, key: u32, value: u8) {
    db.update(|tx| tx.bucket_mut(bucket)?.put(key.to_be_bytes(), [value; 40])).unwrap();
}

/// Waits for what a thread does, for a minute at the most.
fn eventually(mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not come to hold");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn values(db: &Db, bucket: &str) -> Vec<u8> {
    db.view(|tx| Ok(tx.bucket(bucket)?.iter().map(|entry| entry.unwrap().1.unwrap()[0]).collect())).unwrap()
}

fn to_be_written(shared: &Shared) -> (Arc<Table>, Names) {
    let (recents, names) = shared.writer.with(|writer| writer.spare.patcher.as_ref().unwrap().to_be_written());
    (recents.table.unwrap(), names)
}

/// The pass of a checkpoint takes names and table, and then commits go on: to the table comes what the names do not have.
#[test]
fn what_is_patched_after_a_pass_began_stays_also_of_a_bucket_that_had_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, &with_memory(1 << 20), &["early", "late"], 100);
    put(&db, "early", 7, 1);
    let shared = &db.0.shared;
    let (table, names) = to_be_written(shared);
    put(&db, "late", 9, 2);
    let (now, _) = to_be_written(shared);
    assert!(Arc::ptr_eq(&table, &now) && table.all().count() == 2, "the pass meets both leaves");
    shared.write_round(&table, &names, table.all(), shared.batches(&names), |_, _| {}).unwrap();
    for _ in 0..2 {
        assert_eq!((values(&db, "early")[7], values(&db, "late")[9]), (1, 2));
        db.checkpoint().unwrap();
    }
}

#[test]
fn of_the_oldest_memory_some_is_moved_and_some_written_and_all_is_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, &with_memory(1 << 14), &["bucket"], 1000);
    let shared = &db.0.shared;
    let mut model = vec![0; 1000];
    // The thread that does it is kept from it.
    let turn = shared.turn_to_write();
    let oldest = (0..).find_map(|step: u32| {
        let key = step * 389 % 1000;
        put(&db, "bucket", key, 1 + (step % 250) as u8);
        model[key as usize] = 1 + (step % 250) as u8;
        shared.writer.with(|writer| writer.spare.patcher.as_mut().unwrap().oldest())
    });
    let oldest = oldest.unwrap();
    let (table, _) = to_be_written(shared);
    let meant = table.pages_of(&oldest);
    shared.give_back_memory(&turn).unwrap();
    let (table, _) = to_be_written(shared);
    let kept = meant.iter().filter(|(page, _)| table.newest(*page).is_some()).count();
    assert!((1..meant.len()).contains(&kept), "{kept} of {} leaves were moved", meant.len());
    assert!(table.all().all(|(_, at)| !oldest.are_meant(table.header(at).unwrap())), "nothing refers to the oldest");
    assert_eq!(values(&db, "bucket"), model);
    drop(turn);
    db.checkpoint().unwrap();
    assert_eq!(values(&db, "bucket"), model);
}

#[test]
fn memory_is_given_back_once_little_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalOptions::new().memory(1 << 16).checkpoint_every(Duration::from_millis(50));
    let db = database(&folder, &Options::new().journal(journal), &["bucket"], 1000);
    let figures = || db.stats().journal.unwrap();
    for key in 0..1000 {
        put(&db, "bucket", key, 7);
    }
    eventually(|| figures().memory_allocated == 0);
    // What a reader sees stays until it is gone, and is counted.
    put(&db, "bucket", 3, 8);
    let tx = db.begin().unwrap();
    eventually(|| figures().memory_leaves == 0);
    assert!(figures().memory_allocated > 0);
    assert_eq!(tx.bucket("bucket").unwrap().get(3_u32.to_be_bytes()).unwrap().map(|value| value[0]), Some(8));
    drop(tx);
    put(&db, "bucket", 4, 9);
    eventually(|| figures().memory_allocated == 0);
    assert_eq!(values(&db, "bucket")[2..5], [7, 8, 9]);
}

/// What the journal says of itself, in memory and in the journal between two checkpoints, of files of so many MiB.
#[test]
fn memory_and_journal_grow_with_the_file_where_nothing_was_said_of_them() {
    const MIB: u64 = 1 << 20;
    let auto = JournalOptions::new();
    let cases = [
        (auto.clone(), [(0, 32, 192), (767, 32, 192), (800, 50, 192), (1600, 100, 200), (10_000, 128, 256)]),
        (
            auto.clone().most_default_memory(64 << 20),
            [(0, 32, 192), (767, 32, 192), (800, 50, 192), (1600, 64, 192), (10_000, 64, 192)],
        ),
        (auto.clone().most_default_memory(16 << 20), [0, 512, 800, 1600, 10_000].map(|file| (file, 16, 192))),
        (auto.clone().memory(100 << 20), [0, 512, 800, 1600, 10_000].map(|file| (file, 100, 200))),
        (auto.clone().memory(0), [0, 512, 800, 1600, 10_000].map(|file| (file, 0, 192))),
    ];
    for (options, files) in cases {
        for (file, memory, journal) in files {
            let found = (options.memory_for(file * MIB) as u64 / MIB, options.checkpoint_size_for(file * MIB) / MIB);
            assert_eq!(found, (memory, journal), "{file} MiB, {options:?}");
        }
    }
    assert_eq!(auto.checkpoint_size(MIB).checkpoint_size_for(10_000 * MIB), MIB);
}

#[test]
fn a_file_that_grows_gets_more_memory_which_is_used() {
    const LEAVES: u32 = 14;
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalOptions::new().checkpoint_size(1 << 30);
    let options = Options::new().freelist(FreelistStored::Never).journal(journal);
    let db = options.open(folder.path().join("a.db")).unwrap();
    let memory = || db.stats().journal.map(|journal| (journal.memory >> 20, journal.memory_used >> 20)).unwrap();
    let shared = &db.0.shared;
    // The thread that gives it back is kept from it.
    let turn = shared.turn_to_write();
    let fill = |round: u8| {
        let value = [round; 2000];
        db.update(|tx| {
            let mut bucket = tx.create_bucket_if_not_exists("bucket")?;
            (0..4000 * LEAVES).try_for_each(|key| bucket.put(key.to_be_bytes(), value))
        })
    };
    fill(0).unwrap();
    fill(1).unwrap();
    assert_eq!(memory(), (32, 29), "all of it is taken, but for what is kept to move leaves");
    shared.writer.with(|writer| grow(shared, writer, (1 << 30) / writer.page_size)).unwrap();
    assert!((60..128).contains(&memory().0), "the commit that has made it grow tells it");
    fill(2).unwrap();
    let (most, used) = memory();
    assert!((60..128).contains(&most) && used > 50, "{used} of {most}");
    drop(turn);
    drop(db);
    let db = options.open(folder.path().join("a.db")).unwrap();
    assert_eq!(db.stats().journal.map(|journal| journal.memory >> 20), Some(most), "before anything is written");
}

/// The root page of the bucket made unreadable, in the file under the map; what it was.
fn damage(folder: &tempfile::TempDir, db: &Db) -> (u64, [u8; 16]) {
    let root = db.view(|tx| Ok(tx.bucket("bucket")?.root_page().unwrap())).unwrap();
    let (file, at) = (File::options().read(true).write(true).open(folder.path().join("a.db")).unwrap(), root * 1024);
    let mut header = [0; 16];
    file.read_exact_at(&mut header, at).unwrap();
    file.write_all_at(&[0xee; 16], at).unwrap();
    (at, header)
}

#[test]
#[cfg_attr(miri, ignore = "the map of a file")]
fn what_memory_has_of_a_leaf_that_cannot_be_reached_is_not_taken_for_written() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, &with_memory(1 << 20), &["bucket"], 200);
    put(&db, "bucket", 7, 1);
    let (at, header) = damage(&folder, &db);
    assert!(matches!(db.checkpoint(), Err(Error::Corrupt { .. })));
    assert!(matches!(db.close(), Err(Error::Corrupt { .. })));

    let file = File::options().write(true).open(folder.path().join("a.db")).unwrap();
    file.write_all_at(&header, at).unwrap();
    let db = with_memory(1 << 20).open(folder.path().join("a.db")).unwrap();
    assert_eq!(values(&db, "bucket")[7], 1, "its record is still beyond the file");
}

#[test]
#[cfg_attr(miri, ignore = "the map of a file")]
fn where_no_checkpoint_can_be_made_any_more_writes_end_and_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalOptions::new().memory(1 << 20).checkpoint_size(1 << 16);
    let db = Options::new().page_size(1024).journal(journal).open(folder.path().join("a.db")).unwrap();
    for bucket in ["bucket", "other"] {
        db.update(|tx| {
            let mut bucket = tx.create_bucket(bucket)?;
            (0..200_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), [0; 40]))
        })
        .unwrap();
    }
    db.checkpoint().unwrap();
    put(&db, "bucket", 7, 1);
    damage(&folder, &db);
    let change = |step: u32| db.update(|tx| tx.bucket_mut("other")?.put((step % 200).to_be_bytes(), [1; 40]));
    let refused = (0..100_000).find_map(|step| change(step).err());
    assert!(matches!(refused, Some(Error::Poisoned { .. })), "{refused:?}");
    assert!(db.failure().unwrap().contains("checkpoint"), "{:?}", db.failure());
}

#[test]
fn what_a_commit_has_taken_that_fails_is_free_again() {
    let folder = tempfile::tempdir().unwrap();
    let db = database(&folder, &with_memory(1 << 20), &["bucket"], 100);
    let shared = &db.0.shared;
    shared.writer.with(|writer| {
        let pages = set_aside(shared, writer, 2).unwrap();
        writer.set_aside -= 2;
        let free = writer.freelist.free_pages();
        let failed = commit(shared, writer, |work| {
            work.spare.taken.extend(pages.iter().map(|&start| Run { start, len: 1 }));
            Err(Error::BucketNameRequired)
        });
        assert!(failed.is_err());
        assert_eq!(writer.freelist.free_pages(), free + 2);
    });
}

#[test]
fn who_writes_leaves_syncs_the_journal_for_the_thread_that_waits_for_it() {
    const EVERY: Duration = Duration::from_millis(30);
    let folder = tempfile::tempdir().unwrap();
    let durability = Durability::Interval { every: EVERY, commits: u64::MAX };
    let options = Options::new().journal(JournalOptions::new().memory(1 << 20)).durability(durability);
    let db = options.open(folder.path().join("a.db")).unwrap();
    let shared = &db.0.shared;
    // The thread that syncs in time waits for its turn to write leaves.
    let turn = shared.turn_to_write();
    shared.syncer.note(What::Leaves, Instant::now(), EVERY);
    let unsynced = || db.stats().unsynced_commits;
    let begun = Instant::now();
    db.update(|tx| tx.create_bucket("bucket").map(drop)).unwrap();
    assert_eq!(unsynced(), 1);
    while begun.elapsed() < 2 * EVERY {
        std::thread::yield_now();
    }
    assert_eq!(unsynced(), 1);
    shared.write_back().unwrap();
    assert_eq!(unsynced(), 0);
    drop(turn);
}

#[test]
#[cfg_attr(miri, ignore = "the map of a file")]
fn a_page_that_is_another_one_is_not_written_anew_with_what_memory_has() {
    // Taken apart by the checkpoint itself, and written beside the commits.
    for leaves in [1, 10] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let db = database(&folder, &with_memory(1 << 20), &["bucket"], 200);
        (0..leaves).for_each(|leaf| put(&db, "bucket", 7 + 20 * leaf, 1));
        let (table, _) = to_be_written(&db.0.shared);
        let page = table.all().map(|(page, _)| page).min().unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let (mut before, mut other) = ([0; 1024], [0; 1024]);
        file.read_exact_at(&mut before, page * 1024).unwrap();
        let mut writer = PageWriter::leaf(&mut other, page, 0, 1);
        writer.entry(4, &[0; 44], false);
        writer.finish();
        file.write_all_at(&other, page * 1024).unwrap();
        assert!(matches!(db.checkpoint(), Err(Error::Corrupt { .. })), "{leaves} leaves");
        assert!(matches!(db.close(), Err(Error::Corrupt { .. })), "{leaves} leaves");

        file.write_all_at(&before, page * 1024).unwrap();
        let db = with_memory(1 << 20).open(&path).unwrap();
        assert!((0..leaves).all(|leaf| values(&db, "bucket")[7 + 20 * leaf as usize] == 1), "{leaves} leaves");
    }
}

#[test]
fn after_a_panic_in_the_midst_of_a_change_nobody_writes_any_more() {
    for of_turn in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let db = database(&folder, &with_memory(1 << 20), &["bucket"], 200);
        put(&db, "bucket", 7, 1);
        let shared = &db.0.shared;
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _turn = of_turn.then(|| shared.turn_to_write());
            if of_turn { panic!("in its turn") } else { shared.writer.with(|_| panic!("with the writer")) }
        }));
        assert!(panicked.is_err());
        assert!(matches!(db.checkpoint(), Err(Error::Poisoned { .. })));
        assert!(db.failure().unwrap().contains("panic"), "{:?}", db.failure());
        assert!(matches!(db.close(), Err(Error::Poisoned { .. })));
        let options = Options::new().journal(JournalOptions::new().memory(1 << 20));
        assert_eq!(values(&options.open(folder.path().join("a.db")).unwrap(), "bucket")[7], 1);
    }
}
