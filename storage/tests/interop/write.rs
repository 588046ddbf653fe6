//! A file made here passes the check of Go's bbolt, and reads there exactly as it reads here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::generator::Generator;
use crate::common::model::{BucketPath, Model};
use crate::common::peer::Peer;
use crate::common::random::Random;
use crate::common::setup::Setup;
use crate::common::trace::{Change, Trace};
use crate::common::{assert_same_dump, content_of_file};

/// Small and large pages, this engine's own fill and bbolt's, the freelist stored and not.
fn setups() -> Vec<Setup> {
    let mut setups = Vec::new();
    for page_size in [1024, 4096, 65_536] {
        for (fill, freelist_stored) in [(None, true), (Some(0.5), true), (None, false)] {
            setups.push(Setup { page_size, freelist_stored, fill, journal: false });
        }
    }
    setups
}

#[boltkv_needs::program("go")]
#[test]
fn an_empty_database_is_sound_there() {
    written_here_is_sound_there(|_| Trace::default());
}

#[boltkv_needs::program("go")]
#[test]
fn a_file_that_grew_by_many_commits_is_sound_there() {
    written_here_is_sound_there(|random| {
        let mut trace = Trace::default();
        trace.commit([Change::Create(path(&["b"]))]);
        for _ in 0..20 {
            trace.commit((0..200).map(|_| put(&["b"], random.bytes(12), random.bytes(100))));
        }
        trace
    });
}

#[boltkv_needs::program("go")]
#[test]
fn deletes_that_empty_and_merge_pages_leave_a_sound_file() {
    written_here_is_sound_there(|random| {
        let keys: Vec<Vec<u8>> = (0..3000).map(|_| random.bytes(8)).collect();
        let mut trace = Trace::default();
        trace.commit([Change::Create(path(&["b"]))]);
        trace.commit(keys.iter().map(|key| put(&["b"], key.clone(), vec![7; 50])));
        // Scattered ones, then whole stretches, then all but a few.
        trace.commit(keys.iter().step_by(3).map(|key| delete(&["b"], key)));
        let mut sorted = keys.clone();
        sorted.sort();
        trace.commit(sorted[500..1500].iter().map(|key| delete(&["b"], key)));
        trace.reopen();
        trace.commit(sorted[5..].iter().map(|key| delete(&["b"], key)));
        trace
    });
}

#[boltkv_needs::program("go")]
#[test]
fn a_bucket_that_loses_everything_is_sound_there() {
    written_here_is_sound_there(|_| {
        let mut trace = Trace::default();
        let keys = || (0..2000_u32).map(|n| n.to_be_bytes().to_vec());
        trace.commit([Change::Create(path(&["b"]))]);
        trace.commit(keys().map(|key| put(&["b"], key, vec![1; 40])));
        trace.commit(keys().map(|key| delete(&["b"], &key)));
        trace.commit(keys().take(10).map(|key| put(&["b"], key, vec![2; 40])));
        trace
    });
}

#[boltkv_needs::program("go")]
#[test]
fn buckets_that_move_out_of_their_parent_and_back_in_are_sound_there() {
    written_here_is_sound_there(|_| {
        let names = ["a", "m", "z"];
        let mut trace = Trace::default();
        trace.commit([Change::Create(path(&["outer"]))]);
        trace.commit(names.map(|name| Change::Create(path(&["outer", name]))));
        let keys = || (0..400_u32).map(|n| n.to_be_bytes().to_vec());
        for round in 0..3 {
            let [_, wide, _] = names;
            trace.commit(keys().map(|key| put(&["outer", wide], key, vec![round; 60])));
            trace.commit(names.map(|name| put(&["outer", name], b"one more".to_vec(), vec![round; 5])));
            trace.commit(keys().map(|key| delete(&["outer", wide], &key)));
            trace.reopen();
        }
        trace
    });
}

#[boltkv_needs::program("go")]
#[test]
fn deleted_buckets_with_buckets_inside_leave_a_sound_file() {
    written_here_is_sound_there(|random| {
        let deep = ["top", "one", "two", "three", "four"];
        let mut trace = Trace::default();
        for depth in 1..=deep.len() {
            let here = &deep[..depth];
            let mut changes = vec![Change::Create(path(here))];
            changes.extend((0..300).map(|_| put(here, random.bytes(9), random.bytes(60))));
            changes.push(Change::Sequence(path(here), depth as u64));
            trace.commit(changes);
        }
        trace.commit([Change::Drop(path(&deep[..3])), Change::Create(path(&deep[..3]))]);
        trace.commit([Change::Create(path(&["other"]))]);
        trace.commit([
            Change::Create(path(&["brief"])),
            put(&["brief"], b"k".to_vec(), vec![3; 90_000]),
            Change::Drop(path(&["brief"])),
            Change::Drop(path(&deep[..1])),
        ]);
        trace
    });
}

#[boltkv_needs::program("go")]
#[test]
fn overflow_values_and_the_longest_keys_are_sound_there() {
    written_here_is_sound_there(|random| {
        let mut trace = Trace::default();
        trace.commit([Change::Create(path(&["b"]))]);
        for len in [1 << 20, 65_536, 4096, 1000, 0, (1 << 20) + 1] {
            trace.commit([
                put(&["b"], b"changing".to_vec(), random.bytes(len)),
                put(&["b"], format!("stays {len}").into_bytes(), random.bytes(len)),
                put(&["b"], random.bytes(32_768), random.bytes(10)),
            ]);
        }
        trace
    });
}

#[boltkv_needs::program("go")]
#[test]
fn random_changes_leave_a_sound_file() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    for setup in setups() {
        for seed in 0..6 {
            let mut generator = Generator::new(seed, Model::default());
            let trace = generator.trace(12, 80);
            assert_sound(peer, &trace, &setup, &format!("seed {seed}"));
        }
    }
}

fn written_here_is_sound_there(trace: impl Fn(&mut Random) -> Trace) {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    for setup in setups() {
        assert_sound(peer, &trace(&mut Random::new(1)), &setup, "");
    }
}

/// Writes the trace here, then has Go check and read the file, and compares with what the trace should leave.
fn assert_sound(peer: &Peer, trace: &Trace, setup: &Setup, what: &str) {
    let what = format!("{what} {setup:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made-here.db");
    trace.replay(&file, setup).unwrap();

    peer.assert_check_clean(&file, &what);
    let mut model = Model::default();
    trace.replay_on_model(&mut model);
    let expected = model.dump();
    assert_same_dump(&content_of_file(&file).dump(), &expected, &what);
    assert_same_dump(&peer.dump(&file), &expected, &what);
}

fn path(names: &[&str]) -> BucketPath {
    names.iter().map(|name| name.as_bytes().to_vec()).collect()
}

fn put(names: &[&str], key: Vec<u8>, value: Vec<u8>) -> Change {
    Change::Put(path(names), key, value)
}

fn delete(names: &[&str], key: &[u8]) -> Change {
    Change::Delete(path(names), key.to_vec())
}
