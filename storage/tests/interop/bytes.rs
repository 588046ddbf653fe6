//! With a fill percent set, this engine writes the very bytes that Go's bbolt writes: the same trace leaves files that
//! are equal to the last byte, wherever bbolt itself is the same from run to run.
//!
//! It is not where a transaction changes two sibling buckets or takes entries from two leaves: bbolt then works in the
//! order of a Go map. The traces here keep clear of that.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::file_hash;
use crate::common::model::BucketPath;
use crate::common::random::Random;
use crate::common::setup::Setup;
use crate::common::trace::{Change, Trace};
use std::fs;

const PAGE_SIZES: [u32; 4] = [1024, 4096, 16_384, 65_536];

/// A trace starts with its one bucket.
fn new_trace() -> Trace {
    let mut trace = Trace::default();
    trace.commit([Change::Create(bucket())]);
    trace
}

fn bucket() -> BucketPath {
    vec![b"bucket".to_vec()]
}

fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Change {
    Change::Put(bucket(), key.into(), value.into())
}

fn delete(key: impl Into<Vec<u8>>) -> Change {
    Change::Delete(bucket(), key.into())
}

/// Puts of 32-byte values in commits of the given size; a reopening halfway.
fn puts(keys: impl IntoIterator<Item = u64>, per_commit: usize) -> Trace {
    let changes: Vec<Change> =
        keys.into_iter().map(|key| put(key.to_be_bytes(), [key.to_le_bytes(); 4].concat())).collect();
    let commits: Vec<&[Change]> = changes.chunks(per_commit).collect();
    let mut trace = new_trace();
    for (number, commit) in commits.iter().enumerate() {
        if number == commits.len() / 2 {
            trace.reopen();
        }
        trace.commit(commit.iter().cloned());
    }
    trace
}

#[boltkv_needs::program("go")]
#[test]
fn a_new_database() {
    for page_size in PAGE_SIZES {
        assert_equal_files(&Trace::default(), &Setup::with_page_size(page_size));
        assert_equal_files(&new_trace(), &Setup::with_page_size(page_size));
    }
}

#[boltkv_needs::program("go")]
#[test]
fn sequential_puts() {
    for page_size in PAGE_SIZES {
        for count in [1, 10, 100, 1000, 10_000] {
            let trace = puts(0..count, 1 + usize::try_from(count).unwrap() / 7);
            assert_equal_files(&trace, &Setup::with_page_size(page_size));
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn random_puts() {
    let mut random = Random::new(1);
    for page_size in PAGE_SIZES {
        for count in [1, 10, 100, 1000, 10_000] {
            let trace = puts((0..count).map(|_| random.next()), 1 + count / 7);
            assert_equal_files(&trace, &Setup::with_page_size(page_size));
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_hundred_thousand_sequential_puts() {
    assert_equal_files(&puts(0..100_000, 20_000), &Setup::default());
}

#[boltkv_needs::program("go")]
#[test]
fn a_hundred_thousand_random_puts() {
    let mut random = Random::new(2);
    let keys = (0..100_000).map(|_| random.next());
    assert_equal_files(&puts(keys, 20_000), &Setup::default());
}

#[boltkv_needs::program("go")]
#[test]
fn hundreds_of_commits_of_one_put() {
    let mut random = Random::new(3);
    let trace = puts((0..400).map(|_| random.next()), 1);
    assert_equal_after_every_commit(&trace, &Setup::with_page_size(1024));
}

#[boltkv_needs::program("go")]
#[test]
fn every_fill_percent() {
    let mut random = Random::new(4);
    let sequential = puts(0..3000, 700);
    let scattered = puts((0..3000).map(|_| random.next()), 700);
    for fill in [0.0, 0.1, 0.33, 0.9, 1.0, 7.0] {
        let setup = Setup { fill: Some(fill), ..Setup::with_page_size(1024) };
        assert_equal_files(&sequential, &setup);
        assert_equal_files(&scattered, &setup);
    }
}

#[boltkv_needs::program("go")]
#[test]
fn overwrites_with_growing_and_shrinking_values() {
    for page_size in PAGE_SIZES {
        let mut random = Random::new(5);
        let keys: Vec<Vec<u8>> = (0..200).map(|_| random.bytes(6)).collect();
        let mut trace = new_trace();
        for len in [0, 10, 100, 1000, 100, 5000, 0, 50, 300] {
            trace.commit(keys.iter().map(|key| put(key.clone(), vec![3; len])));
            let some = keys.iter().step_by(17);
            trace.commit(some.map(|key| put(key.clone(), vec![9; len / 2])));
        }
        assert_equal_after_every_commit(&trace, &Setup::with_page_size(page_size));
    }
}

#[boltkv_needs::program("go")]
#[test]
fn an_inline_bucket_growing_out_and_shrinking_back_in() {
    for page_size in PAGE_SIZES {
        let mut trace = new_trace();
        let quarter = page_size as usize / 4;
        // Around the size at which a bucket of one entry with a one-byte key leaves its parent's page.
        for len in [quarter - 40, quarter - 33, quarter - 32, quarter, 4, quarter * 5, 0, 12] {
            trace.commit([put("k", vec![4; len])]);
        }
        // And of many: out when it grows, back in when the values shrink.
        for len in [1, 40, 400, 1] {
            for key in 0..12_u8 {
                trace.commit([put([key], vec![key; len])]);
            }
        }
        assert_equal_after_every_commit(&trace, &Setup::with_page_size(page_size));
    }
}

#[boltkv_needs::program("go")]
#[test]
fn values_larger_than_a_page() {
    for page_size in PAGE_SIZES {
        let mut random = Random::new(6);
        let mut trace = new_trace();
        for _ in 0..12 {
            let count = 1 + random.below(6);
            let changes: Vec<Change> = (0..count)
                .map(|_| {
                    let len = random.below(5 * page_size as usize);
                    put(random.bytes(2), random.bytes(len))
                })
                .collect();
            trace.commit(changes);
        }
        assert_equal_files(&trace, &Setup::with_page_size(page_size));
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_file_growing_past_16_mib() {
    let mut random = Random::new(7);
    for page_size in [4096, 65_536] {
        let mut trace = new_trace();
        for number in 0..45_u8 {
            if number % 20 == 19 {
                trace.reopen();
            }
            let len = 900_000 + random.below(200_000);
            trace.commit([put([number], vec![number; len])]);
        }
        assert_equal_files(&trace, &Setup::with_page_size(page_size));
    }
}

#[boltkv_needs::program("go")]
#[test]
fn random_small_traces_of_puts() {
    for seed in 0..150 {
        let mut random = Random::new(seed);
        let longest_key = [3, 12, 300][random.below(3)];
        let longest_value = [1, 40, 300, 3000][random.below(4)];
        let page_size = [1024, 1024, 4096][random.below(3)];
        let mut trace = new_trace();
        for _ in 0..=random.below(6) {
            let count = 1 + random.below(150);
            let changes: Vec<Change> = (0..count)
                .map(|_| {
                    let (key, value) = (random.below(longest_key), random.below(longest_value));
                    put(random.bytes(1 + key), random.bytes(value))
                })
                .collect();
            trace.commit(changes);
            if random.once_in(3) {
                trace.reopen();
            }
            if random.once_in(4) {
                trace.rollback([put(random.bytes(5), random.bytes(100))]);
            }
        }
        assert_equal_files(&trace, &Setup::with_page_size(page_size));
    }
}

/// To the last entry, through every merge and the collapse of the root.
fn one_delete_after_the_other(count: usize, key_len: usize, value_len: usize, page_size: u32) {
    let mut random = Random::new(8);
    let mut keys: Vec<Vec<u8>> = (0..count).map(|_| random.bytes(key_len)).collect();
    let mut trace = new_trace();
    trace.commit(keys.iter().map(|key| put(key.clone(), vec![5; value_len])));
    while !keys.is_empty() {
        let key = keys.swap_remove(random.below(keys.len()));
        trace.commit([delete(key)]);
    }
    assert_equal_after_every_commit(&trace, &Setup::with_page_size(page_size));
}

#[boltkv_needs::program("go")]
#[test]
fn one_delete_a_commit() {
    one_delete_after_the_other(300, 7, 60, 1024);
    one_delete_after_the_other(400, 7, 60, 4096);
}

#[boltkv_needs::program("go")]
#[test]
fn one_delete_a_commit_where_leaves_come_to_exactly_the_least_size() {
    // Five entries and the header are 256 bytes, half the threshold of a page of 1 KiB.
    one_delete_after_the_other(300, 8, 24, 1024);
}

#[boltkv_needs::program("go")]
#[test]
fn one_delete_a_commit_where_branches_have_few_and_long_keys() {
    one_delete_after_the_other(150, 200, 20, 1024);
}

#[boltkv_needs::program("go")]
#[test]
fn one_delete_among_the_puts_of_a_commit() {
    let mut random = Random::new(9);
    let mut keys: Vec<Vec<u8>> = Vec::new();
    let mut trace = new_trace();
    for round in 0..120 {
        let fresh: Vec<Vec<u8>> = (0..random.below(8)).map(|_| random.bytes(9)).collect();
        let mut changes: Vec<Change> = fresh.iter().map(|key| put(key.clone(), vec![round; 80])).collect();
        if !keys.is_empty() {
            changes.push(delete(keys.swap_remove(random.below(keys.len()))));
        }
        keys.extend(fresh);
        trace.commit(changes);
    }
    assert_equal_after_every_commit(&trace, &Setup::with_page_size(1024));
}

#[boltkv_needs::program("go")]
#[test]
fn many_deletes_in_a_bucket_of_one_leaf() {
    let mut trace = new_trace();
    trace.commit((0..30_u8).map(|key| put([key], vec![key; 70])));
    trace.commit((0..30_u8).step_by(2).map(|key| delete([key])));
    trace.commit((0..27_u8).skip(1).step_by(2).map(|key| delete([key])));
    trace.commit([delete([27]), delete([29])]);
    trace.commit([put("again", "here")]);
    assert_equal_after_every_commit(&trace, &Setup::default());
}

#[boltkv_needs::program("go")]
#[test]
fn a_chain_of_nested_buckets() {
    let mut random = Random::new(10);
    let path: BucketPath = (0..6).map(|depth| vec![b'a' + depth; 3]).collect();
    let mut trace = Trace::default();
    for depth in 1..=path.len() {
        trace.commit([Change::Create(path[..depth].to_vec())]);
    }
    for round in 0..60_u64 {
        let here = path[..=random.below(path.len())].to_vec();
        let mut changes = vec![Change::Sequence(here.clone(), round)];
        for _ in 0..random.below(40) {
            changes.push(Change::Put(here.clone(), random.bytes(6), random.bytes(50)));
        }
        trace.commit(changes);
    }
    trace.commit([Change::Drop(path[..3].to_vec())]);
    trace.commit([Change::Create(path[..3].to_vec())]);
    assert_equal_after_every_commit(&trace, &Setup::with_page_size(1024));
}

#[boltkv_needs::program("go")]
#[test]
fn sibling_buckets_changed_in_turn() {
    let mut random = Random::new(11);
    let names: Vec<BucketPath> = (0..12).map(|n| vec![vec![b'a' + n; 20]]).collect();
    let mut trace = Trace::default();
    for name in &names {
        trace.commit([Change::Create(name.clone())]);
    }
    for _ in 0..100 {
        let name = &names[random.below(names.len())];
        let changes: Vec<Change> =
            (0..=random.below(20)).map(|_| Change::Put(name.clone(), random.bytes(5), random.bytes(40))).collect();
        trace.commit(changes);
    }
    for name in names.into_iter().step_by(2) {
        trace.commit([Change::Drop(name)]);
    }
    assert_equal_after_every_commit(&trace, &Setup::with_page_size(1024));
}

#[boltkv_needs::program("go")]
#[test]
fn a_freelist_of_every_length_around_the_end_of_its_page() {
    assert_equal_after_every_commit(&freelist_lengths(0, 0, 0), &Setup::with_page_size(1024));
}

#[boltkv_needs::program("go")]
#[test]
fn a_freelist_growing_past_its_16_bit_count() {
    // From 65,408 to 65,661 free pages: with the last one, the number that then stands before the ids is what makes the
    // freelist one page longer.
    assert_equal_files(&freelist_lengths(130, 501, 47), &Setup::with_page_size(1024));
}

/// Makes and empties that many values of so many pages of 1 KiB, then frees one page more with each commit: a value
/// shrinks from 300 pages to the last number.
fn freelist_lengths(values: u16, pages_each: usize, last: usize) -> Trace {
    let mut trace = new_trace();
    let keys = || (0..values).map(u16::to_be_bytes);
    trace.commit(keys().map(|key| put(key, vec![1; pages_each * 1024])));
    trace.commit(keys().map(|key| put(key, "")));
    for pages in (last..300).rev() {
        trace.commit([put("shrinks", vec![2; pages * 1024])]);
    }
    trace
}

/// Compares the files after every commit: what one commit does differently, a later one may cover up.
fn assert_equal_after_every_commit(trace: &Trace, setup: &Setup) {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here.db"), folder.path().join("there.db"));
    let theirs = peer.replay_hashing(trace, &there, setup);
    let mut ours = Vec::new();
    trace.replay_watched(&here, setup, || ours.push(file_hash(&here))).unwrap();
    assert_eq!(ours.len(), theirs.len());
    if let Some(commit) = (0..ours.len()).find(|&commit| ours[commit] != theirs[commit]) {
        assert_equal_files(&trace.up_to_commit(commit), setup);
        panic!("{setup:?}: the files differ after commit {commit}, but not when all before is replayed alone");
    }
    assert_equal_files(trace, setup);
}

/// Replays the trace here and there, and compares the two files byte for byte.
fn assert_equal_files(trace: &Trace, setup: &Setup) {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (folder.path().join("here.db"), folder.path().join("there.db"));
    peer.replay(trace, &there, setup);
    trace.replay(&here, setup).unwrap();

    let (ours, theirs) = (fs::read(&here).unwrap(), fs::read(&there).unwrap());
    let page_size = setup.page_size as usize;
    let mut pages = ours.chunks(page_size).zip(theirs.chunks(page_size));
    if let Some(page) = pages.position(|(ours, theirs)| ours != theirs) {
        let from = page * page_size;
        let at = (from..from + page_size).find(|&at| ours[at] != theirs[at]).unwrap();
        panic!(
            "{setup:?}: page {page} differs at byte {} of it\n  here  {:?}\n  there {:?}",
            at - from,
            &ours[from..from + 48],
            &theirs[from..from + 48]
        );
    }
    assert_eq!(ours.len(), theirs.len(), "{setup:?}: length of the file");
}
