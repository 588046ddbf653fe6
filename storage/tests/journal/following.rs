//! Who follows an open database gets every transaction, in order, once no crash can take it back; or is told that it is not
//! kept any more.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::Duration;

use crate::common::followed::{ALL, change, follow, options, put};
use crate::common::model::Model;
use crate::common::random::Random;
use crate::common::{committed, copy_as_killed};
use boltkv_storage::{Db, Durability, Error, Follower, JournalKeep, JournalPosition, Options, Shrinking};

const PATIENCE: Duration = Duration::from_secs(60);

/// Hands over what there is to a model, or the first of it; how many there were.
fn catch_up(follower: &mut Follower, model: &mut Model, most: usize) -> usize {
    for number in 0..most {
        let before = follower.position();
        let Some(transaction) = follower.next().unwrap() else { return number };
        assert!(transaction.txid() > before.txid, "{before:?}");
        follow(model, transaction);
    }
    most
}

#[test]
fn a_follower_that_is_begun_again_anywhere_builds_the_same_state() {
    for seed in 0..6 {
        let (folder, mut random) = (crate::common::folder_in_memory(), Random::new(900 + seed));
        let mut file = folder.path().join("0.db");
        let mut db = options(ALL).open(&file).unwrap();
        let mut model = Model::default();
        let mut follower = db.follow(db.oldest_position().unwrap().unwrap()).unwrap();
        let (mut handed_over, mut moves, mut openings) = (0, 0, 1);
        for round in 1..=400 {
            change(&db, &mut random);
            // Has records in which nothing was changed, and takes numbers of which there are none.
            if random.once_in(20) {
                let mut so_far = 0;
                let count_moves = |at: Shrinking| {
                    moves += usize::from(at.moved > so_far);
                    so_far = at.moved;
                    true
                };
                db.shrink_telling(count_moves).unwrap();
                let newest = db.durable_position().unwrap();
                assert_eq!(newest.txid, db.begin().unwrap().id());
                handed_over += catch_up(&mut follower, &mut model, usize::MAX);
                assert_eq!(follower.position(), newest);
            }
            if random.once_in(3) {
                let most = if random.once_in(2) { usize::MAX } else { random.below(20) };
                handed_over += catch_up(&mut follower, &mut model, most);
                assert!(follower.position().txid <= db.durable_position().unwrap().txid);
            }
            let reopen = random.below(40);
            if reopen > 1 {
                if random.once_in(10) {
                    follower = db.follow(follower.position()).unwrap();
                }
                continue;
            }
            let at = follower.position();
            drop(follower);
            if reopen == 0 {
                let killed = folder.path().join(format!("{round}.db"));
                copy_as_killed(&file, &killed);
                drop(db);
                file = killed;
            } else {
                db.close().unwrap();
            }
            db = options(ALL).open(&file).unwrap();
            follower = db.follow(at).unwrap();
            openings += 1;
        }
        db.sync().unwrap();
        handed_over += catch_up(&mut follower, &mut model, usize::MAX);
        assert!(model == committed(&db), "seed {seed}");
        assert_eq!(handed_over, 400 + moves);
        assert!(openings > 5 && follower.position() == db.durable_position().unwrap(), "seed {seed}");
    }
}

#[test]
fn what_a_power_cut_could_take_back_is_not_told() {
    let folder = crate::common::folder_in_memory();
    let db = options(ALL).durability(Durability::Never).open(folder.path().join("a.db")).unwrap();
    let mut follower = db.follow(db.durable_position().unwrap()).unwrap();
    let (first, last) = (put(&db, "one"), put(&db, "two"));
    assert!(follower.next().unwrap().is_none() && !follower.wait(Some(Duration::ZERO)));
    db.sync().unwrap();
    assert!(follower.wait(Some(PATIENCE)) && follower.wait(Some(Duration::MAX)), "more than a clock can tell");
    assert_eq!(follower.next().unwrap().unwrap().txid(), first);
    put(&db, "three");
    assert_eq!(follower.next().unwrap().unwrap().txid(), last);
    assert!(follower.next().unwrap().is_none());
}

#[test]
fn who_waits_is_woken_by_each_commit_and_sees_it_when_told() {
    let folder = crate::common::folder_in_memory();
    let db = options(ALL).open(folder.path().join("a.db")).unwrap();
    let start = db.durable_position().unwrap();
    let following = std::thread::spawn({
        let db = db.clone();
        let mut follower = db.follow(start).unwrap();
        move || {
            let mut told = 0;
            while told < 300 {
                assert!(follower.wait(Some(PATIENCE)));
                while let Some(transaction) = follower.next().unwrap() {
                    assert!(db.begin().unwrap().id() >= transaction.txid());
                    told += 1;
                }
            }
            (follower.position(), told)
        }
    });
    (0..300).for_each(|number| _ = put(&db, &format!("{number}")));
    let (position, told) = following.join().unwrap();
    // A checkpoint may have taken a number since, but nothing was committed.
    assert!(told == 300 && position.txid <= db.durable_position().unwrap().txid);
    assert!(db.follow(position).unwrap().next().unwrap().is_none());
}

#[test]
fn a_record_of_many_segments_is_handed_over_whole() {
    let folder = crate::common::folder_in_memory();
    let db = options(ALL).open(folder.path().join("a.db")).unwrap();
    let mut follower = db.follow(db.durable_position().unwrap()).unwrap();
    let mut model = Model::default();
    for len in [1, 100_000, 3, 900_000, 70_000, 5] {
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(format!("{len}"), vec![7; len])).unwrap();
        if len != 3 {
            catch_up(&mut follower, &mut model, usize::MAX);
            assert!(model == committed(&db), "{len}");
        }
    }
}

fn gap<T: std::fmt::Debug>(found: Result<T, Error>, oldest: JournalPosition) {
    match found {
        Err(Error::JournalGap { oldest: named, .. }) => assert_eq!(named, oldest.txid),
        other => panic!("{other:?}"),
    }
}

/// Enough for every segment of a journal to be used again.
fn fill(db: &Db) {
    (0..20).for_each(|_| db.update(|tx| tx.create_bucket_if_not_exists("b")?.put("k", vec![1; 60_000])).unwrap());
}

#[test]
fn one_that_is_too_slow_is_told_so_wherever_it_was() {
    let folder = crate::common::folder_in_memory();
    let db = options(JournalKeep::UntilCheckpoint).open(folder.path().join("a.db")).unwrap();
    let start = db.durable_position().unwrap();
    let (mut unread, mut reading) = (db.follow(start).unwrap(), db.follow(start).unwrap());
    put(&db, "a");
    let transaction = reading.next().unwrap().unwrap();
    fill(&db);
    let oldest = || db.oldest_position().unwrap().unwrap();
    assert!(oldest().txid > start.txid);
    gap(transaction.changes(|_| Ok::<_, Error>(())), oldest());
    gap(unread.next().map(|found| found.is_some()), oldest());
    gap(db.follow(start), oldest());
    let mut again = db.follow(oldest()).unwrap();
    assert!(again.next().unwrap().is_some());
    let newest = db.durable_position().unwrap();
    for foreign in [
        JournalPosition { epoch: newest.epoch ^ 1, ..newest },
        JournalPosition { txid: newest.txid + 1, ..newest },
        JournalPosition { txid: u64::MAX, ..newest },
    ] {
        gap(db.follow(foreign), oldest());
    }
}

/// What others do to a file after a clean close is in no journal: who goes on across that would not notice.
#[test]
fn what_another_program_has_changed_in_between_is_not_passed_over() {
    let folder = crate::common::folder_in_memory();
    let [file, journal, aside] = ["a.db", "a.db-journal", "aside"].map(|name| folder.path().join(name));
    let open = || options(ALL).open(&file).unwrap();
    let db = open();
    put(&db, "before");
    let start = db.oldest_position().unwrap().unwrap();
    let known = db.durable_position().unwrap();
    db.close().unwrap();
    // Openings with nothing in between are gone on from.
    let changed_since = |db: &Db| db.stats().journal.unwrap().changed_since;
    let db = open();
    assert_eq!(changed_since(&db), None);
    db.close().unwrap();
    std::fs::rename(&journal, &aside).unwrap();
    let db = Db::open(&file).unwrap();
    put(&db, "elsewhere");
    db.close().unwrap();
    std::fs::rename(&aside, &journal).unwrap();
    let db = open();
    let before = changed_since(&db);
    assert!(before.is_some_and(|before| (known.txid..known.txid + 3).contains(&before)), "{known:?}: {before:?}");
    put(&db, "after");
    for position in [start, known] {
        let mut follower = db.follow(position).unwrap();
        let refused = loop {
            match follower.next() {
                Ok(Some(_)) => {}
                refused => break refused.map(|found| found.is_some()),
            }
        };
        assert!(matches!(refused, Err(Error::JournalGap { .. })), "{refused:?}");
    }
    let newest = db.durable_position().unwrap();
    let began = JournalPosition { txid: newest.txid - 1, ..newest };
    assert_eq!(db.follow(began).unwrap().next().unwrap().unwrap().txid(), newest.txid);
    db.close().unwrap();
    let db = open();
    put(&db, "and after that");
    let mut follower = db.follow(newest).unwrap();
    assert!(follower.next().unwrap().is_some());
}

#[test]
fn a_segment_that_is_damaged_is_told_from_one_that_was_used_again() {
    let folder = crate::common::folder_in_memory();
    let file = folder.path().join("a.db");
    let db = options(ALL).open(&file).unwrap();
    let mut follower = db.follow(db.durable_position().unwrap()).unwrap();
    fill(&db);
    for entry in std::fs::read_dir(crate::common::followed::journal_of(&file)).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let from = 4096.min(bytes.len());
        bytes[from..].fill(0x55);
        std::fs::write(&path, bytes).unwrap();
    }
    assert!(matches!(follower.next(), Err(Error::JournalDamaged { .. })));
}

/// A segment that nobody had to keep was used again when a crash came, and its header, written anew, did not come through.
#[test]
fn what_a_crash_met_in_use_again_is_not_kept_any_more_and_no_damage() {
    let folder = crate::common::folder_in_memory();
    let file = folder.path().join("a.db");
    let db = options(JournalKeep::UntilCheckpoint).open(&file).unwrap();
    fill(&db);
    let walk = |db: &Db, from| -> Result<usize, Error> {
        let (mut follower, mut told) = (db.follow(from)?, 0);
        while let Some(transaction) = follower.next()? {
            transaction.changes(|_| Ok::<_, Error>(()))?;
            told += 1;
        }
        Ok(told)
    };
    let mut lost = 0;
    for round in 0..6 {
        db.update(|tx| tx.bucket_mut("b")?.put("k", vec![2; 60_000])).unwrap();
        // Now the file has everything, and any segment may be used again.
        db.checkpoint().unwrap();
        let oldest = db.oldest_position().unwrap().unwrap();
        let names = std::fs::read_dir(crate::common::followed::journal_of(&file)).unwrap();
        for (number, name) in names.map(|entry| entry.unwrap().file_name()).enumerate() {
            let killed = folder.path().join(format!("{round}.{number}.db"));
            copy_as_killed(&file, &killed);
            let path = crate::common::followed::journal_of(&killed).join(name);
            let mut bytes = std::fs::read(&path).unwrap();
            let block = 4096.min(bytes.len())..8192.min(bytes.len());
            bytes[block].fill(0x55);
            std::fs::write(&path, bytes).unwrap();
            // Where the link to the file's meta is damaged, it is not opened.
            let Ok(db) = options(JournalKeep::UntilCheckpoint).open(&killed) else { continue };
            // Who is told so begins anew with the oldest that is kept, and what is kept is there.
            let mut from = oldest;
            for attempt in 0.. {
                match walk(&db, from) {
                    Ok(_) => break,
                    Err(Error::JournalGap { .. }) => lost += 1,
                    Err(error) => panic!("{error}"),
                }
                assert!(attempt < 10, "the oldest that is kept is not");
                from = db.oldest_position().unwrap().unwrap();
            }
        }
    }
    assert!(lost > 0);
}

/// Segments of a large transaction are more than what is kept to be used again: they are removed.
#[test]
fn a_follower_whose_segment_was_removed_is_told_that_it_is_not_kept() {
    let folder = crate::common::folder_in_memory();
    let db = options(JournalKeep::UntilCheckpoint).open(folder.path().join("a.db")).unwrap();
    db.update(|tx| tx.create_bucket("b").map(drop)).unwrap();
    let (mut followers, mut lost) = (Vec::new(), 0);
    for round in 0..40_usize {
        let behind = db.durable_position().unwrap();
        let len = if round % 3 == 0 { 1 << 20 } else { 30_000 };
        for _ in 0..3 {
            db.update(|tx| tx.bucket_mut("b")?.put([0], vec![1; len])).unwrap();
        }
        // Some find several segments on their way.
        followers.extend(db.follow(behind));
        db.checkpoint().unwrap();
        // Most of them look for the first time when the segment is gone.
        for mut follower in followers.drain(..followers.len().saturating_sub(4)) {
            match follower.next() {
                Ok(told) => assert!(told.is_some()),
                Err(Error::JournalGap { .. }) => lost += 1,
                Err(error) => panic!("round {round}: {error}"),
            }
        }
    }
    assert!(lost > 10, "{lost}");
}

#[test]
fn a_follower_is_stopped_while_it_waits_and_before() {
    let folder = crate::common::folder_in_memory();
    let db = options(ALL).open(folder.path().join("a.db")).unwrap();
    let follower = db.follow(db.durable_position().unwrap()).unwrap();
    let stopper = follower.stopper();
    let waiting = std::thread::spawn(move || follower.wait(None) || follower.wait(None));
    stopper.stop();
    assert!(!waiting.join().unwrap());
}

#[test]
fn without_a_journal_there_is_nothing_to_follow() {
    let db = Options::new().open_in_memory().unwrap();
    assert_eq!((db.durable_position(), db.oldest_position().unwrap()), (None, None));
    let position = JournalPosition { epoch: 1, txid: 1 };
    assert!(matches!(db.follow(position), Err(Error::JournalNotKept)));
}
