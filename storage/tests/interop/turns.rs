//! This engine and Go's bbolt can take turns writing one file: each finds what the other left, and leaves it sound.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::generator::Generator;
use crate::common::model::Model;
use crate::common::setup::Setup;
use crate::common::trace::{Change, Trace};
use crate::common::{assert_check_clean, assert_same_dump, committed};
use boltkv_storage::{JournalOptions, Options};

const TURNS: u64 = 20;

#[boltkv_needs::program("go")]
#[test]
fn twenty_turns_with_the_freelist_always_stored() {
    take_turns(1, Setup::default(), |_| true);
}

#[boltkv_needs::program("go")]
#[test]
fn twenty_turns_on_small_pages_with_this_engines_own_fill() {
    let setup = Setup { page_size: 1024, fill: None, ..Setup::default() };
    take_turns(2, setup, |_| true);
}

#[boltkv_needs::program("go")]
#[test]
fn twenty_turns_with_the_freelist_stored_by_one_side_or_the_other_or_none() {
    take_turns(3, Setup::with_page_size(1024), |turn| turn / 2 % 2 == 0);
    take_turns(4, Setup::default(), |turn| turn % 2 == 0);
    take_turns(5, Setup::default(), |turn| turn % 2 == 1);
}

/// What stays in memory until a checkpoint is written by copying leaves; what the branches call these is their first key.
#[boltkv_needs::program("go")]
#[test]
fn leaves_whose_first_keys_were_deleted_in_memory_are_found_by_bbolt_when_it_writes() {
    let Some(peer) = crate::common::peer::peer() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.db");
    let key = |i: u32| format!("k{i:06}").into_bytes();
    let db = Options::new().journal(JournalOptions::new()).open(&file).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("x")?;
        (0..5000).try_for_each(|i| bucket.put(key(i), [7; 100]))
    })
    .unwrap();
    // Every third: that is the first one of far more leaves than a checkpoint takes apart itself.
    let deleted = || (0..5000).step_by(3);
    for some in [true, false] {
        let deleted = deleted().filter(|i| (i % 2 == 0) == some);
        db.update(|tx| deleted.clone().try_for_each(|i| tx.bucket_mut("x")?.delete(key(i)).map(drop))).unwrap();
    }
    db.close().unwrap();
    assert_check_clean(&Options::new().read_only(true).open(&file).unwrap(), "after the checkpoint");

    let mut trace = Trace::default();
    let put = |i| Change::Put(vec![b"x".to_vec()], key(i), b"again".to_vec());
    trace.commit(deleted().take(500).map(put));
    peer.replay(&trace, &file, &Setup::default());
    peer.assert_check_clean(&file, "after bbolt has written");
    let db = Options::new().read_only(true).open(&file).unwrap();
    assert_check_clean(&db, "after bbolt has written");
    let entries = db.begin().unwrap().bucket("x").unwrap().iter().count();
    assert_eq!(entries, 5000 - deleted().count() + 500);
}

/// Branches whose leaves went in one transaction, on several levels: bbolt goes on below what is left.
#[test]
fn what_is_left_of_many_leaves_that_were_deleted_at_once_can_be_deleted_by_bbolt() {
    let Some(peer) = crate::common::peer::peer() else { return };
    let key = |i: u32, len: usize| {
        let mut key = format!("{i:06}").into_bytes();
        key.resize(len, b'k');
        key
    };
    for (keys, len, left) in [(300, 300, 1), (300, 300, 3), (8000, 16, 3), (3000, 600, 2), (3000, 600, 40)] {
        for with_journal in [false, true] {
            let what = format!("{left} of {keys} keys of {len} bytes, with a journal: {with_journal}");
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("shared.db");
            let options = if with_journal { Options::new().journal(JournalOptions::new()) } else { Options::new() };
            let db = options.open(&file).unwrap();
            db.update(|tx| {
                let mut bucket = tx.create_bucket("x")?;
                (0..keys).try_for_each(|i| bucket.put(key(i, len), [7; 100]))
            })
            .unwrap();
            db.update(|tx| tx.bucket_mut("x")?.delete_range(..key(keys - left, len), usize::MAX).map(drop)).unwrap();
            db.close().unwrap();
            assert_check_clean(&Options::new().read_only(true).open(&file).unwrap(), &what);
            let mut trace = Trace::default();
            for i in (keys - left..keys).rev() {
                trace.commit([Change::Delete(vec![b"x".to_vec()], key(i, len))]);
            }
            peer.replay(&trace, &file, &Setup::default());
            peer.assert_check_clean(&file, &what);
            let db = Options::new().read_only(true).open(&file).unwrap();
            assert_check_clean(&db, &what);
            assert_eq!(db.begin().unwrap().bucket("x").unwrap().iter().count(), 0, "{what}");
        }
    }
}

/// Even turns are this engine's, odd ones bbolt's.
fn take_turns(seed: u64, setup: Setup, freelist_stored: impl Fn(u64) -> bool) {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.db");
    let mut generator = Generator::new(seed, Model::default()).with_drops_first();
    for turn in 0..TURNS {
        let what = format!("seed {seed}, turn {turn}");
        let setup = Setup { freelist_stored: freelist_stored(turn), ..setup };
        let trace = generator.trace(4, 60);
        if turn % 2 == 0 {
            trace.replay(&file, &setup).unwrap();
        } else {
            peer.replay(&trace, &file, &setup);
        }

        let expected = generator.model.dump();
        peer.assert_check_clean(&file, &what);
        assert_same_dump(&peer.dump(&file), &expected, &what);
        let db = setup.options().read_only(true).open(&file).unwrap();
        assert_check_clean(&db, &what);
        assert_same_dump(&committed(&db).dump(), &expected, &what);
    }
}
