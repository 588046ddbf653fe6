//! Transactions: several requests as one, done wholly or not at all, whatever happens beside them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use boltkv_protocol::{
    Cond, ErrorCode, ErrorReply, KeyRange, Reply, Request, ScanMode, ScanOptions, Txn, TxnBuilder, TxnPart,
};
use boltkv_storage::{Db, Error, Options};
use bytes::Bytes;
use common::binary::{create, delete, delete_bucket, get, list, path, scan, scan_all, set, set_if};
use common::{Binary, TestServer};

/// A transaction of these requests.
fn txn(requests: &[Request]) -> Txn {
    build(Txn::builder(), requests)
}

/// A transaction of these requests, under one condition on a key in bucket `b`.
fn txn_if(key: &str, cond: &Cond, requests: &[Request]) -> Txn {
    let mut txn = Txn::builder();
    txn.condition(&path("b"), key.as_bytes(), cond).unwrap();
    build(txn, requests)
}

fn build(mut txn: TxnBuilder, requests: &[Request]) -> Txn {
    for request in requests {
        txn.request(request).unwrap();
    }
    txn.build()
}

/// Has it done; answers its number and its results.
fn done(client: &mut Binary, txn: Txn) -> (u64, Vec<Reply>) {
    let expects: Vec<_> = txn.expects().collect();
    match client.ask(&txn.into()) {
        Reply::Txn { txid, results } => (txid, results.replies(expects).map(Result::unwrap).collect()),
        other => panic!("a transaction was answered with {other:?}"),
    }
}

/// Has it refused; answers why.
fn refused(client: &mut Binary, txn: Txn) -> ErrorReply {
    match client.ask(&txn.into()) {
        Reply::Error(error) => error,
        other => panic!("a transaction was answered with {other:?}"),
    }
}

fn code_and_part(error: &ErrorReply) -> (ErrorCode, Option<TxnPart>) {
    (error.code, error.txn_part())
}

fn count(bucket: &str) -> Request {
    scan(bucket, KeyRange::ALL, ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() })
}

/// A database with bucket `b`, in which are `a` = `1` and `c` = `3`.
fn database() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        bucket.put("a", "1")?;
        bucket.put("c", "3")?;
        Ok::<_, Error>(())
    })
    .unwrap();
    db
}

/// What GETs have found.
fn values<'a>(replies: impl IntoIterator<Item = &'a Reply>) -> Vec<Option<&'a str>> {
    let value = |reply: &'a Reply| match reply {
        Reply::Value(value) => Some(std::str::from_utf8(value).unwrap()),
        Reply::Error(error) if error.code == ErrorCode::KeyNotFound => None,
        other => panic!("{other:?} is no value"),
    };
    replies.into_iter().map(value).collect()
}

// Promises: wire-txn.
#[test]
fn requests_see_what_earlier_ones_did_and_all_of_it_is_one_transaction() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let before = server.db.stats().txid;
    let requests = [
        get("b", "a"),
        set("b", "a", "2"),
        get("b", "a"),
        delete("b", "c"),
        delete("b", "c"),
        get("b", "c"),
        create("b/inner"),
        set("b/inner", "k", "v"),
        scan_all("b"),
        list("b"),
        count("b"),
        delete_bucket("b/inner"),
        scan_all("b"),
    ];
    let (txid, replies) = done(&mut client, txn(&requests));
    assert_eq!(txid, before + 1);
    assert_eq!(server.db.stats().txid, txid);
    assert_eq!(values([&replies[0], &replies[2], &replies[5]]), [Some("1"), Some("2"), None]);
    assert_eq!(replies[1], Reply::Written { txid });
    assert_eq!(replies[3..5], [Reply::Deleted { txid, existed: true }, Reply::Deleted { txid, existed: false }]);
    let names = |reply: &Reply| match reply {
        Reply::Entries(entries) => entries.iter().map(|entry| entry.key.clone()).collect::<Vec<_>>(),
        other => panic!("{other:?} is no scan"),
    };
    assert_eq!(names(&replies[8]), ["a", "inner"]);
    assert_eq!(names(&replies[9]), ["inner"]);
    assert_eq!(replies[10], Reply::Count(2));
    assert_eq!(names(&replies[12]), ["a"]);
}

// Promises: wire-txn-undone.
#[test]
fn a_part_that_fails_undoes_all_of_it_and_is_named() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let before = (server.db.stats().txid, server.db.begin().unwrap().bucket("b").unwrap().count().unwrap());
    let failing = [
        (set("nowhere", "k", "v"), ErrorCode::BucketNotFound),
        (get("nowhere", "k"), ErrorCode::BucketNotFound),
        (scan_all("nowhere"), ErrorCode::BucketNotFound),
        (set("b", "", "v"), ErrorCode::KeyRequired),
        (set_if("b", "a", "v", Cond::IfAbsent), ErrorCode::ConditionFailed),
        (create("b"), ErrorCode::BucketExists),
        (get("b/a", "k"), ErrorCode::IncompatibleValue),
    ];
    for (request, code) in failing {
        let parts = [set("b", "new", "v"), delete_bucket("b"), create("b"), set("b", "a", "0"), request];
        let error = refused(&mut client, txn(&parts));
        assert_eq!(code_and_part(&error), (code, Some(TxnPart::Request(4))), "{error}");
        assert_eq!(client.value("b", "a").as_deref(), Some(&b"1"[..]));
        let after = (server.db.stats().txid, server.db.begin().unwrap().bucket("b").unwrap().count().unwrap());
        assert_eq!(after, before);
    }
}

// Promises: wire-txn-conditions.
#[test]
fn conditions_see_the_state_before_it_and_requests_have_their_own() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let mut two = Txn::builder();
    two.condition(&path("b"), b"a", &Cond::IfEquals("1")).unwrap();
    two.condition(&path("b"), b"new", &Cond::<&str>::IfAbsent).unwrap();
    let requests = [set("b", "new", "1"), set_if("b", "new", "2", Cond::IfEquals("1".into())), delete("b", "a")];
    let (txid, replies) = done(&mut client, build(two.clone(), &requests));
    assert_eq!(replies[1], Reply::Written { txid });
    assert_eq!(client.value("b", "new").as_deref(), Some(&b"2"[..]));
    let error = refused(&mut client, build(two, &requests));
    assert_eq!(code_and_part(&error), (ErrorCode::ConditionFailed, Some(TxnPart::Condition(0))), "{error}");
    assert!(error.message.contains("condition 0") && error.message.contains("is not there"), "{error}");
    let mut nowhere = Txn::builder();
    nowhere.condition(&path("nowhere"), b"k", &Cond::<&str>::IfAbsent).unwrap();
    let error = refused(&mut client, build(nowhere, &requests));
    assert_eq!(code_and_part(&error), (ErrorCode::BucketNotFound, Some(TxnPart::Condition(0))), "{error}");
    // One that only reads has its conditions, too.
    let reads = txn_if("c", &Cond::IfAbsent, &[get("b", "c")]);
    assert_eq!(code_and_part(&refused(&mut client, reads)), (ErrorCode::ConditionFailed, Some(TxnPart::Condition(0))));
    let (_, replies) = done(&mut client, txn_if("c", &Cond::IfPresent, &[get("b", "c")]));
    assert_eq!(values(&replies), [Some("3")]);
}

// Promises: wire-txn-reads.
#[test]
fn one_that_only_reads_sees_one_state_and_writes_nothing() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    let before = server.db.stats().txid;
    let (txid, replies) = done(&mut client, txn(&[get("b", "a"), get("b", "?"), count("b"), get("b", "c")]));
    assert_eq!(txid, before);
    assert_eq!(replies[2], Reply::Count(2));
    assert_eq!(values([&replies[0], &replies[1], &replies[3]]), [Some("1"), None, Some("3")]);
    assert_eq!(done(&mut client, txn(&[])), (before, vec![]));
    // What writes, and has nothing to change, is no transaction of its own either.
    let (txid, replies) = done(&mut client, txn(&[delete("b", "?")]));
    assert_eq!((txid, &replies[..]), (before, &[Reply::Deleted { txid: before, existed: false }][..]));
    assert_eq!(server.db.stats().txid, before);
}

// Promises: wire-txn-fits.
#[test]
fn results_fit_one_frame_or_nothing_is_done() {
    let server = TestServer::serve(database(), |config| config.limits.max_frame = 64 * 1024);
    let mut client = server.binary();
    client.write(&set("b", "large", vec![b'v'; 30_000]));
    let (_, replies) = done(&mut client, txn(&[get("b", "large"), get("b", "large")]));
    assert_eq!(replies.len(), 2);
    for read in [get("b", "large"), scan_all("b")] {
        let reads = [read.clone(), read.clone(), read.clone()];
        let error = refused(&mut client, txn(&reads));
        assert_eq!(code_and_part(&error), (ErrorCode::FrameTooLarge, Some(TxnPart::Request(2))), "{error}");
        let writes = [set("b", "a", "2"), read.clone(), read.clone(), read];
        let error = refused(&mut client, txn(&writes));
        assert_eq!(code_and_part(&error), (ErrorCode::FrameTooLarge, Some(TxnPart::Request(3))), "{error}");
        assert_eq!(client.value("b", "a").as_deref(), Some(&b"1"[..]));
    }
}

// Promises: wire-txn-scans.
#[test]
fn what_the_writer_looks_at_for_a_transaction_is_bounded_and_what_is_only_read_is_not() {
    let db = database();
    db.update(|tx| {
        let mut many = tx.create_bucket("many")?;
        (0..100_001_u32).try_for_each(|n| many.put(n.to_be_bytes(), ""))
    })
    .unwrap();
    let server = TestServer::serve(db, |_| {});
    let mut client = server.binary();
    let (_, replies) = done(&mut client, txn(&[count("many"), list("many"), count("many")]));
    assert_eq!(replies[0], Reply::Count(100_001));
    for look in [count("many"), list("many")] {
        let error = refused(&mut client, txn(&[set("b", "a", "2"), look]));
        assert_eq!(code_and_part(&error), (ErrorCode::TxnTooLarge, Some(TxnPart::Request(1))), "{error}");
        assert_eq!(client.value("b", "a").as_deref(), Some(&b"1"[..]));
    }
    let (_, replies) = done(&mut client, txn(&[count("b"), set("b", "a", "2"), delete_bucket("many")]));
    assert_eq!(replies[0], Reply::Count(2));
}

// Promises: wire-txn-within.
#[test]
fn what_is_done_by_itself_only_is_refused_and_the_connection_lives() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    // No conditions, one request: PING, HELLO, and a transaction of nothing.
    for op in [0x02, 0x01, 0x40] {
        client.send(common::binary::frame(7, 0x40, 0, &[0, 0, 0, 1, op, 0, 0, 0, 4, 0, 0, 0, 0]));
        let (id, error) = client.error();
        assert_eq!((id, error.code), (7, ErrorCode::Unsupported), "{error}");
    }
    // Parts that are announced and do not come.
    for body in [&[0xff, 0xff][..], &[0, 0, 0xff, 0xff], &[0, 0, 0, 1, 0x10, 0, 0, 0, 9, 0], &[0]] {
        client.send(common::binary::frame(8, 0x40, 0, body));
        let (id, error) = client.error();
        assert_eq!((id, error.code), (8, ErrorCode::Malformed), "{error}");
    }
    assert_eq!(client.ping(b"here"), &b"here"[..]);
}

#[test]
fn a_server_that_takes_no_writes_takes_transactions_that_only_read() {
    let server = TestServer::serve(database(), |config| config.read_only = true);
    let mut client = server.binary();
    assert_eq!(done(&mut client, txn(&[count("b")])).1, [Reply::Count(2)]);
    assert_eq!(refused(&mut client, txn(&[set("b", "a", "2")])).code, ErrorCode::ReadOnly);
}

/// An account's balance in a transaction's result.
fn balance(reply: &Reply) -> i64 {
    let Reply::Value(value) = reply else { panic!("{reply:?} is no balance") };
    std::str::from_utf8(value).unwrap().parse().unwrap()
}

// Promises: wire-txn.
#[test]
fn money_that_is_moved_by_many_at_once_is_never_more_nor_less() {
    const ACCOUNTS: u64 = 10;
    const EACH: i64 = 100;
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..ACCOUNTS).try_for_each(|account| bucket.put(account.to_string(), EACH.to_string()))
    })
    .unwrap();
    let server = TestServer::serve(db, |_| {});
    let all: Vec<_> = (0..ACCOUNTS).map(|account| get("b", &account.to_string())).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let movers: Vec<_> = (0..8_u64)
            .map(|seed| {
                let mut client = server.binary();
                scope.spawn(move || (0..40).for_each(|round| transfer(&mut client, seed, round, ACCOUNTS)))
            })
            .collect();
        scope.spawn(|| {
            let mut client = server.binary();
            while !over.load(Ordering::Relaxed) {
                let (_, balances) = done(&mut client, txn(&all));
                assert_eq!(balances.iter().map(balance).sum::<i64>(), EACH * ACCOUNTS.cast_signed());
            }
        });
        let ended: Vec<_> = movers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        over.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    let (_, balances) = done(&mut server.binary(), txn(&all));
    assert_eq!(balances.iter().map(balance).sum::<i64>(), EACH * ACCOUNTS.cast_signed());
}

/// Moves one from an account to another, as often as it takes: somebody else may be faster.
fn transfer(client: &mut Binary, seed: u64, round: u64, accounts: u64) {
    let from = (seed + round) % accounts;
    let to = (from + 1 + seed % (accounts - 1)) % accounts;
    let (from, to) = (from.to_string(), to.to_string());
    let tried = (0..10_000).try_for_each(|_| {
        let (_, old) = done(client, txn(&[get("b", &from), get("b", &to)]));
        let mut moved = Txn::builder();
        for (account, reply) in [(&from, &old[0]), (&to, &old[1])] {
            let Reply::Value(value) = reply else { panic!("{reply:?}") };
            moved.condition(&path("b"), account.as_bytes(), &Cond::IfEquals(value)).unwrap();
        }
        let changes = [(&from, balance(&old[0]) - 1), (&to, balance(&old[1]) + 1)];
        let sets = changes.map(|(account, balance)| set("b", account, balance.to_string()));
        match client.ask(&build(moved, &sets).into()) {
            Reply::Txn { .. } => ControlFlow::Break(()),
            Reply::Error(error) if error.code == ErrorCode::ConditionFailed => ControlFlow::Continue(()),
            other => panic!("{other:?}"),
        }
    });
    assert!(tried.is_break(), "others were faster ten thousand times");
}

// Promises: wire-txn-undone.
#[test]
fn one_that_fails_does_not_hurt_what_is_written_in_one_go_with_it() {
    let server = TestServer::serve(database(), |_| {});
    let mut client = server.binary();
    // All in one write, so that many share a group.
    let mut requests = Vec::new();
    for n in 0..100 {
        requests.push(set("b", &format!("k{n}"), "v"));
        let end = if n % 2 == 0 { set("b", "", "v") } else { get("b", "a") };
        let parts = [set("b", &format!("k{n}"), "of the transaction"), set("b", &format!("t{n}"), "v"), end];
        requests.push(txn(&parts).into());
    }
    let ids = client.send_all(&requests);
    for _ in &ids {
        let frame = client.frame();
        let at = ids.iter().position(|id| *id == frame.id).unwrap();
        let fails = at % 4 == 1;
        assert_eq!(frame.op, if fails { ErrorCode::KeyRequired.to_u8() } else { 0 }, "request {at}");
    }
    for n in 0..100 {
        let undone = n % 2 == 0;
        let expected = if undone { "v" } else { "of the transaction" };
        assert_eq!(client.value("b", &format!("k{n}")), Some(Bytes::from(expected)));
        assert_eq!(client.value("b", &format!("t{n}")).is_none(), undone);
    }
}

// Promises: wire-memory.
#[test]
fn results_for_which_there_is_no_memory_are_refused_and_nothing_is_done() {
    let server = TestServer::serve(database(), |config| {
        config.limits.max_frame = 1 << 20;
        config.limits.memory = Some(4 << 20);
        config.limits.queue_bytes = 1 << 20;
    });
    let mut client = server.binary();
    client.write(&set("b", "large", vec![b'v'; 900_000]));
    // Replies that nobody takes hold memory until there is none.
    let mut idle: Vec<_> = (0..8).map(|_| server.binary()).collect();
    for client in &mut idle {
        // More than the system keeps on the way.
        client.send_all(&vec![get("b", "large"); 60]);
    }
    let refusals = |client: &mut Binary, parts: &[Request]| {
        (0..10_000).any(
            |_| matches!(client.ask(&txn(parts).into()), Reply::Error(error) if error.code == ErrorCode::Overloaded),
        )
    };
    assert!(refusals(&mut client, &[get("b", "large")]));
    assert!(refusals(&mut client, &[set("b", "a", "2"), get("b", "large"), set("b", "a", "1")]));
    drop(idle);
    let works = || matches!(client.ask(&txn(&[get("b", "large"), set("b", "a", "9")]).into()), Reply::Txn { .. });
    common::eventually(works);
}
