//! Scans that are given up before their end: cancelled, what still comes of them bounded and ignored, and their connections
//! used again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{ALL, Conn, LAST, MORE, OK, Peer, entries_body, error_body, hex, keys, open_scan};

const MOMENT: Duration = Duration::from_millis(100);

/// Answers the next scan to its end, with one entry; its id.
async fn answer_whole(conn: &mut Conn) -> u32 {
    let id = conn.expect(0x30, ALL).await;
    conn.reply(id, OK, LAST, &entries_body(&[("c", b"3")])).await;
    id
}

#[tokio::test]
async fn a_stream_dropped_early_is_cancelled_and_its_late_frames_are_ignored() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (entries, mut conn, id) = open_scan(&peer, &client).await;
    drop(entries);
    assert_eq!((conn.expect(0x71, &format!("{id:08x}")).await, id), (0, id));
    conn.reply(id, OK, MORE, &entries_body(&[("b", b"2")])).await;
    conn.reply(id, 22, LAST, &error_body("as you asked")).await;
    let (entries, next) = tokio::join!(client.bucket("b").unwrap().scan().stream(), answer_whole(&mut conn));
    assert_ne!(next, id);
    assert_eq!(keys(&mut entries.unwrap()).await.unwrap(), ["c"]);
}

#[tokio::test]
async fn a_late_frame_may_be_as_long_as_any() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (bucket, long) = (client.bucket("b").unwrap(), vec![b'v'; 2 << 20]);
    let scene = async {
        let mut conn = peer.accept_raw().await;
        conn.request().await;
        // Frames of 4 MiB.
        conn.reply(1, OK, LAST, &hex("01 00000000 00400000 00000004 00000002 00 0000")).await;
        let id = conn.expect(0x30, ALL).await;
        conn.reply(id, OK, MORE, &entries_body(&[("a", &long)])).await;
        (conn, id)
    };
    let (entries, (mut conn, id)) = tokio::join!(bucket.scan().stream(), scene);
    let mut entries = entries.unwrap();
    entries.next().await.unwrap().unwrap();
    drop(entries);
    assert_eq!((conn.request().await.op, conn.request().await.op), (0x70, 0x71));
    conn.reply(id, OK, MORE, &entries_body(&[("b", &long)])).await;
    conn.reply(id, 22, LAST, &error_body("as you asked")).await;
    let (entries, _) = tokio::join!(bucket.scan().stream(), answer_whole(&mut conn));
    assert_eq!(keys(&mut entries.unwrap()).await.unwrap(), ["c"]);
}

#[tokio::test]
async fn a_stream_given_up_before_its_first_piece_is_cancelled_too() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let opening = tokio::time::timeout(MOMENT, bucket.scan().stream());
    let (given_up, mut conn) = tokio::join!(opening, peer.accept());
    assert!(given_up.is_err());
    let id = conn.expect(0x30, ALL).await;
    conn.expect(0x71, &format!("{id:08x}")).await;
    assert_eq!(conn.closed().await, b"");
}

#[tokio::test]
async fn a_stream_that_outlives_its_client_is_still_cancelled() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (entries, mut conn, id) = open_scan(&peer, &client).await;
    drop(client);
    drop(entries);
    conn.expect(0x71, &format!("{id:08x}")).await;
    assert_eq!(conn.closed().await, b"");
}

#[tokio::test]
async fn a_server_that_does_not_hear_cancel_is_hung_up_on() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (entries, mut conn, id) = open_scan(&peer, &client).await;
    drop(entries);
    let body = entries_body(&[("b", &vec![0; 100_000])]);
    let mut sent = 0;
    while conn.try_reply(id, OK, MORE, &body).await.is_ok() {
        sent += 1;
        assert!(sent < 1_000, "it reads on and on");
    }
}

/// The peer's side of a scan that follows one which was given up, on the same connection. What it had sent before it heard of that
/// comes first, then its end, if it has one.
async fn serve_next(conn: &mut Conn, given_up: u32, has_end: bool) -> u32 {
    conn.expect(0x71, &format!("{given_up:08x}")).await;
    let id = conn.expect(0x30, ALL).await;
    assert_ne!(id, given_up);
    conn.reply(given_up, OK, MORE, &entries_body(&[("late", &vec![0; 100_000])])).await;
    if has_end {
        conn.reply(given_up, 22, LAST, &error_body("as you asked")).await;
    }
    conn.reply(id, OK, MORE, &entries_body(&[("next", b"1")])).await;
    id
}

#[tokio::test]
async fn a_scan_follows_one_that_was_given_up_on_its_connection_before_the_server_has_heard_of_that() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut entries, mut conn, mut id) = open_scan(&peer, &client).await;
    for _ in 0..50 {
        entries.next().await.unwrap().unwrap();
        drop(entries);
        let bucket = client.bucket("b").unwrap();
        let (next, served) = tokio::join!(bucket.scan().stream(), serve_next(&mut conn, id, true));
        (entries, id) = (next.unwrap(), served);
    }
    conn.reply(id, OK, LAST, &entries_body(&[("last", b"1")])).await;
    assert_eq!(keys(&mut entries).await.unwrap(), ["next", "last"]);
}

#[tokio::test]
async fn a_server_that_takes_one_stream_is_waited_for_until_it_has_ended_the_one_that_was_given_up() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let scene = async {
        let mut conn = peer.accept_raw().await;
        conn.request().await;
        conn.reply(1, OK, LAST, &hex("01 00000000 00100000 00000004 00000001 00 0000")).await;
        let id = conn.expect(0x30, ALL).await;
        conn.reply(id, OK, MORE, &entries_body(&[("a", b"1")])).await;
        (conn, id)
    };
    let (entries, (mut conn, id)) = tokio::join!(bucket.scan().stream(), scene);
    drop(entries.unwrap());
    let scene = async {
        conn.expect(0x71, &format!("{id:08x}")).await;
        assert!(conn.is_quiet(MOMENT).await, "it would be refused");
        conn.reply(id, 22, LAST, &error_body("as you asked")).await;
        answer_whole(&mut conn).await
    };
    let (entries, _) = tokio::join!(bucket.scan().stream(), scene);
    assert_eq!(keys(&mut entries.unwrap()).await.unwrap(), ["c"]);
}

#[tokio::test]
async fn where_streams_that_were_given_up_do_not_end_the_next_has_another_connection() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (entries, mut conn, id) = open_scan(&peer, &client).await;
    drop(entries);
    let bucket = client.bucket("b").unwrap();
    let (entries, _) = tokio::join!(bucket.scan().stream(), serve_next(&mut conn, id, false));
    drop(entries.unwrap());
    // The peer takes two streams, and ends none.
    let (mut entries, mut other, id) = open_scan(&peer, &client).await;
    other.reply(id, OK, LAST, &entries_body(&[])).await;
    assert_eq!(keys(&mut entries).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_scan_beside_one_that_goes_on_unheard_is_begun_again_elsewhere() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (entries, mut conn, id) = open_scan(&peer, &client).await;
    drop(entries);
    let scene = async {
        conn.expect(0x71, &format!("{id:08x}")).await;
        conn.expect(0x30, ALL).await;
        let body = entries_body(&[("late", &vec![0; 100_000])]);
        let mut sent = 0;
        while conn.try_reply(id, OK, MORE, &body).await.is_ok() {
            sent += 1;
            assert!(sent < 1_000, "it reads on and on");
        }
        let mut other = peer.accept().await;
        let id = other.expect(0x30, ALL).await;
        other.reply(id, OK, LAST, &entries_body(&[("b", b"2")])).await;
        other
    };
    let (entries, _other) = tokio::join!(client.bucket("b").unwrap().scan().stream(), scene);
    assert_eq!(keys(&mut entries.unwrap()).await.unwrap(), ["b"]);
}
