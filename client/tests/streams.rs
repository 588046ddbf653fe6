//! Scans: entries over many frames, credit, and nobody held up by a slow reader. Those that are given up: `given_up`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::ops::Bound;
use std::time::Duration;

use boltkv_client::{Client, EntryKind, Error, ErrorCode, Loss};
use common::{ALL, LAST, MORE, OK, Peer, entries_body, error_body, hex, keys, open_scan, value_body};
use futures_util::StreamExt;

const MOMENT: Duration = Duration::from_millis(100);

#[tokio::test]
async fn entries_come_in_order_over_all_frames() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut entries, mut conn, id) = open_scan(&peer, &client).await;
    conn.reply(id, OK, MORE, &entries_body(&[("b", b"2"), ("c", b"3")])).await;
    conn.reply(id, OK, MORE, &entries_body(&[])).await;
    conn.reply(id, OK, MORE, &entries_body(&[("d", b"4")])).await;
    conn.reply(id, OK, LAST, &entries_body(&[])).await;
    assert_eq!(keys(&mut entries).await.unwrap(), ["a", "b", "c", "d"]);
    assert!(entries.next().await.is_none(), "it stays at its end");
}

#[tokio::test]
async fn entries_are_a_stream_with_kinds_and_values() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let scene = async {
        let mut conn = peer.accept().await;
        let id = conn.expect(0x30, ALL).await;
        let body = "00000003 00 0001 6b 00000001 76 01 0002 6575 00000000 02 0001 78 00000008 0000000001000000";
        conn.reply(id, OK, LAST, &hex(body)).await;
        conn
    };
    let (entries, _conn) = tokio::join!(client.bucket("b").unwrap().scan().stream(), scene);
    let entries: Vec<_> = entries.unwrap().map(Result::unwrap).collect().await;
    let kinds: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::Value, EntryKind::Bucket, EntryKind::TooLarge]);
    assert_eq!(entries[0].value, &b"v"[..]);
    assert_eq!(entries[2].value_size(), Some(16 << 20));
}

#[tokio::test]
async fn options_reach_the_server() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let scans = [
        (bucket.scan().prefix("k"), 0x30, "01 0001 62 03 0001 6b 00 00 0000000000000000"),
        (
            bucket.scan().range(Bound::Included("a"), Bound::Excluded("c")),
            0x30,
            "01 0001 62 01 0001 61 02 0001 63 00 0000000000000000",
        ),
        (
            bucket.scan().range(Bound::Unbounded, Bound::Included("c")),
            0x30,
            "01 0001 62 00 01 0001 63 00 0000000000000000",
        ),
        (
            bucket.scan().range(Bound::Excluded(b"a"), Bound::Unbounded),
            0x30,
            "01 0001 62 02 0001 61 00 00 0000000000000000",
        ),
        (bucket.scan().reverse().keys_only().limit(10), 0x30, "01 0001 62 00 00 03 000000000000000a"),
        (bucket.buckets(), 0x20, "04 01 0001 62 00 00 00 0000000000000000"),
        (client.root().buckets().keys_only(), 0x20, "04 00 00 00 02 0000000000000000"),
    ];
    // Each finds the connection of the one before it free.
    let scene = async {
        let mut conn = peer.accept().await;
        for (_, op, body) in &scans {
            let id = conn.expect(*op, body).await;
            conn.reply(id, OK, LAST, &entries_body(&[])).await;
        }
        conn
    };
    let asked = async {
        for (scan, ..) in scans.clone() {
            assert_eq!(scan.stream().await.unwrap().count().await, 0);
        }
    };
    let _conn = tokio::join!(asked, scene).1;
}

#[tokio::test]
async fn a_limit_of_none_asks_nobody() {
    let peer = Peer::listen().await;
    let (client, mut main) = peer.client().await;
    let scan = client.bucket("b").unwrap().scan().limit(0);
    assert!(scan.clone().stream().await.unwrap().next().await.is_none());
    assert_eq!(scan.count().await.unwrap(), 0);
    assert!(main.is_quiet(MOMENT).await);
}

#[tokio::test]
async fn a_refused_scan_fails_when_it_is_opened_and_its_connection_serves_the_next() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let scene = async {
        let mut conn = peer.accept().await;
        let id = conn.expect(0x30, ALL).await;
        conn.reply(id, 11, LAST, &error_body("no bucket b")).await;
        let id = conn.expect(0x30, ALL).await;
        conn.reply(id, OK, LAST, &entries_body(&[("a", b"1")])).await;
        conn
    };
    let asked = async {
        let error = bucket.scan().stream().await.unwrap_err();
        assert_eq!(error.code(), Some(ErrorCode::BucketNotFound));
        assert_eq!(keys(&mut bucket.scan().stream().await.unwrap()).await.unwrap(), ["a"]);
    };
    let _conn = tokio::join!(asked, scene).1;
}

#[tokio::test]
async fn an_error_ends_a_stream_after_what_came_before_it() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut entries, mut conn, id) = open_scan(&peer, &client).await;
    conn.reply(id, 21, LAST, &error_body("too slow")).await;
    assert_eq!(entries.next().await.unwrap().unwrap().key, &b"a"[..]);
    let error = entries.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::SnapshotExpired));
    assert!(entries.next().await.is_none());
}

#[tokio::test]
async fn a_scan_whose_connection_is_lost_before_its_first_piece_is_sent_once_more() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let scene = async {
        let mut first = peer.accept().await;
        first.expect(0x30, ALL).await;
        drop(first);
        let mut second = peer.accept().await;
        let id = second.expect(0x30, ALL).await;
        second.reply(id, OK, LAST, &entries_body(&[("a", b"1")])).await;
        second
    };
    let (entries, _second) = tokio::join!(client.bucket("b").unwrap().scan().stream(), scene);
    assert_eq!(keys(&mut entries.unwrap()).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_stream_whose_connection_is_lost_fails_and_is_not_begun_again() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut entries, conn, _) = open_scan(&peer, &client).await;
    drop(conn);
    assert_eq!(entries.next().await.unwrap().unwrap().key, &b"a"[..]);
    let lost = entries.next().await.unwrap();
    assert!(matches!(lost, Err(Error::ConnectionLost(Loss::Closed | Loss::Failed(_)))), "{lost:?}");
    assert!(entries.next().await.is_none());
}

#[tokio::test]
async fn a_bad_frame_within_a_stream_breaks_the_protocol() {
    for frame in [
        "00000009 00000002 00 80 000000",
        "00000011 00000002 00 81 00000001 09 0000 00000000",
        "0000000c 00000002 15 81 0000 00000000",
    ] {
        let peer = Peer::listen().await;
        let (client, _main) = peer.client().await;
        let (mut entries, mut conn, _) = open_scan(&peer, &client).await;
        conn.send(&hex(frame)).await;
        let result = keys(&mut entries).await;
        assert!(matches!(result, Err(Error::Protocol(_))), "{result:?}");
    }
}

#[tokio::test]
async fn a_stream_without_its_next_piece_times_out_and_its_connection_is_closed() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.hasty_client(MOMENT).await;
    let (mut entries, conn, _) = open_scan(&peer, &client).await;
    let result = keys(&mut entries).await;
    assert!(matches!(result, Err(Error::Timeout(after)) if after == MOMENT), "{result:?}");
    let said = conn.closed().await;
    assert_eq!(said[8], 0x71, "it was cancelled");
}

#[tokio::test]
async fn credit_is_given_as_entries_are_taken() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut entries, mut conn, id) = open_scan(&peer, &client).await;
    let body = entries_body(&[("b", &vec![0; 100_000])]);
    conn.reply(id, OK, MORE, &body).await;
    assert!(conn.is_quiet(MOMENT).await, "credit for what nobody has taken");

    entries.next().await.unwrap().unwrap();
    entries.next().await.unwrap().unwrap();
    let credit = conn.request().await;
    assert_eq!((credit.id, credit.op), (0, 0x70));
    let first = entries_body(&[("a", b"1")]).len();
    let bytes = u32::try_from(first + body.len()).unwrap();
    assert_eq!(credit.body, [id.to_be_bytes(), bytes.to_be_bytes()].concat());
    conn.reply(id, OK, LAST, &entries_body(&[])).await;
    assert_eq!(keys(&mut entries).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn a_scan_that_a_stopping_server_refuses_is_sent_once_more_on_a_new_connection() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let scene = async {
        let mut first = peer.accept().await;
        let id = first.expect(0x30, ALL).await;
        first.reply(id, 32, LAST, &error_body("stopping")).await;
        let mut second = peer.accept().await;
        let id = second.expect(0x30, ALL).await;
        second.reply(id, OK, LAST, &entries_body(&[("a", b"1")])).await;
        (first, second)
    };
    let (entries, _conns) = tokio::join!(client.bucket("b").unwrap().scan().stream(), scene);
    assert_eq!(keys(&mut entries.unwrap()).await.unwrap(), ["a"]);
}

#[tokio::test]
async fn a_slow_reader_bounds_what_is_buffered_and_holds_up_nobody_else() {
    let peer = Peer::listen().await;
    let (client, mut main) = peer.client().await;
    let (mut entries, mut conn, id) = open_scan(&peer, &client).await;

    // All that the stream has credit for, and the frame that overdraws it.
    let value = vec![0; 100_000];
    for _ in 0..3 {
        conn.reply(id, OK, MORE, &entries_body(&[("b", &value)])).await;
    }

    let scene = async {
        let request = main.expect(0x10, "01 0001 62 0001 6b").await;
        main.reply(request, OK, LAST, &value_body(b"v")).await;
    };
    let bucket = client.bucket("b").unwrap();
    let (value, ()) = tokio::join!(bucket.get("k"), scene);
    assert_eq!(value.unwrap().as_deref(), Some(&b"v"[..]));

    assert!(conn.is_quiet(MOMENT).await, "credit for what nobody has taken");
    for _ in 0..4 {
        common::soon(entries.next()).await.unwrap().unwrap();
    }
    assert_eq!(conn.request().await.op, 0x70, "as soon as it is taken");
}

#[tokio::test]
async fn a_server_that_sends_more_than_it_has_credit_for_loses_the_connection() {
    let peer = Peer::listen().await;
    let (client, _main) = peer.client().await;
    let (mut entries, mut conn, id) = open_scan(&peer, &client).await;
    for _ in 0..4 {
        let _ = conn.try_reply(id, OK, MORE, &entries_body(&[("b", &vec![0; 100_000])])).await;
    }
    conn.closed().await;
    let mut taken = 0;
    let error = loop {
        match common::soon(entries.next()).await.unwrap() {
            Ok(_) => taken += 1,
            Err(error) => break error,
        }
    };
    assert!(taken == 4 && error.to_string().contains("credit"), "{taken}: {error}");
}

#[tokio::test]
async fn a_scan_over_the_limit_waits_until_another_ends() {
    let peer = Peer::listen().await;
    let one = Client::builder(peer.addr.as_str()).max_scans(1).timeout(Duration::from_secs(2));
    let (client, _main) = peer.client_by(one).await;
    let (first, mut conn, id) = open_scan(&peer, &client).await;
    let error = client.bucket("b").unwrap().scan().stream().await.unwrap_err();
    assert!(matches!(error, Error::TooManyScans { limit: 1, .. }) && error.is_passing(), "{error}");
    drop(first);
    let scene = async {
        conn.expect(0x71, &format!("{id:08x}")).await;
        let id = conn.expect(0x30, ALL).await;
        conn.reply(id, OK, LAST, &entries_body(&[("b", b"2")])).await;
    };
    let (second, ()) = tokio::join!(client.bucket("b").unwrap().scan().stream(), scene);
    assert_eq!(keys(&mut second.unwrap()).await.unwrap(), ["b"]);
}
