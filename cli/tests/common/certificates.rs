//! Certificates that OpenSSL makes, and a server that has one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::server::Server;
use super::{Ran, boltkv, feed, run};
use crate::args;

/// A folder with authorities and what they have signed.
pub struct Certificates(pub TempDir);

#[track_caller]
fn openssl(folder: &Path, args: &str) {
    let made = Command::new("openssl").args(args.split(' ')).current_dir(folder).output().unwrap();
    assert!(made.status.success(), "{args}: {}", String::from_utf8_lossy(&made.stderr));
}

impl Certificates {
    pub fn new() -> Self {
        let all = Self(tempfile::tempdir().unwrap());
        all.authority("ca");
        all.sign("ca", "server", "DNS:localhost,IP:127.0.0.1", 30);
        all
    }

    pub fn authority(&self, name: &str) {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        let args = format!("req -x509 {key} -keyout {name}.key -out {name}.pem -days 30 -subj /CN={name}");
        openssl(self.0.path(), &args);
    }

    /// A certificate for these names, good for so many days from now, or until as many before.
    pub fn sign(&self, ca: &str, name: &str, names: &str, days: i32) {
        let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
        openssl(self.0.path(), &format!("req {key} -keyout {name}.key -out {name}.csr -subj /CN={name}"));
        fs::write(self.path("ext"), format!("subjectAltName={names}\n")).unwrap();
        let signed = format!("x509 -req -in {name}.csr -CA {ca}.pem -CAkey {ca}.key -CAcreateserial -out {name}.pem");
        openssl(self.0.path(), &format!("{signed} -days {days} -extfile ext"));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A server with the certificate of this name, on this address.
    pub fn serve(&self, address: &str, more: &[&str]) -> Server {
        let args =
            args!["serve", "--db", self.path("app.db"), "--listen", address, "--tls-cert", self.path("server.pem")];
        Server::spawn(boltkv(args).arg("--tls-key").arg(self.path("server.key")).args(more))
    }

    pub fn ask(&self, addr: &str, ca: &str, command: &[&str]) -> Ran {
        let tls = args!["--addr", addr, "--tls-ca", self.path(ca)];
        run(args![].into_iter().chain(command.iter().map(Into::into)).chain(tls))
    }

    /// What a server answers to lines over TLS, OpenSSL's.
    pub fn s_client(&self, addr: &str, lines: &str, more: &[&str]) -> String {
        let mut client = Command::new("openssl");
        client
            .args(["s_client", "-quiet", "-verify_return_error", "-connect", addr, "-CAfile"])
            .arg(self.path("ca.pem"));
        String::from_utf8(feed(client.args(more), lines.as_bytes()).stdout).unwrap()
    }
}
