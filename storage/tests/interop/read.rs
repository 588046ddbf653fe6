//! A file that Go's bbolt made reads here exactly as it reads there, and can be written further here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::generator::Generator;
use crate::common::model::Model;
use crate::common::peer::Peer;
use crate::common::setup::Setup;
use crate::common::{assert_check_clean, assert_same_dump, committed};
use boltkv_storage::Options;
use std::path::Path;

const KINDS: [&str; 6] = ["inline", "nested", "overflow", "empty-values", "sequences", "mixed"];

const PAGE_SIZES: [u32; 4] = [1024, 4096, 16_384, 65_536];

#[boltkv_needs::program("go")]
#[test]
fn files_of_every_kind_and_page_size_read_equal_and_can_be_written_further() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    for kind in KINDS {
        for page_size in PAGE_SIZES {
            let setup = Setup::with_page_size(page_size);
            read_and_write_further(peer, kind, &setup, &[]);
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_file_without_a_stored_freelist_gets_it_rebuilt() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    for page_size in PAGE_SIZES {
        for freelist_stored in [false, true] {
            let setup = Setup { freelist_stored, ..Setup::with_page_size(page_size) };
            read_and_write_further(peer, "mixed", &setup, &["--no-freelist"]);
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn the_freelist_of_a_bbolt_that_keeps_it_in_a_hash_map_is_read() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let setup = Setup::with_page_size(1024);
    read_and_write_further(peer, "mixed", &setup, &["--freelist=hashmap"]);
}

#[boltkv_needs::program("go")]
#[test]
fn a_freelist_too_long_for_its_16_bit_count_is_read_and_written() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let setup = Setup::with_page_size(1024);
    read_and_write_further(peer, "many-free", &setup, &[]);
    read_and_write_further(peer, "many-free", &setup, &["--no-freelist"]);
}

/// Has Go make a file, compares what both sides see in it, writes it further here, and has Go judge the result.
fn read_and_write_further(peer: &Peer, kind: &str, setup: &Setup, make_flags: &[&str]) {
    let what = format!("{kind}, {make_flags:?}, {setup:?}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("made-by-go.db");
    let mut flags = vec![format!("--page-size={}", setup.page_size)];
    flags.extend(make_flags.iter().map(ToString::to_string));
    peer.make(kind, &file, &flags);

    let content = read_equal(peer, &file, &what);

    let mut generator = Generator::new(u64::from(setup.page_size), content);
    let trace = generator.trace(6, 60);
    trace.replay(&file, setup).unwrap();

    peer.assert_check_clean(&file, &what);
    let written = read_equal(peer, &file, &what);
    assert_same_dump(&written.dump(), &generator.model.dump(), &what);
}

/// Reads a file here and there; the answer is what both found in it.
fn read_equal(peer: &Peer, file: &Path, what: &str) -> Model {
    let there = peer.dump(file);
    let db = Options::new().read_only(true).open(file).unwrap();
    assert_check_clean(&db, what);
    let content = committed(&db);
    assert_same_dump(&content.dump(), &there, what);
    content
}
