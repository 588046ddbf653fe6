use super::super::Recents;
use super::*;
use crate::format::{Changes, Edit, TxId, patch_bytes, write_patch};

const KEY: &[u8] = b"key";
const VALUE: &[u8] = b"value";
/// Transactions that fill many slabs; Miri has time for fewer.
const MANY: TxId = if cfg!(miri) { 200 } else { 20_000 };

/// Patches a page, where there is room: another entry at its begin.
fn push(filling: &mut Filling, page: Pgid, txid: TxId) -> Option<Before> {
    let newest = filling.newest(page).map(|(at, header)| (at, *header));
    let mut changes = Changes::default();
    let which = changes.make(Edit::Insert(0));
    let bytes = patch_bytes(changes.count(), KEY.len() + VALUE.len());
    let has_room = filling.reserve(page, bytes, For::Change { is_first: newest.is_none() });
    let (at, slot) = filling.next().filter(|_| has_room)?;
    let before = newest.map_or(0, |(at, _)| at);
    let oldest = newest.map_or(slot, |(_, header)| header.oldest);
    let header = PatchHeader::new(32, 1, before, 1).by(txid, 0).since(oldest);
    let mut patch = Vec::new();
    write_patch(&mut patch, at, &header, &mut changes, which, (KEY, VALUE));
    assert_eq!(patch.len(), bytes);
    filling.push(page, None, &patch)
}

fn seen(filling: &Filling, page: Pgid, upto: TxId) -> Option<u64> {
    let table = filling.table()?;
    Some(table.header(table.place(page, upto)?)?.txid.get())
}

fn recents(filling: &Filling, upto: TxId) -> Recents {
    Recents { table: filling.table().cloned(), upto }
}

#[test]
fn each_state_has_its_patches_until_the_page_is_another_one() {
    let mut filling = Filling::new(1 << 14);
    for txid in 5..8 {
        push(&mut filling, 9, txid);
    }
    let before = push(&mut filling, 9, 8).unwrap();
    assert_eq!([4, 5, 7, 9].map(|upto| seen(&filling, 9, upto)), [None, Some(5), Some(7), Some(8)]);
    filling.take_back(before);
    assert_eq!((seen(&filling, 9, 9), filling.live), (Some(7), 1));
    filling.leave(9);
    assert_eq!((seen(&filling, 9, 6), filling.live, filling.newest(9).is_none()), (Some(6), 0, true));
    filling.forget(9);
    assert_eq!((seen(&filling, 9, 6), filling.live), (None, 0));
    push(&mut filling, 9, 9);
    assert_eq!((seen(&filling, 9, 9), seen(&filling, 9, 8), filling.live), (Some(9), None, 1));
}

#[test]
fn the_first_patch_of_a_page_taken_back_leaves_others_to_be_found() {
    let mut filling = Filling::new(1 << 14);
    let all: Vec<_> = (2..30).map(|page| (page, push(&mut filling, page, 1).unwrap())).collect();
    for &(page, before) in all.iter().rev().filter(|(page, _)| page % 3 == 0) {
        filling.take_back(before);
        assert_eq!(seen(&filling, page, 1), None);
    }
    for (page, _) in all {
        assert_eq!(seen(&filling, page, 1).is_some(), page % 3 != 0);
    }
}

/// What Miri looks at: readers take slices while the writer adds what lies behind them, and slabs are used again.
#[test]
fn readers_see_their_states_while_patches_are_added_and_moved() {
    let mut filling = Filling::new(1 << 11);
    push(&mut filling, 5, 1);
    let first = recents(&filling, 1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(first.find(5).unwrap().pieces().count(), 1);
                    assert!(first.find(6).is_none());
                }
            });
        }
        for txid in 2..80 {
            assert!(push(&mut filling, 5 + txid % 2, txid).is_some());
            let seen = recents(&filling, txid);
            assert!(seen.find(5 + txid % 2).is_some());
            move_oldest(&mut filling);
            assert_eq!(seen.find(5 + txid % 2).unwrap().pieces().count(), 1);
        }
    });
    assert_eq!((seen(&filling, 5, 90), seen(&filling, 6, 90)), (Some(78), Some(79)));
}

/// Moves on what is in the oldest slabs, where that is due.
fn move_oldest(filling: &mut Filling) {
    let Some(oldest) = filling.oldest() else { return };
    let table = Arc::clone(filling.table().unwrap());
    for (page, _) in table.pages_of(&oldest) {
        assert!(filling.move_on(page, &mut Vec::new()));
    }
}

#[test]
fn what_is_moved_stays_what_it_was_and_slabs_are_used_again() {
    let mut filling = Filling::new(1 << 14);
    let pages = 2..20;
    let end = if cfg!(miri) { 300 } else { 2000 };
    for txid in 1..end {
        let page = 2 + txid * 7 % 18;
        assert!(push(&mut filling, page, txid).is_some(), "patch {txid}");
        move_oldest(&mut filling);
        assert_eq!(seen(&filling, page, txid), Some(txid));
    }
    assert_eq!(filling.live, 18);
    let seen: Vec<_> = pages.clone().map(|page| seen(&filling, page, TxId::MAX).unwrap()).collect();
    assert!(seen.iter().all(|&txid| txid > end - 20), "{seen:?}");
    assert!(filling.slabs.iter().flatten().count() <= filling.most, "{} slabs", filling.slabs.len());
    for page in pages {
        filling.leave(page);
    }
    assert_eq!((filling.live, filling.row.iter().map(|part| part.pages).sum::<u64>()), (0, 0));
}

#[test]
fn without_moving_memory_comes_to_an_end_and_the_last_slab_is_for_that() {
    let mut filling = Filling::new(1 << 14);
    let pages = (2..10_000).take_while(|&page| push(&mut filling, page, 1).is_some()).count() as u64;
    assert_eq!((filling.live, filling.row.len()), (pages, filling.most - 1));
    (2..pages / 2).for_each(|page| filling.leave(page));
    move_oldest(&mut filling);
    assert!(push(&mut filling, 2, 2).is_some());
    let used = filling.used();
    assert!((1 << 13..1 << 14).contains(&used), "{used}");
}

#[test]
fn who_reads_long_keeps_slabs_and_others_are_taken_up_to_twice_as_many() {
    let (memory, end) = if cfg!(miri) { (1 << 12, 1200) } else { (1 << 14, 4000) };
    let mut filling = Filling::new(memory);
    let mut readers = Vec::new();
    let mut refused = 0;
    for txid in 1..end {
        let page = 2 + txid % 10;
        refused += u64::from(push(&mut filling, page, txid).is_none());
        if txid % 100 == 0 {
            readers.push((recents(&filling, txid), seen(&filling, page, txid)));
        }
        move_oldest(&mut filling);
    }
    assert!(refused > 0, "there are {} slabs", filling.slabs.len());
    assert_eq!(filling.slabs.iter().flatten().count(), 2 * filling.most);
    for (recents, newest) in readers {
        let txid = recents.upto;
        let table = recents.table.as_ref().unwrap();
        let seen = table.header(table.place(2 + txid % 10, txid).unwrap()).unwrap().txid.get();
        assert_eq!(Some(seen), newest);
    }
    move_oldest(&mut filling);
    assert!(push(&mut filling, 2, 5000).is_some());
}

#[test]
fn the_table_that_comes_next_is_there_when_the_slab_is_full() {
    let mut filling = Filling::new(1 << 18);
    let (mut slabs, mut left) = (0, None);
    for txid in 1..MANY {
        let page = 2 + txid * 7919 % 300;
        assert!(push(&mut filling, page, txid).is_some(), "patch {txid}");
        if txid % 5 == 0 {
            filling.leave(2 + txid * 104_729 % 300);
        }
        let last = filling.next().unwrap().1;
        if std::mem::replace(&mut slabs, last) != last {
            assert_eq!(left.unwrap_or(0), 0, "entries that a patch would have had to wait for");
        }
        left = filling.coming.as_ref().map(|coming| coming.left(filling.table().map(|table| &**table)));
        move_oldest(&mut filling);
    }
}

#[test]
fn a_table_that_came_has_what_was_noted_while_it_was_filled() {
    let mut filling = Filling::new(1 << 18);
    let mut model = std::collections::BTreeMap::new();
    for txid in 1..MANY {
        let page = 2 + txid * txid % 211;
        match txid % 7 {
            0 => {
                filling.leave(page);
                model.remove(&page);
            }
            1 => {
                filling.forget(page);
                model.remove(&page);
            }
            2 => {
                let before = push(&mut filling, page, txid).unwrap();
                filling.take_back(before);
            }
            _ => {
                push(&mut filling, page, txid).unwrap();
                model.insert(page, txid);
            }
        }
        move_oldest(&mut filling);
        if txid % 100 == 0 {
            filling.prepare(64);
        }
        let newest = |page| filling.newest(page).map(|(_, header)| header.txid.get());
        assert_eq!((newest(page), newest(page + 1)), (model.get(&page).copied(), model.get(&(page + 1)).copied()));
    }
    let seen: Vec<_> = (2..300).map(|page| filling.newest(page).map(|(_, header)| header.txid.get())).collect();
    assert_eq!(seen, (2..300).map(|page| model.get(&page).copied()).collect::<Vec<_>>());
}
