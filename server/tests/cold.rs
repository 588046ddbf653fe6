//! A file that is not in memory is served as one that is: what waits for the disk keeps its order, and is answered.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::fs::File;
use std::process::Command;
use std::time::Duration;

use boltkv_protocol::{Cond, Expect, Reply, Txn};
use boltkv_server::{Config, Grant, Proof};
use boltkv_storage::Error;
use common::binary::{get, path, ping, set};
use common::{TestFile, TestServer};

const KEYS: u32 = 20_000;

/// Key and value, scattered so that neighbours in a burst are none in the file.
fn entry(n: u32) -> (String, String) {
    let key = format!("{:08x}", n.wrapping_mul(0x9E37_79B9));
    let value = format!("{key}{}", "v".repeat(400));
    (key, value)
}

/// A server on a file of which the system has nothing in memory, where it can be made to forget.
fn cold_server(file: &TestFile) -> TestServer {
    cold_server_with(file, |_| {})
}

fn cold_server_with(file: &TestFile, configure: impl FnOnce(&mut Config)) -> TestServer {
    let db = file.open();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("default")?;
        let mut entries: Vec<_> = (0..KEYS).map(entry).collect();
        entries.sort();
        entries.iter().try_for_each(|(key, value)| bucket.put(key, value))?;
        Ok::<_, Error>(())
    })
    .unwrap();
    db.close().unwrap();
    let on_disk = File::open(&file.path).unwrap();
    on_disk.sync_all().unwrap();
    rustix::fs::fadvise(&on_disk, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    TestServer::serve(file.open(), configure)
}

#[test]
fn bursts_are_answered_in_full_and_lines_in_their_order() {
    let file = TestFile::new();
    let server = cold_server(&file);
    let mut text = server.text();
    for burst in 0..4 {
        let numbers: Vec<_> = (0..2_000).map(|n| (burst * 2_000 + n) % KEYS).collect();
        let mut lines = String::new();
        for n in &numbers {
            lines.extend(["GET ", &entry(*n).0, "\r\nGET nothing\r\nPING\r\n"]);
        }
        // They see what comes before them, and not what comes after.
        lines += "SET new 1\r\nGET new\r\nDEL new\r\nGET new\r\n";
        std::thread::scope(|scope| {
            let mut sender = text.sender();
            scope.spawn(move || sender.send(lines));
            for n in &numbers {
                assert_eq!((text.line(), text.line(), text.line()), (entry(*n).1, "(nil)".into(), "PONG".into()));
            }
        });
        assert_eq!([(); 4].map(|()| text.line()), ["OK", "1", "OK", "(nil)"]);
    }
}

#[test]
fn every_frame_is_answered_under_its_id() {
    let file = TestFile::new();
    let server = cold_server(&file);
    let mut client = server.binary();
    for burst in 0..10 {
        let entries: Vec<_> = (0..500).map(|n| entry(KEYS - 1 - burst * 500 - n)).collect();
        let mut requests: Vec<_> = entries.iter().map(|(key, _)| get("default", key)).collect();
        requests.push(set("default", "new", "1"));
        let ids = client.send_all(&requests);
        let mut seen = 0;
        for _ in &ids {
            let frame = client.frame();
            let at = ids.iter().position(|id| *id == frame.id).unwrap();
            seen += at + 1;
            match entries.get(at) {
                Some((_, value)) => {
                    let reply = Reply::decode(Expect::Value, frame).unwrap();
                    assert_eq!(reply, Reply::Value(value.clone().into()));
                }
                None => assert!(matches!(Reply::decode(Expect::Written, frame).unwrap(), Reply::Written { .. })),
            }
        }
        assert_eq!(seen, (1..=ids.len()).sum(), "each once");
    }
}

#[test]
fn a_transaction_that_reads_is_answered_whole_and_others_are_beside_it() {
    let file = TestFile::new();
    let server = cold_server(&file);
    let mut client = server.binary();
    for burst in 0..4 {
        let entries: Vec<_> = (0..300).map(|n| entry(burst * 5_000 + n)).collect();
        let mut txn = Txn::builder();
        for (n, (key, _)) in entries.iter().enumerate() {
            if n % 3 == 0 {
                txn.condition(&path("default"), key.as_bytes(), &Cond::<&str>::IfPresent).unwrap();
            }
            txn.request(&get("default", key)).unwrap();
        }
        let (txn, lone) = (txn.build(), entry(burst * 5_000 + 4_000));
        let ids = client.send_all(&[txn.clone().into(), ping(b"beside"), get("default", &lone.0)]);
        for _ in 0..3 {
            let frame = client.frame();
            match ids.iter().position(|id| *id == frame.id).unwrap() {
                0 => {
                    let Ok(Reply::Txn { results, .. }) = Reply::decode(Expect::Txn, frame) else {
                        panic!("no results")
                    };
                    let values = results.replies(txn.expects()).map(Result::unwrap);
                    let expected = entries.iter().map(|(_, value)| Reply::Value(value.clone().into()));
                    assert!(values.eq(expected));
                }
                1 => assert_eq!(Reply::decode(Expect::Pong, frame), Ok(Reply::Pong("beside".into()))),
                _ => assert_eq!(Reply::decode(Expect::Value, frame), Ok(Reply::Value(lone.1.clone().into()))),
            }
        }
    }
}

/// So many bytes of a file are in memory.
fn in_memory(file: &TestFile) -> u64 {
    let mut fincore = Command::new("fincore");
    let said = fincore.args(["--bytes", "--noheadings", "--output", "RES"]).arg(&file.path).output().unwrap().stdout;
    String::from_utf8(said).unwrap().trim().parse().unwrap()
}

#[test]
#[boltkv_needs::program("fincore")]
fn for_what_is_not_allowed_nothing_is_read_from_the_disk() {
    let file = TestFile::new();
    let server = cold_server_with(&file, |config| {
        let grant = |name: &str, rights: &[&str]| Grant {
            name: name.into(),
            proof: Proof::Token(Grant::digest(name.as_bytes())),
            rights: rights.iter().map(|right| right.parse().unwrap()).collect(),
            expires: None,
        };
        config.grants = Some(vec![grant("nobody", &[]), grant("reader", &["read"])]);
    });
    let gets: String = (0..300).map(|n| ["GET ", &entry(n * 7).0, "\r\n"].concat()).collect();
    let ask = |token: &str| {
        let mut text = server.text();
        assert_eq!(text.ask(&format!("AUTH {token}")), "OK");
        text.send(&gets);
        (0..300).map(|_| text.line()).collect::<Vec<_>>()
    };
    // The writer looks for keys that expire, at its first step: after this, the page that it looks at is there.
    let mut first = server.text();
    assert_eq!(first.ask("AUTH reader"), "OK");
    assert_eq!(first.ask(&format!("GET {}", entry(0).0)), entry(0).1);
    let before = in_memory(&file);
    assert!(ask("nobody").iter().all(|line| line.starts_with("ERR FORBIDDEN ")));
    assert_eq!(in_memory(&file), before);
    assert!(ask("reader").into_iter().eq((0..300).map(|n| entry(n * 7).1)));
}

/// A line that ends in LF alone is a script's: the connection ends after the last answer, and not before it.
#[test]
fn what_waits_is_answered_although_the_client_has_said_all_or_is_gone() {
    let file = TestFile::new();
    let server = cold_server(&file);
    let lines: String = (0..300).map(|n| ["GET ", &entry(n * 7).0, "\n"].concat()).collect();
    for _ in 0..3 {
        let mut gone = server.text();
        gone.send(&lines);
        drop(gone);
    }
    let mut text = server.text();
    text.send(&lines);
    text.end();
    let answers: String = (0..300).map(|n| entry(n * 7).1 + "\n").collect();
    assert_eq!(text.rest_within(Duration::from_secs(30)), Some(answers));
    server.assert_serving();
}
