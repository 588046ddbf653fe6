//! A compacted database holds what the old one held, and takes as little as bbolt's compaction would leave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::generator::Generator;
use crate::common::model::Model;
use crate::common::random::Random;
use crate::common::setup::Setup;
use crate::common::{assert_check_clean, committed};
use boltkv_storage::{Db, Error, Options};
use std::fs;
use std::path::Path;

/// A file with one bucket, from which many entries were deleted again.
fn one_bucket(file: &Path, page_size: u32) {
    let db = Options::new().page_size(page_size).open(file).unwrap();
    let mut random = Random::new(5);
    for _ in 0..10 {
        db.update(|tx| {
            let mut bucket = tx.create_bucket_if_not_exists("only")?;
            for _ in 0..300 {
                bucket.put(random.bytes(12), random.bytes(60))?;
            }
            let doomed: Vec<Vec<u8>> = bucket.iter().step_by(3).map(|e| e.unwrap().0.to_vec()).collect();
            doomed.iter().try_for_each(|key| bucket.delete(key).map(drop))?;
            bucket.set_sequence(99)
        })
        .unwrap();
    }
}

#[test]
fn all_that_is_in_it_is_kept_whatever_fits_a_transaction() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let setup = Setup::with_page_size(1024);
    let mut generator = Generator::new(3, Model::default());
    generator.trace(40, 100).replay(&file, &setup).unwrap();
    let db = Options::new().read_only(true).open(&file).unwrap();
    for tx_max_size in [0, 1, 1000, 1 << 20] {
        let target = setup.options().open_in_memory().unwrap();
        db.begin().unwrap().compact_into(&target, tx_max_size).unwrap();
        assert_eq!(committed(&target), generator.model, "{tx_max_size} bytes a transaction");
        assert_check_clean(&target, "the compacted database");
        let transactions = target.begin().unwrap().id() - 1;
        assert_eq!(transactions == 1, matches!(tx_max_size, 0 | 1_048_576), "{transactions} for {tx_max_size}");
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_compacted_file_is_byte_for_byte_bbolts() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for page_size in [1024, 4096] {
        let file = folder.path().join(format!("db-{page_size}"));
        one_bucket(&file, page_size);
        for tx_max_size in [0, 20_000] {
            let ours = folder.path().join(format!("ours-{page_size}-{tx_max_size}"));
            let theirs = folder.path().join(format!("theirs-{page_size}-{tx_max_size}"));
            let flags = [format!("--page-size={page_size}"), format!("--tx-max-size={tx_max_size}")];
            let files = [file.to_str().unwrap(), theirs.to_str().unwrap()];
            peer.run(["compact", &flags[0], &flags[1], files[0], files[1]]);
            let target = Options::new().page_size(page_size).open(&ours).unwrap();
            Db::open(&file).unwrap().begin().unwrap().compact_into(&target, tx_max_size).unwrap();
            assert_eq!(target.begin().unwrap().bucket("only").unwrap().sequence(), 99);
            drop(target);
            peer.assert_check_clean(&ours, "compacted here");
            let (ours, theirs) = (fs::read(&ours).unwrap(), fs::read(&theirs).unwrap());
            assert!(ours == theirs, "pages of {page_size}, {tx_max_size} bytes a transaction");
        }
    }
}

#[test]
fn a_target_that_has_such_a_bucket_is_an_error() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("b")?.put("k", "v")).unwrap();
    let target = Options::new().open_in_memory().unwrap();
    target.update(|tx| tx.create_bucket("b").map(drop)).unwrap();
    let result = db.begin().unwrap().compact_into(&target, 0);
    assert!(matches!(result, Err(Error::BucketExists { .. })), "{result:?}");
}

#[test]
fn buckets_nested_a_thousand_deep_are_compacted_and_looked_at() {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    let path = crate::common::nest_a_thousand_deep(&db);
    let target = Options::new().page_size(1024).open_in_memory().unwrap();
    db.begin().unwrap().compact_into(&target, 100).unwrap();
    let tx = target.begin().unwrap();
    assert_eq!(tx.bucket_path(&path).unwrap().get("k").unwrap(), Some(&b"v"[..]));
    assert_eq!(tx.inspect().unwrap().last().unwrap().depth, 1001);
    assert_eq!(tx.bucket("b").unwrap().stats().unwrap().buckets, 1001);
    assert_eq!(tx.check().unwrap(), []);
}

#[test]
fn a_compacted_file_is_whole_no_longer_than_its_pages_and_sound_for_bbolt() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let mut generator = Generator::new(4, Model::default());
    generator.trace(40, 100).replay(&file, &Setup::with_page_size(1024)).unwrap();
    let db = Options::new().read_only(true).open(&file).unwrap();
    for tx_max_size in [0, 1000, 1 << 16] {
        let output = folder.path().join(format!("compacted-{tx_max_size}"));
        let mut told = Vec::new();
        let len =
            db.begin().unwrap().compact_to_file(&output, 0o600, tx_max_size, &mut |bytes| told.push(bytes)).unwrap();
        assert!(told.is_sorted() && told.last() > Some(&1000), "{told:?}");
        let compacted = Options::new().read_only(true).open(&output).unwrap();
        assert_eq!(committed(&compacted), generator.model, "{tx_max_size} bytes a transaction");
        assert_check_clean(&compacted, "the compacted file");
        assert_eq!(compacted.page_size(), 1024);
        assert_eq!(len, compacted.begin().unwrap().size());
        assert_eq!(len, fs::metadata(&output).unwrap().len());
        if let Some(peer) = crate::common::peer::peer() {
            peer.assert_check_clean(&output, "compacted here");
        }
    }
}

#[test]
fn a_compaction_replaces_no_file_and_leaves_nothing_of_one_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    one_bucket(&file, 1024);
    let taken = folder.path().join("taken");
    fs::write(&taken, "precious").unwrap();
    let compact = |output: &Path| {
        let db = Options::new().read_only(true).open(&file).unwrap();
        db.begin().unwrap().compact_to_file(output, 0o600, 0, &mut |_| ())
    };
    let refused = compact(&taken);
    assert!(matches!(&refused, Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists));
    assert_eq!(fs::read(&taken).unwrap(), b"precious");
    // A leaf in the middle of the bucket is no page any more.
    let mut bytes = fs::read(&file).unwrap();
    let pages = bytes.len() / 1024;
    let leaf = |page: &usize| bytes[page * 1024 + 8] == 2 && bytes[page * 1024 + 10] > 5;
    for page in (4..pages).filter(leaf).collect::<Vec<_>>() {
        bytes[page * 1024 + 8] = 0xFF;
    }
    fs::write(&file, bytes).unwrap();
    let failed = compact(&folder.path().join("new"));
    assert!(matches!(failed, Err(Error::Corrupt { .. })), "{failed:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}
