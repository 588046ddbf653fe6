//! Watches: whole transactions, taken up again behind the last one when the connection is lost.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use boltkv_client::{Client, Error, ErrorCode, WatchPosition, Watched, Watching};
use common::{Conn, LAST, MORE, OK, Peer, error_body, soon};

const WATCH: u8 = 0x80;
const SHUTTING_DOWN: u8 = 32;
const SNAPSHOT_EXPIRED: u8 = 21;

/// The body of a request that begins behind transaction `txid`; from now without one.
fn request(txid: Option<u64>) -> String {
    let from = txid.map_or_else(|| "00".into(), |txid| format!("01 00000000000000ee {txid:016x}"));
    format!("{from} 00 0000 00")
}

/// The body of a frame: the keys that a transaction has put in the bucket `b`.
fn frame(txid: u64, is_whole: bool, keys: &[u8]) -> Vec<u8> {
    let mut body = [0xee_u64, txid, 1_000].map(u64::to_be_bytes).concat();
    body.push(is_whole.into());
    body.extend(u32::try_from(keys.len()).unwrap().to_be_bytes());
    for &key in keys {
        body.extend([1, 1, 0, 1, b'b', 0, 1, key, 0, 0, 0, 0]);
    }
    body
}

/// Begins a watch behind transaction 7, and takes the peer's side of it.
async fn begin(peer: &Peer, client: &Client) -> (Watching, Conn, u32) {
    let scene = async {
        let mut conn = peer.accept().await;
        let id = conn.expect(WATCH, &request(None)).await;
        conn.reply(id, OK, MORE, &frame(7, true, &[])).await;
        (conn, id)
    };
    let (watching, (conn, id)) = tokio::join!(client.watch().stream(), scene);
    let watching = watching.unwrap();
    assert_eq!(watching.position(), WatchPosition { epoch: 0xee, txid: 7 });
    (watching, conn, id)
}

/// The next transaction: its number, and the keys that it has put.
async fn next(watching: &mut Watching) -> Result<(u64, Vec<u8>), Error> {
    let Watched { position, changes, .. } = soon(watching.next()).await.expect("it has no end")?;
    Ok((position.txid, changes.iter().map(|change| change.key[0]).collect()))
}

#[tokio::test]
async fn transactions_are_handed_over_whole_and_positions_pass_what_is_not_watched() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut watching, mut conn, id) = begin(&peer, &client).await;
    conn.reply(id, OK, MORE, &frame(8, false, b"ab")).await;
    conn.reply(id, OK, MORE, &frame(8, true, b"c")).await;
    conn.reply(id, OK, MORE, &frame(12, true, b"")).await;
    conn.reply(id, OK, MORE, &frame(13, true, b"d")).await;
    assert_eq!(next(&mut watching).await.unwrap(), (8, b"abc".to_vec()));
    assert_eq!(watching.position().txid, 8);
    assert_eq!(next(&mut watching).await.unwrap(), (13, b"d".to_vec()));
}

#[tokio::test]
async fn it_goes_on_behind_the_last_whole_transaction_however_the_connection_ends() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut watching, mut conn, mut id) = begin(&peer, &client).await;
    for (at, ends_with) in [(10, None), (20, Some(SHUTTING_DOWN)), (30, Some(SNAPSHOT_EXPIRED))] {
        conn.reply(id, OK, MORE, &frame(at, true, b"a")).await;
        conn.reply(id, OK, MORE, &frame(at + 2, true, b"")).await;
        conn.reply(id, OK, MORE, &frame(at + 3, false, b"half")).await;
        if let Some(code) = ends_with {
            conn.reply(id, code, LAST, &error_body("it ends")).await;
        }
        assert_eq!(next(&mut watching).await.unwrap(), (at, b"a".to_vec()));
        let again = async {
            drop(conn);
            // Connections that were asked for something else may come before.
            let mut conn = peer.accept().await;
            let id = conn.expect(WATCH, &request(Some(at + 2))).await;
            conn.reply(id, OK, MORE, &frame(at + 2, true, b"")).await;
            conn.reply(id, OK, MORE, &frame(at + 3, true, b"whole")).await;
            (conn, id)
        };
        let (transaction, then) = tokio::join!(next(&mut watching), again);
        assert_eq!(transaction.unwrap(), (at + 3, b"whole".to_vec()));
        (conn, id) = then;
    }
}

#[tokio::test]
async fn it_ends_where_what_was_missed_is_not_kept_any_more() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut watching, conn, _) = begin(&peer, &client).await;
    let again = async {
        drop(conn);
        let mut conn = peer.accept().await;
        let id = conn.expect(WATCH, &request(Some(7))).await;
        conn.reply(id, SNAPSHOT_EXPIRED, LAST, &error_body("it is not kept")).await;
        conn
    };
    let (ended, _conn) = tokio::join!(next(&mut watching), again);
    assert_eq!(ended.unwrap_err().code(), Some(ErrorCode::SnapshotExpired));
    assert!(soon(watching.next()).await.is_none());
}

#[tokio::test]
async fn it_ends_when_the_server_is_away_for_longer_than_its_patience() {
    let peer = Peer::listen().await;
    let (client, main) = peer.client().await;
    let scene = async {
        let mut conn = peer.accept().await;
        let id = conn.expect(WATCH, &request(None)).await;
        conn.reply(id, OK, MORE, &frame(7, true, &[])).await;
        conn
    };
    let watch = client.watch().patience(Duration::from_millis(100)).stream();
    let (watching, conn) = tokio::join!(watch, scene);
    drop((conn, main, peer));
    assert!(next(&mut watching.unwrap()).await.unwrap_err().is_passing());
}

#[tokio::test]
async fn a_transaction_that_another_cuts_short_breaks_the_protocol() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut watching, mut conn, id) = begin(&peer, &client).await;
    conn.reply(id, OK, MORE, &frame(8, false, b"a")).await;
    conn.reply(id, OK, MORE, &frame(9, true, b"b")).await;
    assert!(matches!(next(&mut watching).await, Err(Error::Protocol(_))));
    assert!(soon(watching.next()).await.is_none());
}
