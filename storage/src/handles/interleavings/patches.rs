//! The same at the tables of patches, and at the slabs that these lie in:
//!
//! > A reader sees the patches of its state, whole, whatever is added; and no slab is written anew that its table has.
//!
//! Loom is told what of a slab is read and written (`Looks`): what is read must have been written before, and is written anew
//! only after it was read, by what threads have told one another and not by chance. Tables are of loom's numbers, and they
//! and slabs are had by its `Arc` (`base/shared`).
//!
//! What loom's `Arc` cannot show: it takes a look at how many have one for as good an order as `get_mut`.

use std::sync::Arc;

use loom::thread;

use super::registry;
use crate::base::shared;
use crate::disk::{Map, Region};
use crate::format::{Changes, Edit, Meta, NO_FREELIST, PatchHeader, Pgid, Piece, TxId, patch_bytes, write_patch};
use crate::pages::{Before, Filling, For, Recents, Snapshot};
use crate::store::Readers;

const KEY: &[u8] = b"key";
/// Bytes of memory whose slabs have one patch, or five.
const SHORT: usize = 256;
const LONG: usize = 1024;
/// Two pages whose entries begin at the same place, as long as there are few.
const FIRST: Pgid = 5;
const SECOND: Pgid = 26;

/// What the writer has.
struct Writer {
    readers: Arc<Readers>,
    filling: Filling,
    meta: Meta,
    map: Arc<Map>,
}

/// That of the state before all others. Which transaction patched the first page it tells in `root`, and which the second in
/// `sequence` (0 for none).
fn meta() -> Meta {
    Meta { page_size: 64, flags: 0, root: 0, sequence: 0, freelist: NO_FREELIST, mark: 4, txid: 0 }
}

impl Writer {
    fn new(bytes: usize) -> Self {
        let map = Arc::new(Map::of_region(Region::new(64).unwrap(), 64));
        let newest = Snapshot::new(meta(), Arc::clone(&map), Recents::default());
        Self { readers: Arc::new(registry(newest)), filling: Filling::new(bytes), meta: meta(), map }
    }

    /// As `TxMut` does, which looks who still reads.
    fn begin(&mut self) -> TxId {
        self.readers.older_txids();
        self.meta.txid += 1;
        self.meta.txid
    }

    fn publish(&self) {
        let recents = Recents { table: self.filling.table().cloned(), upto: self.meta.txid };
        self.readers.publish(Snapshot::new(self.meta, Arc::clone(&self.map), recents));
    }

    /// Patches a page: it has one entry more, whose value is the transaction's number.
    fn put(&mut self, page: Pgid) -> Before {
        let (filling, txid) = (&mut self.filling, self.meta.txid);
        let newest = filling.newest(page).map(|(at, header)| (at, header.oldest));
        let value = txid.to_le_bytes();
        let mut changes = Changes::default();
        let which = changes.make(Edit::Insert(0));
        let bytes = patch_bytes(changes.count(), KEY.len() + value.len());
        assert!(filling.reserve(page, bytes, For::Change { is_first: newest.is_none() }), "there is room");
        let (at, slot) = filling.next().unwrap();
        let (before, oldest) = newest.unwrap_or((0, slot));
        let header = PatchHeader::new(32, 1, before, 1).by(txid, 0).since(oldest);
        let mut patch = Vec::new();
        write_patch(&mut patch, at, &header, &mut changes, which, (KEY, &value));
        filling.push(page, None, &patch).unwrap()
    }

    /// How many slabs there are.
    fn slabs(&self, bytes: usize) -> u64 {
        self.filling.allocated() / (bytes as u64 / 4)
    }
}

/// The number of the transaction that a state has a page's patch of; 0 for none. All of it is read.
fn patched_by(recents: &Recents, page: Pgid) -> TxId {
    let Some(patch) = recents.find(page) else { return 0 };
    let mut values = patch.pieces().filter_map(|piece| match piece {
        Piece::Added(key, data) => {
            assert_eq!(&data[..key], KEY);
            Some(TxId::from_le_bytes(data[key..].try_into().unwrap()))
        }
        Piece::Base(_) => None,
    });
    let value = values.next().unwrap();
    assert_eq!(values.next(), None, "one entry was added");
    value
}

/// A thread that enters the newest state, and looks twice at what it has.
fn reader(readers: &Arc<Readers>, look: impl Fn(&Snapshot) + Send + 'static) -> thread::JoinHandle<()> {
    let readers = Arc::clone(readers);
    thread::spawn(move || {
        let snapshot = readers.enter();
        look(&snapshot);
        look(&snapshot);
    })
}

fn look_at_the_first_page(snapshot: &Snapshot) {
    let Snapshot { meta, recents, .. } = snapshot;
    assert_eq!(patched_by(recents, FIRST), meta.root, "the first page in state {}", meta.txid);
}

fn look_at_two_pages(snapshot: &Snapshot) {
    look_at_the_first_page(snapshot);
    let Snapshot { meta, recents, .. } = snapshot;
    assert_eq!(patched_by(recents, SECOND), meta.sequence, "the second in state {}", meta.txid);
}

#[test]
fn a_reader_sees_the_patches_of_its_state_while_others_are_added_and_taken_back() {
    loom::model(|| {
        let mut writer = Writer::new(LONG);
        writer.meta.root = writer.begin();
        writer.put(FIRST);
        writer.publish();
        let reader = reader(&writer.readers, look_at_two_pages);
        let base = writer.meta;
        writer.begin();
        for page in [SECOND, FIRST] {
            let before = writer.put(page);
            writer.filling.take_back(before);
        }
        // That was rolled back, and this has the same number.
        writer.meta = base;
        writer.meta.sequence = writer.begin();
        writer.put(SECOND);
        writer.publish();
        reader.join().unwrap();
        look_at_two_pages(&writer.readers.enter());
    });
}

/// Another page than every earlier state has.
fn page_of(txid: TxId) -> Pgid {
    4 + txid
}

fn look_at_its_page(snapshot: &Snapshot) {
    let Snapshot { meta, recents, .. } = snapshot;
    assert_eq!(patched_by(recents, page_of(meta.txid)), meta.txid);
}

impl Writer {
    /// Another page is patched, and the one before it written to a page of the file.
    fn put_and_write(&mut self) {
        let txid = self.begin();
        self.filling.leave(page_of(txid - 1));
        self.put(page_of(txid));
        self.publish();
    }

    /// The first page is patched several times.
    fn put_several(&mut self, patches: usize) {
        self.meta.root = self.begin();
        for _ in 0..patches {
            self.put(FIRST);
        }
        self.publish();
    }

    /// The first page is patched, and what it has moved on to another slab.
    fn put_and_move(&mut self) {
        self.meta.root = self.begin();
        self.put(FIRST);
        assert!(self.filling.move_on(FIRST, &mut Vec::new()), "there is room");
        self.publish();
    }
}

#[test]
fn no_slab_is_filled_anew_that_a_reader_looks_into_when_leaves_were_written() {
    loom::model(|| {
        let mut writer = Writer::new(SHORT);
        writer.put_and_write();
        let reader = reader(&writer.readers, look_at_its_page);
        for _ in 0..3 {
            writer.put_and_write();
        }
        reader.join().unwrap();
        for _ in 0..4 {
            writer.put_and_write();
        }
        look_at_its_page(&writer.readers.enter());
        assert!(writer.slabs(SHORT) < 5, "slabs are filled anew once nobody looks into them");
    });
}

#[test]
fn no_slab_is_filled_anew_that_a_reader_looks_into_when_patches_were_moved() {
    let mut long = loom::model::Builder::new();
    long.max_branches = 5000;
    long.check(|| {
        let mut writer = Writer::new(SHORT);
        writer.put_and_move();
        let reader = reader(&writer.readers, look_at_the_first_page);
        for _ in 0..3 {
            writer.put_and_move();
        }
        reader.join().unwrap();
        for _ in 0..4 {
            writer.put_and_move();
        }
        look_at_the_first_page(&writer.readers.enter());
        assert!(writer.slabs(SHORT) < 8, "slabs are filled anew once nobody looks into them");
    });
}

#[test]
fn a_table_is_emptied_for_another_one_only_once_nobody_looks_into_it() {
    loom::model(|| {
        let mut writer = Writer::new(LONG);
        writer.filling.allow(2 * LONG);
        // In two slabs: the first table is shorter than the others.
        writer.put_several(10);
        let reader = reader(&writer.readers, look_at_the_first_page);
        // The first goes on in another slab, the second empties the former table, with which the third goes on.
        for patches in [1, 4, 1] {
            writer.put_several(patches);
        }
        reader.join().unwrap();
        look_at_the_first_page(&writer.readers.enter());
    });
}

#[test]
fn a_state_that_is_written_beside_gives_up_slab_by_slab() {
    loom::model(|| {
        let mut writer = Writer::new(SHORT);
        let first = writer.begin();
        writer.put(page_of(first));
        let second = writer.begin();
        writer.put(page_of(second));
        let (table, slots) = writer.filling.begin_slab().unwrap();
        let beside = thread::spawn(move || {
            let mut recents = Recents { table: Some(table), upto: second };
            assert_eq!(patched_by(&recents, page_of(first)), first);
            let less = recents.table.as_ref().unwrap().without(&slots[..1]);
            recents.table = Some(shared::Arc::new(less));
            assert_eq!(patched_by(&recents, page_of(first)), 0);
            assert_eq!(patched_by(&recents, page_of(second)), second);
        });
        for page in [first, second].map(page_of) {
            writer.begin();
            writer.filling.leave(page);
        }
        for _ in 0..3 {
            let txid = writer.begin();
            writer.put(page_of(txid));
            writer.filling.leave(page_of(txid));
        }
        beside.join().unwrap();
    });
}
