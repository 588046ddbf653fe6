//! How a connection is made anew: once for everybody, with an error that says why where it cannot be, and what is sent again on
//! it although it was sent before, because it was certainly not done.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use boltkv_client::{Client, Error, ErrorCode, Written};
use common::{LAST, OK, Peer, error_body, hex, soon, value_body};

const GET: &str = "01 0001 62 0001 6b";
const MOMENT: Duration = Duration::from_millis(100);

async fn get(client: &Client) -> Result<Option<bytes::Bytes>, Error> {
    client.bucket("b")?.get("k").await
}

async fn set(client: &Client) -> Result<Written, Error> {
    client.bucket("b")?.set("k", "v").await
}

#[tokio::test]
async fn callers_that_find_the_connection_lost_share_one_new_one() {
    let peer = Peer::listen().await;
    let (client, mut first) = peer.client().await;
    let asked = async { tokio::join!(get(&client), get(&client), get(&client)) };
    let scene = async {
        for _ in 0..3 {
            first.expect(0x10, GET).await;
        }
        drop(first);
        let mut second = peer.accept().await;
        for _ in 0..3 {
            let id = second.expect(0x10, GET).await;
            second.reply(id, OK, LAST, &value_body(b"v")).await;
        }
        second
    };
    let ((one, two, three), _second) = tokio::join!(asked, scene);
    for value in [one, two, three] {
        assert_eq!(value.unwrap().as_deref(), Some(&b"v"[..]));
    }
}

#[tokio::test]
async fn all_who_wait_share_one_failed_attempt_to_connect_and_learn_its_cause() {
    let peer = Peer::listen().await;
    let (client, first) = peer.client().await;
    drop(first);
    tokio::time::sleep(MOMENT).await;
    let callers: Vec<_> = (0..50)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { set(&client).await })
        })
        .collect();
    // It accepts, and hangs up when all of them wait.
    let refusing = peer.accept_raw().await;
    tokio::time::sleep(MOMENT).await;
    drop(refusing);
    for caller in callers {
        let error = soon(caller).await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::NoAnswer { addr, .. } if *addr == peer.addr), "{error:?}");
        assert!(error.is_unreachable() && error.is_passing() && !error.is_outcome_unknown());
    }
    // Nobody else has tried: the next connection is the next caller's.
    let scene = async {
        let mut second = peer.accept().await;
        let id = second.request().await.id;
        second.reply(id, OK, LAST, &hex("0000000000000007")).await;
        second
    };
    let (written, _second) = tokio::join!(set(&client), scene);
    written.unwrap();
}

#[tokio::test]
async fn a_caller_that_gives_up_does_not_take_the_attempt_from_the_others() {
    let peer = Peer::listen().await;
    let (client, first) = peer.client().await;
    drop(first);
    tokio::time::sleep(MOMENT).await;
    let scene = async {
        let conn = peer.accept_raw().await;
        tokio::time::sleep(2 * MOMENT).await;
        let mut conn = conn.greeted().await;
        let id = conn.expect(0x10, GET).await;
        conn.reply(id, OK, LAST, &value_body(b"v")).await;
        conn
    };
    let impatient = tokio::time::timeout(MOMENT, set(&client));
    let (given_up, value, _conn) = tokio::join!(impatient, get(&client), scene);
    assert!(given_up.is_err());
    assert_eq!(value.unwrap().as_deref(), Some(&b"v"[..]));
}

#[tokio::test]
async fn whoever_has_no_time_left_while_there_is_no_connection_is_told_so() {
    let peer = Peer::listen().await;
    let (client, first) = peer.hasty_client(MOMENT).await;
    drop(first);
    tokio::time::sleep(MOMENT).await;
    let (written, _silent) = tokio::join!(set(&client), peer.accept_raw());
    let error = written.unwrap_err();
    assert!(matches!(&error, Error::Connect { addr, .. } if *addr == peer.addr), "{error:?}");
}

// Promises: wire-not-done.
#[tokio::test]
async fn what_a_stopping_server_refuses_is_sent_once_more_also_a_write() {
    let peer = Peer::listen().await;
    let (client, mut first) = peer.client().await;
    let scene = async {
        let slow = first.expect(0x10, GET).await;
        let id = first.request().await.id;
        first.reply(id, 32, LAST, &error_body("stopping")).await;
        let mut second = peer.accept().await;
        let id = second.request().await.id;
        second.reply(id, OK, LAST, &hex("0000000000000007")).await;
        // What was in flight on the first is still answered there.
        first.reply(slow, OK, LAST, &value_body(b"v")).await;
        second
    };
    let (value, written, _second) = tokio::join!(get(&client), set(&client), scene);
    written.unwrap();
    assert_eq!(value.unwrap().as_deref(), Some(&b"v"[..]));
}

#[tokio::test]
async fn where_nobody_takes_a_stopping_servers_place_its_refusal_is_told() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let scene = async {
        let id = conn.request().await.id;
        drop(peer);
        conn.reply(id, 32, LAST, &error_body("stopping")).await;
        conn
    };
    let (written, _conn) = tokio::join!(set(&client), scene);
    let error = written.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::ShuttingDown), "{error}");
    assert!(error.is_passing() && !error.is_outcome_unknown());
}

#[tokio::test]
async fn where_the_server_is_gone_for_good_a_read_cannot_connect() {
    let peer = Peer::listen().await;
    let (client, conn) = peer.client().await;
    drop((peer, conn));
    let value = get(&client).await;
    assert!(matches!(value, Err(Error::Connect { .. })), "{value:?}");
}

#[tokio::test]
async fn a_server_that_is_shutting_down_is_looked_for_again_by_reads() {
    let peer = Peer::listen().await;
    let (client, mut first) = peer.client().await;
    let scene = async {
        first.expect(0x10, GET).await;
        first.reply(0, 32, LAST, &error_body("stopping")).await;
        let mut second = peer.accept().await;
        let id = second.expect(0x10, GET).await;
        second.reply(id, OK, LAST, &value_body(b"v")).await;
        second
    };
    let (value, _second) = tokio::join!(get(&client), scene);
    assert_eq!(value.unwrap().as_deref(), Some(&b"v"[..]));
}

#[test]
fn a_client_outlives_the_runtime_that_made_it() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let (client, addr, conn) = first.block_on(async {
        let peer = Peer::listen().await;
        let (client, conn) = peer.client().await;
        (client, peer.addr.clone(), conn)
    });
    drop(conn);
    drop(first);
    runtime().block_on(async {
        // Its tasks are gone with their runtime: it connects anew instead of waiting for them.
        let value = soon(get(&client)).await;
        assert!(matches!(&value, Err(Error::Connect { addr: told, .. }) if *told == addr), "{value:?}");
    });
}
