//! Every order in which readers and the writer can meet, gone through by loom. At the readers' registry:
//!
//! > A page that is reachable from a registered snapshot is not written while that snapshot is registered.
//!
//! And where a snapshot takes the place of another, above all one whose map has grown:
//!
//! > A reader has a meta and the map that goes with it, and keeps both for as long as it likes.
//!
//! Of what memory has of leaves: `patches`.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p boltkv-storage --lib interleavings`.

mod patches;

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
use loom::thread;

use crate::disk::{HeapDisk, Map, Region};
use crate::format::{Meta, NO_FREELIST, Pgid, TxId};
use crate::pages::{Freelist, Pins, Run};
use crate::pages::{Recents, Snapshot};
use crate::store::Readers;
use crate::{Db, Durability, Options};

/// Pages that the model has room for.
const PAGES: usize = 12;

/// Pages whose content is the number of the transaction that wrote them. A snapshot reaches two: even transactions
/// write the first anew (its id is the meta's `root`), odd ones the second (its id is the meta's `sequence`), so that
/// each page outlives the commit after the one that wrote it.
///
/// They are read and written without any order of their own: what a reader may see is up to the registry alone.
struct Model {
    readers: Readers,
    pages: [AtomicU64; PAGES],
}

/// One whose disk nobody reads: loom looks at what is in the maps.
fn registry(newest: Snapshot) -> Readers {
    Readers::new(newest, Arc::new(HeapDisk::default()))
}

impl Model {
    fn new() -> Arc<Self> {
        let meta = Meta { page_size: 1024, flags: 0, root: 2, sequence: 3, freelist: NO_FREELIST, mark: 4, txid: 0 };
        let map = Arc::new(Map::of_region(Region::new(64).unwrap(), 64));
        Arc::new(Self { readers: registry(Snapshot::new(meta, map, Recents::default())), pages: Default::default() })
    }

    fn page(&self, id: Pgid) -> &AtomicU64 {
        &self.pages[id as usize]
    }

    /// What `TxMut` and `commit` do to the registry and the freelist, in their order.
    fn commit(&self, freelist: &mut Freelist) {
        let base = self.readers.current();
        freelist.release(Pins { readers: self.readers.older_txids(), keepers: [None; 2] }).unwrap();
        let mut meta = Meta { txid: base.meta.txid + 1, ..base.meta };
        let id = freelist.free_mut().take(1).unwrap_or_else(|| {
            meta.mark += 1;
            base.meta.mark
        });
        let rewritten = if meta.txid % 2 == 0 { &mut meta.root } else { &mut meta.sequence };
        let old = std::mem::replace(rewritten, id);
        self.page(id).store(meta.txid, Relaxed);
        self.readers.publish(Snapshot::new(meta, Arc::clone(&base.map), Recents::default()));
        let run = |start| [Run { start, len: 1 }];
        freelist.committed(meta.txid, &run(id), &run(old), self.readers.any_older(), false);
    }

    /// Registers, looks at both pages twice, and leaves.
    fn read(&self) {
        let snapshot = self.readers.enter();
        let meta = snapshot.meta;
        for _ in 0..2 {
            assert_eq!(self.page(meta.root).load(Relaxed), newest(meta.txid, 0), "the first page of {}", meta.txid);
            assert_eq!(self.page(meta.sequence).load(Relaxed), newest(meta.txid, 1), "the second of {}", meta.txid);
        }
    }
}

/// The newest transaction up to `txid` that is odd (1) or even (0); 0 where there is none.
fn newest(txid: TxId, odd: u64) -> TxId {
    if txid % 2 == odd { txid } else { txid.saturating_sub(1) }
}

#[test]
fn no_page_is_written_that_a_registered_reader_can_reach() {
    loom::model(|| {
        let model = Model::new();
        let reader = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.read();
                model.read();
            })
        };
        let mut freelist = Freelist::default();
        for _ in 0..4 {
            model.commit(&mut freelist);
        }
        reader.join().unwrap();
    });
}

#[test]
fn two_readers_of_different_ages_each_keep_what_they_can_reach() {
    // Three threads in every order are too many to go through; three preemptions find what two threads can do wrong.
    let mut some_orders = loom::model::Builder::new();
    some_orders.preemption_bound = Some(3);
    some_orders.check(|| {
        let model = Model::new();
        let readers = [(); 2].map(|()| {
            let model = Arc::clone(&model);
            thread::spawn(move || model.read())
        });
        let mut freelist = Freelist::default();
        for _ in 0..3 {
            model.commit(&mut freelist);
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn pages_are_handed_out_again_once_the_readers_are_gone() {
    loom::model(|| {
        let model = Model::new();
        let reader = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.read())
        };
        let mut freelist = Freelist::default();
        for _ in 0..2 {
            model.commit(&mut freelist);
        }
        reader.join().unwrap();
        for _ in 0..20 {
            model.commit(&mut freelist);
        }
        assert!(model.readers.current().meta.mark <= 8, "nothing is left behind by a reader that is gone");
        assert!(!model.readers.any_older());
    });
}

#[test]
fn a_reader_is_counted_once_whatever_is_published_meanwhile() {
    loom::model(|| {
        let readers = Arc::new(registry(grown(0)));
        let reader = readers.enter();
        let writer = {
            let readers = Arc::clone(&readers);
            thread::spawn(move || readers.publish(grown(1)))
        };
        assert_eq!(readers.count().0, 1);
        writer.join().unwrap();
        assert_eq!(readers.count().0, 1);
        drop(reader);
        assert_eq!(readers.count(), (0, None));
    });
}

/// Pages of the map that transaction `txid` publishes: each is larger than the one before.
fn mapped_pages(txid: TxId) -> Pgid {
    4 << txid
}

/// What a commit that makes the file grow publishes: a larger region with the same content, and a mark that only it
/// reaches. Its last page says which transaction wrote it.
fn grown(txid: TxId) -> Snapshot {
    let mark = mapped_pages(txid);
    let len = usize::try_from(mark).unwrap() * 64;
    let region = Region::new(len).unwrap();
    region.write(len - 8, &txid.to_le_bytes());
    let meta = Meta { page_size: 64, flags: 0, root: 2, sequence: 0, freelist: NO_FREELIST, mark, txid };
    Snapshot::new(meta, Arc::new(Map::of_region(region, len)), Recents::default())
}

#[test]
fn a_reader_has_the_map_of_its_meta_whatever_larger_ones_are_swapped_in() {
    loom::model(|| {
        let readers = Arc::new(registry(grown(0)));
        let reader = {
            let readers = Arc::clone(&readers);
            thread::spawn(move || {
                let snapshot = readers.enter();
                for _ in 0..2 {
                    let end = snapshot.meta.mark * 64;
                    assert_eq!(snapshot.map.len() as u64, end, "the map of another meta");
                    assert_eq!(snapshot.map.bytes(end - 8, 8), Some(&snapshot.meta.txid.to_le_bytes()[..]));
                    assert!(readers.highest_mark() >= snapshot.meta.mark, "the file could be cut under the reader");
                    assert!(readers.current().meta.txid >= snapshot.meta.txid);
                }
                let weak = Arc::downgrade(&snapshot.map);
                (snapshot, weak)
            })
        };
        for txid in 1..=3 {
            readers.publish(grown(txid));
        }
        let (snapshot, map) = reader.join().unwrap();
        assert_eq!(readers.current().meta.txid, 3);
        let newest = snapshot.meta.txid == 3;
        drop(snapshot);
        assert!(!readers.any_older());
        assert_eq!(map.upgrade().is_some(), newest, "an old map goes when its last reader is seen to be gone");
    });
}

#[test]
fn a_reader_keeps_its_snapshot_while_commits_map_the_file_anew() {
    loom::model(|| {
        let db = Options::new().page_size(1024).open_in_memory().unwrap();
        put_version(&db, 1);
        let before = db.0.shared.readers.current().map.len();
        let reader = {
            let db = db.clone();
            thread::spawn(move || {
                let tx = db.begin().unwrap();
                let seen = version(&tx);
                AtomicU64::new(0).load(Relaxed);
                assert_eq!(version(&tx), seen, "the snapshot has changed");
            })
        };
        for version in 2..=3 {
            db.update(|tx| tx.create_bucket_if_not_exists("large")?.put([version], vec![version; 30_000])).unwrap();
            put_version(&db, version);
        }
        reader.join().unwrap();
        assert!(db.0.shared.readers.current().map.len() >= 2 * before, "nothing was mapped anew");
    });
}

fn put_version(db: &Db, version: u8) {
    db.update(|tx| {
        let mut bucket = tx.create_bucket_if_not_exists("b")?;
        (0..12_u8).try_for_each(|key| bucket.put([key], [version; 200]))
    })
    .unwrap();
}

/// The version that all values have.
fn version(tx: &crate::Tx) -> u8 {
    let bucket = tx.bucket("b").unwrap();
    let mut values = bucket.iter().map(|entry| entry.unwrap().1.unwrap());
    let version = values.next().unwrap()[0];
    assert!(values.all(|value| value == [version; 200]), "one snapshot, two versions");
    version
}

/// The engine itself, on pages in memory.
fn a_reader_beside_three_commits(durability: Durability) {
    loom::model(move || {
        let db = Options::new().page_size(1024).durability(durability).open_in_memory().unwrap();
        put_version(&db, 1);
        let reader = {
            let db = db.clone();
            thread::spawn(move || {
                let tx = db.begin().unwrap();
                let seen = version(&tx);
                // Loom changes threads only where they touch something of its own.
                AtomicU64::new(0).load(Relaxed);
                assert_eq!(version(&tx), seen, "the snapshot has changed");
            })
        };
        for commit in 2..=4 {
            put_version(&db, commit);
        }
        reader.join().unwrap();
        assert_eq!(version(&db.begin().unwrap()), 4);
    });
}

#[test]
fn a_snapshot_stays_as_it_is_whatever_is_committed_meanwhile() {
    a_reader_beside_three_commits(Durability::Always);
}

#[test]
fn a_snapshot_stays_as_it_is_whatever_is_committed_unsynced_meanwhile() {
    a_reader_beside_three_commits(Durability::Never);
}
