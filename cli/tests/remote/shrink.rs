//! `boltkv shrink`: a served file made smaller, while it is written.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::run;
use crate::common::server::Server;
use boltkv_storage::{Db, Durability, Options, Result};

/// A file of some 30 MB, of which most is free; what is kept lies in pieces all over it.
fn make(file: &Path) -> Result<()> {
    let db = Options::new().durability(Durability::Never).open(file)?;
    let key = |n: u32| format!("key {n:06}");
    db.update(|tx| {
        let mut bucket = tx.create_bucket("default")?;
        (0..30_000).try_for_each(|n| bucket.put(key(n), vec![b'v'; 1000]))
    })?;
    db.update(|tx| {
        let mut bucket = tx.bucket_mut("default")?;
        (0..30_000).filter(|n| n / 500 % 5 > 0).try_for_each(|n| bucket.delete(key(n)).map(drop))
    })?;
    db.close()
}

// Promises: wire-shrink, ops-shrink.
#[test]
fn a_served_file_becomes_smaller_while_it_is_written_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served.db");
    make(&file).unwrap();
    let before = fs::metadata(&file).unwrap().len();
    let server = Server::start(&file);
    let ended = AtomicBool::new(false);
    let (printed, written) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !ended.load(Ordering::Relaxed) {
                let lines: Vec<_> = (written..written + 20).map(|n| format!("SET new{n} {n}\n")).collect();
                assert_eq!(server.text(&lines.concat()), "OK\n".repeat(20));
                written += 20;
            }
            written
        });
        let printed = server.run(["shrink", "--json"]).done_text();
        ended.store(true, Ordering::Relaxed);
        (printed, writer.join().unwrap())
    });
    let after = fs::metadata(&file).unwrap().len();
    assert!(printed.starts_with(&format!("{{\"before\":{before},\"after\":")), "{printed}");
    assert!(after < before / 2, "{before} bytes before, {after} now");
    let stats = server.text("STATS\n");
    assert!(stats.contains("\nshrinking 0\n"), "{stats}");
    assert_eq!(server.text("COUNT key\nCOUNT new\n"), format!("6000\n{written}\n"));
    server.stop().done();
    run(args!["file", "check", &file]).done();
    let db = Db::open(&file).unwrap();
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("default").unwrap();
    assert!((0..30_000).filter(|n| n / 500 % 5 == 0).all(|n| bucket.get(format!("key {n:06}")).unwrap().is_some()));
    assert!((0..written).all(|n| bucket.get(format!("new{n}")).unwrap() == Some(n.to_string().as_bytes())));
}

// Promises: wire-shrink.
#[test]
fn a_server_that_takes_no_writes_does_not_do_that_either() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("served.db");
    drop(Db::open(&file).unwrap());
    let server = Server::start_with(&file, ["--read-only"]);
    assert!(server.run(["shrink"]).failed(1).contains("READ_ONLY"));
}
