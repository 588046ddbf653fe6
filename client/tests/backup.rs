//! Backups: pieces over many frames, and an end that tells whether all of it is what was sent.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use boltkv_client::{Backup, Client, Error, ErrorCode};
use common::{Conn, LAST, MORE, OK, Peer, error_body, hex, value_body};
use futures_util::StreamExt;
use tokio::io::AsyncWrite;

/// What ends a backup of `hello world`.
const END: &str = "000000000000000b c99465aa";

/// Opens a backup, which the peer answers with a first piece; more follow.
async fn open(peer: &Peer, client: &Client) -> (Backup, Conn, u32) {
    let scene = async {
        let mut conn = peer.accept().await;
        let id = conn.expect(0x61, "").await;
        conn.reply(id, OK, MORE, &value_body(b"hello ")).await;
        (conn, id)
    };
    let (backup, (conn, id)) = tokio::join!(client.backup(), scene);
    (backup.unwrap(), conn, id)
}

/// What the peer's frames come to, written somewhere.
async fn written(frames: &[(u8, u8, &[u8])]) -> Result<Vec<u8>, Error> {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (backup, mut conn, id) = open(&peer, &client).await;
    for (status, flags, body) in frames {
        conn.reply(id, *status, *flags, body).await;
    }
    let mut out = Vec::new();
    assert_eq!(common::soon(backup.write_to(&mut out)).await?, out.len() as u64);
    Ok(out)
}

#[tokio::test]
async fn pieces_come_in_order_and_the_end_is_checked() {
    let (world, end) = (value_body(b"world"), hex(END));
    assert_eq!(written(&[(OK, MORE, &world), (OK, LAST, &end)]).await.unwrap(), b"hello world");
    let damaged = written(&[(OK, MORE, &value_body(b"wOrld")), (OK, LAST, &end)]).await.unwrap_err();
    assert!(matches!(&damaged, Error::BackupDamaged(_)) && !damaged.is_passing(), "{damaged}");
    let short = written(&[(OK, LAST, &end)]).await.unwrap_err();
    assert!(matches!(&short, Error::BackupDamaged(what) if what.contains("6 bytes came")), "{short}");
}

#[tokio::test]
async fn an_error_ends_it_as_does_a_connection_that_is_lost() {
    let expired = written(&[(21, LAST, &error_body("too slow"))]).await.unwrap_err();
    assert_eq!(expired.code(), Some(ErrorCode::SnapshotExpired));

    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut backup, conn, _) = open(&peer, &client).await;
    drop(conn);
    assert_eq!(&backup.next().await.unwrap().unwrap()[..], b"hello ");
    let lost = common::soon(backup.next()).await.unwrap().unwrap_err();
    assert!(matches!(lost, Error::ConnectionLost(_)), "{lost}");
    assert!(backup.next().await.is_none(), "it stays at its end");
}

#[tokio::test]
async fn it_is_a_stream_and_cancelled_when_it_is_dropped() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (backup, mut conn, id) = open(&peer, &client).await;
    conn.reply(id, OK, MORE, &value_body(b"world")).await;
    let pieces: Vec<_> = backup.take(2).map(Result::unwrap).collect().await;
    assert_eq!(pieces.concat(), b"hello world");
    // `take` has dropped it after two.
    assert_eq!(conn.expect(0x71, &format!("{id:08x}")).await, 0);
}

/// Takes nothing.
struct Full;

impl AsyncWrite for Full {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::StorageFull.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn what_cannot_be_written_is_told_from_what_did_not_come() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (backup, mut conn, id) = open(&peer, &client).await;
    let full = common::soon(backup.write_to(&mut Full)).await.unwrap_err();
    assert!(matches!(&full, Error::Write(error) if error.kind() == io::ErrorKind::StorageFull), "{full}");
    assert_eq!(conn.expect(0x71, &format!("{id:08x}")).await, 0);
}

#[tokio::test]
async fn a_server_that_says_nothing_more_is_given_up() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.hasty_client(Duration::from_millis(300)).await;
    let (mut backup, _conn, _) = open(&peer, &client).await;
    assert!(backup.next().await.unwrap().is_ok());
    assert!(matches!(common::soon(backup.next()).await, Some(Err(Error::Timeout(_)))));
}
