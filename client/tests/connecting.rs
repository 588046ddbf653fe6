//! How a connection is opened, and what the caller is told when it cannot be.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::io::ErrorKind;
use std::time::Duration;

use boltkv_client::{Client, Error, ErrorCode};
use common::{Conn, LAST, OK, Peer, error_body, hex};

/// What connecting ends with when the peer answers HELLO so.
async fn connect_to(answer: impl AsyncFnOnce(Conn)) -> Result<Client, Error> {
    let peer = Peer::listen().await;
    let scene = async {
        let mut conn = peer.accept_raw().await;
        conn.request().await;
        answer(conn).await;
    };
    let (client, ()) = tokio::join!(Client::connect(peer.addr.as_str()), scene);
    client
}

#[tokio::test]
async fn hello_carries_name_and_token_byte_by_byte() {
    let peer = Peer::listen().await;
    let client = Client::builder(peer.addr.as_str()).name("me").token("secret").connect();
    let scene = async {
        let mut conn = peer.accept_raw().await;
        let hello = conn.request().await;
        assert_eq!((hello.id, hello.op, hello.flags), (1, 1, 0));
        assert_eq!(hello.body, hex("424b5631 01 01 00000000 0002 6d65 0006 736563726574"));
        conn.reply(1, OK, LAST, &hex("01 00000000 00100000 00000004 00000002 00 0000")).await;
    };
    let (client, ()) = tokio::join!(client, scene);
    client.unwrap();
}

#[tokio::test]
async fn a_refused_hello_is_the_servers_error() {
    for (id, status, code) in
        [(1, 5, ErrorCode::Unauthenticated), (1, 3, ErrorCode::UnsupportedVersion), (0, 31, ErrorCode::Overloaded)]
    {
        let answer = async |mut conn: Conn| conn.reply(id, status, LAST, &error_body("no")).await;
        let error = connect_to(answer).await.unwrap_err();
        assert_eq!(error.code(), Some(code), "{error}");
    }
}

#[tokio::test]
async fn a_peer_that_speaks_otherwise_breaks_the_protocol() {
    for (what, bytes) in [
        ("another version", hex("0000001a 00000001 00 80 02 00000000 00100000 00000004 00000002 00 0000")),
        ("another id", hex("0000001a 00000007 00 80 01 00000000 00100000 00000004 00000002 00 0000")),
        ("nothing in flight", hex("0000001a 00000001 00 80 01 00000000 00100000 00000000 00000002 00 0000")),
        ("no reply", hex("0000001a 00000001 00 00 01 00000000 00100000 00000004 00000002 00 0000")),
        ("a short body", hex("00000007 00000001 00 80 01")),
    ] {
        let result = connect_to(async |mut conn: Conn| conn.send(&bytes).await).await;
        assert!(matches!(result, Err(Error::Protocol(_))), "{what}: {result:?}");
    }
}

#[tokio::test]
async fn a_peer_that_is_no_boltkv_server_is_called_what_it_is() {
    for (answer, what) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "is no boltkv server: it speaks HTTP"),
        ("-ERR Protocol error\r\n", "it answers \"-ERR Protocol error\""),
        (
            "SSH-2.0-OpenSSH_9.6\u{1b}[31m and much more than anybody needs to see",
            "it answers \"SSH-2.0-OpenSSH_9.6\\x1b[31m",
        ),
    ] {
        let error = connect_to(async |mut conn: Conn| conn.send(answer.as_bytes()).await).await.unwrap_err();
        assert!(matches!(error, Error::NotBoltkv { .. }) && error.is_unreachable(), "{error:?}");
        assert!(error.to_string().contains(what) && error.to_string().len() < 120, "{error}");
    }
}

#[tokio::test]
async fn a_peer_that_closes_instead_of_answering_is_there_and_does_not_answer() {
    let error = connect_to(async |conn| drop(conn)).await.unwrap_err();
    let Error::NoAnswer { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn where_nobody_listens_the_error_names_the_address() {
    let peer = Peer::listen().await;
    let addr = peer.addr.clone();
    drop(peer);
    let error = Client::connect(addr.as_str()).await.unwrap_err();
    assert!(matches!(&error, Error::Connect { addr: told, .. } if *told == addr), "{error}");
}

#[tokio::test]
async fn a_peer_that_never_answers_hello_is_given_up() {
    let peer = Peer::listen().await;
    let builder = Client::builder(peer.addr.as_str()).connect_timeout(Duration::from_millis(50));
    let (result, conn) = tokio::join!(builder.connect(), peer.accept_raw());
    let Err(Error::NoAnswer { source, .. }) = result else { panic!("{result:?}") };
    assert_eq!(source.kind(), ErrorKind::TimedOut);
    drop(conn);
}

#[tokio::test]
async fn a_dropped_client_closes_its_connection() {
    let peer = Peer::listen().await;
    let (client, conn) = peer.client().await;
    let clone = client.clone();
    drop(client);
    drop(clone);
    assert_eq!(conn.closed().await, b"");
}

#[tokio::test]
async fn an_address_that_names_nobody_is_no_passing_trouble() {
    for addr in ["junk", "127.0.0.1:99999", "no such host:7878", ""] {
        let error = Client::connect(addr).await.unwrap_err();
        assert!(matches!(&error, Error::Address { addr: named, .. } if named == addr), "{addr}: {error}");
        assert!(error.is_unreachable() && !error.is_passing() && !error.is_outcome_unknown(), "{addr}");
    }
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = Client::connect(nobody.to_string()).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }) && error.is_passing(), "who is not there may come: {error}");
}
