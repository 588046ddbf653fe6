//! Clients that encrypt, and take nothing of what they have asked for. What is kept for them, by the encryption too, holds up
//! neither who ends them nor the server's end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::binary::{create_if_missing, get, set};
use crate::common::{PATIENCE, TestServer, connect, eventually};
use boltkv_protocol::{Hello, Request, SessionRequest};
use boltkv_server::{Config, Tls};
use bytes::BytesMut;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// More than all that lies between a server and a client can hold, in values of this size.
const ASKED: u32 = 64;
const VALUE: usize = 1 << 20;

type Encrypted = StreamOwned<ClientConnection, TcpStream>;

/// A certificate for 127.0.0.1 that vouches for itself, and its key.
struct Certificate {
    pem: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let args = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key -out pem -days 30 \
                    -subj /CN=test -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
        let made = Command::new("openssl").args(args.split_whitespace()).current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let read = |name: &str| std::fs::read(Path::new(folder.path()).join(name)).unwrap();
        Self { pem: read("pem"), key: read("key") }
    }

    /// A server that has it, and a large value for each dialect.
    fn serve(&self, change: impl FnOnce(&mut Config)) -> TestServer {
        let server = TestServer::start_with(|config| {
            config.tls = Some(Tls::from_pem(&self.pem, &self.key, None).unwrap());
            change(config);
        });
        let mut client = server.binary();
        client.write(&create_if_missing("default"));
        client.write(&set("default", "k", vec![b'v'; VALUE]));
        server
    }

    fn connect(&self, server: &TestServer) -> Encrypted {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&self.pem).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        let name = server.address.ip().into();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), connect(server.address))
    }

    /// A client that has asked for far more than it takes, which is nothing.
    fn stuck(&self, server: &TestServer, dialect: Dialect) -> Encrypted {
        let mut client = self.connect(server);
        client.write_all(&dialect.requests()).unwrap();
        client.flush().unwrap();
        // It is let in, and the first of what it is sent has come this far.
        assert!(client.read(&mut [0; 16]).unwrap() > 0);
        client
    }
}

#[derive(Debug, Clone, Copy)]
enum Dialect {
    Binary,
    Text,
    Resp,
}

const DIALECTS: [Dialect; 3] = [Dialect::Binary, Dialect::Text, Dialect::Resp];

impl Dialect {
    fn requests(self) -> Vec<u8> {
        match self {
            Self::Text => "GET k\n".repeat(ASKED as usize).into_bytes(),
            Self::Resp => "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(ASKED as usize).into_bytes(),
            Self::Binary => {
                let mut out = BytesMut::new();
                Request::from(SessionRequest::Hello(Hello::new("test"))).encode(1, &mut out).unwrap();
                (2..2 + ASKED).for_each(|id| get("default", "k").encode(id, &mut out).unwrap());
                out.to_vec()
            }
        }
    }
}

/// The ids of the encrypted connections.
fn encrypted(server: &TestServer) -> Vec<String> {
    let lines = server.text().ask_all("CLIENT LIST");
    let those = lines.iter().filter(|line| line.contains(" tls=1 "));
    those.map(|line| line.strip_prefix("id=").unwrap().split(' ').next().unwrap().to_owned()).collect()
}

// Promises: wire-client-kill.
#[boltkv_needs::program("openssl")]
#[test]
fn who_encrypts_and_takes_nothing_is_ended_by_who_looks_after_the_server() {
    let certificate = Certificate::new();
    let server = certificate.serve(|_| {});
    let clients = DIALECTS.map(|dialect| certificate.stuck(&server, dialect));
    let ids = encrypted(&server);
    assert_eq!(ids.len(), clients.len());
    for id in &ids {
        assert_eq!(server.text().ask(&format!("CLIENT KILL {id}")), "OK");
    }
    eventually(|| encrypted(&server).is_empty());
    server.assert_serving();
    drop(clients);
}

// Promises: wire-unread, ops-unread.
#[boltkv_needs::program("openssl")]
#[test]
fn who_encrypts_and_takes_nothing_is_reset_in_time() {
    let certificate = Certificate::new();
    let server = certificate.serve(|config| config.timeouts.reply = Duration::from_millis(200));
    for dialect in DIALECTS {
        let mut client = certificate.stuck(&server, dialect);
        eventually(|| encrypted(&server).is_empty());
        assert!(std::io::copy(&mut client, &mut std::io::sink()).is_err(), "{dialect:?} ends as if that was all");
    }
    server.assert_serving();
}

// Promises: ops-stop.
#[boltkv_needs::program("openssl")]
#[test]
fn who_encrypts_and_takes_nothing_does_not_keep_a_server_from_its_end() {
    let certificate = Certificate::new();
    let server = certificate.serve(|_| {});
    let clients = DIALECTS.map(|dialect| certificate.stuck(&server, dialect));
    let (tell, told) = channel();
    let stopping = std::thread::spawn(move || tell.send(server.stop()).unwrap());
    told.recv_timeout(PATIENCE).unwrap().unwrap();
    stopping.join().unwrap();
    drop(clients);
}
