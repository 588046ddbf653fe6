//! Many requests in flight: what is ordered is, what is grouped does not hurt each other, what is bounded waits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;

use crate::common::binary::{create, create_if_missing, delete, delete_bucket, frame, get, scan_all, set, set_if};
use crate::common::{Binary, TestFile, TestServer};
use boltkv_protocol::{Cond, ErrorCode, Expect, Reply, Request};
use boltkv_storage::Options;
use bytes::Bytes;

/// The replies to these ids, in their order.
fn replies(client: &mut Binary, ids: &[u32], expect: Expect) -> Vec<Reply> {
    let mut replies = BTreeMap::new();
    for _ in ids {
        let frame = client.frame();
        let id = frame.id;
        assert!(replies.insert(id, Reply::decode(expect, frame).unwrap()).is_none(), "two replies to {id}");
    }
    assert!(replies.keys().eq(ids));
    replies.into_values().collect()
}

fn code(reply: &Reply) -> Option<ErrorCode> {
    if let Reply::Error(error) = reply { Some(error.code) } else { None }
}

// Promises: wire-id.
#[test]
fn every_request_of_a_burst_is_answered_under_its_id() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let sets: Vec<_> = (0..500).map(|n| set("b", &n.to_string(), n.to_string())).collect();
    let ids = client.send_all(&sets);
    let written = replies(&mut client, &ids, Expect::Written);
    assert!(written.iter().all(|reply| matches!(reply, Reply::Written { .. })));
    let gets: Vec<_> = (0..500).map(|n| get("b", &n.to_string())).collect();
    let ids = client.send_all(&gets);
    for (n, reply) in replies(&mut client, &ids, Expect::Value).into_iter().enumerate() {
        assert_eq!(reply, Reply::Value(n.to_string().into()));
    }
}

// Promises: wire-order, ops-order.
#[test]
fn the_writes_of_a_connection_are_applied_in_the_order_in_which_they_were_sent() {
    let server = TestServer::start_with(|config| {
        // Small enough that writes wait for room all the time.
        config.limits.queue_requests = 3;
        config.limits.queue_bytes = 2_000;
    });
    let mut client = server.binary();
    client.write(&create("b"));
    let chain: Vec<_> = (0..1_000_u32)
        .map(|n| match n {
            0 => set_if("b", "k", "0", Cond::IfAbsent),
            n => set_if("b", "k", n.to_string(), Cond::IfEquals((n - 1).to_string().into())),
        })
        .collect();
    let ids = client.send_all(&chain);
    let written = replies(&mut client, &ids, Expect::Written);
    assert!(written.iter().all(|reply| matches!(reply, Reply::Written { .. })), "each saw the one before it");
    assert_eq!(client.value("b", "k").as_deref(), Some(&b"999"[..]));
}

#[test]
fn a_request_that_fails_does_not_hurt_the_others_of_its_group() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let long = "n".repeat(40_000);
    let requests = [
        set("b", "a", "1"),
        set("nowhere", "a", "1"),
        set_if("b", "a", "2", Cond::IfAbsent),
        set("b", "", "1"),
        create_if_missing(&format!("c/{long}")),
        set_if("b", "a", "3", Cond::IfEquals("1".into())),
        create("d"),
        set("d", "k", "v"),
        delete_bucket("d"),
        set("d", "k", "v"),
        delete("b", "absent"),
        set("b", "z", "last"),
    ];
    let expected = [
        None,
        Some(ErrorCode::BucketNotFound),
        Some(ErrorCode::ConditionFailed),
        Some(ErrorCode::KeyRequired),
        Some(ErrorCode::KeyTooLarge),
        None,
        None,
        None,
        None,
        Some(ErrorCode::BucketNotFound),
        None,
        None,
    ];
    let ids = client.send_all(&requests);
    let codes: Vec<_> = replies(&mut client, &ids, Expect::Written).iter().map(code).collect();
    assert_eq!(codes, expected);
    assert_eq!(client.value("b", "a").as_deref(), Some(&b"3"[..]));
    assert_eq!(client.value("b", "z").as_deref(), Some(&b"last"[..]));
    assert_eq!(client.keys(&crate::common::binary::list("")), ["b"]);
    assert!(server.db.check().unwrap().is_empty());
}

#[test]
fn writes_of_many_connections_share_commits() {
    let file = TestFile::new();
    let server = TestServer::serve(file.open(), |_| {});
    server.binary().write(&create("b"));
    let before = server.db.stats().txid;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.binary();
                let sets: Vec<_> = (0..250).map(|n| set("b", &format!("{thread}-{n}"), "v")).collect();
                let ids = client.send_all(&sets);
                replies(&mut client, &ids, Expect::Written);
            });
        }
    });
    let commits = server.db.stats().txid - before;
    assert!(commits < 500, "{commits} commits for 1000 writes");
    assert_eq!(server.text().ask("BUCKET USE b"), "OK");
    let mut client = server.text();
    assert_eq!(client.ask("BUCKET USE b"), "OK");
    assert_eq!(client.ask("COUNT"), "1000");
}

// Promises: wire-read.
#[test]
fn a_read_sees_every_write_that_was_answered_to_anyone() {
    let server = TestServer::start();
    let (mut writer, mut reader) = (server.binary(), server.binary());
    writer.write(&create("b"));
    for n in 0..300_u32 {
        writer.write(&set("b", "k", n.to_string()));
        assert_eq!(reader.value("b", "k"), Some(Bytes::from(n.to_string())));
    }
}

// Promises: ops-condition.
#[test]
fn one_key_raised_by_many_under_conditions_loses_no_step() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set("b", "n", "0"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.binary();
                let mut raised = 0;
                while raised < 50 {
                    let old = client.value("b", "n").unwrap();
                    let new: u32 = std::str::from_utf8(&old).unwrap().parse::<u32>().unwrap() + 1;
                    match client.ask(&set_if("b", "n", new.to_string(), Cond::IfEquals(old))) {
                        Reply::Written { .. } => raised += 1,
                        other => assert_eq!(code(&other), Some(ErrorCode::ConditionFailed)),
                    }
                }
            });
        }
    });
    assert_eq!(client.value("b", "n").as_deref(), Some(&b"200"[..]));
}

// Promises: wire-flow, ops-in-flight.
#[test]
fn more_requests_than_may_be_in_flight_are_all_answered() {
    let server = TestServer::start_with(|config| config.limits.max_in_flight = 4);
    let mut client = server.binary();
    client.write(&create("b"));
    client.write(&set("b", "0", "v"));
    let mut requests = Vec::new();
    for n in 0..300 {
        requests.push(set("b", &n.to_string(), "v"));
        requests.push(get("b", "0"));
    }
    let ids = client.send_all(&requests);
    for _ in ids {
        assert_eq!(client.frame().op, 0);
    }
}

#[test]
fn a_write_larger_than_the_queue_gets_through_between_others() {
    let server = TestServer::start_with(|config| config.limits.queue_bytes = 1_000);
    let mut client = server.binary();
    client.write(&create("b"));
    let large = Bytes::from(vec![b'v'; 100_000]);
    let requests: Vec<Request> =
        (0..20).map(|n| set("b", &n.to_string(), if n % 3 == 0 { large.clone() } else { "small".into() })).collect();
    let ids = client.send_all(&requests);
    let written = replies(&mut client, &ids, Expect::Written);
    assert!(written.iter().all(|reply| matches!(reply, Reply::Written { .. })));
    assert_eq!(client.value("b", "18"), Some(large));
}

// Promises: wire-id-in-use.
#[test]
fn an_id_that_is_still_in_use_closes_the_connection_after_what_was_taken_is_answered() {
    let server = TestServer::start();
    let mut client = server.binary();
    client.write(&create("b"));
    let body = b"\x01\0\x01b\0\x01k\0\0\0\x01v\0";
    let twice = [frame(900, 0x11, 0, body), frame(900, 0x02, 0, b""), frame(901, 0x02, 0, b"")];
    client.send(twice.concat());
    let first = client.frame();
    assert_eq!((first.id, first.op), (900, 0), "the write was taken");
    let (id, error) = client.error();
    assert_eq!((id, error.code), (0, ErrorCode::Malformed));
    assert_eq!(client.rest(), b"");
    assert_eq!(server.binary().value("b", "k").as_deref(), Some(&b"v"[..]));
    server.assert_serving();

    // Also where the server answers for itself: STATS, an unknown operation, a second HELLO, a GET that is cut short.
    for (op, rest) in [(0x60, &b""[..]), (0x77, b""), (0x01, b"BKV1\x01\x01\0\0\0\0\0\0\0\0"), (0x10, b"\x01")] {
        let mut client = server.binary();
        client.send([frame(900, 0x11, 0, body), frame(900, op, 0, rest)].concat());
        assert_eq!(client.frame().id, 900);
        let (id, error) = client.error();
        assert_eq!((id, error.code), (0, ErrorCode::Malformed), "{op:#x}");
        assert_eq!(client.rest(), b"");
    }
}

// Promises: wire-cancel.
#[test]
fn streams_without_credit_can_be_ended_though_no_more_requests_may_be_in_flight() {
    let server = TestServer::start_with(|config| (config.limits.max_in_flight, config.limits.max_streams) = (2, 2));
    let mut client = server.binary();
    client.write(&create("b"));
    for key in ["1", "2", "3", "4"] {
        client.write(&set("b", key, vec![b'v'; 200 << 10]));
    }
    let mut client = server.binary();
    client.gives_credit = false;
    let ids = client.send_all(&[scan_all("b"), scan_all("b")]);
    for id in ids {
        client.cancel(id);
    }
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let frame = client.frame();
        ended.extend((!frame.has_more()).then_some(frame.id));
    }
    assert_eq!(client.ping(b"on"), &b"on"[..]);
}

// Promises: ops-no-space.
#[test]
fn a_write_that_finds_no_space_is_told_so_and_the_server_goes_on() {
    let db = Options::new().max_size(1 << 20).open_in_memory().unwrap();
    let server = TestServer::serve(db, |_| {});
    let mut client = server.binary();
    client.write(&create("b"));
    let before = server.db.stats().txid;
    assert_eq!(client.ask_code(&set("b", "large", vec![0; 2 << 20])), ErrorCode::NoSpace);
    assert_eq!(server.db.stats().txid, before, "nothing was written");
    client.write(&set("b", "small", "v"));
    assert_eq!(client.value("b", "large"), None);
    assert_eq!(client.value("b", "small").as_deref(), Some(&b"v"[..]));
    assert_eq!(server.text().ask("SET k v"), "OK");
}
