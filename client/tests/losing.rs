//! What becomes of requests when the connection, the server or its good manners are lost: reads are sent once more, writes
//! never are, and nobody waits for ever.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use boltkv_client::{Client, Cond, Error, ErrorCode, Loss, Written};
use common::{LAST, MORE, OK, Peer, error_body, hex, value_body};

const GET: &str = "01 0001 62 0001 6b";
const MOMENT: Duration = Duration::from_millis(100);

async fn get(client: &Client) -> Result<Option<bytes::Bytes>, Error> {
    client.bucket("b")?.get("k").await
}

async fn set(client: &Client) -> Result<Written, Error> {
    client.bucket("b")?.set("k", "v").await
}

#[tokio::test]
async fn a_read_whose_connection_is_lost_is_sent_once_more_on_a_new_one() {
    let peer = Peer::listen().await;
    let (client, mut first) = peer.client().await;
    let scene = async {
        first.expect(0x10, GET).await;
        drop(first);
        let mut second = peer.accept().await;
        let id = second.expect(0x10, GET).await;
        second.reply(id, OK, LAST, &value_body(b"v")).await;
        second
    };
    let (value, _second) = tokio::join!(get(&client), scene);
    assert_eq!(value.unwrap().as_deref(), Some(&b"v"[..]));
}

#[tokio::test]
async fn a_read_that_loses_two_connections_fails() {
    let peer = Peer::listen().await;
    let (client, mut first) = peer.client().await;
    let scene = async {
        first.expect(0x10, GET).await;
        drop(first);
        let mut second = peer.accept().await;
        second.expect(0x10, GET).await;
    };
    let (value, ()) = tokio::join!(get(&client), scene);
    assert!(matches!(value, Err(Error::ConnectionLost(_))), "{value:?}");
}

// Promises: wire-unknown-outcome, ops-unknown.
#[tokio::test]
async fn a_write_whose_connection_is_lost_has_an_unknown_outcome_and_is_not_sent_again() {
    let peer = Peer::listen().await;
    for cond in [Cond::Always, Cond::IfAbsent, Cond::IfPresent, Cond::IfEquals("old".into())] {
        let (client, mut first) = peer.client().await;
        let bucket = client.bucket("b").unwrap();
        let scene = async {
            assert_eq!(first.request().await.op, 0x11);
            drop(first);
        };
        let (written, ()) = tokio::join!(bucket.set_if("k", "v", cond), scene);
        let error = written.unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)) && error.is_outcome_unknown(), "{error}");

        // What the next connection brings is the next request, not the lost one.
        let scene = async {
            let mut second = peer.accept().await;
            let id = second.expect(0x02, "").await;
            second.reply(id, OK, LAST, b"").await;
            second
        };
        let (pong, _second) = tokio::join!(client.ping(), scene);
        pong.unwrap();
    }
}

#[tokio::test]
async fn every_kind_of_write_has_an_unknown_outcome_when_its_connection_is_lost() {
    let peer = Peer::listen().await;
    for kind in 0..4 {
        let (client, mut conn) = peer.client().await;
        let bucket = client.bucket("b").unwrap();
        let write = async {
            match kind {
                0 => bucket.delete("k").await.map(drop),
                1 => bucket.create().await.map(drop),
                2 => bucket.create_if_missing().await.map(drop),
                _ => bucket.delete_bucket().await.map(drop),
            }
        };
        let scene = async {
            conn.request().await;
            drop(conn);
        };
        let (written, ()) = tokio::join!(write, scene);
        assert!(matches!(written, Err(Error::OutcomeUnknown(_))), "{kind}: {written:?}");
    }
}

#[tokio::test]
async fn after_an_idle_connection_was_closed_a_write_goes_to_a_new_one() {
    let peer = Peer::listen().await;
    let (client, first) = peer.client().await;
    drop(first);
    // The client learns of it as soon as its reading task runs.
    tokio::time::sleep(MOMENT).await;
    let scene = async {
        let mut second = peer.accept().await;
        let request = second.request().await;
        assert_eq!(request.op, 0x11);
        second.reply(request.id, OK, LAST, &hex("0000000000000007")).await;
        second
    };
    let (written, _second) = tokio::join!(set(&client), scene);
    assert_eq!(written.unwrap().txid, 7);
}

#[tokio::test]
async fn a_time_beyond_all_clocks_is_for_ever() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.hasty_client(Duration::MAX).await;
    let scene = async {
        let id = conn.expect(0x10, GET).await;
        conn.reply(id, OK, LAST, &value_body(b"v")).await;
    };
    assert_eq!(tokio::join!(get(&client), scene).0.unwrap().as_deref(), Some(&b"v"[..]));
}

#[tokio::test]
async fn a_read_without_an_answer_times_out_and_a_write_has_an_unknown_outcome() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.hasty_client(MOMENT).await;
    let (value, written) = tokio::join!(get(&client), set(&client));
    assert!(matches!(value, Err(Error::Timeout(after)) if after == MOMENT), "{value:?}");
    assert!(matches!(written, Err(Error::OutcomeUnknown(Loss::Timeout(_)))), "{written:?}");
    assert_eq!(conn.request().await.op, 0x10);
    assert_eq!(conn.request().await.op, 0x11);
}

#[tokio::test]
async fn a_connection_that_has_gone_silent_is_replaced() {
    let peer = Peer::listen().await;
    let (client, silent) = peer.hasty_client(MOMENT).await;
    assert!(matches!(get(&client).await, Err(Error::Timeout(_))));
    let scene = async {
        let mut second = peer.accept().await;
        let id = second.expect(0x02, "").await;
        second.reply(id, OK, LAST, b"").await;
        second
    };
    let (pong, _second) = tokio::join!(client.ping(), scene);
    pong.unwrap();
    drop(silent);
}

#[tokio::test]
async fn a_connection_that_answers_others_is_kept_when_one_request_times_out() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.hasty_client(2 * MOMENT).await;
    let scene = async {
        let slow = conn.expect(0x10, GET).await;
        let quick = conn.expect(0x02, "").await;
        conn.reply(quick, OK, LAST, b"").await;
        slow
    };
    let (value, pong, slow) = tokio::join!(get(&client), client.ping(), scene);
    pong.unwrap();
    assert!(matches!(value, Err(Error::Timeout(_))), "{value:?}");

    let scene = async {
        let id = conn.expect(0x02, "").await;
        conn.reply(slow, OK, LAST, &value_body(b"late")).await;
        conn.reply(id, OK, LAST, b"").await;
    };
    tokio::join!(client.ping(), scene).0.unwrap();
}

/// Frames that a server must not send, as an answer to the request with id 2.
fn bad_frames() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("an id nobody asked under", hex("0000000a 00000063 00 80 00000000")),
        ("a len below the header's", hex("00000005 00000002 00")),
        ("a frame over the limit", hex("00200000 00000002 00 80")),
        ("no reply flag", hex("0000000a 00000002 00 00 00000000")),
        ("several frames where one is due", hex("0000000a 00000002 00 81 00000000")),
        ("a short body", hex("00000008 00000002 00 80 0000")),
        ("success under id 0", hex("00000006 00000000 00 80")),
    ]
}

#[tokio::test]
async fn a_bad_frame_under_a_read_breaks_the_protocol_and_is_not_asked_for_again() {
    for (what, frame) in bad_frames() {
        let peer = Peer::listen().await;
        let (client, mut conn) = peer.client().await;
        let scene = async {
            assert_eq!(conn.expect(0x10, GET).await, 2);
            conn.send(&frame).await;
            conn.closed().await
        };
        let (value, _) = tokio::join!(
            async {
                let value = get(&client).await;
                drop(client);
                value
            },
            scene
        );
        assert!(matches!(value, Err(Error::Protocol(_))), "{what}: {value:?}");
    }
}

#[tokio::test]
async fn a_bad_frame_under_a_write_leaves_its_outcome_unknown() {
    for (what, frame) in bad_frames() {
        let peer = Peer::listen().await;
        let (client, mut conn) = peer.client().await;
        let scene = async {
            conn.request().await;
            conn.send(&frame).await;
            conn
        };
        let (written, _conn) = tokio::join!(set(&client), scene);
        assert!(matches!(written, Err(Error::OutcomeUnknown(Loss::Protocol(_)))), "{what}: {written:?}");
    }
}

#[tokio::test]
async fn what_the_server_says_about_the_connection_is_told_to_all_on_it() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let scene = async {
        conn.request().await;
        conn.request().await;
        conn.reply(0, 1, LAST, &error_body("an id that is in use")).await;
        conn
    };
    let (value, written, _conn) = tokio::join!(get(&client), set(&client), scene);
    assert!(
        matches!(&value, Err(Error::ConnectionLost(Loss::Ended(e))) if e.code == ErrorCode::Malformed),
        "{value:?}"
    );
    assert!(matches!(&written, Err(Error::OutcomeUnknown(Loss::Ended(_)))), "{written:?}");
    assert!(written.unwrap_err().to_string().contains("an id that is in use"));
}

#[tokio::test]
async fn a_reply_that_came_before_the_loss_counts() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let scene = async {
        let id = conn.request().await.id;
        conn.reply(id, OK, LAST, &hex("0000000000000007")).await;
        drop(conn);
    };
    let (written, ()) = tokio::join!(set(&client), scene);
    assert_eq!(written.unwrap().txid, 7);
}

#[tokio::test]
async fn a_frame_cut_by_the_end_is_a_lost_connection() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let scene = async {
        conn.request().await;
        conn.send(&hex("0000000e 00000002 00 80 0000")).await;
        drop(conn);
    };
    let (written, ()) = tokio::join!(set(&client), scene);
    assert!(matches!(written, Err(Error::OutcomeUnknown(Loss::Closed | Loss::Failed(_)))), "{written:?}");
}

#[tokio::test]
async fn more_frames_than_one_are_no_answer_to_a_write() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let scene = async {
        let id = conn.request().await.id;
        conn.reply(id, OK, MORE, &hex("0000000000000007")).await;
        conn
    };
    let (written, _conn) = tokio::join!(set(&client), scene);
    assert!(matches!(written, Err(Error::OutcomeUnknown(Loss::Protocol(_)))), "{written:?}");
}
