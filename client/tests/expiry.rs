//! Keys that expire, as the peer sees them, and replies as the caller gets them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use boltkv_client::{Client, Cond, ErrorCode, ExpireCond, ExpireTo, Expiry, Lifetime, TransactionResult};
use common::{LAST, OK, Peer, error_body, hex};

/// Plays one request: the caller asks, the peer sees these bytes and answers with those.
async fn play<T>(ask: impl AsyncFnOnce(Client) -> T, op: u8, body: &str, status: u8, reply: &[u8]) -> T {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let scene = async {
        let id = conn.expect(op, body).await;
        conn.reply(id, status, LAST, reply).await;
    };
    tokio::join!(ask(client), scene).0
}

const WRITTEN: &str = "000000000000012c";

#[tokio::test]
async fn a_value_is_set_that_expires() {
    let set =
        async |client: Client| client.bucket("b").unwrap().set_with_ttl("k", "v", Duration::from_micros(9_500)).await;
    let body = "01 0001 62 0001 6b 00000001 76 00 03 0000000000000009";
    assert_eq!(play(set, 0x14, body, OK, &hex(WRITTEN)).await.unwrap().txid, 300);
    let keep =
        async |client: Client| client.bucket("b").unwrap().set_expiring("k", "v", Cond::IfPresent, Expiry::Keep).await;
    let failed = play(keep, 0x14, "01 0001 62 0001 6b 00000001 76 02 01", 20, &error_body("absent")).await;
    assert_eq!(failed.unwrap_err().code(), Some(ErrorCode::ConditionFailed));
}

#[tokio::test]
async fn a_time_is_set_and_taken_away() {
    let expire = async |client: Client| client.bucket("b").unwrap().expire("k", Duration::from_secs(1)).await;
    let set = hex(&format!("{WRITTEN} 01"));
    let done = play(expire, 0x15, "01 0001 62 0001 6b 03 00000000000003e8 00", OK, &set).await.unwrap();
    assert_eq!((done.txid, done.changed), (300, true));
    let persist = async |client: Client| client.bucket("b").unwrap().persist("k").await;
    let not_set = hex(&format!("{WRITTEN} 00"));
    let done = play(persist, 0x15, "01 0001 62 0001 6b 00 0000000000000000 00", OK, &not_set).await.unwrap();
    assert!(!done.changed);
    let later =
        async |client: Client| client.bucket("b").unwrap().set_expiry("k", ExpireTo::At(7), ExpireCond::IfLater).await;
    assert!(play(later, 0x15, "01 0001 62 0001 6b 02 0000000000000007 03", OK, &set).await.unwrap().changed);
}

#[tokio::test]
async fn how_long_a_key_is_there_is_counted_by_the_servers_clock() {
    let ask = async |client: Client| client.bucket("b").unwrap().lifetime("k").await;
    let body = "01 0001 62 0001 6b";
    let found = play(ask, 0x16, body, OK, &hex("0000000000000bb8 00000000000003e8")).await.unwrap();
    let until = Lifetime::Until { at_ms: 3_000, left: Duration::from_secs(2) };
    assert_eq!((found, found.unwrap().left()), (Some(until), Some(Duration::from_secs(2))));
    let found = play(ask, 0x16, body, OK, &hex("ffffffffffffffff 00000000000003e8")).await.unwrap();
    assert_eq!((found, found.unwrap().left()), (Some(Lifetime::Forever), None));
    assert_eq!(play(ask, 0x16, body, 10, &error_body("no")).await.unwrap(), None);
}

#[tokio::test]
async fn they_are_parts_of_a_transaction() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let txn = client
        .transaction()
        .set_with_ttl(&bucket, "k", "v", Duration::from_millis(9))
        .persist(&bucket, "k")
        .lifetime(&bucket, "k")
        .lifetime(&bucket, "?");
    let scene = async {
        let body = "0000  0004  14 00000016 01 0001 62 0001 6b 00000001 76 00 03 0000000000000009 \
                    15 00000011 01 0001 62 0001 6b 00 0000000000000000 00 \
                    16 00000007 01 0001 62 0001 6b  16 00000007 01 0001 62 0001 3f";
        let id = conn.expect(0x40, body).await;
        let reply = "0000000000000009  0004  00 00000008 0000000000000009  00 00000009 0000000000000009 01 \
                     00 00000010 ffffffffffffffff 0000000000000001  0a 00000008 0002 6e6f 00000000";
        conn.reply(id, OK, LAST, &hex(reply)).await;
    };
    let (done, ()) = tokio::join!(txn.commit(), scene);
    let expected = [
        TransactionResult::Written,
        TransactionResult::ExpirySet { changed: true },
        TransactionResult::Lifetime(Some(Lifetime::Forever)),
        TransactionResult::Lifetime(None),
    ];
    assert_eq!(done.unwrap().results, expected);
}
