//! What a server needs that lets in only who is known, and encrypts: a token, and a certificate by OpenSSL.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use boltkv_protocol::Token;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

use crate::process::output;

/// Longer than it takes to make a key.
const PATIENCE: Duration = Duration::from_secs(30);

/// What OpenSSL is told of a key for the certificate.
pub(super) const P256: &str = "ec -pkeyopt ec_paramgen_curve:prime256v1";
pub(super) const RSA: &str = "rsa:3072";

/// A token and a certificate, in a folder.
pub(super) struct Guard {
    folder: PathBuf,
    token: String,
}

impl Guard {
    /// Makes them, the certificate with a key of this kind.
    ///
    /// # Errors
    /// There is no `openssl`, or one of the programs fails.
    pub(super) fn make(program: &Path, folder: &Path, key: &str) -> Result<Self> {
        let mut openssl = Command::new("openssl");
        openssl.args(format!("req -x509 -newkey {key} -nodes -days 2 -subj /CN=b").split(' '));
        openssl.args("-addext basicConstraints=critical,CA:FALSE -addext subjectAltName=IP:127.0.0.1".split(' '));
        openssl.arg("-keyout").arg(folder.join("key.pem")).arg("-out").arg(folder.join("cert.pem"));
        let made = output(&mut openssl, PATIENCE)?;
        ensure!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
        let mut create = Command::new(program);
        create.args(["token", "create", "bench", "--right", "admin", "--tokens"]).arg(folder.join("tokens"));
        let created = output(&mut create, PATIENCE)?;
        ensure!(created.status.success(), "boltkv token: {}", String::from_utf8_lossy(&created.stderr));
        Ok(Self { folder: folder.to_owned(), token: String::from_utf8(created.stdout)?.trim().to_owned() })
    }

    /// Tells a server of the certificate, and of the token, where it is to ask for one.
    pub(super) fn tell(&self, serve: &mut Command, asks: bool) {
        serve.arg("--tls-cert").arg(self.folder.join("cert.pem")).arg("--tls-key").arg(self.folder.join("key.pem"));
        if asks {
            serve.arg("--tokens").arg(self.folder.join("tokens"));
        }
    }

    pub(super) fn token(&self) -> Token {
        self.token.clone().into()
    }

    /// How a client encrypts.
    pub(super) fn client(&self) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&fs::read(self.folder.join("cert.pem"))?)?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
    }
}
