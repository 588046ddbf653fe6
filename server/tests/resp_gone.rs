//! Scans that go on however many others there are.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use common::{PATIENCE, Resp, TestServer};

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
    for last in ['1', '2'] {
        flood.tell(&format!("HSET h {} v", long(last)));
    }
    let mut next = |cursor: &str| {
        let reply = client.ask(&["SCAN", cursor, "COUNT", "1"]);
        let items = reply.items();
        (items[0].text(), items[1].texts())
    };
    let (cursor, found) = next("0");
    assert_eq!(found, ["a"]);
    let begun: Vec<_> = (0..1_000).map(|_| flood.ask(&["HSCAN", "h", "0", "COUNT", "1"]).items()[0].text()).collect();
    let (cursor, found) = next(&cursor);
    assert_eq!(found, ["b"]);
    assert_eq!(next(&cursor).1, ["c"]);
    let goes_on =
        |cursor: &String, flood: &mut Resp| !flood.tell(&format!("HSCAN h {cursor}")).starts_with("-ERR invalid");
    assert!(!goes_on(&begun[0], &mut flood) && goes_on(&begun[999], &mut flood), "it has its own forgotten");
}
