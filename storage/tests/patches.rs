//! What is new stays in memory until it is written to the file: whatever is done meanwhile, by however many threads, every
//! reader sees its state, and what a killed process leaves is the newest one.
//!
//! `BOLTKV_PATCH_ROUNDS=2000 BOLTKV_SEED=7 cargo test --release -p boltkv-storage --test patches` does more.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;
#[path = "patches/cursors.rs"]
mod cursors;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::Duration;

use boltkv_storage::{Db, Durability, Fill, JournalOptions, Options, Result, Tx};
use common::edit::{Edit, Parts};
use common::model::Model;
use common::random::Random;
use common::{assert_check_clean, committed, content, content_of_writer, copy_as_killed, folder_in_memory};

/// How much is done: some hundred leaves and small transactions, or so many leaves that other work comes between any two
/// steps of writing them anew.
#[derive(Clone, Copy)]
struct Size {
    keys: usize,
    transactions: usize,
    edits: usize,
}

const SMALL: Size = Size { keys: 3000, transactions: 400, edits: 40 };
const LARGE: Size = Size { keys: 40_000, transactions: 60, edits: 1000 };

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

fn key(random: &mut Random, size: Size) -> Vec<u8> {
    format!("key {:05}", random.below(size.keys)).into_bytes()
}

fn path(random: &mut Random) -> Vec<Vec<u8>> {
    let names: [&[&str]; 6] = [&["a"], &["a"], &["b"], &["c"], &["b", "in b"], &["b", "in b", "deeper"]];
    names[random.below(names.len())].iter().map(|name| name.as_bytes().to_vec()).collect()
}

/// Mostly puts and deletions of single entries; seldom something that takes many of them away. Buckets are moved by few
/// names, several in one transaction.
fn edit(random: &mut Random, size: Size) -> Edit {
    let (path, len) = (path(random), [0, 10, 60, 60, 200, 700][random.below(6)]);
    match random.below(1000) {
        0..640 => return Edit::Put(path, key(random, size), random.bytes(len)),
        640..940 => return Edit::Delete(path, key(random, size)),
        940..950 => return Edit::CreateIfMissing(path),
        950..960 => return Edit::Move(path, self::path(random)),
        _ => {}
    }
    let to = self::path(random);
    let (key, other_key) = (key(random, size), key(random, size));
    let parts = Parts { path, to, key, other_key, value: random.bytes(len), number: random.next() };
    loop {
        match Edit::of_kind(random.below(Edit::KINDS), parts.clone()) {
            Edit::Drop(_) | Edit::Move(..) | Edit::DeleteMany(..) | Edit::DeleteRange(..)
                if !random.once_in(size.edits / 4) => {}
            edit => return edit,
        }
    }
}

/// Checks that readers see their states, until there are no more.
fn look_at_states(states: &Receiver<(Tx, Model)>) {
    let mut random = Random::new(5);
    let mut held: Vec<(Tx, Model)> = Vec::new();
    for state in states {
        held.push(state);
        let most = 1 + random.below(6);
        while held.len() > most {
            let (tx, model) = held.swap_remove(random.below(held.len()));
            assert!(model.is_seen_in(tx.buckets()).unwrap(), "transaction {} sees another state", tx.id());
            assert_eq!(tx.check().unwrap(), [], "transaction {}", tx.id());
            if random.once_in(4) {
                let mut copy = tempfile::NamedTempFile::new().unwrap();
                tx.write_to(copy.as_file_mut()).unwrap();
                let db = Options::new().read_only(true).open(copy.path()).unwrap();
                assert!(committed(&db) == model, "a backup of transaction {} holds another state", tx.id());
                assert_check_clean(&db, "a backup");
            }
        }
    }
}

/// One transaction: many edits; committed, rolled back, or taken back to a savepoint.
fn transaction(db: &Db, model: &mut Model, random: &mut Random, size: Size) -> Result<()> {
    let (mut tx, mut new) = (db.begin_mut()?, model.clone());
    let begin = random.once_in(3).then(|| tx.savepoint());
    for _ in 0..random.below(size.edits) {
        if random.once_in(size.edits) {
            let (mark, before) = (tx.savepoint(), new.clone());
            for _ in 0..random.below(10) {
                let edit = edit(random, size);
                assert_eq!(edit.apply(&mut tx).ok(), edit.apply_to_model(&mut new).ok(), "{edit:?}");
            }
            if random.once_in(2) {
                tx.rollback_to(&mark)?;
                new = before;
            }
        }
        let edit = edit(random, size);
        assert_eq!(edit.apply(&mut tx).ok(), edit.apply_to_model(&mut new).ok(), "{edit:?}");
    }
    if let Some(begin) = begin.filter(|_| random.once_in(3)) {
        tx.rollback_to(&begin)?;
        new = model.clone();
    }
    if random.once_in(20) {
        assert!(content_of_writer(&tx) == new, "the transaction sees another state");
    }
    if random.once_in(8) {
        tx.rollback();
    } else {
        tx.commit()?;
        *model = new;
    }
    Ok(())
}

/// Ends the threads, also where something panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn every_reader_sees_its_state_whatever_is_written_anew_meanwhile() {
    let seed = number("BOLTKV_SEED", 1);
    let rounds = number("BOLTKV_PATCH_ROUNDS", 8);
    for round in seed..seed + rounds {
        println!("BOLTKV_SEED={round}");
        let mut random = Random::new(round);
        let folder = folder_in_memory();
        let (file, killed) = (folder.path().join("db"), folder.path().join("killed"));
        let size = if round % 4 == 0 { LARGE } else { SMALL };
        let memory = [JournalOptions::LEAST_MEMORY, 16 << 10, 100 << 10, 1 << 20][random.below(4)];
        let journal = JournalOptions::new().memory(memory).checkpoint_size([64 << 10, 1 << 20][random.below(2)]);
        let options = Options::new().page_size([1024, 4096][random.below(2)]).journal(journal);
        // Each commit is checked before it is done: its state is what a reader would see.
        let options = options.strict(size.keys == SMALL.keys && round % 2 == 1);
        let db = options.open(&file).unwrap();
        db.update(|tx| {
            let mut a = tx.create_bucket("a")?;
            (0..size.keys).filter(|_| size.keys > 10_000).try_for_each(|n| a.put(format!("key {n:05}"), [7; 40]))?;
            tx.create_bucket("b")?.create_bucket("in b")?.create_bucket("deeper").map(drop)
        })
        .unwrap();
        let mut model = committed(&db);
        let is_done = AtomicBool::new(false);
        let (states, to_look_at) = sync_channel(8);
        thread::scope(|scope| {
            let done = Done(&is_done);
            let looking = scope.spawn(move || look_at_states(&to_look_at));
            let (db, is_done) = (&db, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    db.checkpoint().unwrap();
                    thread::sleep(Duration::from_millis(20));
                }
            });
            for number in 0..size.transactions {
                transaction(db, &mut model, &mut random, size).unwrap();
                if number % 8 == 0 && !looking.is_finished() {
                    let _ = states.send((db.begin().unwrap(), model.clone()));
                }
                if number % (size.transactions / 4) == 9 {
                    // Nobody writes a meta meanwhile.
                    let held = db.begin_mut().unwrap();
                    copy_as_killed(&file, &killed);
                    drop(held);
                    let copy = options.open(&killed).unwrap();
                    assert!(committed(&copy) == model, "a killed process leaves another state");
                    assert_check_clean(&copy, "what a killed process leaves");
                }
            }
            drop(states);
            drop(done);
        });
        let again = db.begin().unwrap();
        assert!(content(&again) == model);
        drop(again);
        db.close().unwrap();
        let db = Options::new().read_only(true).open(&file).unwrap();
        assert!(committed(&db) == model, "the closed file holds another state");
        assert_check_clean(&db, "the closed file");
    }
}

/// A pass remembers which patch of which page it has seen. By the time that it commits, the page may be another leaf's, with
/// a patch of its own at the same place of the other memory: so small are these that places are soon the same.
#[test]
fn a_page_that_became_another_leaf_meanwhile_keeps_its_patches() {
    const THREADS: usize = 48;
    const KEYS: usize = 600;
    let folder = folder_in_memory();
    let journal = JournalOptions::new().memory(JournalOptions::LEAST_MEMORY).checkpoint_size(64 << 20);
    let options = Options::new().page_size(1024).durability(Durability::Never).journal(journal);
    let db = options.open(folder.path().join("db")).unwrap();
    let key = |number: usize| format!("key {number:05}");
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..KEYS).try_for_each(|number| bucket.put(key(number), [0; 48]))
    })
    .unwrap();
    let work = |which: usize| {
        let mut random = Random::new(which as u64);
        let mut mine: Vec<_> = (0..KEYS).skip(which).step_by(THREADS).map(|number| (key(number), [0; 48])).collect();
        for round in 0..number("BOLTKV_PATCH_ROUNDS", 8) * 100 {
            let (key, value) = &mut mine[random.below(KEYS / THREADS)];
            db.update(|tx| {
                let mut bucket = tx.bucket_mut("b")?;
                assert_eq!(bucket.get(&*key)?, Some(&value[..]), "acknowledged by this thread: {key}");
                // Such a commit writes the leaf, to another page.
                bucket.set_fill(if random.once_in(2) { Fill::Percent(0.5) } else { Fill::Auto });
                value[..8].copy_from_slice(&round.to_le_bytes());
                bucket.put(&*key, *value)
            })
            .unwrap();
        }
    };
    thread::scope(|scope| {
        let work = &work;
        for which in 0..THREADS {
            scope.spawn(move || work(which));
        }
    });
    assert_check_clean(&db, "when all is written");
}
