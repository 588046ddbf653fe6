//! BACKUP: the whole file of one transaction by wire, while it is written; what a client costs that does not take it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::binary::{create, get, set};
use crate::common::{Binary, TestFile, TestServer, eventually};
use boltkv_protocol::{ErrorCode, Expect, Reply, Request, StreamRequest};
use boltkv_storage::{Db, Durability, Error, JournalOptions, Options};

fn backup() -> Request {
    Request::Stream(StreamRequest::Backup)
}

/// What comes of a backup: the file, or the error that it ends with.
fn receive(client: &mut Binary, id: u32) -> Result<Vec<u8>, ErrorCode> {
    let mut file = Vec::new();
    loop {
        let frame = client.frame();
        assert_eq!(frame.id, id);
        match Reply::decode(Expect::Backup, frame).unwrap() {
            Reply::Piece(piece) => {
                assert!(!piece.is_empty() && piece.len() <= 64 * 1024);
                file.extend_from_slice(&piece);
            }
            Reply::BackedUp { total, crc32c } => {
                assert_eq!((total, crc32c), (file.len() as u64, crc32c::crc32c(&file)));
                return Ok(file);
            }
            Reply::Error(error) => return Err(error.code),
            other => panic!("{other:?}"),
        }
    }
}

/// A database far larger than all that a connection's buffers hold.
fn large() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..64_u8).try_for_each(|n| bucket.put([n], vec![n; 1 << 20]))
    })
    .unwrap();
    db
}

fn opened(path: &Path, bytes: &[u8]) -> Db {
    std::fs::write(path, bytes).unwrap();
    let db = Options::new().read_only(true).open(path).unwrap();
    assert!(db.damaged_meta().is_none());
    let tx = db.begin().unwrap();
    assert_eq!(tx.size(), bytes.len() as u64);
    let problems = tx.check().unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    db
}

// Promises: wire-backup, ops-backup.
#[test]
fn a_backup_under_writes_is_one_state_which_has_what_was_answered_before() {
    let (file, folder) = (TestFile::new(), tempfile::tempdir().unwrap());
    for (case, options) in
        [Options::new().journal(JournalOptions::new()), Options::new(), Options::new().durability(Durability::Never)]
            .into_iter()
            .enumerate()
    {
        let db = options.open(file.path.with_extension(case.to_string())).unwrap();
        let server = TestServer::serve(db, |_| {});
        let mut client = server.binary();
        client.write(&create("b"));
        // More than one piece of the engine's, and free pages among them.
        client.write(&set("b", "large", vec![7; 5 << 20]));
        client.write(&set("b", "large", "small"));
        let (answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut writer = server.binary();
                for n in 1.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    // Two keys in one transaction each: they are alike in every state.
                    let txn = server.text().ask_all(&format!("BUCKET USE b\nMULTI\nSET one {n}\nSET two {n}\nEXEC"));
                    assert!(!txn.is_empty());
                    writer.write(&set("b", "n", n.to_string()));
                    answered.store(n, Ordering::Release);
                }
            });
            for round in 0..5 {
                eventually(|| answered.load(Ordering::Acquire) > round);
                let before = answered.load(Ordering::Acquire);
                let ids = client.send_all(&[backup()]);
                let bytes = receive(&mut client, ids[0]).unwrap();
                let copy = opened(&folder.path().join(format!("{case}.{round}")), &bytes);
                let tx = copy.begin().unwrap();
                let bucket = tx.bucket("b").unwrap();
                let number = |key: &str| -> u64 {
                    String::from_utf8(bucket.get(key).unwrap().unwrap().to_vec()).unwrap().parse().unwrap()
                };
                assert!(number("n") >= before, "{} is older than {before}", number("n"));
                assert_eq!(number("one"), number("two"));
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn several_backups_on_one_connection_take_turns_with_each_other_and_with_all_else() {
    let server = TestServer::serve(large(), |_| {});
    let mut client = server.binary();
    let ids = client.send_all(&[backup(), backup(), get("b", "none")]);
    let (mut files, mut lookups) = ([Vec::new(), Vec::new()], 0);
    let mut ends = Vec::new();
    while ends.len() < 2 || lookups < 1 {
        let frame = client.frame();
        let Some(which) = ids[..2].iter().position(|id| *id == frame.id) else {
            assert_eq!(Reply::decode(Expect::Value, frame).unwrap_err_code(), ErrorCode::KeyNotFound);
            assert!(ends.is_empty(), "it waited for all of a backup");
            lookups += 1;
            continue;
        };
        match Reply::decode(Expect::Backup, frame).unwrap() {
            Reply::Piece(piece) => files[which].extend_from_slice(&piece),
            Reply::BackedUp { total, .. } => ends.push(total),
            other => panic!("{other:?}"),
        }
    }
    assert!(files[0] == files[1] && ends == [files[0].len() as u64; 2]);
}

// Promises: wire-backup-limit, ops-backups.
#[test]
fn one_more_than_the_server_does_is_overloaded_and_a_cancelled_one_makes_room() {
    let server = TestServer::serve(large(), |config| config.limits.max_backups = 1);
    let mut first = server.binary();
    let id = first.send_all(&[backup()])[0];
    assert!(first.frame().has_more());
    let mut second = server.binary();
    assert_eq!(second.ask_code(&backup()), ErrorCode::Overloaded);
    assert_eq!(server.text().ask_all("STATS").iter().find(|line| line.starts_with("backups ")).unwrap(), "backups 1");
    first.send(crate::common::binary::frame(0, 0x71, 0, &id.to_be_bytes()));
    assert_eq!(receive(&mut first, id), Err(ErrorCode::Cancelled));
    eventually(|| {
        let id = second.send_all(&[backup()])[0];
        match receive(&mut second, id) {
            Ok(_) => true,
            Err(code) => {
                assert_eq!(code, ErrorCode::Overloaded);
                false
            }
        }
    });
}

// Promises: wire-backup-expired, ops-backup-expired.
#[test]
fn a_client_that_takes_nothing_loses_its_backup_and_the_pages_come_back() {
    let db = large();
    let server = TestServer::serve(db.clone(), |config| config.timeouts.stream_stall = Duration::from_millis(300));
    let mut client = server.binary();
    let id = client.send_all(&[backup()])[0];
    eventually(|| db.stats().open_readers == 1);
    // Others are served meanwhile, and write.
    server.binary().write(&set("b", "beside", "it"));
    eventually(|| db.stats().open_readers == 0);
    assert_eq!(receive(&mut client, id), Err(ErrorCode::SnapshotExpired));
    client.ping(b"the connection lives");
}

// Promises: wire-backup-cut.
#[test]
fn a_connection_that_is_cut_leaves_nothing_behind() {
    let db = large();
    let server = TestServer::serve(db.clone(), |config| config.limits.max_backups = 1);
    for _ in 0..3 {
        let mut client = server.binary();
        client.send_all(&[backup()]);
        assert!(client.frame().has_more());
        drop(client);
        eventually(|| db.stats().open_readers == 0);
        eventually(|| server.text().ask_all("STATS").iter().any(|line| line == "backups 0"));
    }
}

// Promises: ops-stop-backups.
#[test]
fn a_server_that_stops_ends_its_backups_and_lets_go_of_the_file() {
    let file = TestFile::new();
    let db = file.open();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..64_u8).try_for_each(|n| bucket.put([n], vec![n; 1 << 20]))?;
        Ok::<_, Error>(())
    })
    .unwrap();
    let mut server = TestServer::serve(db, |_| {});
    let mut client = server.binary();
    let id = client.send_all(&[backup()])[0];
    assert!(client.frame().has_more());
    server.ask_to_stop();
    assert_eq!(receive(&mut client, id), Err(ErrorCode::ShuttingDown));
    server.stop().unwrap();
    // Nobody has it any more: it can be opened at once.
    drop(Options::new().timeout(Duration::ZERO).open(&file.path).unwrap());
}

#[test]
fn a_backup_is_no_part_of_a_transaction() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.send(crate::common::binary::frame(9, 0x40, 0, &[0, 0, 0, 1, 0x61, 0, 0, 0, 0]));
    assert_eq!(client.error().1.code, ErrorCode::Unsupported);
    client.ping(b"alive");
}

/// The code of a reply that must be an error.
trait ErrCode {
    fn unwrap_err_code(self) -> ErrorCode;
}

impl<E: std::fmt::Debug> ErrCode for Result<Reply, E> {
    fn unwrap_err_code(self) -> ErrorCode {
        match self.unwrap() {
            Reply::Error(error) => error.code,
            other => panic!("{other:?}"),
        }
    }
}
