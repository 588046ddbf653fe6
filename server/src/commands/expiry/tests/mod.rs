//! What is stored about times is looked over here, for all tests of this crate.

mod model;
mod random;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use boltkv_protocol::{Cond, ErrorCode, KeyRange, Path, ReadRequest, Reply, Scan, WriteRequest};
use boltkv_storage::{Db, Options, Tx};

use super::records::{Place, Stamp, parse_due};
use super::view::of_in;
use super::*;
use crate::commands::scan::{Progress, ScanRun};
use crate::commands::state::State as _;
use crate::commands::write::{Asker, Write};
use crate::commands::{Effect, ReplyRoom, WatchedKeys, apply};
use crate::memory::Memory;

/// How many keys have times, and how many entries of what is due say what is not so any more.
///
/// # Panics
/// What is stored contradicts itself, or says something of a key that is not there.
pub(crate) fn look_over(tx: &Tx) -> (usize, usize) {
    let Ok(own) = tx.bucket(OWN) else { return (0, 0) };
    let (of, ids, at) = (own.bucket(OF).unwrap(), own.bucket(IDS).unwrap(), own.bucket(AT).unwrap());
    let at: BTreeMap<Stamp, (u64, Vec<u8>)> = at
        .iter()
        .map(|entry| {
            let (stamp, due) = entry.unwrap();
            let (id, key) = parse_due(due.unwrap()).unwrap();
            (Stamp::parse(stamp).unwrap(), (id, key.to_vec()))
        })
        .collect();
    let (mut stamped, mut places) = (0, 0);
    for entry in of.buckets() {
        let (place, times) = entry.unwrap();
        let id = times.sequence();
        places += 1;
        assert_eq!(ids.get(id.to_be_bytes()).unwrap(), Some(place), "a bucket has one number");
        let bucket = tx.bucket_path(Place(place).names()).unwrap();
        let before = stamped;
        for entry in &times {
            let (key, stamp) = entry.unwrap();
            let stamp = Stamp::parse(stamp.unwrap()).unwrap();
            assert!(view::is_there(bucket, key).unwrap(), "what is not there does not expire");
            assert_eq!(at.get(&stamp), Some(&(id, key.to_vec())), "what expires comes up");
            stamped += 1;
        }
        assert!(stamped > before, "an empty bucket is removed");
    }
    assert!(places > 0, "where nothing expires nothing is left");
    assert_eq!(ids.count().unwrap(), places, "no number is left without its bucket");
    (stamped, at.len() - stamped)
}

pub(super) fn room() -> ReplyRoom {
    ReplyRoom::new(Arc::new(Memory::new(1 << 24)), 1 << 20)
}

/// Does a request in a transaction of its own, at this time.
pub(super) fn write(db: &Db, now: u64, request: WriteRequest) -> Result<Effect, ErrorReply> {
    let mut tx = db.begin_mut().unwrap();
    let mut timed = Timed::new(&mut tx, now);
    let done = apply(&mut timed, &Write::new(request, Asker::default()), &room(), &WatchedKeys::default()).unwrap();
    tx.commit().unwrap();
    look_over(&db.begin().unwrap());
    done
}

/// Removes all that has expired by now.
pub(super) fn reclaim(db: &Db, now: u64) {
    let mut backlog = Backlog::default();
    loop {
        if backlog.is_empty() {
            backlog = Backlog::gather(&db.begin().unwrap(), now).unwrap();
        }
        if backlog.is_empty() {
            break;
        }
        let mut tx = db.begin_mut().unwrap();
        let stepped = backlog.step(&mut Timed::new(&mut tx, now)).unwrap();
        tx.commit().unwrap();
        backlog.committed(&stepped);
        look_over(&db.begin().unwrap());
    }
    let tx = db.begin().unwrap();
    assert!(earliest(&tx).unwrap().is_none_or(|at| at > now));
    assert_eq!(look_over(&tx).1, 0, "nothing is left of what is not so any more");
}

fn path(path: &str) -> Path {
    path.parse().unwrap()
}

fn set(at: &str, key: &str, value: &str) -> WriteRequest {
    let (key, value) = (key.to_owned().into(), value.to_owned().into());
    WriteRequest::Set { path: path(at), key, value, cond: Cond::Always }
}

/// `a/b` and `c`, with keys.
fn database() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    for request in [
        WriteRequest::CreateBucketIfMissing(path("a/b")),
        WriteRequest::CreateBucketIfMissing(path("c")),
        set("a", "k", "1"),
        set("a/b", "k", "2"),
        set("c", "k", "3"),
    ] {
        write(&db, 0, request).unwrap();
    }
    db
}

fn expire(db: &Db, now: u64, at: &str, key: &str, time: Option<u64>) -> bool {
    let mut tx = db.begin_mut().unwrap();
    let mut timed = Timed::new(&mut tx, now);
    timed.enter(&path(at), key.as_bytes()).unwrap();
    let changed = timed.undoably(|timed| timed.set_expiry(&path(at), key.as_bytes(), time)).unwrap();
    tx.commit().unwrap();
    look_over(&db.begin().unwrap());
    changed
}

/// What a GET says: a value, or the code of an error.
fn get(db: &Db, now: u64, at: &str, key: &str) -> Result<String, ErrorCode> {
    let (tx, clock) = (db.begin().unwrap(), Clock::by_hand(now));
    let request = ReadRequest::Get { path: path(at), key: key.to_owned().into() };
    match crate::commands::answer_at(&tx, &request, 1 << 20, &clock) {
        Reply::Value(value) => Ok(String::from_utf8(value.to_vec()).unwrap()),
        Reply::Error(error) => Err(error.code),
        reply => panic!("{reply:?}"),
    }
}

/// What a scan gives.
fn keys(db: &Db, now: u64, at: &str) -> Vec<String> {
    let scan = Scan { path: path(at), range: KeyRange::ALL, ..Scan::default() };
    let mut run = ScanRun::start(Arc::new(db.begin().unwrap()), &Clock::by_hand(now), scan, false, 1 << 20).unwrap();
    let mut keys = Vec::new();
    let take = |entry: &boltkv_protocol::Entry<&[u8]>| {
        keys.push(String::from_utf8(entry.key.to_vec()).unwrap());
        ControlFlow::Continue(())
    };
    assert_eq!(run.step(take).unwrap(), Progress::Done);
    keys
}

const GONE: Result<String, ErrorCode> = Err(ErrorCode::KeyNotFound);
const NO_BUCKET: Result<String, ErrorCode> = Err(ErrorCode::BucketNotFound);

#[test]
fn a_key_is_not_seen_from_its_time_on_whether_it_was_removed_or_not() {
    let db = database();
    assert!(expire(&db, 0, "a", "k", Some(10)) && !expire(&db, 0, "a", "k", Some(10)));
    assert_eq!(get(&db, 9, "a", "k").as_deref(), Ok("1"));
    assert_eq!(get(&db, 10, "a", "k"), GONE);
    assert_eq!((keys(&db, 9, "a"), keys(&db, 10, "a")), (vec!["b".into(), "k".into()], vec!["b".to_owned()]));
    assert_eq!(keys(&db, 10, "/"), ["a", "c"], "what is boltkv's own is not shown");
    assert!(expire(&db, 9, "a", "k", None) && !expire(&db, 9, "a", "k", None));
    assert_eq!(get(&db, 10, "a", "k").as_deref(), Ok("1"));
    assert_eq!(db.begin().unwrap().buckets().count(), 2, "the file is as before");
    assert!(expire(&db, 9, "a", "k", Some(9)), "a time that is past removes it");
    assert_eq!(get(&db, 0, "a", "k"), GONE);
    assert_eq!(db.begin().unwrap().buckets().count(), 2);
}

#[test]
fn what_is_written_finds_what_has_expired_gone() {
    let db = database();
    expire(&db, 0, "a", "k", Some(10));
    expire(&db, 0, "a", "b", Some(10));
    let absent = |key: &str| WriteRequest::Set {
        path: path("a"),
        key: key.to_owned().into(),
        value: "new".into(),
        cond: Cond::IfAbsent,
    };
    assert_eq!(write(&db, 9, absent("k")).unwrap_err().code, ErrorCode::ConditionFailed);
    assert!(write(&db, 10, absent("k")).is_ok());
    assert_eq!(get(&db, 99, "a", "k").as_deref(), Ok("new"), "it has no time");
    assert_eq!(get(&db, 9, "a/b", "k").as_deref(), Ok("2"));
    assert_eq!(get(&db, 10, "a/b", "k"), NO_BUCKET);
    assert_eq!(write(&db, 10, set("a/b", "k", "4")).unwrap_err().code, ErrorCode::BucketNotFound);
    assert!(write(&db, 10, set("a", "b", "a value")).is_ok(), "where a bucket was");
    assert_eq!(db.begin().unwrap().buckets().count(), 2, "nothing is left of times");
}

#[test]
fn a_number_keeps_its_time_and_a_value_that_is_set_has_none() {
    let db = database();
    expire(&db, 0, "a", "k", Some(10));
    let incr = || WriteRequest::Increment { path: path("a"), key: "k".into(), delta: 4 };
    write(&db, 9, incr()).unwrap();
    assert_eq!(get(&db, 9, "a", "k").as_deref(), Ok("5"));
    assert_eq!(get(&db, 10, "a", "k"), GONE);
    write(&db, 10, incr()).unwrap();
    assert_eq!(get(&db, 99, "a", "k").as_deref(), Ok("4"));
    expire(&db, 0, "a", "k", Some(10));
    write(&db, 9, set("a", "k", "5")).unwrap();
    assert_eq!(get(&db, 99, "a", "k").as_deref(), Ok("5"));
}

#[test]
fn times_go_with_a_bucket_that_is_moved_and_are_gone_with_one_that_is_deleted() {
    let db = database();
    for (at, key) in [("a", "k"), ("a", "b"), ("a/b", "k")] {
        expire(&db, 0, at, key, Some(10));
    }
    let move_to = |from: &str, to: &str| WriteRequest::MoveBucket { path: path(from), to: path(to) };
    assert_eq!(write(&db, 0, move_to("a/b", "b")).unwrap_err().code, ErrorCode::IncompatibleValue);
    write(&db, 0, move_to("a/b", "c/d")).unwrap();
    assert_eq!(look_over(&db.begin().unwrap()), (3, 0));
    assert_eq!((get(&db, 9, "c/d", "k").as_deref(), get(&db, 10, "c/d", "k")), (Ok("2"), NO_BUCKET));
    write(&db, 0, move_to("c", "x")).unwrap();
    assert_eq!((get(&db, 9, "x/d", "k").as_deref(), get(&db, 10, "x/d", "k")), (Ok("2"), NO_BUCKET));
    write(&db, 0, WriteRequest::DeleteBucket(path("x/d"))).unwrap();
    assert_eq!(look_over(&db.begin().unwrap()), (1, 1), "of one something is left");
    reclaim(&db, 9);
    assert_eq!(look_over(&db.begin().unwrap()), (1, 0), "long before it would come up");
    reclaim(&db, 10);
    assert_eq!(keys(&db, 0, "a"), [""; 0]);
    assert_eq!(db.begin().unwrap().buckets().count(), 2, "nothing is left of times");
}

#[test]
fn what_many_buckets_leave_that_are_gone_is_dropped_in_steps_and_nothing_else_is() {
    let db = database();
    expire(&db, 0, "a", "k", Some(1_000_000));
    for round in 0..3 {
        write(&db, 0, WriteRequest::CreateBucket(path("c/d"))).unwrap();
        let mut tx = db.begin_mut().unwrap();
        let mut timed = Timed::new(&mut tx, 0);
        let set = timed.undoably(|timed| {
            (0..2_000_u32).try_for_each(|n| {
                timed.tx.bucket_mut_path(["c", "d"])?.put(n.to_be_bytes(), "v")?;
                timed.set_expiry(&path("c/d"), &n.to_be_bytes(), Some(500_000 + u64::from(n % 7))).map(drop)
            })
        });
        set.unwrap();
        tx.commit().unwrap();
        write(&db, 0, WriteRequest::DeleteBucket(path("c/d"))).unwrap();
        assert_eq!(look_over(&db.begin().unwrap()), (1, 2_000 * (1 + round)));
    }
    assert_eq!(earliest(&db.begin().unwrap()).unwrap(), Some(500_000));
    // Half of it comes up before it is dropped.
    let gathered = Backlog::gather(&db.begin().unwrap(), 500_003).unwrap();
    let mut tx = db.begin_mut().unwrap();
    let stepped = gathered.step(&mut Timed::new(&mut tx, 500_003)).unwrap();
    assert!(!stepped.is_over());
    tx.commit().unwrap();
    reclaim(&db, 500_003);
    assert_eq!(look_over(&db.begin().unwrap()), (1, 0));
    assert_eq!(get(&db, 500_003, "a", "k").as_deref(), Ok("1"));
    let tx = db.begin().unwrap();
    let own: Vec<_> = tx.bucket(OWN).unwrap().buckets().map(|entry| entry.unwrap().0.to_vec()).collect();
    assert_eq!(own, [AT, IDS, OF], "nothing is left of it");
}

// Promises: wire-move-expiring.
#[test]
fn no_bucket_whose_keys_expire_is_moved_below_what_a_path_names() {
    let db = database();
    let nested = |top: &str, below: usize| path(&[&[top][..], &vec!["n"; below]].concat().join("/"));
    for place in [nested("c", 100), nested("y", 160)] {
        write(&db, 0, WriteRequest::CreateBucketIfMissing(place)).unwrap();
    }
    let key = "k";
    write(&db, 0, set(&nested("c", 100).to_string(), key, "1")).unwrap();
    expire(&db, 0, &nested("c", 100).to_string(), key, Some(10));
    let move_to = |to: Path| WriteRequest::MoveBucket { path: path("c"), to };
    let too_deep = nested("y", 155);
    let refused = write(&db, 0, move_to(too_deep.child("c").unwrap())).unwrap_err();
    assert_eq!((refused.code, refused.message.contains("255")), (ErrorCode::KeyTooLarge, true), "{refused:?}");
    let deepest = nested("y", 153).child("c").unwrap();
    write(&db, 0, move_to(deepest.clone())).unwrap();
    let there: Vec<_> = deepest.names().chain([&b"n"[..]; 100]).collect();
    assert_eq!(get(&db, 9, &Path::from_names(there).unwrap().to_string(), key).as_deref(), Ok("1"));
    // Without times nobody has anything to say of it.
    reclaim(&db, 10);
    write(&db, 10, WriteRequest::MoveBucket { path: deepest, to: nested("y", 160).child("c").unwrap() }).unwrap();
}

#[test]
fn a_range_is_deleted_as_if_what_has_expired_were_not_in_it() {
    let db = Options::new().open_in_memory().unwrap();
    write(&db, 0, WriteRequest::CreateBucketIfMissing(path("a/c"))).unwrap();
    for key in ["a", "b", "d", "e", "f"] {
        write(&db, 0, set("a", key, "v")).unwrap();
    }
    let delete = |limit| {
        let range = KeyRange { high: std::ops::Bound::Excluded("f".into()), ..KeyRange::ALL };
        let limit = std::num::NonZeroU64::new(limit);
        WriteRequest::DeleteRange { path: path("a"), range, limit }
    };
    for (key, at) in [("a", 10), ("c", 10), ("d", 20), ("e", 10)] {
        expire(&db, 0, "a", key, Some(at));
    }
    assert_eq!(write(&db, 9, delete(9)).unwrap_err().code, ErrorCode::IncompatibleValue);
    let done = write(&db, 10, delete(1)).unwrap();
    assert!(matches!(done, Effect::DeletedRange { deleted: 1, more: true }), "{done:?}");
    assert_eq!(keys(&db, 0, "a"), ["d", "e", "f"], "what had expired before it is gone");
    let done = write(&db, 10, delete(9)).unwrap();
    assert!(matches!(done, Effect::DeletedRange { deleted: 1, more: false }), "{done:?}");
    assert_eq!(keys(&db, 0, "a"), ["f"]);
    assert!(of_in(&db.begin().unwrap()).unwrap().is_none());
}

#[test]
fn what_has_expired_is_removed_in_steps_and_nothing_else_is() {
    let db = Options::new().open_in_memory().unwrap();
    write(&db, 0, WriteRequest::CreateBucketIfMissing(path("a"))).unwrap();
    let mut tx = db.begin_mut().unwrap();
    let mut timed = Timed::new(&mut tx, 0);
    timed
        .undoably(|timed| {
            for n in 0..10_000_u32 {
                timed.tx.bucket_mut("a")?.put(n.to_be_bytes(), "v")?;
                timed.set_expiry(&path("a"), &n.to_be_bytes(), Some(if n % 10 == 0 { 20 } else { 10 }))?;
            }
            Ok::<_, boltkv_storage::Error>(())
        })
        .unwrap();
    tx.commit().unwrap();
    assert_eq!(earliest(&db.begin().unwrap()).unwrap(), Some(10));
    reclaim(&db, 10);
    let tx = db.begin().unwrap();
    assert_eq!((look_over(&tx), tx.bucket("a").unwrap().count().unwrap()), ((1_000, 0), 1_000));
    reclaim(&db, 20);
    let tx = db.begin().unwrap();
    assert_eq!((tx.buckets().count(), tx.bucket("a").unwrap().count().unwrap()), (1, 0));
    assert!(tx.top(OWN).is_err() && tx.check().unwrap().is_empty());
}
