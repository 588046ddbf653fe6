//! Encrypted clients that come again: what they were given the first time spares both sides the certificate, however many they
//! are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use crate::common::certificates::Certificates;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned};

/// More than a server would remember that kept a session of each.
const CLIENTS: usize = 300;

/// Asks something, and tells how the handshake went.
fn ask(addr: &str, config: &Arc<ClientConfig>) -> HandshakeKind {
    let client = ClientConnection::new(Arc::clone(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(client, TcpStream::connect(addr).unwrap());
    stream.write_all(b"PING\n").unwrap();
    let mut said = [0; 5];
    stream.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"PONG\n");
    stream.conn.handshake_kind().unwrap()
}

// Promises: ops-tls-again.
#[boltkv_needs::program("openssl")]
#[test]
fn any_number_of_clients_may_come_again_without_a_whole_handshake() {
    let certificates = Certificates::new();
    let server = certificates.serve("127.0.0.1:0", &[]);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&fs::read(certificates.path("ca.pem")).unwrap()).unwrap()).unwrap();
    for version in [&TLS12, &TLS13] {
        let client = || {
            let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
            let builder = builder.with_protocol_versions(&[version]).unwrap();
            // Each has its own memory.
            Arc::new(builder.with_root_certificates(roots.clone()).with_no_client_auth())
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| client()).collect();
        for client in &clients {
            assert_eq!(ask(server.addr(), client), HandshakeKind::Full);
        }
        for client in &clients {
            assert_eq!(ask(server.addr(), client), HandshakeKind::Resumed, "{version:?}");
        }
    }
    server.stop().done();
}
