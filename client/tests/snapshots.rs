//! Snapshots: what is sent for them, on which connection, and when they are let go.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use std::time::Duration;

use boltkv_client::{Client, Error, Snapshot};
use common::{Conn, LAST, MORE, OK, Peer, entries_body, error_body, hex, value_body};

/// Too short for anything to be late, and long enough for what is sent at once.
const MOMENT: Duration = Duration::from_millis(100);
/// OPEN with a lease of a minute, and the reply: snapshot 7 of transaction 300, for 30 seconds.
const OPEN: &str = "01 0000ea60";
const OPENED: &str = "0000000000000007 000000000000012c 00007530";
/// A GET of `k` in `b`, as of it.
const GET: &str = "0000000000000007 01 0001 62 0001 6b";
const SCAN: &str = "0000000000000007 01 0001 62 00 00 00 0000000000000000";
const CLOSE: &str = "02 0000000000000007";

async fn open(peer: &Peer, client: &Client) -> (Snapshot, Conn) {
    let scene = async {
        let mut conn = peer.accept().await;
        let id = conn.expect(0x50, OPEN).await;
        conn.reply(id, OK, LAST, &hex(OPENED)).await;
        conn
    };
    let (snapshot, conn) = tokio::join!(client.snapshot(Duration::from_secs(60)), scene);
    (snapshot.unwrap(), conn)
}

#[tokio::test]
async fn everything_is_asked_on_the_snapshots_own_connection_and_it_is_closed_with_its_last_reader() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (snapshot, mut conn) = open(&peer, &client).await;
    assert_eq!((snapshot.txid(), snapshot.lease()), (300, Duration::from_secs(30)));
    let bucket = client.bucket("b").unwrap();

    let scene = async {
        let scan = conn.expect_flagged(0x30, 0x08, SCAN).await;
        conn.reply(scan, OK, MORE, &entries_body(&[("a", b"1")])).await;
        // The scan is under way, and holds nothing up.
        let get = conn.expect_flagged(0x10, 0x08, GET).await;
        conn.reply(get, OK, LAST, &value_body(b"v")).await;
        scan
    };
    let asking = async {
        let entries = snapshot.scan(bucket.scan()).await.unwrap();
        assert_eq!(snapshot.get(&bucket, "k").await.unwrap().as_deref(), Some(&b"v"[..]));
        entries
    };
    let (mut entries, scan) = tokio::join!(asking, scene);
    drop(snapshot);
    assert!(conn.is_quiet(MOMENT).await, "the scan still reads from it");
    conn.reply(scan, OK, LAST, &entries_body(&[("b", b"2")])).await;
    assert_eq!(entries.next().await.unwrap().unwrap().key, &b"a"[..]);
    assert_eq!(entries.next().await.unwrap().unwrap().key, &b"b"[..]);
    let close = conn.expect(0x50, CLOSE).await;
    conn.reply(close, OK, LAST, &[]).await;
    // The connection is kept for the next one, once the answer was heard.
    assert!(conn.is_quiet(MOMENT).await);
    let again = async {
        let id = conn.expect(0x50, OPEN).await;
        conn.reply(id, OK, LAST, &hex(OPENED)).await;
    };
    let (next, ()) = tokio::join!(client.snapshot(Duration::from_secs(60)), again);
    next.unwrap();
}

#[tokio::test]
async fn what_the_server_says_of_an_expired_one_is_told_and_a_lost_connection_is_not_made_anew() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (snapshot, mut conn) = open(&peer, &client).await;
    let bucket = client.bucket("b").unwrap();
    let scene = async {
        let get = conn.expect_flagged(0x10, 0x08, GET).await;
        conn.reply(get, 21, LAST, &error_body("gone")).await;
        drop(conn);
    };
    let (expired, ()) = tokio::join!(snapshot.get(&bucket, "k"), scene);
    assert_eq!(expired.unwrap_err().code(), Some(boltkv_client::ErrorCode::SnapshotExpired));
    let lost = common::soon(snapshot.get(&bucket, "k")).await;
    assert!(matches!(lost, Err(Error::ConnectionLost(_))), "{lost:?}");
}

#[tokio::test]
async fn a_transaction_that_writes_is_refused_before_it_is_sent() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (snapshot, mut conn) = open(&peer, &client).await;
    let bucket = client.bucket("b").unwrap();
    let error = snapshot.read(client.transaction().set(&bucket, "k", "v")).await.unwrap_err();
    assert_eq!(error.code(), Some(boltkv_client::ErrorCode::Unsupported));
    assert!(conn.is_quiet(MOMENT).await);
}
