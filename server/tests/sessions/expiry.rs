//! Keys that expire, over both dialects, with a clock that the test sets.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::time::{Duration, Instant};

use crate::common::binary::{
    bucket_stat, create, create_if_missing, delete, delete_bucket, get, list, path, scan_all, set,
};
use crate::common::{Binary, PATIENCE, TestServer};
use boltkv_protocol::{
    Cond, ErrorCode, ErrorReply, ExpireCond, ExpireTo, Expiry, KeyRange, ReadRequest, Reply, Request, ScanMode,
    ScanOptions, SessionRequest, SnapshotRead, SnapshotRequest, StreamRequest, Txn, Watch, WatchFrom, WriteRequest,
};
use boltkv_server::Clock;
use boltkv_storage::{Db, Error, Options};
use bytes::Bytes;

const OWN: &str = "boltkv.expires";

/// A server whose clock stands at 1,000.
fn server() -> (TestServer, Clock) {
    let clock = Clock::by_hand(1_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    (server, clock)
}

fn set_expiring(bucket: &str, key: &str, expiry: Expiry) -> Request {
    let (key, value) = (key.to_owned().into(), "v".into());
    WriteRequest::SetExpiring { path: path(bucket), key, value, cond: Cond::Always, expiry }.into()
}

fn expire(bucket: &str, key: &str, to: ExpireTo, cond: ExpireCond) -> Request {
    WriteRequest::Expire { path: path(bucket), key: key.to_owned().into(), to, cond }.into()
}

fn time(bucket: &str, key: &str) -> Request {
    ReadRequest::ExpiryTime { path: path(bucket), key: key.to_owned().into() }.into()
}

fn code(reply: Reply) -> ErrorCode {
    let Reply::Error(error) = reply else { panic!("{reply:?}") };
    error.code
}

fn changed(reply: &Reply) -> bool {
    let Reply::ExpirySet { changed, .. } = *reply else { panic!("{reply:?}") };
    changed
}

/// The names at the top of the file, boltkv's own among them.
fn top(db: &Db) -> Vec<String> {
    let tx = db.begin().unwrap();
    tx.buckets().map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

// Promises: wire-setex, wire-expire, wire-expiretime, wire-expiry.
#[test]
fn a_key_is_there_until_its_time() {
    let (server, clock) = server();
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set_expiring("b", "k", Expiry::In(50)));
    assert_eq!(client.ask(&time("b", "k")), Reply::ExpiryTime { at: 1_050, now: 1_000 });
    client.write(&set_expiring("b", "k", Expiry::Keep));
    clock.set(1_049);
    assert_eq!(client.ask(&time("b", "k")), Reply::ExpiryTime { at: 1_050, now: 1_049 });
    assert_eq!(client.value("b", "k").unwrap(), "v");
    clock.set(1_050);
    assert_eq!(code(client.ask(&get("b", "k"))), ErrorCode::KeyNotFound);
    assert_eq!(code(client.ask(&time("b", "k"))), ErrorCode::KeyNotFound);
    let always = ExpireCond::Always;
    assert!(!changed(&client.ask(&expire("b", "k", ExpireTo::In(9), always))), "there is no such key");
    client.write(&set_expiring("b", "k", Expiry::Keep));
    let never = boltkv_protocol::NEVER;
    assert_eq!(client.ask(&time("b", "k")), Reply::ExpiryTime { at: never, now: 1_050 });
    assert!(!changed(&client.ask(&expire("b", "k", ExpireTo::Never, always))));
    assert!(!changed(&client.ask(&expire("b", "k", ExpireTo::In(9), ExpireCond::IfSome))));
    assert!(changed(&client.ask(&expire("b", "k", ExpireTo::In(9), ExpireCond::IfNone))));
    assert!(!changed(&client.ask(&expire("b", "k", ExpireTo::In(8), ExpireCond::IfLater))));
    assert!(changed(&client.ask(&expire("b", "k", ExpireTo::In(8), ExpireCond::IfEarlier))));
    assert!(changed(&client.ask(&expire("b", "k", ExpireTo::Never, ExpireCond::IfLater))));
    assert_eq!(code(client.ask(&expire("none", "k", ExpireTo::In(9), always))), ErrorCode::BucketNotFound);
    assert_eq!(code(client.ask(&expire("/", "b", ExpireTo::In(9), always))), ErrorCode::BucketNameRequired);
}

// Promises: wire-expire-past.
#[test]
fn a_time_that_is_past_removes_the_key() {
    let (server, _clock) = server();
    let mut client = server.binary();
    client.write(&create_if_missing("b/inner"));
    client.write(&set("b", "k", "v"));
    assert!(changed(&client.ask(&expire("b", "k", ExpireTo::At(1_000), ExpireCond::Always))));
    assert!(changed(&client.ask(&expire("b", "inner", ExpireTo::In(0), ExpireCond::Always))));
    client.write(&set_expiring("b", "other", Expiry::At(3)));
    assert_eq!(client.entries(&scan_all("b")).0.len(), 0);
    assert_eq!(top(&server.db), ["b"]);
}

#[test]
fn in_text_they_are_the_numbers_that_redis_answers() {
    let (server, clock) = server();
    let mut client = server.text();
    for (line, said) in [
        ("TTL k", "-2"),
        ("EXPIRE k 5", "0"),
        ("PERSIST k", "0"),
        ("SETEX k 60 the value", "OK"),
        ("GET k", "the value"),
        ("TTL k", "60"),
        ("PTTL k", "60000"),
        ("PERSIST k", "1"),
        ("PERSIST k", "0"),
        ("TTL k", "-1"),
        ("PEXPIRE k 1600", "1"),
        ("TTL k", "2"),
        ("INCR n", "1"),
        ("EXPIRE n 1", "1"),
        ("INCR n", "2"),
        ("TTL n", "1"),
        ("COUNT", "2"),
    ] {
        assert_eq!(client.ask(line), said, "{line}");
    }
    clock.set(2_600);
    for (line, said) in [
        ("COUNT", "0"),
        ("EXISTS k", "0"),
        ("MGET n", "(nil)"),
        ("SCAN", "END"),
        ("TTL k", "-2"),
        ("DEL k", "(nil)"),
        ("INCR n", "1"),
        ("TTL n", "-1"),
        ("EXPIRE n 0", "1"),
        ("EXISTS n", "0"),
    ] {
        assert_eq!(client.ask(line), said, "{line}");
    }
    let said = ["MULTI", "SETEX k 1 v", "TTL k", "EXPIRE none 1", "TTL none", "EXEC"].map(|line| client.ask(line));
    assert_eq!(said, ["OK", "QUEUED", "QUEUED", "QUEUED", "QUEUED", "OK"]);
    assert_eq!([client.line(), client.line(), client.line(), client.line()], ["1", "0", "-2", "END"]);
}

// Promises: wire-expiry-move.
#[test]
fn a_bucket_takes_its_time_and_its_keys_along() {
    let (server, clock) = server();
    let mut client = server.binary();
    for bucket in ["b/inner", "to"] {
        client.write(&create_if_missing(bucket));
    }
    client.write(&set_expiring("b/inner", "k", Expiry::In(10)));
    client.write(&set("b/inner", "stays", "v"));
    client.ask(&expire("b", "inner", ExpireTo::In(20), ExpireCond::Always));
    let move_to = |to: &str| Request::Write(WriteRequest::MoveBucket { path: path("b/inner"), to: path(to) });
    assert_eq!(code(client.ask(&move_to("inner"))), ErrorCode::IncompatibleValue);
    client.write(&move_to("to/moved"));
    assert_eq!(client.ask(&time("to", "moved")), Reply::ExpiryTime { at: 1_020, now: 1_000 });
    clock.set(1_010);
    assert_eq!(code(client.ask(&get("to/moved", "k"))), ErrorCode::KeyNotFound);
    assert_eq!(client.value("to/moved", "stays").unwrap(), "v");
    clock.set(1_020);
    assert_eq!(code(client.ask(&get("to/moved", "stays"))), ErrorCode::BucketNotFound);
    wait_until("nothing is left of times", || top(&server.db) == ["b", "to"]);
}

#[test]
fn a_snapshot_does_not_bring_back_what_has_expired() {
    let (server, clock) = server();
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set_expiring("b", "k", Expiry::In(10)));
    let Reply::Snapshot { id, .. } =
        client.ask(&SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms: 0 }).into())
    else {
        panic!()
    };
    let read = |request: Request| match request {
        Request::Read(read) => Request::OfSnapshot { snapshot: id, read: SnapshotRead::Read(read) },
        Request::Stream(stream) => Request::OfSnapshot { snapshot: id, read: SnapshotRead::Stream(stream) },
        other => panic!("{other:?}"),
    };
    let mut txn = Txn::builder();
    txn.request(&get("b", "k")).unwrap();
    let txn = txn.build();
    assert_eq!(client.ask(&read(time("b", "k"))), Reply::ExpiryTime { at: 1_010, now: 1_000 });
    assert_eq!(client.entries(&read(scan_all("b"))).0.len(), 1);
    clock.set(1_010);
    assert_eq!(code(client.ask(&read(get("b", "k")))), ErrorCode::KeyNotFound);
    assert_eq!(client.entries(&read(scan_all("b"))).0.len(), 0);
    let Reply::Txn { results, .. } = client.ask(&read(txn.clone().into())) else { panic!() };
    assert_eq!(results.replies(txn.expects()).map(|reply| code(reply.unwrap())).next(), Some(ErrorCode::KeyNotFound));
}

// Promises: wire-expiry-own.
#[test]
fn what_is_boltkvs_own_is_nobodys_to_see_or_to_change() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options::new().journal(boltkv_storage::JournalOptions::new());
    let db = options.open(folder.path().join("db")).unwrap();
    let server = TestServer::serve(db, |_| {});
    let mut client = server.binary();
    let watch = |path| Watch { path, from: WatchFrom::Oldest, prefix: Bytes::new(), keys_only: true };
    client.write(&create_if_missing("b/inner"));
    client.write(&set_expiring("b", "k", Expiry::In(1_000_000)));
    assert_eq!(top(&server.db), ["b", OWN]);
    assert_eq!(client.entries(&list("/")).0.len(), 1);
    assert_eq!(client.entries(&scan_all("/")).0.len(), 1);
    let count = ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() };
    assert_eq!(client.ask(&crate::common::binary::scan("/", KeyRange::ALL, count)), Reply::Count(1));
    for own in [OWN, "boltkv.expires/of", "boltkv.expires/none"] {
        let mut txn = Txn::builder();
        txn.request(&get(own, "k")).unwrap();
        let mut condition = Txn::builder();
        condition.condition(&path(own), b"k", &Cond::<&[u8]>::Always).unwrap();
        condition.request(&delete("b", "none")).unwrap();
        let to_own = WriteRequest::MoveBucket { path: path("b/inner"), to: path(own) };
        let from_own = WriteRequest::MoveBucket { path: path(own), to: path("b/own") };
        for request in [
            get(own, "k"),
            time(own, "k"),
            set(own, "k", "v"),
            delete(own, "k"),
            set_expiring(own, "k", Expiry::Keep),
            expire(own, "k", ExpireTo::Never, ExpireCond::Always),
            create(own),
            create_if_missing(own),
            delete_bucket(own),
            bucket_stat(own),
            list(own),
            scan_all(own),
            to_own.into(),
            from_own.into(),
            WriteRequest::DeleteRange { path: path(own), range: KeyRange::ALL, limit: None }.into(),
            WriteRequest::NextSequence(path(own)).into(),
            StreamRequest::Watch(watch(path(own))).into(),
            txn.build().into(),
            condition.build().into(),
        ] {
            let error: ErrorReply = match client.ask(&request) {
                Reply::Error(error) => error,
                reply => panic!("{request:?}: {reply:?}"),
            };
            assert_eq!(error.code, ErrorCode::Forbidden, "{request:?}");
            assert!(error.message.contains("boltkv's own"), "{}", error.message);
        }
    }
    let mut text = server.text();
    assert!(text.ask("BUCKET USE boltkv.expires").starts_with("ERR FORBIDDEN "));
    client.send_all(&[StreamRequest::Watch(watch(path("/"))).into()]);
    let told = tell_until_sequence(&mut client, &server);
    assert!(told.iter().all(|path| path.names().next() != Some(OWN.as_bytes())), "{told:?}");
}

/// The buckets that a watch tells of, until it tells of what is done last.
fn tell_until_sequence(client: &mut Binary, server: &TestServer) -> Vec<boltkv_protocol::Path> {
    server.binary().write(&WriteRequest::SetSequence { path: path("b"), sequence: 77 }.into());
    let mut told = Vec::new();
    loop {
        let Ok(Reply::Changes(changes)) = Reply::decode(boltkv_protocol::Expect::Watch, client.frame()) else {
            panic!("the watch ends")
        };
        for change in changes.changes {
            if change.number() == Some(77) {
                return told;
            }
            let own = change.path.names().next().is_none() && change.key == OWN;
            assert!(!own, "it is told of");
            told.push(change.path);
        }
    }
}

// Promises: ops-expiry-file.
#[test]
fn what_has_expired_is_removed_from_the_file_while_others_write() {
    const KEYS: u32 = 100_000;
    let clock = Clock::by_hand(1_000);
    let db = Options::new().open_in_memory().unwrap();
    let server = TestServer::serve(db, |config| config.clock = clock.clone());
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&create("c"));
    for first in (0..KEYS).step_by(1_000) {
        let mut txn = Txn::builder();
        for n in first..first + 1_000 {
            // Not in the order in which they lie.
            let key = format!("{:08x}", n.wrapping_mul(0x9e37_79b9));
            let request = set_expiring("b", &key, Expiry::At(2_000 + u64::from(n % 100)));
            txn.request(&request).unwrap();
        }
        assert!(matches!(client.ask(&txn.build().into()), Reply::Txn { .. }));
    }
    client.write(&set("b", "stays", "v"));
    let pages = |db: &Db| db.stats().pages - db.stats().free_pages.unwrap_or_default();
    let before = pages(&server.db);
    assert_eq!((client.stat("expired_keys"), client.stat("keys_expire")), ("0".into(), "1".into()));
    clock.set(2_050);
    for n in 0..100 {
        client.write(&set("c", &n.to_string(), "v"));
    }
    clock.set(3_000);
    wait_until("all that has expired is removed", || top(&server.db) == ["b", "c"]);
    assert_eq!(client.stat("expired_keys"), KEYS.to_string());
    assert_eq!((client.stat("expiry_lag_ms"), client.stat("keys_expire")), ("0".into(), "0".into()));
    assert_eq!(client.entries(&scan_all("b")).0.len(), 1);
    client.write(&set("c", "last", "v"));
    wait_until("its pages are used again", || {
        client.write(&set("c", "last", "v"));
        pages(&server.db) < before / 10
    });
    let tx = server.db.begin().unwrap();
    assert!(tx.check().unwrap().is_empty());
    assert_eq!(tx.bucket("b").and_then(|bucket| bucket.count()).unwrap(), 1);
}

/// A database that was served at 1,000 ms, with a key in the bucket `b` that expires at 1,500.
fn served_before() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    let clock = Clock::by_hand(1_000);
    let server = TestServer::serve(db.clone(), |config| config.clock = clock.clone());
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set_expiring("b", "k", Expiry::In(500)));
    drop(client);
    server.stop().unwrap();
    db
}

#[test]
fn a_file_that_is_served_again_goes_on_where_it_was() {
    let db = served_before();
    assert_eq!(top(&db), ["b", OWN]);
    // Nobody has written to it since, and what is due comes up nevertheless.
    let server = TestServer::serve(db.clone(), |config| config.clock = Clock::by_hand(2_000));
    wait_until("it is removed", || top(&db) == ["b"]);
    server.stop().unwrap();
    let count: Result<u64, Error> = db.begin().unwrap().bucket("b").and_then(|bucket| bucket.count());
    assert_eq!(count.unwrap(), 0);
}

#[test]
fn one_that_only_reads_shows_nothing_that_has_expired_and_changes_nothing() {
    let db = served_before();
    let server = TestServer::serve(db.clone(), |config| {
        config.clock = Clock::by_hand(2_000);
        config.read_only = true;
    });
    let mut client = server.binary();
    assert_eq!(client.entries(&scan_all("b")).0.len(), 0);
    assert_ne!(client.stat("expiry_lag_ms"), "0");
    assert_eq!(top(&db), ["b", OWN]);
}

#[test]
fn a_new_key_has_nothing_of_a_time_that_somebody_else_has_left() {
    let db = Options::new().open_in_memory().unwrap();
    let server = TestServer::serve(db.clone(), |config| config.clock = Clock::by_hand(1_000));
    let mut client = server.resp();
    let keys = ["incr", "append", "setrange", "hash", "set"];
    for key in keys {
        assert_eq!(client.tell(&format!("SET {key} 1 PX 500")), "OK");
    }
    drop(client);
    server.stop().unwrap();
    // As bbolt's own tool does, which knows of no times.
    db.update(|tx| keys.iter().try_for_each(|key| tx.bucket_mut("default")?.delete(key).map(drop))).unwrap();
    let server = TestServer::serve(db, |config| config.clock = Clock::by_hand(1_100));
    let mut client = server.resp();
    for line in ["INCR incr", "APPEND append x", "SETRANGE setrange 0 x", "HSET hash f v", "SET set v KEEPTTL"] {
        client.tell(line);
    }
    for key in keys {
        assert_eq!(client.tell(&format!("PTTL {key}")), "-1", "{key}");
    }
}
