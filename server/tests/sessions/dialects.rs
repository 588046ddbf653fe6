//! Where both dialects can say the same thing, they get the same result.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::binary::{bucket_stat, create_if_missing, delete, delete_bucket, get, list, path, scan, set};
use crate::common::{Binary, TestServer, Text};
use boltkv_protocol::text::{self, Answer, MissingBucket, Queued};
use boltkv_protocol::{
    KeyRange, LowBound, Path, ReadRequest, Reply, Request, Scan, ScanMode, ScanOptions, StreamRequest, WriteRequest,
};
use boltkv_storage::{Db, Error, Options};
use bytes::{Bytes, BytesMut};

/// The same, said in text and in binary, in bucket `b`, and how text prints it.
fn commands() -> Vec<(String, Request, Answer)> {
    let scan_with = |low, mode, limit| {
        let options = ScanOptions { mode, limit: std::num::NonZeroU64::new(limit), ..ScanOptions::default() };
        scan("b", KeyRange { low, ..KeyRange::ALL }, options)
    };
    let prefix = || LowBound::Prefix("k".into());
    let (entries, count) = (ScanMode::Entries, ScanMode::Count);
    let mut commands = vec![
        ("PING".into(), Request::Read(ReadRequest::Ping(Bytes::new())), Answer::Pong),
        ("SCAN".into(), scan_with(LowBound::Unbounded, entries, 0), Answer::Entries),
        ("SCAN k".into(), scan_with(prefix(), entries, 0), Answer::Entries),
        ("SCAN k LIMIT 2".into(), scan_with(prefix(), entries, 2), Answer::Entries),
        ("COUNT".into(), scan_with(LowBound::Unbounded, count, 0), Answer::Count),
        ("COUNT k".into(), scan_with(prefix(), count, 0), Answer::Count),
    ];
    for bucket in ["b", "b/inner", "b/k1", "absent", "b/new/newer"] {
        commands.push((format!("BUCKET LIST {bucket}"), list(bucket), Answer::Names));
        commands.push((format!("BUCKET STAT {bucket}"), bucket_stat(bucket), Answer::Figures));
        commands.push((format!("BUCKET CREATE {bucket}"), create_if_missing(bucket), Answer::Done));
        commands.push((format!("BUCKET LIST {bucket}"), list(bucket), Answer::Names));
    }
    for key in ["k1", "absent", "inner", "new", "large"] {
        commands.push((format!("GET {key}"), get("b", key), Answer::Value));
        commands.push((format!("EXISTS {key}"), get("b", key), Answer::Exists));
        commands.push((format!("SET {key} value"), set("b", key, "value"), Answer::Done));
        commands.push((format!("GET {key}"), get("b", key), Answer::Value));
        commands.push((format!("DELETE {key}"), delete("b", key), Answer::Deleted));
        commands.push((format!("DELETE {key}"), delete("b", key), Answer::Deleted));
    }
    commands.extend(numbers_and_ranges());
    commands.push(("SET \"\" v".into(), set("b", "", "v"), Answer::Done));
    for bucket in ["b/inner", "b/inner", "b/k1", "b"] {
        commands.push((format!("BUCKET DELETE {bucket}"), delete_bucket(bucket), Answer::Done));
    }
    // From here on the bucket is gone.
    commands.push(("GET k1".into(), get("b", "k1"), Answer::Value));
    commands.push(("SET k1 v".into(), set("b", "k1", "v"), Answer::Done));
    commands.push(("DELETE k1".into(), delete("b", "k1"), Answer::Deleted));
    commands.push(("SCAN".into(), scan_with(LowBound::Unbounded, entries, 0), Answer::Entries));
    commands.push(("COUNT".into(), scan_with(LowBound::Unbounded, count, 0), Answer::Count));
    commands
}

/// What is done to numbers, many values at once and buckets as a whole.
fn numbers_and_ranges() -> Vec<(String, Request, Answer)> {
    let mut commands = Vec::new();
    let mut write =
        |line: &str, request: WriteRequest, answer| commands.push((line.to_owned(), request.into(), answer));
    let increment = |key: &str, delta| WriteRequest::Increment { path: path("b"), key: key.to_owned().into(), delta };
    write("INCR n", increment("n", 1), Answer::Number);
    write("DECR n 5", increment("n", -5), Answer::Number);
    write("INCR n 9223372036854775807", increment("n", i64::MAX), Answer::Number);
    write("DECR n -9223372036854775807", increment("n", i64::MAX), Answer::Number);
    write("INCR k2", increment("k2", 1), Answer::Number);
    write("INCR inner", increment("inner", 1), Answer::Number);
    write("BUCKET NEXT b", WriteRequest::NextSequence(path("b")), Answer::Number);
    write("BUCKET NEXT b/k3", WriteRequest::NextSequence(path("b/k3")), Answer::Number);
    write("BUCKET SEQUENCE b 9", WriteRequest::SetSequence { path: path("b"), sequence: 9 }, Answer::Done);
    for to in ["b/new", "b/inner/new", "new", "b/newer", "b/new/new"] {
        let request = WriteRequest::MoveBucket { path: path("b/new"), to: path(to) };
        write(&format!("BUCKET MOVE b/new {to}"), request, Answer::Done);
    }
    for (low, high, limit) in [("k2", "k3", 0), ("a", "z", 0), ("k", "l", 1), ("k", "l", 1), ("none", "none", 0)] {
        let range = KeyRange {
            low: LowBound::Included(low.to_owned().into()),
            high: std::ops::Bound::Excluded(high.to_owned().into()),
        };
        let limit_word = if limit == 0 { String::new() } else { format!(" LIMIT {limit}") };
        let request = WriteRequest::DeleteRange { path: path("b"), range, limit: std::num::NonZeroU64::new(limit) };
        write(&format!("DELRANGE {low} {high}{limit_word}"), request, Answer::DeletedRange);
    }
    for bucket in ["b", "b/k3", "none"] {
        let read = Request::Read(ReadRequest::Sequence(path(bucket)));
        commands.push((format!("BUCKET SEQUENCE {bucket}"), read, Answer::Number));
    }
    commands
}

fn database() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.create_bucket("inner")?;
        bucket.put("large", vec![b'v'; 70_000])?;
        ["k1", "k2", "k3"].iter().try_for_each(|key| bucket.put(key, key))?;
        Ok::<_, Error>(())
    })
    .unwrap();
    db
}

/// The binary reply, as text prints it.
fn printed(client: &mut Binary, request: &Request, answer: Answer) -> String {
    let ids = client.send_all(std::slice::from_ref(request));
    let frame = client.frame();
    assert_eq!((frame.id, frame.has_more()), (ids[0], false));
    let reply = Reply::decode(request.expects().unwrap(), frame).unwrap();
    let mut out = BytesMut::new();
    answer.write(&reply, MissingBucket::Error, &mut out);
    String::from_utf8(out.to_vec()).unwrap()
}

/// As many lines as are expected.
fn lines(client: &mut Text, line: &str, expected: &str) -> String {
    client.send(format!("{line}\r\n"));
    expected.lines().map(|_| client.line() + "\n").collect()
}

fn dump(path: &Path, db: &Db) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
    let tx = db.begin().unwrap();
    let Ok(bucket) = tx.bucket_path(path.names()) else { return Vec::new() };
    bucket.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec))).unwrap()).collect()
}

// Promises: wire-faces.
#[test]
fn both_dialects_get_the_same_result_and_leave_the_same_database() {
    let limit = |config: &mut boltkv_server::Config| config.limits.max_frame = 64 * 1024;
    let (in_text, in_binary) = (TestServer::serve(database(), limit), TestServer::serve(database(), limit));
    let (mut text, mut binary) = (in_text.text(), in_binary.binary());
    assert_eq!(text.ask("BUCKET USE b"), "OK");
    let bucket = Path::from_names(["b"]).unwrap();
    for (line, request, answer) in commands() {
        let expected = printed(&mut binary, &request, answer);
        assert_eq!(lines(&mut text, &line, &expected), expected, "{line}");
        assert_eq!(dump(&bucket, &in_text.db), dump(&bucket, &in_binary.db), "after {line}");
        assert_eq!(in_text.db.stats().txid, in_binary.db.stats().txid, "after {line}");
    }
    assert_eq!(text.ask("PING"), "PONG", "nothing more was sent than was compared");
}

// Promises: wire-faces.
#[test]
fn a_transaction_has_the_same_results_in_both_dialects() {
    let (in_text, in_binary) = (TestServer::serve(database(), |_| {}), TestServer::serve(database(), |_| {}));
    let (mut text, mut binary) = (in_text.text(), in_binary.binary());
    assert_eq!(text.ask("BUCKET USE b"), "OK");
    let bucket = Path::from_names(["b"]).unwrap();
    for lines in [
        &["SET new v", "GET new", "EXISTS k1", "MGET k1 ? k2", "SCAN", "COUNT k", "BUCKET LIST b"][..],
        &["IF EQUALS k1 k1", "IF ABSENT ?", "IF PRESENT inner", "DELETE k1", "DELETE k1", "SETNX k1 a b"],
        &["IF ABSENT k1", "IF EQUALS k1 b a", "SET k1 lost"],
        &["SET k2 lost", "CAS k2 other lost", "SET k2 lost"],
        &["SET k2 lost", "BUCKET DELETE b", "GET k2"],
        &["GET k1", "SCAN k LIMIT 2", "EXISTS ?"],
        &["BUCKET CREATE b/x/y", "BUCKET DELETE b/x", "SET inner v"],
        &[],
    ] {
        let mut queued = Queued::new(1 << 20);
        for line in lines {
            let command = text::parse(&Bytes::from(*line), &bucket).unwrap().unwrap();
            assert_eq!(queued.add(command), Ok(None), "{line}");
        }
        let (txn, answers) = queued.into_txn();
        let mut expected = BytesMut::new();
        answers.write(&binary.ask(&txn.into()), &mut expected);
        let expected = String::from_utf8(expected.to_vec()).unwrap();
        assert_eq!(text.ask("MULTI"), "OK");
        for line in lines {
            assert_eq!(text.ask(line), "QUEUED");
        }
        assert_eq!(self::lines(&mut text, "EXEC", &expected), expected, "{lines:?}");
        assert_eq!(dump(&bucket, &in_text.db), dump(&bucket, &in_binary.db), "after {lines:?}");
        assert_eq!(in_text.db.stats().txid, in_binary.db.stats().txid, "after {lines:?}");
    }
    assert_eq!(text.ask("PING"), "PONG", "nothing more was sent than was compared");
}

#[test]
fn one_dialect_sees_what_the_other_wrote() {
    let server = TestServer::start();
    let (mut text, mut binary) = (server.text(), server.binary());
    assert_eq!(text.ask("SET k from text"), "OK");
    assert_eq!(binary.value("default", "k").as_deref(), Some(&b"from text"[..]));
    binary.write(&set("default", "k", "from binary"));
    assert_eq!(text.ask("GET k"), "from binary");
    assert_eq!(text::default_bucket(), crate::common::binary::path("default"));
    let listed = Scan::default();
    assert_eq!(binary.keys(&Request::Stream(StreamRequest::ListBuckets(listed))), ["default"]);
}
