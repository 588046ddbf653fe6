//! Transactions beside other requests: nobody sees half of one, nor is hurt by one that fails.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::binary::{get, path, set};
use crate::common::txn::{build, database, done, txn};
use crate::common::{Binary, TestServer};
use boltkv_protocol::{Cond, ErrorCode, Reply, Request, Txn};
use boltkv_storage::Options;
use bytes::Bytes;

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
    crate::common::eventually(works);
}
