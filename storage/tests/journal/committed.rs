//! What a journal records is read from any position: complete, in order, and enough to build the state again; or an error
//! says that it is not there.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::path::Path;

use crate::common::followed::{ALL, change, follow, journal_of, options, put};
use crate::common::model::Model;
use crate::common::random::Random;
use crate::common::{committed, copy_as_killed};
use boltkv_storage::{Committed, Durability, Error, JournalChange, JournalEffect, JournalKeep, JournalPosition, TxId};

fn positions(journal: &Path, after: JournalPosition) -> Vec<JournalPosition> {
    let mut found = Committed::after(journal, after).unwrap();
    let count = found.count();
    let positions: Vec<_> = found.transactions().map(|transaction| transaction.unwrap().position()).collect();
    assert_eq!(positions.len() as u64, count);
    positions
}

#[test]
fn a_follower_that_stops_and_goes_on_anywhere_builds_the_same_state() {
    let (folder, mut random) = (crate::common::folder_in_memory(), Random::new(80));
    let mut file = folder.path().join("0.db");
    let mut db = options(ALL).open(&file).unwrap();
    let mut followed = Model::default();
    let mut at = Committed::oldest(journal_of(&file)).unwrap().unwrap();
    let first = at;
    let mut numbers = Vec::new();
    for round in 1..=400 {
        numbers.push(change(&db, &mut random));
        match random.below(30) {
            0 => drop(db.checkpoint().unwrap()),
            1 => {
                let killed = folder.path().join(format!("{round}.db"));
                copy_as_killed(&file, &killed);
                drop(db);
                file = killed;
                db = options(ALL).open(&file).unwrap();
            }
            2 => {
                db.close().unwrap();
                db = options(ALL).open(&file).unwrap();
            }
            _ => {}
        }
        if random.once_in(7) {
            let mut found = Committed::after(journal_of(&file), at).unwrap();
            for transaction in found.transactions() {
                let transaction = transaction.unwrap();
                at = transaction.position();
                follow(&mut followed, transaction);
                if random.once_in(20) {
                    break;
                }
            }
        }
    }
    let mut rest = Committed::after(journal_of(&file), at).unwrap();
    rest.transactions().for_each(|transaction| follow(&mut followed, transaction.unwrap()));
    assert!(followed == committed(&db));

    let all = positions(&journal_of(&file), first);
    let found: Vec<TxId> = all.iter().map(|position| position.txid).collect();
    assert_eq!(found, numbers);
    let epochs: std::collections::HashSet<u64> = all.iter().map(|position| position.epoch).collect();
    assert!(epochs.len() > 5, "{}", epochs.len());
    for (index, &position) in all.iter().enumerate() {
        assert!(positions(&journal_of(&file), position) == all[index + 1..], "{position:?}");
    }
}

#[test]
fn a_position_that_is_not_kept_any_more_is_an_error_that_names_the_oldest() {
    let folder = crate::common::folder_in_memory();
    let file = folder.path().join("a.db");
    let db = options(JournalKeep::UntilCheckpoint).open(&file).unwrap();
    let journal = journal_of(&file);
    let start = Committed::oldest(&journal).unwrap().unwrap();
    (0..200).for_each(|number| _ = put(&db, &format!("{number}")));
    let oldest = Committed::oldest(&journal).unwrap().unwrap();
    assert!(oldest.txid > start.txid && oldest.epoch == start.epoch);
    match Committed::after(&journal, start) {
        Err(Error::JournalGap { wanted, oldest: found, .. }) => assert_eq!((wanted, found), (start.txid, oldest.txid)),
        other => panic!("{other:?}"),
    }
    assert!(Committed::after(&journal, oldest).is_ok());
    let foreign = JournalPosition { epoch: oldest.epoch ^ 1, ..oldest };
    assert!(matches!(Committed::after(&journal, foreign), Err(Error::JournalGap { .. })));
    assert!(matches!(Committed::after(folder.path().join("none"), oldest), Err(Error::JournalIo { .. })));
}

/// Its number is given to another transaction.
#[test]
fn a_position_that_a_crash_took_back_is_an_error() {
    let folder = crate::common::folder_in_memory();
    let (file, killed) = (folder.path().join("a.db"), folder.path().join("b.db"));
    let options = options(ALL).durability(Durability::Never);
    let db = options.open(&file).unwrap();
    let kept = put(&db, "kept");
    db.sync().unwrap();
    copy_as_killed(&file, &killed);
    let lost = put(&db, "lost");
    let oldest = Committed::oldest(journal_of(&file)).unwrap().unwrap();
    let seen = *positions(&journal_of(&file), oldest).last().unwrap();
    assert_eq!(seen.txid, lost);
    drop(db);
    let db = options.open(&killed).unwrap();
    let gone = |when: &str| {
        let found = Committed::after(journal_of(&killed), seen);
        assert!(matches!(found, Err(Error::JournalGap { .. })), "{when}: {found:?}");
    };
    gone("before its number is given again");
    while put(&db, "another") <= lost {}
    gone("afterwards");
    let before = JournalPosition { txid: kept, ..seen };
    assert!(!positions(&journal_of(&killed), before).is_empty());
}

/// Segments are used again in place, under a reader that is slow.
#[test]
fn a_reader_of_a_journal_in_use_gets_what_was_committed_or_an_error() {
    let folder = crate::common::folder_in_memory();
    let file = folder.path().join("a.db");
    let db = options(JournalKeep::UntilCheckpoint).open(&file).unwrap();
    let writer = std::thread::spawn(move || {
        for number in 0..3000_u32 {
            let key = number.to_be_bytes();
            db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, key.repeat(200))).unwrap();
        }
        db
    });
    let (mut read, mut refused) = (0_u64, 0_u64);
    while !writer.is_finished() {
        let Ok(Some(oldest)) = Committed::oldest(journal_of(&file)) else { continue };
        let Ok(mut found) = Committed::after(journal_of(&file), oldest) else {
            refused += 1;
            continue;
        };
        let mut before = oldest.txid;
        for transaction in found.transactions() {
            let Ok(transaction) = transaction else {
                refused += 1;
                break;
            };
            assert!(transaction.txid() > before);
            before = transaction.txid();
            let mut whole = true;
            let each = |effect: &JournalEffect<'_>| {
                if let JournalChange::Put { key, value } = effect.change {
                    whole &= value == key.repeat(200);
                }
                Ok::<_, Error>(())
            };
            match transaction.changes(each) {
                Ok(()) => assert!(whole, "what was read is not what was committed"),
                Err(_) => refused += 1,
            }
            read += 1;
        }
    }
    let db = writer.join().unwrap();
    assert_eq!(db.begin().unwrap().bucket("b").unwrap().iter().count(), 3000, "the writer was not disturbed");
    assert!(read > 0, "{refused} refused");
}
