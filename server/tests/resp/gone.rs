//! What is not there any more for clients of Redis, and scans that go on however many others there are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{PATIENCE, Resp, TestServer};
use boltkv_server::Clock;

#[test]
fn a_hash_whose_fields_have_all_expired_is_none() {
    let clock = Clock::by_hand(1_000_000);
    let server = TestServer::start_with(|config| config.clock = clock.clone());
    let (mut client, mut text) = (server.resp(), server.text());
    client.tell_all(&["HSET h f v g w", "HSET i f v", "EXPIRE h 1000", "SELECT 1", "HSET i f v", "SELECT 0"]);
    for line in ["BUCKET USE default/h", "PEXPIRE f 100", "PEXPIRE g 200", "BUCKET USE default/i", "PEXPIRE f 100"] {
        assert!(["OK", "1"].contains(&&*text.ask(line)), "{line}");
    }
    assert_eq!(text.ask("BUCKET CREATE default/e"), "OK");
    clock.set(1_000_100);
    client.talk(&[("HLEN h", "1"), ("TYPE h", "hash"), ("TYPE i", "none"), ("EXISTS h i e", "1")]);
    clock.set(1_000_200);
    // Before and after it was reclaimed, it is the same.
    for _ in 0..3 {
        client.talk(&[
            ("EXISTS h i e", "0"),
            ("TYPE h", "none"),
            ("TTL h", "-2"),
            ("HLEN h", "0"),
            ("HGETALL h", "[]"),
            ("STRLEN h", "0"),
            ("EXPIRE h 100", "0"),
            ("RENAME h x", "-ERR no such key"),
            ("COPY h x", "0"),
            ("MOVE h 1", "0"),
            ("SCAN 0 TYPE hash", r#"["0" []]"#),
            ("OBJECT ENCODING h", "nil"),
            ("HDEL h f", "0"),
        ]);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    client.talk(&[
        ("SETNX h 1", "1"),
        ("TTL h", "-1"),
        ("HSET i f 2", "1"),
        ("HGETALL i", r#"["f" "2"]"#),
        ("DEL e", "0"),
        ("KEYS *", r#"["h" "i"]"#),
    ]);
    assert!(server.db.check().unwrap().is_empty());
}

/// Another client, from another address.
fn from_elsewhere(server: &TestServer) -> Resp {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let socket = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        socket.connect(server.address).await.unwrap().into_std().unwrap()
    });
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    Resp::over(socket)
}

#[test]
fn a_flood_of_scans_has_nobody_elses_forgotten() {
    let server = TestServer::start();
    let (mut client, mut flood) = (server.resp(), from_elsewhere(&server));
    client.tell_all(&["SET a 1", "SET b 1", "SET c 1"]);
    let long = |last: char| format!("{}{last}", "k".repeat(32_000));
    for last in ['1', '2', '3'] {
        flood.tell(&format!("HSET h {} v", long(last)));
    }
    let mut next = |cursor: &str| {
        let reply = client.ask(&["SCAN", cursor, "COUNT", "1"]);
        let items = reply.items();
        (items[0].text(), items[1].texts())
    };
    let (cursor, found) = next("0");
    assert_eq!(found, ["a"]);
    // At one place once more it would have the same number.
    let hscan = |step: usize| flood.ask(&["HSCAN", "h", "0", "COUNT", ["1", "2"][step % 2]]).items()[0].text();
    let begun: Vec<_> = (0..1_000).map(hscan).collect();
    let (cursor, found) = next(&cursor);
    assert_eq!(found, ["b"]);
    assert_eq!(next(&cursor).1, ["c"]);
    let goes_on =
        |cursor: &String, flood: &mut Resp| !flood.tell(&format!("HSCAN h {cursor}")).starts_with("-ERR invalid");
    assert!(!goes_on(&begun[0], &mut flood) && goes_on(&begun[999], &mut flood), "it has its own forgotten");
}
