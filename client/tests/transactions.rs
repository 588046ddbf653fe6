//! Transactions as the peer sees them, and their results as the caller gets them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use boltkv_client::{Bucket, Client, Cond, Error, ErrorCode, Transaction, TransactionResult, TxnPart};
use common::{LAST, OK, Peer, hex};

/// A transaction that reads, on bucket `b`.
fn reads(client: &Client, bucket: &Bucket) -> Transaction {
    let nothing = bucket.scan().limit(0);
    client.transaction().get(bucket, "k").count(nothing.clone()).count(bucket.scan()).scan(nothing).get(bucket, "?")
}

const READS: &str = "0000  0003  10 00000007 01 0001 62 0001 6b  30 0000000f 01 0001 62 00 00 04 0000000000000000 \
                     10 00000007 01 0001 62 0001 3f";
const FOUND: &str = "0000000000000009  0003  00 00000005 00000001 76  00 00000008 0000000000000002 \
                     0a 00000008 0002 6e6f 00000000";

#[tokio::test]
async fn requests_are_sent_as_one_and_each_has_its_result() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let txn = client
        .transaction()
        .if_absent(&bucket, "a")
        .if_equals(&bucket, "k", "v")
        .set(&bucket, "k", "w")
        .delete_if(&bucket, "k", &Cond::IfPresent)
        .create_if_missing(&bucket)
        .scan(bucket.scan());
    let scene = async {
        let body = "0002  01 0001 62 0001 61 01  01 0001 62 0001 6b 03 00000001 76 \
                    0004  11 0000000d 01 0001 62 0001 6b 00000001 77 00  12 00000008 01 0001 62 0001 6b 02 \
                    20 00000005 02 01 0001 62  30 0000000f 01 0001 62 00 00 00 0000000000000000";
        let id = conn.expect(0x40, body).await;
        let reply = "0000000000000009  0004  00 00000008 0000000000000009  00 00000009 0000000000000009 01 \
                     00 00000008 0000000000000009  00 00000004 00000000";
        conn.reply(id, OK, LAST, &hex(reply)).await;
    };
    let (done, ()) = tokio::join!(txn.commit(), scene);
    let done = done.unwrap();
    let deleted = TransactionResult::Deleted { existed: true };
    let expected =
        [TransactionResult::Written, deleted, TransactionResult::Written, TransactionResult::Entries(vec![])];
    assert_eq!((done.txid, &done.results[..]), (9, &expected[..]));
}

#[tokio::test]
async fn what_was_not_asked_has_its_place_among_the_results() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let scene = async {
        let id = conn.expect(0x40, READS).await;
        conn.reply(id, OK, LAST, &hex(FOUND)).await;
    };
    let (done, ()) = tokio::join!(reads(&client, &bucket).commit(), scene);
    let done = done.unwrap();
    assert_eq!(done.value(0).map(|value| &value[..]), Some(&b"v"[..]));
    assert_eq!((done.value(1), done.value(4), done.value(9)), (None, None, None));
    let counts = [TransactionResult::Count(0), TransactionResult::Count(2), TransactionResult::Entries(vec![])];
    assert_eq!(done.results[1..4], counts);
    assert_eq!(done.results[4], TransactionResult::Value(None));
}

#[tokio::test]
async fn the_part_that_failed_is_told() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let scene = async {
        for detail in ["00000003 00 0001", "00000003 01 0102", "00000000"] {
            let id = conn.request().await.id;
            conn.reply(id, 20, LAST, &hex(&format!("0002 6e6f {detail}"))).await;
        }
    };
    let ask = async {
        for part in [Some(TxnPart::Condition(1)), Some(TxnPart::Request(0x0102)), None] {
            let error = client.transaction().set(&bucket, "k", "v").commit().await.unwrap_err();
            assert_eq!((error.code(), error.failed_part()), (Some(ErrorCode::ConditionFailed), part));
        }
    };
    tokio::join!(ask, scene);
}

#[tokio::test]
async fn one_that_reads_is_sent_once_more_and_of_one_that_writes_the_outcome_is_unknown() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let scene = async {
        conn.expect(0x40, READS).await;
        drop(conn);
        let mut conn = peer.accept().await;
        let id = conn.expect(0x40, READS).await;
        conn.reply(id, OK, LAST, &hex(FOUND)).await;
        conn.request().await;
    };
    let ask = async {
        reads(&client, &bucket).commit().await.unwrap();
        let error = client.transaction().get(&bucket, "k").set(&bucket, "k", "v").commit().await.unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown(_)), "{error}");
    };
    tokio::join!(ask, scene);
}

#[tokio::test]
async fn what_cannot_be_a_part_is_told_at_the_end_and_nothing_is_sent() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let error = client.transaction().get(&bucket, vec![b'k'; 65_536]).get(&bucket, "k").commit().await.unwrap_err();
    assert!(matches!(error, Error::Transaction(_)), "{error}");
    let many = (0..65_536).fold(client.transaction(), |txn, _| txn.delete(&bucket, "k"));
    let error = many.commit().await.unwrap_err();
    assert!(error.to_string().contains("65535 requests"), "{error}");
    // The peer takes frames up to 1 MiB.
    let error = client.transaction().set(&bucket, "k", vec![0; 1 << 20]).commit().await.unwrap_err();
    assert!(matches!(error, Error::Unsendable(_)), "{error}");
    assert!(conn.is_quiet(std::time::Duration::from_millis(50)).await);
}

#[tokio::test]
async fn one_that_reads_takes_its_turn_among_streams_and_is_cancelled_when_nobody_waits() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    // The peer takes two streams.
    let mut asked: Vec<_> = (0..3).map(|_| Box::pin(reads(&client, &bucket).commit())).collect();
    for ask in &mut asked {
        let moment = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(moment, ask).await.is_err());
    }
    let first = conn.expect(0x40, READS).await;
    conn.expect(0x40, READS).await;
    assert!(conn.is_quiet(std::time::Duration::from_millis(50)).await, "the third waits");
    drop(asked.remove(0));
    let cancel = conn.request().await;
    assert_eq!((cancel.op, cancel.body), (0x71, first.to_be_bytes().to_vec()));
}

#[tokio::test]
async fn numbers_sequences_and_ranges_are_parts_too() {
    let peer = Peer::listen().await;
    let (client, mut conn) = peer.client().await;
    let bucket = client.bucket("b").unwrap();
    let txn = client
        .transaction()
        .increment(&bucket, "k", -1)
        .next_sequence(&bucket)
        .delete_range(bucket.delete_range().limit(0))
        .delete_range(bucket.delete_range().prefix("k").limit(2))
        .set_sequence(&bucket, 7)
        .move_to(&bucket, &"c/b".parse().unwrap());
    let scene = async {
        let body = "0000  0005  13 0000000f 01 0001 62 0001 6b ffffffffffffffff  20 00000005 06 01 0001 62 \
                    31 00000011 01 0001 62 03 0001 6b 00 0000000000000002 \
                    20 0000000d 07 01 0001 62 0000000000000007  20 0000000c 08 01 0001 62 02 0001 63 0001 62";
        let id = conn.expect(0x40, body).await;
        let txid = "0000000000000009";
        let reply = format!(
            "{txid}  0005  00 00000010 {txid} ffffffffffffffff  00 00000010 {txid} 0000000000000001 \
             00 00000011 {txid} 0000000000000002 01  00 00000008 {txid}  00 00000008 {txid}"
        );
        conn.reply(id, OK, LAST, &hex(&reply)).await;
    };
    let (done, ()) = tokio::join!(txn.commit(), scene);
    let expected = [
        TransactionResult::Number(-1),
        TransactionResult::Sequence(1),
        TransactionResult::RangeDeleted { deleted: 0, more: false },
        TransactionResult::RangeDeleted { deleted: 2, more: true },
        TransactionResult::Written,
        TransactionResult::Written,
    ];
    assert_eq!(done.unwrap().results, expected);
}
