//! Encryption: beside certificates that OpenSSL makes, and OpenSSL as a client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::Instant;

use crate::common::certificates::Certificates;
use crate::common::http;
use crate::common::logged::Logged;
use crate::common::server::{PATIENCE, Server};
use crate::common::{boltkv, feed, run};

/// An address of this machine that is not loopback's, where it has one.
fn elsewhere() -> Option<Ipv4Addr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    // Nothing is sent.
    socket.connect("192.0.2.1:9").ok()?;
    match socket.local_addr().unwrap().ip() {
        std::net::IpAddr::V4(ip) if !ip.is_loopback() && !ip.is_unspecified() => Some(ip),
        _ => None,
    }
}

// Promises: ops-tls.
#[boltkv_needs::program("openssl")]
#[test]
fn one_port_speaks_tls_and_plain_to_its_own_machine() {
    let certificates = Certificates::new();
    let server = certificates.serve("127.0.0.1:0", &[]);
    let local = server.addr().replace("127.0.0.1", "localhost");
    certificates.ask(&local, "ca.pem", &["set", "k", "v"]).done();
    assert_eq!(certificates.ask(server.addr(), "ca.pem", &["get", "k"]).done_text(), "v", "an address is a name, too");
    assert_eq!(server.run(["get", "k"]).done_text(), "v", "and plain is spoken on the same port");
    // More than fits anywhere at once, both ways.
    let large = vec![b'x'; 9 << 20];
    fs::write(certificates.path("large"), &large).unwrap();
    let file = certificates.path("large");
    certificates.ask(&local, "ca.pem", &["set", "large", "--file", file.to_str().unwrap()]).done();
    assert!(certificates.ask(&local, "ca.pem", &["get", "large"]).done() == large);
    for version in ["-tls1_2", "-tls1_3"] {
        let said = certificates.s_client(server.addr(), "GET k\nQUIT\n", &[version]);
        assert_eq!(said, "v\n", "{version}");
    }
    assert_eq!(certificates.s_client(server.addr(), "GET k\n", &["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]), "");
    assert_eq!(server.stop().code, Some(0));
}

// Promises: ops-tls-elsewhere.
#[boltkv_needs::program("openssl")]
#[test]
fn from_another_machine_only_what_is_encrypted_is_served() {
    let Some(ip) = elsewhere() else { return };
    let certificates = Certificates::new();
    certificates.sign("ca", "server", &format!("IP:{ip}"), 30);
    let refused = run(args!["serve", "--db", certificates.path("app.db"), "--listen", format!("{ip}:0")]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let tokens = certificates.path("tokens");
    let token = run(args!["token", "create", "admin", "--right", "admin", "--tokens", &tokens]).done_text();
    fs::write(certificates.path("token"), token).unwrap();
    let server = certificates.serve(&format!("{ip}:0"), &["--tokens", tokens.to_str().unwrap()]);
    let token = certificates.path("token");
    let with_token = |command: &[&str]| {
        let command: Vec<_> = command.iter().copied().chain(["--token-file", token.to_str().unwrap()]).collect();
        certificates.ask(server.addr(), "ca.pem", &command)
    };
    with_token(&["set", "k", "v"]).done();
    assert_eq!(with_token(&["get", "k"]).done_text(), "v");
    let plain = server.run(["get", "k"]).failed(1);
    assert!(plain.contains("TLS"), "{plain}");
    assert!(server.text("GET k\n").starts_with("ERR UNAUTHENTICATED "));
}

// Promises: ops-tls-trust.
#[boltkv_needs::program("openssl")]
#[test]
fn a_server_that_is_not_to_be_trusted_is_told_nothing() {
    let certificates = Certificates::new();
    certificates.authority("other");
    let server = certificates.serve("127.0.0.1:0", &[]);
    let said = certificates.ask(server.addr(), "other.pem", &["get", "k"]).failed(3);
    assert!(said.contains("certificate") && said.contains("--tls-ca FILE"), "{said}");
    let plain = Server::start(&certificates.path("plain.db"));
    let said = certificates.ask(plain.addr(), "ca.pem", &["get", "k"]).failed(3);
    assert!(said.contains("does not encrypt"), "{said}");
    let named =
        run(args!["get", "k", "--addr", server.addr(), "--tls-ca", certificates.path("ca.pem"), "--tls-name", "db"]);
    let said = named.failed(3);
    assert!(said.contains("not valid for name") && said.contains("--tls-name NAME"), "{said}");
    drop(server);
    certificates.sign("ca", "server", "IP:127.0.0.1", -1);
    let expired = certificates.serve("127.0.0.1:0", &[]);
    let said = certificates.ask(expired.addr(), "ca.pem", &["get", "k"]).failed(3);
    assert!(said.contains("could not encrypt") && said.contains("Expired"), "{said}");
}

// Promises: ops-tls-client.
#[boltkv_needs::program("openssl")]
#[test]
fn a_client_may_have_to_have_a_certificate_too() {
    let certificates = Certificates::new();
    certificates.authority("clients");
    certificates.sign("clients", "ada", "DNS:ada", 30);
    certificates.authority("strangers");
    certificates.sign("strangers", "eve", "DNS:eve", 30);
    let roots = certificates.path("clients.pem");
    let server = certificates.serve("127.0.0.1:0", &["--tls-client-ca", roots.to_str().unwrap()]);
    let with = |name: &str| {
        let (cert, key) = (certificates.path(&format!("{name}.pem")), certificates.path(&format!("{name}.key")));
        let own = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        certificates.ask(server.addr(), "ca.pem", &[&["set", "k", name][..], &own].concat())
    };
    with("ada").done();
    let eve = with("eve").failed(3);
    assert!(eve.contains("could not encrypt the connection") && eve.contains("UnknownCA"), "{eve}");
    let nobody = certificates.ask(server.addr(), "ca.pem", &["get", "k"]).failed(3);
    assert!(nobody.contains("could not encrypt the connection") && nobody.contains("--tls-cert FILE"), "{nobody}");
    assert_eq!(server.run(["get", "k"]).done_text(), "ada");
    let none = args!["--tls-client-ca", "/dev/null", "--tls-cert", certificates.path("server.pem"), "--tls-key"];
    let none =
        run(args!["config", "check"].iter().chain(&none).chain(&args![certificates.path("server.key")])).failed(2);
    assert!(none.contains("--tls-client-ca cannot be used: /dev/null: there is no certificate"), "{none}");
}

// Promises: ops-tls-client.
#[boltkv_needs::program("openssl")]
#[test]
fn whose_certificate_is_asked_for_has_it_looked_at_each_time() {
    let certificates = Certificates::new();
    certificates.sign("ca", "ada", "DNS:ada", 30);
    let path = |name: &str| certificates.path(name).to_str().unwrap().to_owned();
    let says = |server: &Server, version: &str, session: &str| {
        let mut client = Command::new("openssl");
        client.args(["s_client", "-ign_eof", version, "-connect", server.addr(), "-CAfile", &path("ca.pem")]);
        client.args(["-cert", &path("ada.pem"), "-key", &path("ada.key"), session, &path("session")]);
        // It stays until the server ends, so that it has read what follows the handshake.
        let asked = feed(&mut client, b"GET k\nQUIT\n");
        String::from_utf8_lossy(&asked.stdout).into_owned()
    };
    for (more, taken_up) in [(vec![], true), (vec!["--tls-client-ca".to_owned(), path("ca.pem")], false)] {
        let more: Vec<_> = more.iter().map(String::as_str).collect();
        let server = certificates.serve("127.0.0.1:0", &more);
        for version in ["-tls1_2", "-tls1_3"] {
            let _ = fs::remove_file(path("session"));
            assert!(says(&server, version, "-sess_out").contains("New, TLS"), "{version}");
            assert_eq!(says(&server, version, "-sess_in").contains("Reused, TLS"), taken_up, "{version}");
        }
    }
}

// Promises: ops-tls-owner.
#[boltkv_needs::program("openssl")]
#[test]
fn a_certificates_name_is_as_good_as_a_token() {
    let certificates = Certificates::new();
    certificates.authority("clients");
    certificates.sign("clients", "ada", "DNS:other,DNS:Ada.example", 30);
    certificates.sign("clients", "eve", "DNS:eve.example", 30);
    let (tokens, roots) = (certificates.path("tokens"), certificates.path("clients.pem"));
    let create = |args: &[&str]| {
        run(args!["token", "create", "--tokens", &tokens].into_iter().chain(args.iter().map(Into::into)))
    };
    assert_eq!(create(&["ada", "--certificate", "ada.Example", "--right", "write:default"]).done_text(), "");
    create(&["again", "--certificate", "ada.example"]).failed(1);
    let admin = create(&["admin", "--right", "admin"]).done_text();
    let listed = run(args!["token", "list", "--tokens", &tokens]).done_text();
    assert!(listed.starts_with("ada    write:default  certificate ada.example\n"), "{listed}");
    let alone = args!["config", "check", "--tokens", &tokens];
    assert!(run(alone).failed(2).contains("needs --tls-client-ca"));

    let more =
        ["--tokens", tokens.to_str().unwrap(), "--tls-client-ca", roots.to_str().unwrap(), "--admin", "127.0.0.1:0"];
    let server = certificates.serve("127.0.0.1:0", &more);
    let ask = |who: &str, args: &[&str]| {
        let (cert, key) = (certificates.path(&format!("{who}.pem")), certificates.path(&format!("{who}.key")));
        let own = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        certificates.ask(server.addr(), "ca.pem", &[args, &own].concat())
    };
    ask("ada", &["set", "k", "v"]).done();
    assert!(ask("ada", &["bucket", "create", "b"]).failed(1).contains("the token \"ada\" lacks the right write:b"));
    assert!(ask("eve", &["get", "k"]).failed(1).contains("UNAUTHENTICATED"), "nobody has named it");
    assert!(server.run(["get", "k"]).failed(1).contains("UNAUTHENTICATED"), "there is no certificate without TLS");
    let by_openssl = |who: &str, addr: &str, lines: &str| {
        let (cert, key) = (certificates.path(&format!("{who}.pem")), certificates.path(&format!("{who}.key")));
        certificates.s_client(addr, lines, &["-cert", cert.to_str().unwrap(), "-key", key.to_str().unwrap()])
    };
    assert_eq!(by_openssl("ada", server.addr(), "GET k\nQUIT\n"), "v\n");
    let lines = format!("AUTH {admin}BUCKET CREATE b\nQUIT\n");
    assert_eq!(by_openssl("ada", server.addr(), &lines), "OK\nOK\n", "a token counts where there is one");
    let page = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert!(by_openssl("ada", server.admin(), page).starts_with("HTTP/1.1 200 "));
    assert!(by_openssl("eve", server.admin(), page).starts_with("HTTP/1.1 401 "));

    run(args!["token", "revoke", "ada", "--tokens", &tokens]).done();
    server.signal("HUP");
    let started = Instant::now();
    while ask("ada", &["get", "k"]).code != Some(1) {
        assert!(started.elapsed() < PATIENCE, "it still counts");
    }
}

// Promises: ops-tls-reload.
#[boltkv_needs::program("openssl")]
#[test]
fn at_sighup_the_certificate_is_read_again_and_one_that_cannot_be_used_changes_nothing() {
    let certificates = Certificates::new();
    let logged = Logged::start(
        certificates.0.path(),
        &args![
            "--log",
            "info",
            "--tls-cert",
            certificates.path("server.pem"),
            "--tls-key",
            certificates.path("server.key")
        ],
    );
    let server = &logged.server;
    certificates.ask(server.addr(), "ca.pem", &["set", "k", "v"]).done();
    let good = fs::read(certificates.path("server.pem")).unwrap();
    fs::write(certificates.path("server.pem"), "no certificate").unwrap();
    server.signal("HUP");
    logged.wait_for("no certificate in PEM", 1);
    certificates.ask(server.addr(), "ca.pem", &["get", "k"]).done();
    fs::write(certificates.path("server.pem"), good).unwrap();
    certificates.authority("new");
    certificates.sign("new", "server", "IP:127.0.0.1", 30);
    server.signal("HUP");
    let started = Instant::now();
    while certificates.ask(server.addr(), "new.pem", &["get", "k"]).code != Some(0) {
        assert!(started.elapsed() < PATIENCE, "the new one is not used");
    }
    certificates.ask(server.addr(), "ca.pem", &["get", "k"]).failed(3);
    assert!(logged.logged().contains("have the certificate as it is now"), "{}", logged.logged());
    assert_eq!(logged.server.stop().code, Some(0));
    let unusable = run(args![
        "serve",
        "--db",
        certificates.path("app.db"),
        "--tls-cert",
        certificates.path("ca.pem"),
        "--tls-key",
        certificates.path("server.key")
    ]);
    assert_eq!(unusable.code, Some(2), "{}", unusable.stderr);
}

// Promises: ops-tls-recipe.
#[boltkv_needs::program("openssl")]
#[test]
fn the_recipe_of_the_documents_makes_a_certificate_that_clients_take() {
    let folder = tempfile::tempdir().unwrap();
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/deployment.md")).unwrap();
    let recipe = docs.split_once("[ops-tls-recipe]\n\n```sh\n").unwrap().1.split_once("boltkv serve").unwrap().0;
    let made = Command::new("sh").args(["-ec", recipe]).current_dir(folder.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let path = |name: &str| folder.path().join(name);
    let mut serve = boltkv(args!["serve", "--listen", "127.0.0.1:0", "--db", path("a.db")]);
    let server = Server::spawn(serve.args(args!["--tls-cert", path("server.pem"), "--tls-key", path("server.key")]));
    let tls = args!["set", "k", "v", "--addr", server.addr(), "--tls-ca", path("ca.pem")];
    run(tls.iter()).done();
    run(tls.iter().chain(&args!["--tls-name", "db.example.org"])).done();
    run(tls.iter().chain(&args!["--tls-name", "db.example.com"])).failed(3);
    assert_eq!(server.stop().code, Some(0));
    // What many make first: an authority's certificate alone.
    let alone = args!["--tls-cert", path("ca.pem"), "--tls-key", path("ca.key"), "--db", path("a.db")];
    let server = Server::spawn(boltkv(args!["serve", "--listen", "127.0.0.1:0"]).args(alone));
    let said = run(args!["get", "k", "--addr", server.addr(), "--tls-ca", path("ca.pem"), "--tls-name", "x"]).failed(3);
    assert!(said.contains("CA:FALSE"), "{said}");
    assert_eq!(server.stop().code, Some(0));
}

// Promises: ops-tls-stalled.
#[boltkv_needs::program("openssl")]
#[test]
fn handshakes_that_stand_still_keep_nobody_out_and_hold_up_no_stop() {
    let certificates = Certificates::new();
    let server = certificates.serve("127.0.0.1:0", &["--hello-timeout", "1h", "--max-connections", "4"]);
    let mut stalled: Vec<_> = (0..8).map(|_| TcpStream::connect(server.addr()).unwrap()).collect();
    for socket in &mut stalled {
        // The first bytes of a greeting: then nothing.
        socket.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
    }
    certificates.ask(server.addr(), "ca.pem", &["set", "k", "v"]).done();
    assert_eq!(server.stop().code, Some(0));

    // An eighth of a quarter of the memory has room for 128 handshakes; there is room for more connections.
    let server = certificates.serve("127.0.0.1:0", &["--hello-timeout", "1h", "--memory", "64MiB"]);
    let mut stalled: Vec<_> = (0..200).map(|_| TcpStream::connect(server.addr()).unwrap()).collect();
    for socket in &mut stalled {
        socket.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
    }
    certificates.ask(server.addr(), "ca.pem", &["get", "k"]).done();
    stalled[0].set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(!matches!(stalled[0].read(&mut [0]), Ok(1..)), "the first one made room");
    assert_eq!(server.stop().code, Some(0));
}

// Promises: ops-admin-tls.
#[boltkv_needs::program("openssl")]
#[test]
fn the_admin_address_speaks_tls_and_tells_its_metrics_to_nobody_who_does_not_and_is_elsewhere() {
    let certificates = Certificates::new();
    let tokens = certificates.path("tokens");
    let token = run(args!["token", "create", "--tokens", &tokens, "prometheus"]).text();
    let address = elsewhere().unwrap_or(Ipv4Addr::LOCALHOST);
    let admin = format!("{address}:0");
    let server = certificates.serve("127.0.0.1:0", &["--admin", &admin, "--tokens", tokens.to_str().unwrap()]);
    let head = format!("Host: x\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n", token.trim());
    let said = certificates.s_client(server.admin(), &format!("GET /metrics HTTP/1.1\r\n{head}"), &[]);
    assert!(said.starts_with("HTTP/1.1 200 ") && said.contains("\nboltkv_writable 1\n"), "{said}");
    let said = certificates.s_client(server.admin(), "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", &[]);
    assert!(said.starts_with("HTTP/1.1 401 "), "{said}");
    let (status, said) = http::send(server.admin(), &format!("GET /metrics HTTP/1.1\r\n{head}"));
    assert_eq!(status, if address.is_loopback() { 200 } else { 403 }, "{said}");
    assert_eq!(http::get(server.admin(), "/readyz"), (200, "ready\n".into()));
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn a_redis_is_copied_over_tls_and_one_that_is_not_to_be_trusted_is_asked_nothing() {
    let (certificates, folder) = (Certificates::new(), tempfile::tempdir().unwrap());
    certificates.authority("other");
    // It speaks Redis' protocol, as any would.
    let source = certificates.serve("127.0.0.1:0", &[]);
    certificates.ask(source.addr(), "ca.pem", &["set", "k", "v"]).done();
    let target = Server::start(&folder.path().join("to.db"));
    let url = format!("rediss://{}", source.addr());
    let ca = |name: &str| certificates.path(name).to_str().unwrap().to_owned();
    let said = target.run(["import", "--from-redis", &url, "--redis-tls-ca", &ca("other.pem")]).failed(3);
    assert!(said.contains("could not encrypt") && said.contains("UnknownIssuer"), "{said}");
    let said = target.run(["import", "--from-redis", source.addr(), "--redis-tls-ca", &ca("ca.pem")]).failed(2);
    assert!(said.contains("rediss://"), "{said}");
    target.run(["import", "--from-redis", &url, "--redis-tls-ca", &ca("ca.pem")]).done();
    assert_eq!(target.run(["get", "k"]).done(), b"v");
    let plain = Server::start(&folder.path().join("plain.db"));
    let url = format!("rediss://{}", plain.addr());
    assert!(target.run(["import", "--from-redis", &url]).failed(3).contains("could not encrypt"));
}
