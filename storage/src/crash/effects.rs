//! Recorded effects, made again on the state before, lead to the state after; and whatever bytes are taken for effects, they
//! are refused or made, and the file stays whole.

use super::edit::Edit;
use super::edits::{apply, edits, moved};
use super::explore::is_clean;
use super::model::Model;
use super::random::Random;
use crate::tree::{Recorded, Refused, Replay};
use crate::{Db, Fill, Options, TxMut};

const SEEDS: u64 = 60;
const TRANSACTIONS: usize = 12;

fn database(random: &mut Random) -> Db {
    let fill = if random.once_in(4) { Fill::Percent(0.5) } else { Fill::Auto };
    Options::new().page_size(1024).fill(fill).open_in_memory().unwrap()
}

fn recorded(tx: &TxMut) -> Vec<u8> {
    tx.work.with_effects(|pieces| pieces.concat())
}

fn numbered(records: &[Vec<u8>]) -> Vec<Recorded> {
    (1..).zip(records).map(|(txid, effects)| Recorded { txid, effects: effects.clone() }).collect()
}

/// Makes effects in one transaction, and commits it.
fn replay(db: &Db, records: &[Vec<u8>]) -> Result<(), Refused> {
    let mut tx = db.begin_mut().unwrap();
    Replay::make_all(&mut tx.work, &numbered(records))?;
    tx.commit().unwrap();
    Ok(())
}

/// Makes effects in as many transactions as it takes where each has at most so many bytes; their numbers lead to the last one's.
fn replay_in_parts(db: &Db, records: &[Recorded], bytes: usize) -> Result<(), Refused> {
    let (mut replay, mut reached) = (Replay::new(records), records[0].txid - 1);
    while !replay.is_done() {
        let mut tx = db.begin_mut().unwrap();
        replay.make(&mut tx.work, bytes)?;
        tx.commit().unwrap();
        let next = replay.reach();
        assert!(next.is_none_or(|next| next > reached), "{next:?} follows {reached}");
        reached = next.unwrap_or(reached);
        let last = records[records.len() - 1].txid;
        assert_eq!(reached == last, replay.is_done(), "{reached} of {last}");
    }
    Ok(())
}

/// Random edits in a transaction, of which some parts are undone; returns what it has recorded.
fn work(db: &Db, random: &mut Random, model: &mut Model) -> Vec<u8> {
    let mut tx = db.begin_mut().unwrap();
    tx.work.record_effects(false);
    for _ in 0..=random.below(3) {
        apply(&edits(random, model), &mut tx);
        let savepoint = tx.savepoint();
        let mut undone = model.clone();
        apply(&moved(random, &mut undone), &mut tx);
        apply(&edits(random, &mut undone), &mut tx);
        if random.once_in(2) {
            tx.rollback_to(&savepoint).unwrap();
        } else {
            *model = undone;
        }
    }
    apply(&edits(random, model), &mut tx);
    let effects = recorded(&tx);
    tx.commit().unwrap();
    effects
}

fn assert_holds(db: &Db, model: &Model, what: &str) {
    let tx = db.begin().unwrap();
    assert!(model.is_seen_in(tx.buckets()).unwrap(), "{what}: it holds something else");
    is_clean(db).unwrap_or_else(|problem| panic!("{what}: {problem}"));
}

fn assert_same(copy: &Db, db: &Db) {
    let (of_db, of_copy) = (db.begin().unwrap(), copy.begin().unwrap());
    assert_eq!(Model::load(of_copy.buckets()).unwrap(), Model::load(of_db.buckets()).unwrap());
}

#[test]
fn effects_made_again_on_the_state_before_lead_to_the_state_after() {
    for seed in 0..SEEDS {
        let mut random = Random::new(seed);
        let (db, copy) = (database(&mut random), database(&mut random));
        let (mut model, mut records) = (Model::default(), Vec::new());
        for number in 0..TRANSACTIONS {
            records.push(work(&db, &mut random, &mut model));
            // Several records in one transaction do the same as each in its own, or each in several.
            if random.once_in(3) {
                let replayed = if random.once_in(2) {
                    replay(&copy, &records)
                } else {
                    replay_in_parts(&copy, &numbered(&records), 1 + random.below(300))
                };
                replayed.unwrap_or_else(|refused| panic!("seed {seed}, {number}: {refused:?}"));
                records.clear();
                assert_holds(&copy, &model, &format!("seed {seed}, transaction {number}"));
            }
        }
    }
}

#[test]
fn what_is_replayed_is_recorded_as_what_does_the_same() {
    let mut random = Random::new(1);
    let [db, copy, copy_of_copy] = [(); 3].map(|()| database(&mut random));
    let mut model = Model::default();
    for _ in 0..TRANSACTIONS {
        let effects = work(&db, &mut random, &mut model);
        let mut tx = copy.begin_mut().unwrap();
        tx.work.record_effects(false);
        Replay::make_all(&mut tx.work, &numbered(&[effects])).unwrap();
        let again = recorded(&tx);
        tx.commit().unwrap();
        replay(&copy_of_copy, &[again]).unwrap();
        assert_same(&copy_of_copy, &copy);
        assert_holds(&copy, &model, "replayed");
    }
}

/// All that is done to one key is done in its order, whatever was gathered with it; a put that another one follows may be
/// left out.
#[test]
fn what_was_done_to_one_key_is_done_in_that_order() {
    let (db, copy) = (Options::new().open_in_memory().unwrap(), Options::new().open_in_memory().unwrap());
    let mut records = Vec::new();
    for round in 0..9_u8 {
        let mut tx = db.begin_mut().unwrap();
        tx.work.record_effects(false);
        for bucket in ["b", "a"] {
            let mut bucket = tx.create_bucket_if_not_exists(bucket).unwrap();
            for key in ["m", "k", "m", "a longer key", "a longer kez"] {
                bucket.put(key, [round]).unwrap();
            }
            assert!(bucket.delete("k").unwrap());
            if round % 3 > 0 {
                bucket.put("k", [round, round]).unwrap();
            }
        }
        records.push(recorded(&tx));
        tx.commit().unwrap();
    }
    replay(&copy, &records).unwrap();
    assert_same(&copy, &db);
    is_clean(&copy).unwrap();
}

#[test]
fn what_was_refused_or_undone_is_not_recorded() {
    let db = Options::new().open_in_memory().unwrap();
    let mut tx = db.begin_mut().unwrap();
    tx.work.record_effects(false);
    assert!(recorded(&tx).is_empty());
    let savepoint = tx.savepoint();
    tx.create_bucket("b").unwrap().put("k", "v").unwrap();
    assert!(!recorded(&tx).is_empty());
    tx.rollback_to(&savepoint).unwrap();
    assert!(recorded(&tx).is_empty());
    tx.create_bucket("b").unwrap();
    let created = recorded(&tx);
    tx.create_bucket("b").unwrap_err();
    tx.create_bucket_if_not_exists("b").unwrap();
    let mut bucket = tx.bucket_mut("b").unwrap();
    bucket.put("", "v").unwrap_err();
    assert!(!bucket.delete("missing").unwrap());
    assert_eq!(bucket.pop_first().unwrap(), None);
    assert_eq!(bucket.delete_range(.., usize::MAX).unwrap().count, 0);
    bucket.set_fill(Fill::Percent(0.5));
    assert_eq!(recorded(&tx), created);
}

/// A value that is not copied for the record, before and after ones that are, and one that is taken back.
#[test]
fn long_values_are_recorded_where_they_belong() {
    let db = Options::new().open_in_memory().unwrap();
    let copy = Options::new().open_in_memory().unwrap();
    let mut tx = db.begin_mut().unwrap();
    tx.work.record_effects(false);
    let mut bucket = tx.create_bucket("b").unwrap();
    bucket.put("short", "s").unwrap();
    bucket.put("long", vec![1; 100_000]).unwrap();
    bucket.put("other", vec![2; 1_000_000]).unwrap();
    let savepoint = tx.savepoint();
    tx.bucket_mut("b").unwrap().put("long", vec![3; 200_000]).unwrap();
    tx.rollback_to(&savepoint).unwrap();
    tx.bucket_mut("b").unwrap().put("last", "l").unwrap();
    let effects = recorded(&tx);
    assert!(effects.len() < 1_100_200, "{} bytes", effects.len());
    tx.commit().unwrap();
    replay(&copy, &[effects]).unwrap();
    assert_same(&copy, &db);
}

/// A bucket's number stands for what it stood for when the record was written, also where buckets of one name come and go.
#[test]
fn buckets_that_take_each_others_places_are_told_apart() {
    let db = Options::new().open_in_memory().unwrap();
    let copy = Options::new().open_in_memory().unwrap();
    let mut tx = db.begin_mut().unwrap();
    tx.work.record_effects(false);
    tx.create_bucket("a").unwrap().create_bucket("x").unwrap().put("k", "first").unwrap();
    tx.create_bucket("b").unwrap();
    tx.move_bucket("x", &["a"], &["b"]).unwrap();
    tx.bucket_mut("a").unwrap().create_bucket("x").unwrap().put("k", "second").unwrap();
    tx.bucket_mut_path(["b", "x"]).unwrap().put("l", "moved").unwrap();
    tx.bucket_mut("a").unwrap().delete_bucket("x").unwrap();
    tx.bucket_mut("a").unwrap().create_bucket("x").unwrap().put("k", "third").unwrap();
    tx.move_bucket_as("x", &["a"], &["a"], "y").unwrap();
    tx.bucket_mut("a").unwrap().create_bucket("x").unwrap().put("k", "fourth").unwrap();
    tx.bucket_mut_path(["a", "y"]).unwrap().put("l", "renamed").unwrap();
    let effects = recorded(&tx);
    tx.commit().unwrap();
    replay(&copy, &[effects]).unwrap();
    assert_same(&copy, &db);
}

#[test]
fn a_record_of_another_state_is_refused() {
    let db = Options::new().open_in_memory().unwrap();
    let of = |edits: &[Edit]| {
        let mut tx = db.begin_mut().unwrap();
        tx.work.record_effects(false);
        for edit in edits {
            edit.apply(&mut tx).unwrap();
        }
        recorded(&tx)
    };
    let path = || vec![b"b".to_vec()];
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.create_bucket("d")?;
        bucket.create_bucket("e")?;
        bucket.create_bucket("f")?;
        ["c", "k", "l", "m"].iter().try_for_each(|key| bucket.put(key, "v"))
    })
    .unwrap();
    let bounds = || (std::ops::Bound::Included(b"l".to_vec()), std::ops::Bound::Unbounded);
    let records = [
        of(&[Edit::Delete(path(), b"k".to_vec())]),
        of(&[Edit::PopFirst(path())]),
        of(&[Edit::DeleteRange(path(), bounds().0, bounds().1, 9)]),
        of(&[Edit::Drop(vec![b"b".to_vec(), b"d".to_vec()])]),
        of(&[Edit::Move(vec![b"b".to_vec(), b"e".to_vec()], vec![b"e".to_vec()])]),
        of(&[Edit::Move(vec![b"b".to_vec(), b"f".to_vec()], vec![b"b".to_vec(), b"g".to_vec()])]),
        of(&[Edit::Create(vec![b"new".to_vec()])]),
    ];
    for effects in &records {
        replay(&db, std::slice::from_ref(effects)).unwrap();
        let again = replay(&db, std::slice::from_ref(effects));
        assert!(matches!(again, Err(Refused::Record { .. })), "{again:?}");
        is_clean(&db).unwrap();
    }
}

/// A number stands for nothing once its bucket was deleted, or another that it was in, and in no other one's place either.
#[test]
fn the_number_of_a_bucket_that_was_deleted_stands_for_no_other() {
    let created = |within: u8, name: u8| vec![2, within, 1, name];
    let put = |bucket: u8| vec![3, bucket, 1, b'k', 1, b'v'];
    let deleted = |name: u8| vec![6, 0, 1, name];
    let again = [created(0, b'a'), created(1, b'b'), deleted(b'a'), created(0, b'a'), created(3, b'b')];
    let replayed = |bucket: u8| {
        let db = Options::new().open_in_memory().unwrap();
        replay(&db, &[[&again[..], &[put(bucket)]].concat().concat()]).map(|()| db)
    };
    for bucket in [1, 2] {
        let refused = replayed(bucket).map(drop);
        assert!(matches!(&refused, Err(Refused::Record { at: 20, .. })), "{bucket}: {refused:?}");
    }
    for bucket in [3, 4] {
        let db = replayed(bucket).unwrap();
        let (tx, way): (_, &[&str]) = (db.begin().unwrap(), if bucket == 3 { &["a"] } else { &["a", "b"] });
        assert_eq!(tx.bucket_path(way).unwrap().get("k").unwrap(), Some(&b"v"[..]), "{bucket}");
    }
}

#[test]
fn no_bytes_make_a_replay_panic_or_break_a_file() {
    let mut random = Random::new(3);
    let db = database(&mut random);
    let (mut model, mut records) = (Model::default(), Vec::new());
    for _ in 0..TRANSACTIONS {
        records.push(work(&db, &mut random, &mut model));
    }
    let (mut made, mut refused) = (0, 0);
    for _ in 0..3000 {
        let mut bytes = records[random.below(records.len())].clone();
        for _ in 0..=random.below(4) {
            if !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] = u8::try_from(random.below(256)).unwrap();
            }
        }
        match replay(&db, &[bytes]) {
            Ok(()) => made += 1,
            Err(_) => refused += 1,
        }
        if random.once_in(50) {
            is_clean(&db).unwrap();
        }
    }
    is_clean(&db).unwrap();
    assert!(made > 0 && refused > 0, "{made} made, {refused} refused");
}
