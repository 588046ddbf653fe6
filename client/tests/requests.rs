//! Requests as the peer sees them, and replies as the caller gets them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::fmt::Debug;
use std::time::Duration;

use boltkv_client::{Client, Cond, Error, ErrorCode};
use common::{LAST, OK, Peer, error_body, hex, value_body};

/// A count of all of bucket `b`.
const COUNT: &str = "01 0001 62 00 00 04 0000000000000000";

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

#[tokio::test]
async fn get_gives_the_value_or_none() {
    let get = async |client: Client| client.bucket("b").unwrap().get("k").await;
    let found = play(get, 0x10, "01 0001 62 0001 6b", OK, &value_body(b"world")).await;
    assert_eq!(found.unwrap().as_deref(), Some(&b"world"[..]));
    let absent = play(get, 0x10, "01 0001 62 0001 6b", 10, &error_body("no")).await;
    assert_eq!(absent.unwrap(), None);
    let missing = play(get, 0x10, "01 0001 62 0001 6b", 11, &error_body("no")).await;
    assert_eq!(missing.unwrap_err().code(), Some(ErrorCode::BucketNotFound));
}

#[tokio::test]
async fn set_gives_the_transaction_and_carries_its_condition() {
    let txid = hex("000000000000012c");
    let set = async |client: Client| client.bucket("b").unwrap().set("k", "v").await;
    let written = play(set, 0x11, "01 0001 62 0001 6b 00000001 76 00", OK, &txid).await;
    assert_eq!(written.unwrap().txid, 300);

    let set = async |client: Client| client.bucket("b").unwrap().set_if("k", "v", Cond::IfEquals("old".into())).await;
    let body = "01 0001 62 0001 6b 00000001 76 03 00000003 6f6c64";
    let failed = play(set, 0x11, body, 20, &error_body("another value")).await.unwrap_err();
    assert_eq!(failed.code(), Some(ErrorCode::ConditionFailed));
    assert_eq!(failed.to_string(), "CONDITION_FAILED: another value");
}

#[tokio::test]
async fn delete_says_whether_the_key_was_there() {
    for (existed, byte) in [(true, "01"), (false, "00")] {
        let delete = async |client: Client| client.bucket("b").unwrap().delete("k").await;
        let reply = hex(&format!("000000000000012c {byte}"));
        let deleted = play(delete, 0x12, "01 0001 62 0001 6b 00", OK, &reply).await;
        let deleted = deleted.unwrap();
        assert_eq!((deleted.txid, deleted.existed), (300, existed));
    }
    let delete = async |client: Client| client.bucket("b").unwrap().delete_if("k", Cond::IfPresent).await;
    let deleted = play(delete, 0x12, "01 0001 62 0001 6b 02", 20, &error_body("absent")).await;
    assert_eq!(deleted.unwrap_err().code(), Some(ErrorCode::ConditionFailed));
}

#[tokio::test]
async fn a_number_is_added_to() {
    let increment = async |client: Client| client.bucket("b").unwrap().increment("k", -2).await;
    let body = "01 0001 62 0001 6b fffffffffffffffe";
    let done = play(increment, 0x13, body, OK, &hex("000000000000012c fffffffffffffffb")).await.unwrap();
    assert_eq!((done.txid, done.value), (300, -5));
    let failed = play(increment, 0x13, body, 23, &error_body("too small")).await.unwrap_err();
    assert_eq!(failed.code(), Some(ErrorCode::NumberOutOfRange));
}

#[tokio::test]
async fn a_range_is_deleted_part_by_part_up_to_its_limit() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let delete = async || bucket.delete_range().prefix("k").limit(5).run().await;
    let scene = async {
        for (left, reply) in [
            ("0000000000000005", "0000000000000007 0000000000000003 01"),
            ("0000000000000002", "0000000000000008 0000000000000002 01"),
        ] {
            let id = conn.expect(0x31, &format!("01 0001 62 03 0001 6b 00 {left}")).await;
            conn.reply(id, OK, LAST, &hex(reply)).await;
        }
    };
    let done = tokio::join!(delete(), scene).0.unwrap();
    assert_eq!((done.txid, done.deleted, done.more), (Some(8), 5, true));
    let nothing = bucket.delete_range().limit(0).run().await.unwrap();
    assert_eq!((nothing.txid, nothing.deleted), (None, 0), "there is nothing to ask");
}

#[tokio::test]
async fn sequences_are_raised_and_set_and_buckets_moved() {
    let next = async |client: Client| client.bucket("b").unwrap().next_sequence().await;
    let raised = play(next, 0x20, "06 01 0001 62", OK, &hex("0000000000000007 0000000000000009")).await.unwrap();
    assert_eq!((raised.txid, raised.value), (7, 9));
    let set = async |client: Client| client.bucket("b").unwrap().set_sequence(9).await;
    let body = "07 01 0001 62 0000000000000009";
    assert_eq!(play(set, 0x20, body, OK, &hex("0000000000000007")).await.unwrap().txid, 7);
    let move_to = async |client: Client| client.bucket("a/b").unwrap().move_to(&"b".parse().unwrap()).await;
    let body = "08 02 0001 61 0001 62 01 0001 62";
    assert_eq!(play(move_to, 0x20, body, OK, &hex("0000000000000007")).await.unwrap().txid, 7);
}

#[tokio::test]
async fn stats_are_names_and_values() {
    let stats = async |client: Client| client.stats().await;
    let figures = play(stats, 0x60, "", OK, &hex("0001 0004 74786964 00000002 3132")).await.unwrap();
    assert_eq!(figures, [("txid".to_owned(), "12".to_owned())]);
}

#[tokio::test]
async fn buckets_are_created_and_deleted_by_their_path() {
    let txid = hex("0000000000000007");
    let path = "02 0001 61 0001 62";
    let create = async |client: Client| client.bucket("a/b").unwrap().create().await;
    assert_eq!(play(create, 0x20, &format!("01 {path}"), OK, &txid).await.unwrap().txid, 7);
    let create = async |client: Client| client.bucket("a/b").unwrap().create_if_missing().await;
    assert_eq!(play(create, 0x20, &format!("02 {path}"), OK, &txid).await.unwrap().txid, 7);
    let delete = async |client: Client| client.bucket("a/b").unwrap().delete_bucket().await;
    assert_eq!(play(delete, 0x20, &format!("03 {path}"), OK, &txid).await.unwrap().txid, 7);
}

#[tokio::test]
async fn count_and_ping_are_answered() {
    let count = async |client: Client| client.bucket("b").unwrap().scan().prefix("k").count().await;
    let body = "01 0001 62 03 0001 6b 00 04 0000000000000000";
    assert_eq!(play(count, 0x30, body, OK, &hex("000000000000000c")).await.unwrap(), 12);
    let ping = async |client: Client| client.ping().await;
    play(ping, 0x02, "", OK, b"").await.unwrap();
}

#[tokio::test]
async fn every_other_error_of_the_server_keeps_its_code_and_message() {
    for status in [1, 2, 13, 14, 15, 16, 17, 18, 30, 31, 33, 40, 99] {
        let get = async |client: Client| client.bucket("b").unwrap().get("k").await;
        let reply = error_body("because");
        let error = play(get, 0x10, "01 0001 62 0001 6b", status, &reply).await.unwrap_err();
        assert_eq!(error.code().map(ErrorCode::to_u8), Some(status));
        assert!(error.to_string().ends_with(": because"), "{error}");
        assert_eq!(error.is_outcome_unknown(), status == 40);
    }
}

#[tokio::test]
async fn replies_find_their_requests_in_any_order() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let asked = async { tokio::join!(bucket.get("0"), bucket.get("1"), bucket.get("2")) };
    let scene = async {
        let mut requests = Vec::new();
        for _ in 0..3 {
            requests.push(conn.request().await);
        }
        for request in requests.iter().rev() {
            let key = request.body.last().copied().unwrap();
            conn.reply(request.id, OK, LAST, &value_body(&[b'v', key])).await;
        }
    };
    let ((zero, one, two), ()) = tokio::join!(asked, scene);
    let values = [zero, one, two].map(|value| value.unwrap().unwrap());
    assert_eq!(values, [&b"v0"[..], b"v1", b"v2"]);
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_the_server_allows() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.ping().await })
        })
        .collect();
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(conn.expect(0x02, "").await);
    }
    assert!(conn.is_quiet(Duration::from_millis(50)).await, "a fifth was sent");
    conn.reply(ids[2], OK, LAST, b"").await;
    ids[2] = conn.expect(0x02, "").await;
    for id in ids {
        conn.reply(id, OK, LAST, b"").await;
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn no_more_counts_are_in_flight_than_the_server_has_streams() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let bucket = client.bucket("b").unwrap();
            tokio::spawn(async move { bucket.scan().count().await })
        })
        .collect();
    let mut ids = vec![conn.expect(0x30, COUNT).await, conn.expect(0x30, COUNT).await];
    assert!(conn.is_quiet(Duration::from_millis(50)).await, "a third was sent");
    // Those that wait hold up nobody else.
    let scene = async {
        let id = conn.expect(0x02, "").await;
        conn.reply(id, OK, LAST, b"").await;
    };
    tokio::join!(client.ping(), scene).0.unwrap();
    for _ in 0..3 {
        conn.reply(ids.remove(0), OK, LAST, &hex("000000000000000c")).await;
        ids.push(conn.expect(0x30, COUNT).await);
    }
    for id in ids {
        conn.reply(id, OK, LAST, &hex("000000000000000c")).await;
    }
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), 12);
    }
}

#[tokio::test]
async fn a_count_that_nobody_waits_for_is_cancelled() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.hasty_client(Duration::from_millis(200)).await;
    let bucket = client.bucket("b").unwrap();

    // Its caller gives up.
    assert!(tokio::time::timeout(Duration::from_millis(20), bucket.scan().count()).await.is_err());
    let given_up = conn.expect(0x30, COUNT).await;
    conn.expect(0x71, &format!("{given_up:08x}")).await;

    // Its time is over, while the server answers others.
    let scene = async {
        let late = conn.expect(0x30, COUNT).await;
        conn.reply(given_up, 22, LAST, &error_body("as you asked")).await;
        conn.expect(0x71, &format!("{late:08x}")).await;
        conn.reply(late, 22, LAST, &error_body("as you asked")).await;
    };
    let (count, ()) = tokio::join!(bucket.scan().count(), scene);
    assert!(matches!(count, Err(Error::Timeout(_))), "{count:?}");

    // One that is answered is not cancelled.
    let scene = async {
        let id = conn.expect(0x30, COUNT).await;
        conn.reply(id, OK, LAST, &hex("000000000000000c")).await;
        assert!(conn.is_quiet(Duration::from_millis(20)).await);
    };
    assert_eq!(tokio::join!(bucket.scan().count(), scene).0.unwrap(), 12);
}

#[tokio::test]
async fn a_caller_that_gives_up_leaves_the_others_their_replies() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let impatient = tokio::time::timeout(Duration::from_millis(20), bucket.get("k")).await;
    assert!(impatient.is_err());
    let abandoned = conn.expect(0x10, "01 0001 62 0001 6b").await;
    let scene = async {
        let id = conn.expect(0x02, "").await;
        assert_ne!(id, abandoned, "an id that is in use");
        conn.reply(abandoned, OK, LAST, &value_body(b"late")).await;
        conn.reply(id, OK, LAST, b"").await;
    };
    tokio::join!(client.ping(), scene).0.unwrap();
}

#[tokio::test]
async fn what_does_not_fit_a_frame_is_not_sent_and_hurts_nobody() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    for (key, value, field) in [("k", vec![0; 1 << 20], "frame"), (&"k".repeat(65_536), vec![], "key")] {
        let error = bucket.set(key, value).await.unwrap_err();
        assert!(matches!(&error, Error::Unsendable(error) if error.field == field), "{error}");
    }
    let scene = async {
        let id = conn.expect(0x02, "").await;
        conn.reply(id, OK, LAST, b"").await;
    };
    tokio::join!(client.ping(), scene).0.unwrap();
}

#[tokio::test]
async fn many_large_writes_at_once_all_arrive() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let tasks: Vec<_> = (0..16_u8)
        .map(|number| {
            let bucket = client.bucket("b").unwrap();
            tokio::spawn(async move { bucket.set([number], vec![number; 900_000]).await })
        })
        .collect();
    for _ in 0..16 {
        let request = conn.request().await;
        let number = request.body[6];
        assert_eq!(request.body[11..900_011], vec![number; 900_000]);
        conn.reply(request.id, OK, LAST, &u64::from(number).to_be_bytes()).await;
    }
    for (number, task) in (0..).zip(tasks) {
        assert_eq!(task.await.unwrap().unwrap().txid, number);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_callers_on_many_threads_each_get_their_own_reply() {
    const CALLERS: u16 = 8;
    const REQUESTS: u16 = 500;
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let echo = tokio::spawn(async move {
        for _ in 0..CALLERS * REQUESTS {
            let request = conn.request().await;
            // The key comes after the path and its own length.
            conn.reply(request.id, OK, LAST, &value_body(&request.body[6..])).await;
        }
        conn
    });
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let bucket = client.bucket("b").unwrap();
            tokio::spawn(async move {
                for number in 0..REQUESTS {
                    let key = [caller.to_be_bytes(), number.to_be_bytes()].concat();
                    assert_eq!(bucket.get(&key).await.unwrap().unwrap(), key);
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    echo.await.unwrap();
}

#[tokio::test]
async fn a_path_that_is_none_is_refused_before_anything_is_sent() {
    let peer = Peer::listen().await;
    let (client, _conn) = peer.client().await;
    assert!(matches!(client.bucket("a//b"), Err(Error::Path(_))));
}

#[test]
fn clients_and_handles_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + Debug + 'static>() {}
    fn sent<T: Send + 'static>() {}
    shared::<Client>();
    shared::<boltkv_client::Bucket>();
    shared::<boltkv_client::Scan>();
    sent::<boltkv_client::Entries>();
}
