//! Who is not let in does and learns nothing, and who is does what the token allows, in every dialect.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::{ErrorKind, Read as _};
use std::time::{Duration, Instant, SystemTime};

use crate::common::binary::{create_if_missing, delete, frame, get, path, set};
use crate::common::{Binary, PATIENCE, TestServer, Text, connect, read_to_end};
use boltkv_protocol::{
    Cond, ErrorCode, ExpireCond, ExpireTo, Expiry, Hello, KeyRange, Op, OperatorRequest, ReadRequest, Reply, Request,
    Scan, SessionRequest, SnapshotRead, SnapshotRequest, StreamRequest, Txn, Watch, WatchFrom, WriteRequest,
};
use boltkv_server::{Config, Grant, Proof};
use boltkv_storage::{Db, Options};
use bytes::Bytes;

const SHORT: Duration = Duration::from_millis(50);

fn grant(token: &str, rights: &[&str]) -> Grant {
    Grant {
        name: format!("the {token}"),
        proof: Proof::Token(Grant::digest(token.as_bytes())),
        rights: rights.iter().map(|right| right.parse().unwrap()).collect(),
        expires: None,
    }
}

/// Lets in who says `root`, who may do everything, and these.
fn grants(others: &[(&str, &[&str])]) -> Vec<Grant> {
    let others = others.iter().map(|(token, rights)| grant(token, rights));
    std::iter::once(grant("root", &["admin"])).chain(others).collect()
}

fn database() -> Db {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| {
        tx.create_bucket("default")?.put("k", "secret")?;
        tx.create_bucket("other")?.put("k", "secret")?;
        let mut users = tx.create_bucket("users")?;
        users.put("k", "secret")?;
        let mut eu = users.create_bucket("eu")?;
        eu.put("k", "secret")?;
        eu.create_bucket("deep")?.put("k", "secret")
    })
    .unwrap();
    db
}

fn server(others: &[(&str, &[&str])], change: impl FnOnce(&mut Config)) -> TestServer {
    TestServer::serve(database(), |config| {
        config.grants = Some(grants(others));
        change(config);
    })
}

fn hello(token: &str) -> Request {
    let hello = Hello { token: token.to_owned().into(), ..Hello::new("test") };
    Request::Session(SessionRequest::Hello(hello))
}

fn binary(server: &TestServer, token: &str) -> Binary {
    let mut client = Binary::connect(server.address);
    assert!(matches!(client.ask(&hello(token)), Reply::Hello(_)));
    client
}

// Promises: wire-token, wire-auth.
#[test]
fn who_knows_a_token_is_let_in_and_who_does_not_is_sent_away() {
    let server = server(&[], |_| {});
    let mut client = binary(&server, "root");
    assert_eq!(client.value("other", "k").unwrap(), "secret");
    for wrong in ["", "Root", "root ", "roo"] {
        let mut client = Binary::connect(server.address);
        let ids = client.send_all(&[hello(wrong), get("other", "k"), set("other", "k", "mine")]);
        let (id, error) = client.error();
        assert_eq!((id, error.code), (ids[0], ErrorCode::Unauthenticated), "{wrong:?}");
        assert_eq!(client.rest(), b"", "what came behind it is not answered");
    }

    let mut text = Text::connect(server.address);
    for line in ["GET k", "SET k mine", "BUCKET USE other", "STATS", "PING", "MULTI", "EXEC", "SCAN", "DISCARD"] {
        let said = text.ask(line);
        assert!(said.starts_with("ERR UNAUTHENTICATED "), "{line}: {said}");
    }
    assert_eq!(text.ask("AUTH root"), "OK");
    assert_eq!(text.ask("GET k"), "secret");
    assert_eq!(text.ask("BUCKET USE other"), "OK");
    assert!(text.ask("AUTH wrong").starts_with("ERR UNAUTHENTICATED "));
    assert_eq!(text.rest(), "", "and is gone");
    assert_eq!(client.value("default", "k").unwrap(), "secret", "nothing was written");
    assert_eq!(client.stat("authentications_failed"), "5");
}

#[test]
fn without_tokens_everybody_is_let_in_whatever_he_says() {
    let server = TestServer::start();
    let mut client = binary(&server, "anything");
    client.write(&create_if_missing("b"));
    let mut text = Text::connect(server.address);
    assert_eq!(text.ask("SET k v"), "OK");
    assert_eq!(text.ask("AUTH anything"), "OK");
    assert_eq!(text.ask("GET k"), "v");
}

/// What is in every request that names a bucket, by the level that it needs there.
fn requests(bucket: &str) -> Vec<(&'static str, Request)> {
    let scan = || Scan { path: path(bucket), ..Scan::default() };
    let key = || Bytes::from_static(b"k");
    let mut reading = Txn::builder();
    reading.request(&get(bucket, "k")).unwrap();
    let mut writing = Txn::builder();
    writing.request(&delete(bucket, "nothing")).unwrap();
    let mut asking = Txn::builder();
    asking.condition(&path(bucket), b"k", &Cond::<&[u8]>::IfPresent).unwrap();
    let of_snapshot = |read| Request::OfSnapshot { snapshot: 1, read };
    let watch = Watch { path: path(bucket), from: WatchFrom::default(), prefix: Bytes::new(), keys_only: true };
    let write = |request| ("write", Request::Write(request));
    vec![
        ("read", get(bucket, "k")),
        ("read", Request::Read(ReadRequest::Sequence(path(bucket)))),
        ("read", Request::Read(ReadRequest::ExpiryTime { path: path(bucket), key: key() })),
        ("read", Request::Stream(StreamRequest::Scan(scan()))),
        ("read", Request::Stream(StreamRequest::ListBuckets(scan()))),
        ("read", Request::Stream(StreamRequest::BucketStat(path(bucket)))),
        ("read", Request::Stream(StreamRequest::Watch(watch))),
        ("read", reading.build().into()),
        ("read", asking.build().into()),
        ("read", of_snapshot(SnapshotRead::Read(ReadRequest::Get { path: path(bucket), key: key() }))),
        ("read", of_snapshot(SnapshotRead::Stream(StreamRequest::Scan(scan())))),
        write(WriteRequest::Set { path: path(bucket), key: key(), value: key(), cond: Cond::IfAbsent }),
        write(WriteRequest::SetExpiring {
            path: path(bucket),
            key: key(),
            value: key(),
            cond: Cond::IfAbsent,
            expiry: Expiry::Keep,
        }),
        write(WriteRequest::Expire { path: path(bucket), key: key(), to: ExpireTo::Never, cond: ExpireCond::Always }),
        write(WriteRequest::Delete { path: path(bucket), key: "nothing".into(), cond: Cond::Always }),
        write(WriteRequest::Increment { path: path(bucket), key: "n".into(), delta: 0 }),
        write(WriteRequest::DeleteRange { path: path(bucket), range: KeyRange::prefix("none"), limit: None }),
        write(WriteRequest::CreateBucket(path(bucket))),
        write(WriteRequest::CreateBucketIfMissing(path(bucket))),
        write(WriteRequest::DeleteBucket(path(bucket).child("none").unwrap())),
        write(WriteRequest::NextSequence(path(bucket))),
        write(WriteRequest::SetSequence { path: path(bucket), sequence: 7 }),
        write(WriteRequest::MoveBucket {
            path: path(bucket).child("none").unwrap(),
            to: path(bucket).child("n").unwrap(),
        }),
        ("write", writing.build().into()),
    ]
}

/// Whether a request is refused because it is not allowed.
fn is_forbidden(client: &mut Binary, request: &Request) -> bool {
    client.send_all(std::slice::from_ref(request));
    let frame = client.frame();
    let forbidden = match Reply::decode(request.expects().unwrap(), frame.clone()) {
        Ok(Reply::Error(error)) => error.code == ErrorCode::Forbidden,
        _ => false,
    };
    if frame.has_more() {
        client.cancel(frame.id);
        while client.frame().has_more() {}
    }
    forbidden
}

// Promises: ops-rights, wire-forbidden.
#[test]
fn every_request_needs_its_right_to_its_bucket() {
    let server = server(&[("reader", &["read:users/eu"]), ("writer", &["write:users/eu"]), ("nobody", &[])], |_| {});
    let buckets = [("users/eu", true), ("users/eu/deep", true), ("users", false), ("other", false), ("users/e", false)];
    let asked: Vec<_> = requests("b").iter().map(|(_, request)| request.op()).collect();
    let elsewhere = [Op::Hello, Op::Ping, Op::Stats, Op::Credit, Op::Cancel, Op::Snapshot, Op::Backup, Op::Shrink];
    let operators = [
        OperatorRequest::ListClients { after: 0 },
        OperatorRequest::KillClient { client: 1_000_000 },
        OperatorRequest::SlowLog { most: 0, before: 0 },
        OperatorRequest::ResetSlowLog,
    ];
    let elsewhere: Vec<_> = elsewhere.into_iter().chain(operators.map(OperatorRequest::op)).collect();
    assert!(Op::ALL.iter().all(|op| asked.contains(op) || elsewhere.contains(op)), "one is missing here");
    for (token, may) in [("reader", &["read"][..]), ("writer", &["read", "write"]), ("nobody", &[])] {
        let mut client = binary(&server, token);
        for (bucket, is_covered) in buckets {
            for (level, request) in requests(bucket) {
                let allowed = is_covered && may.contains(&level);
                assert_eq!(is_forbidden(&mut client, &request), !allowed, "{token}, {bucket}: {request:?}");
            }
        }
        // Everything is the root's.
        let of_all = [StreamRequest::Backup, StreamRequest::Shrink, StreamRequest::ListBuckets(Scan::default())];
        for request in of_all.map(Request::Stream) {
            assert!(is_forbidden(&mut client, &request), "{token}: {request:?}");
        }
        for request in operators {
            assert!(is_forbidden(&mut client, &request.into()), "{token}: {request:?}");
        }
        assert_eq!(client.ping(b"x"), "x", "and the connection goes on");
        client.stat("txid");
    }
    let mut root = binary(&server, "root");
    for (_, request) in buckets.iter().flat_map(|(bucket, _)| requests(bucket)) {
        assert!(!is_forbidden(&mut root, &request), "{request:?}");
    }
    assert!(!is_forbidden(&mut root, &Request::Stream(StreamRequest::Backup)));
    assert!(operators.iter().all(|request| !is_forbidden(&mut root, &(*request).into())));
}

// Promises: wire-forbidden-txn.
#[test]
fn a_transaction_needs_what_its_parts_need_and_a_move_both_its_ends() {
    let server = server(&[("writer", &["write:users/eu", "read:other"])], |_| {});
    let mut client = binary(&server, "writer");
    for forbidden in [set("other", "k", "mine"), get("default", "k")] {
        let mut txn = Txn::builder();
        txn.request(&set("users/eu", "k", "mine")).unwrap();
        txn.request(&forbidden).unwrap();
        assert_eq!(client.ask_code(&txn.build().into()), ErrorCode::Forbidden);
    }
    assert_eq!(client.value("users/eu", "k").unwrap(), "secret", "nothing of it was done");
    for (from, to) in [("users/eu/deep", "other/deep"), ("other", "users/eu/other")] {
        let request = Request::Write(WriteRequest::MoveBucket { path: path(from), to: path(to) });
        assert_eq!(client.ask_code(&request), ErrorCode::Forbidden, "{from} to {to}");
    }
    let open = Request::Session(SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms: 0 }));
    let Reply::Snapshot { id, .. } = client.ask(&open) else { panic!("no snapshot") };
    let read = |bucket: &str| Request::OfSnapshot {
        snapshot: id,
        read: SnapshotRead::Read(ReadRequest::Get { path: path(bucket), key: "k".into() }),
    };
    assert_eq!(client.ask(&read("other")), Reply::Value("secret".into()));
    assert_eq!(client.ask_code(&read("default")), ErrorCode::Forbidden);
}

#[test]
fn lines_are_refused_in_their_order_and_so_is_a_bucket_that_is_gone_to() {
    let server = server(&[("writer", &["write:default", "read:other"])], |_| {});
    let mut text = Text::connect(server.address);
    assert_eq!(text.ask("AUTH writer"), "OK");
    text.send("SET a 1\r\nBUCKET USE users\r\nBUCKET CREATE new\r\nSET b 2\r\nMGET a b\r\nBUCKET LIST\r\n");
    let lines: Vec<_> = (0..7).map(|_| text.line()).collect();
    let is = ["OK", "ERR FORBIDDEN ", "ERR FORBIDDEN ", "OK", "1", "2", "ERR FORBIDDEN "];
    assert!(lines.iter().zip(is).all(|(line, is)| line.starts_with(is)), "{lines:?}");
    assert_eq!(text.ask("BUCKET USE other"), "OK");
    text.send("MULTI\r\nSET k mine\r\nEXEC\r\nGET k\r\n");
    let lines: Vec<_> = (0..4).map(|_| text.line()).collect();
    assert!(lines[2].starts_with("ERR FORBIDDEN ") && lines[3] == "secret", "{lines:?}");
}

// Promises: ops-token-taken.
#[test]
fn a_token_that_is_taken_back_ends_its_connections_and_no_others() {
    let server = server(&[("going", &["read"]), ("staying", &["read"])], |_| {});
    let (mut going, mut staying) = (binary(&server, "going"), binary(&server, "staying"));
    let mut text = Text::connect(server.address);
    assert_eq!(text.ask("AUTH going"), "OK");
    assert_eq!(server.access.replace(grants(&[("staying", &["read"])])), Some(1));
    assert_eq!(text.rest(), "");
    assert_eq!(going.rest(), b"");
    assert_eq!(staying.value("other", "k").unwrap(), "secret");
    let mut again = Binary::connect(server.address);
    assert_eq!(again.ask_code(&hello("going")), ErrorCode::Unauthenticated);
}

// Promises: ops-token-expires.
#[test]
#[expect(clippy::disallowed_methods, reason = "tokens expire by the calendar")]
fn a_token_that_expires_ends_its_connections() {
    let server = TestServer::serve(database(), |config| {
        let expires = Some(SystemTime::now() + Duration::from_secs(1));
        config.grants = Some(vec![Grant { expires, ..grant("brief", &["read"]) }]);
    });
    let mut text = Text::connect(server.address);
    assert_eq!(text.ask("AUTH brief"), "OK");
    assert_eq!(text.ask("GET k"), "secret");
    let rest = text.rest_within(PATIENCE).unwrap();
    assert!(rest.starts_with("ERR UNAUTHENTICATED "), "{rest}");
    let mut late = Binary::connect(server.address);
    assert_eq!(late.ask_code(&hello("brief")), ErrorCode::Unauthenticated);
}

// Promises: ops-strangers.
#[test]
fn who_does_not_say_who_he_is_has_little_time_little_room_and_few_places() {
    let server = server(&[], |config| {
        config.limits.max_connections = 8;
        config.timeouts.hello = Duration::from_secs(1);
    });
    let mut text = Text::connect(server.address);
    text.send("PING\r\n");
    assert!(text.line().starts_with("ERR UNAUTHENTICATED "));
    assert!(text.rest_within(PATIENCE).unwrap().contains("no AUTH came in time"), "it has a second");
    let mut long = connect(server.address);
    crate::common::send(&mut long, &[b'x'; 5_000]);
    assert!(read_to_end(&mut long).starts_with(b"ERR UNAUTHENTICATED "));
    let mut long = connect(server.address);
    crate::common::send(&mut long, &frame(1, 0x01, 0, &[0; 5_000]));
    assert!(!read_to_end(&mut long).is_empty());

    // Two of eight places are for those who have not said who they are: the ones who came last.
    let mut friends: Vec<_> = (0..5).map(|_| binary(&server, "root")).collect();
    let mut strangers: Vec<_> = (0..10).map(|_| Text::connect(server.address)).collect();
    for stranger in &mut strangers[..8] {
        assert_eq!(stranger.rest_within(Duration::from_millis(900)).as_deref(), Some(""), "the first ones went");
    }
    assert_eq!(strangers[9].ask("AUTH root"), "OK", "the last one is there");
    for friend in &mut friends {
        assert_eq!(friend.ping(b"x"), "x");
    }
}

// Promises: ops-strangers.
#[test]
fn strangers_who_are_sent_away_and_stay_make_room_as_well() {
    let server = server(&[], |config| config.limits.max_connections = 400);
    let mut friend = Text::connect(server.address);
    assert_eq!(friend.ask("AUTH root"), "OK");
    let mut gone = Vec::new();
    for farewell in [&b"QUIT\n"[..], b"GET / HTTP/1.1\n"].iter().cycle().take(300) {
        let mut socket = connect(server.address);
        crate::common::send(&mut socket, farewell);
        // The server has ended its side, and waits for the other one.
        read_to_end(&mut socket);
        gone.push(socket);
    }
    friend.send("STATS\r\n");
    let connections =
        std::iter::repeat_with(|| friend.line()).find_map(|line| line.strip_prefix("connections ")?.parse().ok());
    // A quarter, and those that are on their way out.
    assert!(connections.is_some_and(|open: u32| open <= 165), "{connections:?}");
}

// Promises: ops-token-wrong.
#[test]
fn wrong_tokens_are_answered_ever_later_and_right_ones_at_once() {
    let server = server(&[], |_| {});
    for _ in 0..3 {
        let mut text = Text::connect(server.address);
        assert!(text.ask("AUTH wrong").starts_with("ERR UNAUTHENTICATED "));
    }
    let (started, mut text) = (Instant::now(), Text::connect(server.address));
    text.send("AUTH wrong\r\n");
    assert_eq!(binary(&server, "root").ping(b"x"), "x");
    let right = started.elapsed();
    assert!(text.line().starts_with("ERR UNAUTHENTICATED "));
    let wrong = started.elapsed();
    assert!(wrong >= Duration::from_millis(800) && right < wrong, "{right:?}, {wrong:?}");
    // A server that stops does not wait for it.
    let mut text = Text::connect(server.address);
    text.send("AUTH wrong\r\n");
    std::thread::sleep(SHORT);
    let stopping = Instant::now();
    server.stop().unwrap();
    assert!(stopping.elapsed() < Duration::from_millis(1_500));
}

// Promises: ops-token-wrong.
#[test]
fn who_makes_room_for_another_wrong_token_is_told_nothing() {
    // One of them may wait.
    let server = server(&[], |config| config.limits.max_connections = 31);
    let crowd: Vec<_> = (0..12)
        .map(|_| {
            let mut socket = connect(server.address);
            crate::common::send(&mut socket, b"AUTH wrong\r\n");
            socket
        })
        .collect();
    let told = crowd.into_iter().filter(|socket| {
        let mut said = [0; 4];
        match (&*socket).read(&mut said) {
            Ok(0) => false,
            Ok(_) => said.starts_with(b"ERR"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                false
            }
        }
    });
    // The first ones may have waited long enough before others came; who came last, in whatever order they are heard, stays.
    let told = told.count();
    assert!((1..=7).contains(&told), "{told} of 12");
}
