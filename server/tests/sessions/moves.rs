//! Buckets that are moved, for those who were looking: a scan that is under way, a snapshot, and watches of where a bucket was
//! and of where it is; alone, in transactions, and in every dialect.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;

use crate::common::binary::{create, create_if_missing, delete_bucket, get, list, path, scan_all, set};
use crate::common::txn::{code_and_part, done, refused, txn, txn_if};
use crate::common::watch::{all, begin, frame, request, watch};
use crate::common::{Binary, TestFile, TestServer};
use boltkv_protocol::{
    Change, ChangeKind, Cond, EntryKind, ErrorCode, Expect, ReadRequest, Reply, Request, SessionRequest, SnapshotRead,
    SnapshotRequest, TxnPart, WatchFrom, WatchPosition, WriteRequest,
};
use boltkv_storage::{Db, JournalKeep, JournalOptions, Options};

fn database(file: &TestFile) -> Db {
    Options::new().journal(JournalOptions::new().keep(JournalKeep::Bytes(1 << 30))).open(&file.path).unwrap()
}

fn move_to(from: &str, to: &str) -> Request {
    Request::Write(WriteRequest::MoveBucket { path: path(from), to: path(to) })
}

/// Names from the top down.
type Names = Vec<Vec<u8>>;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

/// What somebody knows who follows all changes: keys and values by bucket.
#[derive(Debug, Default, PartialEq)]
struct Known(BTreeMap<Names, Content>);

impl Known {
    fn follow(&mut self, Change { kind, path, key, value }: &Change, to: Option<Names>) {
        let bucket: Names = path.names().map(<[u8]>::to_vec).collect();
        let within: Names = bucket.iter().cloned().chain([key.to_vec()]).collect();
        match kind {
            ChangeKind::Put => _ = self.0.get_mut(&bucket).unwrap().insert(key.to_vec(), value.to_vec()),
            ChangeKind::Deleted => assert!(self.0.get_mut(&bucket).unwrap().remove(&key[..]).is_some(), "{within:?}"),
            ChangeKind::BucketCreated => assert!(self.0.insert(within, BTreeMap::new()).is_none()),
            ChangeKind::BucketDeleted => assert!(!self.take(&within).is_empty(), "{within:?} was not there"),
            ChangeKind::BucketMoved => {
                let (moved, to) = (self.take(&within), to.unwrap());
                assert!(!moved.is_empty(), "{within:?} was not there");
                for (names, content) in moved {
                    let names = to.iter().chain(&names[within.len()..]).cloned().collect();
                    assert!(self.0.insert(names, content).is_none(), "{to:?} was there");
                }
            }
            ChangeKind::Sequence => {}
            other => panic!("nobody did {other:?}"),
        }
    }

    /// A bucket with all within.
    fn take(&mut self, at: &[Vec<u8>]) -> Vec<(Names, Content)> {
        let within: Vec<_> = self.0.keys().filter(|names| names.starts_with(at)).cloned().collect();
        within.into_iter().filter_map(|names| self.0.remove_entry(&names)).collect()
    }

    /// What there is.
    fn read(client: &mut Binary) -> Self {
        let (mut known, mut to_read) = (Self::default(), vec![Names::new()]);
        while let Some(names) = to_read.pop() {
            let path = boltkv_protocol::Path::from_names(&names).unwrap().to_string();
            let (entries, _) = client.entries(&if names.is_empty() { list("/") } else { scan_all(&path) });
            for entry in entries {
                let (key, value) = (entry.key.to_vec(), entry.value.to_vec());
                match entry.kind {
                    EntryKind::Bucket => {
                        let within: Names = names.iter().cloned().chain([key]).collect();
                        known.0.insert(within.clone(), BTreeMap::new());
                        to_read.push(within);
                    }
                    _ => _ = known.0.get_mut(&names).unwrap().insert(key, value),
                }
            }
        }
        known
    }
}

/// All that a watch tells up to a transaction, with that one.
fn told_until(watcher: &mut Binary, txid: u64) -> (Vec<Change>, WatchPosition) {
    let mut all = Vec::new();
    loop {
        let next = frame(watcher).unwrap();
        let is_whole = next.changes.is_empty() || next.is_whole;
        all.extend(next.changes);
        if is_whole && next.position.txid >= txid {
            return (all, next.position);
        }
    }
}

fn follow_until(known: &mut Known, watcher: &mut Binary, txid: u64) -> WatchPosition {
    let (changes, position) = told_until(watcher, txid);
    for change in &changes {
        let to = change.moved_to().map(|to| to.names().map(<[u8]>::to_vec).collect());
        known.follow(change, to);
    }
    position
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// A path of one to three names, of which there are few.
    fn path(&mut self) -> String {
        let names: Vec<_> =
            (0..=self.below(3)).map(|_| ["a", "b", "c"][usize::try_from(self.below(3)).unwrap()]).collect();
        names.join("/")
    }
}

// Promises: wire-move, wire-watch-kinds.
#[test]
fn who_follows_everything_knows_where_each_bucket_is_whatever_is_moved() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |_| {});
    let (mut watcher, mut client) = (server.binary(), server.binary());
    let (mut known, mut random) = (Known::default(), Random(11));
    begin(&mut watcher, all(WatchFrom::Now));
    let mut moves = [0, 0];
    for step in 0..900_u32 {
        let (from, to, key) = (random.path(), random.path(), format!("k{}", random.below(4)));
        let of_move = match random.below(8) {
            0 | 1 => {
                client.ask(&create_if_missing(&from));
                None
            }
            2 | 3 => {
                client.ask(&set(&from, &key, step.to_string()));
                None
            }
            4 | 5 => Some(client.ask(&move_to(&from, &to))),
            // Moved between two puts of one transaction; where it cannot be, all of it is undone.
            6 => Some(
                client.ask(&txn(&[set(&from, &key, "before"), move_to(&from, &to), set(&to, &key, "after")]).into()),
            ),
            _ => {
                client.ask(&delete_bucket(&from));
                None
            }
        };
        if let Some(reply) = of_move {
            moves[usize::from(matches!(reply, Reply::Error(_)))] += 1;
        }
        if step % 60 == 59 {
            let position = follow_until(&mut known, &mut watcher, server.db.stats().txid);
            assert_eq!(known, Known::read(&mut client), "after step {step}");
            watcher = server.binary();
            begin(&mut watcher, all(WatchFrom::Position(position)));
        }
    }
    assert!(moves[0] > 20 && moves[1] > 20, "{moves:?} were done and refused");
    assert!(server.db.check().unwrap().is_empty());
}

// Promises: wire-watch-within.
#[test]
fn a_move_is_told_to_whom_either_end_concerns_and_to_nobody_else() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |_| {});
    let mut client = server.binary();
    for bucket in ["a/x/y", "b", "c"] {
        client.write(&create_if_missing(bucket));
    }
    client.write(&set("a/x/y", "k", "old"));
    // What is watched, whether the move is told, and what is put into the bucket afterwards, and before in its old place.
    let cases = [
        ("/", "", true, true),
        ("/", "a", true, false),
        ("/", "b", true, true),
        ("/", "c", false, false),
        ("a", "", true, false),
        ("a", "x", true, false),
        ("a", "q", false, false),
        ("a/x", "", true, false),
        ("a/x/y", "", true, false),
        ("b", "", true, true),
        ("b", "z", true, true),
        ("b", "q", false, false),
        ("b/z", "", true, true),
        ("b/z", "y", true, true),
        ("b/z/y", "k", true, true),
        ("b/x", "", false, false),
        ("c", "", false, false),
    ];
    let mut watchers = cases.map(|(bucket, prefix, ..)| {
        let mut watcher = server.binary();
        begin(&mut watcher, request(watch(WatchFrom::Now, bucket, prefix)));
        watcher
    });
    client.write(&move_to("a/x", "b/z"));
    let last = client.write(&set("b/z/y", "k", "new"));
    for ((bucket, prefix, is_moved, is_put), watcher) in cases.into_iter().zip(&mut watchers) {
        let (changes, _) = told_until(watcher, last);
        let kinds: Vec<_> =
            changes.iter().map(|change| (change.kind, change.path.to_string(), &change.key[..])).collect();
        let mut expected = Vec::new();
        if is_moved {
            expected.push((ChangeKind::BucketMoved, "a".to_owned(), &b"x"[..]));
            assert_eq!(changes[0].moved_to(), Some(path("b/z")));
        }
        if is_put {
            expected.push((ChangeKind::Put, "b/z/y".to_owned(), &b"k"[..]));
        }
        assert_eq!(kinds, expected, "{bucket} {prefix:?}");
    }
}

#[test]
fn a_move_that_is_refused_is_told_to_nobody_and_undoes_its_transaction() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |_| {});
    let (mut client, mut text) = (server.binary(), server.text());
    for bucket in ["a/x", "b/x"] {
        client.write(&create_if_missing(bucket));
    }
    client.write(&set("b", "value", "v"));
    let mut watcher = server.binary();
    begin(&mut watcher, all(WatchFrom::Now));
    let before = Known::read(&mut client);
    let (exists, incompatible, missing) =
        (ErrorCode::BucketExists, ErrorCode::IncompatibleValue, ErrorCode::BucketNotFound);
    for (from, to, code) in [
        ("a", "a", exists),
        ("a/x", "b/x", exists),
        ("a/x", "b", exists),
        ("a", "a/a", incompatible),
        ("a", "a/x/a", incompatible),
        ("a/x", "b/value", incompatible),
        ("a/x", "none/x", missing),
        ("a/none", "b/y", missing),
    ] {
        assert_eq!(client.ask_code(&move_to(from, to)), code, "{from} to {to}");
        let said = text.ask(&format!("BUCKET MOVE {from} {to}"));
        assert!(said.starts_with(&format!("ERR {} ", code.name())), "{from} to {to}: {said}");
        let parts = [set("a/x", "k", "lost"), move_to("a/x", "b/moved"), move_to("b/moved", "a/x"), move_to(from, to)];
        let error = refused(&mut client, txn(&parts));
        assert_eq!(code_and_part(&error), (code, Some(TxnPart::Request(3))), "{from} to {to}");
        assert_eq!(text.ask("MULTI"), "OK");
        for line in ["BUCKET MOVE a/x b/moved", &format!("BUCKET MOVE {from} {to}")] {
            assert_eq!(text.ask(line), "QUEUED");
        }
        let said = text.ask("EXEC");
        assert!(said.starts_with("ERR "), "{from} to {to}: {said}");
    }
    let condition = txn_if("value", &Cond::IfAbsent, &[move_to("a/x", "b/moved")]);
    assert_eq!(refused(&mut client, condition).code, ErrorCode::ConditionFailed);
    assert_eq!(Known::read(&mut client), before);
    let last = client.write(&set("b", "value", "last"));
    let (changes, _) = told_until(&mut watcher, last);
    assert_eq!(changes.len(), 1, "{changes:?}");
}

// Promises: wire-snapshot-stream.
#[test]
fn a_scan_that_is_under_way_and_a_snapshot_see_a_bucket_where_it_was() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |_| {});
    let (mut client, mut slow) = (server.binary(), server.binary());
    client.write(&create("to"));
    // Far more than a stream's first credit.
    server
        .db
        .update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            (0..1_000_u32).try_for_each(|key| bucket.put(key.to_be_bytes(), [7; 1_000]))
        })
        .unwrap();
    slow.gives_credit = false;
    let open = Request::Session(SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms: 300_000 }));
    let Reply::Snapshot { id: snapshot, .. } = client.ask(&open) else { panic!("no snapshot") };
    let id = slow.send_all(&[scan_all("b")])[0];
    let first = slow.frame();
    assert!(first.has_more());
    // Away, back, another one in its place, and that one away, too.
    for (from, to) in [("b", "to/b"), ("to/b", "b"), ("b", "to/c")] {
        client.write(&move_to(from, to));
    }
    client.write(&create("b"));
    client.write(&set("b", "another", "one"));
    client.write(&move_to("b", "to/c/b"));
    slow.credit(id, 1 << 30);
    let (mut next, mut keys) = (first, 0_u32);
    loop {
        let more = next.has_more();
        let Reply::Entries(entries) = Reply::decode(Expect::Entries, next).unwrap() else { panic!("no entries") };
        for entry in entries {
            assert_eq!((&entry.key[..], entry.value.len()), (&keys.to_be_bytes()[..], 1_000));
            keys += 1;
        }
        if !more {
            break;
        }
        next = slow.frame();
    }
    assert_eq!(keys, 1_000);
    assert_eq!(slow.ask_code(&get("b", "another")), ErrorCode::BucketNotFound, "but who asks now finds it gone");

    let key = String::from_utf8(0_u32.to_be_bytes().to_vec()).unwrap();
    let mut of_snapshot = |bucket: &str| {
        let read = SnapshotRead::Read(ReadRequest::Get { path: path(bucket), key: key.clone().into() });
        client.ask(&Request::OfSnapshot { snapshot, read })
    };
    assert_eq!(of_snapshot("b"), Reply::Value(vec![7; 1_000].into()));
    let Reply::Error(error) = of_snapshot("to/c") else { panic!("it was not there yet") };
    assert_eq!(error.code, ErrorCode::BucketNotFound);
    assert_eq!(client.value("to/c", &key).unwrap(), vec![7; 1_000]);
    assert_eq!(client.value("to/c/b", "another").unwrap(), "one");
}

// Promises: wire-faces.
#[test]
fn in_every_dialect_a_move_is_the_same_and_told_so() {
    let file = TestFile::new();
    let server = TestServer::serve(database(&file), |_| {});
    let (mut watcher, mut client) = (server.binary(), server.binary());
    let (mut text, mut resp) = (server.text(), server.resp());
    begin(&mut watcher, all(WatchFrom::Now));
    client.write(&create_if_missing("default/h"));
    client.write(&create("other"));
    client.write(&set("default/h", "f", "v"));
    client.write(&move_to("default/h", "other/h"));
    assert_eq!(text.ask("BUCKET MOVE other/h default/g"), "OK");
    assert_eq!(text.ask("MULTI"), "OK");
    for line in ["BUCKET MOVE default/g other/i", "BUCKET USE other/i", "SET f w", "BUCKET MOVE other/i default/h"] {
        text.ask(line);
    }
    assert_eq!(text.ask_all("EXEC"), ["OK"; 3]);
    done(&mut client, txn(&[move_to("default/h", "default/j"), set("default/j", "f", "x")]));
    // In Redis' words a bucket is a hash, and what is where it goes gives way.
    resp.talk(&[
        ("HGET j f", r#""x""#),
        ("RENAME j h", "OK"),
        ("EXPIRE h 1000", "1"),
        ("HSET k f old", "1"),
        ("RENAMENX h k", "0"),
        ("RENAME h k", "OK"),
        ("MOVE k 3", "1"),
        ("HSET h f y", "1"),
        ("SWAPDB 0 3", "OK"),
        ("HGET k f", r#""x""#),
    ]);
    let newest = server.db.stats().txid;
    let mut known = Known::default();
    follow_until(&mut known, &mut watcher, newest);
    assert_eq!(known, Known::read(&mut client));
    let names = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Names>();
    assert_eq!(known.0[&names(&["default", "k"])].values().collect::<Vec<_>>(), [b"x"]);
    let moves = {
        let mut again = server.binary();
        begin(&mut again, all(WatchFrom::Oldest));
        let (changes, _) = told_until(&mut again, newest);
        changes.iter().filter(|change| change.kind == ChangeKind::BucketMoved).count()
    };
    assert_eq!(moves, 11, "each is told as what it is, and no content is told with it");
    // What keeps the times is nobody's to see.
    assert!(!known.0.contains_key(&names(&["boltkv.expires"])));
}
