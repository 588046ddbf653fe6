use std::collections::BTreeMap;

use super::super::durable::sync_point;
use super::*;
use crate::{Db, JournalOptions, Options};

type Model = BTreeMap<(u8, u32), Vec<u8>>;

/// Numbers that look random.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).unwrap() % end
    }
}

const BUCKETS: u32 = 4;

/// A bucket's name: the second is in the first.
fn path(bucket: u8) -> Vec<&'static str> {
    match bucket {
        0 => vec!["outer"],
        1 => vec!["outer", "inner"],
        2 => vec!["small"],
        _ => vec!["gone"],
    }
}

fn options(keep: bool) -> Options {
    let journal = JournalOptions::new().memory(1 << 16).checkpoint_size(1 << 30);
    let journal = if keep { journal.keep(crate::JournalKeep::Bytes(1 << 30)) } else { journal };
    Options::new().page_size(1024).freelist(crate::FreelistStored::OnCleanClose).journal(journal)
}

fn change(db: &Db, model: &mut Model, random: &mut Numbers, most: u32) {
    let before = model.clone();
    let rolls_back = random.below(16) == 0;
    let mut tx = db.begin_mut().unwrap();
    for _ in 0..=random.below(most) {
        let bucket = u8::try_from(random.below(BUCKETS)).unwrap();
        let mut outer = tx.create_bucket_if_not_exists(path(bucket)[0]).unwrap();
        let mut inner = path(bucket).get(1).map(|name| outer.create_bucket_if_not_exists(name).unwrap());
        let key = random.below(if bucket == 2 { 6 } else { 400 });
        match random.below(40) {
            0 if bucket == 3 => {
                tx.delete_bucket("gone").unwrap();
                model.retain(|(other, _), _| *other != 3);
            }
            0..10 => {
                match &mut inner {
                    Some(inner) => inner.delete(key.to_be_bytes()).unwrap(),
                    None => outer.delete(key.to_be_bytes()).unwrap(),
                };
                model.remove(&(bucket, key));
            }
            kind => {
                let len = if kind == 10 { 900 } else { 20 + random.below(60) };
                let value = vec![u8::try_from(random.below(256)).unwrap(); len as usize];
                match &mut inner {
                    Some(inner) => inner.put(key.to_be_bytes(), &value).unwrap(),
                    None => outer.put(key.to_be_bytes(), &value).unwrap(),
                }
                model.insert((bucket, key), value);
            }
        }
    }
    if rolls_back {
        drop(tx);
        *model = before;
    } else {
        tx.commit().unwrap();
    }
}

fn entries(db: &Db) -> Model {
    entries_of(&db.begin().unwrap())
}

fn entries_of(tx: &crate::Tx) -> Model {
    let mut found = Model::new();
    for bucket in 0..u8::try_from(BUCKETS).unwrap() {
        let path = path(bucket);
        let Ok(mut at) = tx.bucket(path[0]) else { continue };
        if let Some(inner) = path.get(1) {
            let Ok(inner) = at.bucket(*inner) else { continue };
            at = inner;
        }
        for entry in &at {
            let (key, value) = entry.unwrap();
            if let Some(value) = value {
                found.insert((bucket, u32::from_be_bytes(key.try_into().unwrap())), value.to_vec());
            }
        }
    }
    found
}

/// The file alone, as others would open it, is the state that was written to it.
fn file_alone(folder: &std::path::Path) -> Model {
    let copy = folder.join("copy.db");
    std::fs::copy(folder.join("a.db"), &copy).unwrap();
    let alone = JournalOptions::new().discard(true);
    let db = Options::new().read_only(true).journal(alone).open(&copy).unwrap();
    assert_eq!(db.check().unwrap(), Vec::new());
    let found = entries(&db);
    drop(db);
    std::fs::remove_file(copy).unwrap();
    found
}

/// File and journal as a kill would leave them now.
fn killed(folder: &std::path::Path) -> Model {
    let copy = tempfile::tempdir().unwrap();
    std::fs::copy(folder.join("a.db"), copy.path().join("a.db")).unwrap();
    std::fs::create_dir(copy.path().join("a.db-journal")).unwrap();
    for file in std::fs::read_dir(folder.join("a.db-journal")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join("a.db-journal").join(file.file_name())).unwrap();
    }
    let db = options(false).open(copy.path().join("a.db")).unwrap();
    assert_eq!(db.check().unwrap(), Vec::new());
    entries(&db)
}

#[test]
fn commits_go_on_while_a_state_comes_to_the_file() {
    let mut passes = 0;
    for seed in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let db = options(seed % 2 == 0).open(folder.path().join("a.db")).unwrap();
        let (mut model, mut random) = (Model::new(), Numbers(seed));
        for _ in 0..60 {
            change(&db, &mut model, &mut random, 40);
        }
        db.checkpoint().unwrap();
        let shared = &db.0.shared;
        let mut written = 0;
        for _ in 0..6 {
            for _ in 0..random.below(60) {
                change(&db, &mut model, &mut random, 20);
            }
            let turn = shared.turn_to_write();
            let Some(mut beside) = Beside::begin(shared, &turn).unwrap() else { continue };
            let (state, reader, then) = (model.clone(), db.begin().unwrap(), entries(&db));
            let mut between = |random: &mut Numbers| {
                for _ in 0..random.below(8) {
                    change(&db, &mut model, random, 20);
                }
                assert_eq!(entries(&db), model, "seed {seed}");
            };
            between(&mut random);
            let mut ended = None;
            loop {
                match beside.write_next() {
                    Ok(true) => between(&mut random),
                    Ok(false) => break,
                    Err(End::Overtaken) => ended = Some(()),
                    Err(End::Failed(error)) => panic!("seed {seed}: {error}"),
                }
                if ended.is_some() {
                    break;
                }
            }
            // As while the disk takes it: what is in memory now has come since.
            for _ in 0..random.below(40) {
                between(&mut random);
                shared.give_back_while_full(&turn, |_| true).unwrap();
            }
            assert!(matches!(beside.finish(), Ok(())), "seed {seed}");
            drop(turn);
            written += 1;
            assert_eq!(file_alone(folder.path()), state, "seed {seed}");
            between(&mut random);
            assert_eq!((file_alone(folder.path()), killed(folder.path())), (state, model.clone()), "seed {seed}");
            assert_eq!(then, entries_of(&reader), "seed {seed}");
            assert_eq!(db.check().unwrap(), Vec::new());
        }
        assert!(written > 0, "seed {seed}");
        passes += db.stats().journal.unwrap().memory_passes;
        drop(db);
        assert_eq!(file_alone(folder.path()), model);
    }
    assert!(passes > 0, "memory was given back meanwhile");
}

#[test]
fn a_state_that_was_overtaken_is_read_until_that_is_noticed_and_its_pages_stay_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let db = options(false).open(folder.path().join("a.db")).unwrap();
    let (mut model, mut random) = (Model::new(), Numbers(7));
    for _ in 0..60 {
        change(&db, &mut model, &mut random, 40);
    }
    let shared = &db.0.shared;
    let turn = shared.turn_to_write();
    let mut beside = Beside::begin(shared, &turn).unwrap().unwrap();
    let written = |beside: &Beside<'_>| {
        let leaves = beside.state.recents.table.as_ref().unwrap().all();
        let leaves = leaves.map(|(page, _)| beside.state.pages().bytes(page).unwrap().1.to_vec());
        leaves.collect::<Vec<_>>()
    };
    let before = written(&beside);
    // As a commit does that finds the journal full.
    shared.writer.with(|writer| sync_point(shared, writer, false)).unwrap();
    for _ in 0..60 {
        change(&db, &mut model, &mut random, 40);
    }
    assert!(!before.is_empty() && written(&beside) == before);
    assert!(matches!(beside.write_next(), Err(End::Overtaken)));
    drop(beside);
    assert_eq!(shared.writer.with(|writer| writer.pins(shared).keepers[1]), None);
    drop(turn);
    assert_eq!((killed(folder.path()), entries(&db)), (model.clone(), model));
}

#[test]
fn a_leaf_for_which_there_is_no_page_is_not_taken_for_written() {
    let folder = tempfile::tempdir().unwrap();
    let db = options(false).open(folder.path().join("a.db")).unwrap();
    let value = |tx: &mut crate::TxMut, value| tx.bucket_mut("outer")?.put("key", [value; 40]);
    db.update(|tx| {
        let mut outer = tx.create_bucket("outer")?;
        outer.create_bucket("inner")?;
        (0..40_u32).try_for_each(|key| outer.put(key.to_be_bytes(), [0; 40]))?;
        value(tx, 0)
    })
    .unwrap();
    db.checkpoint().unwrap();
    db.update(|tx| value(tx, 1)).unwrap();
    let shared = &db.0.shared;
    let (recents, names) = shared.writer.with(|writer| writer.spare.patcher.as_ref().unwrap().to_be_written());
    let table = recents.table.unwrap();
    let mut met = 0;
    let written = shared.write_round(
        &table,
        &names,
        table.all(),
        |batch, pages, _| {
            shared.writer.with(|writer| {
                writer.set_aside -= pages.len() as u64;
                writer.freelist.give_back_dirty(pages);
            });
            let state = shared.readers.enter();
            let copies = Copier::new(shared, &state).copy(batch, &names, &[], true)?;
            met += batch.len();
            assert!(copies.written.is_empty() && copies.gone.is_empty());
            Ok::<_, Error>(Vec::new())
        },
        |_, _| {},
    );
    written.unwrap();
    assert_eq!(met, 1);
}
