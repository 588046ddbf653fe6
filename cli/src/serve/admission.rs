//! Whom a server lets in, and how it encrypts: files that are read when it starts, and again at SIGHUP.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use boltkv_server::{Config, Grant, Proof, Tls, TlsError};
use clap::Args;

use super::settings::Wrong;
use crate::token::file::TokensFile;

const CERT: &str = "tls-cert";
const KEY: &str = "tls-key";
const CLIENT_CA: &str = "tls-client-ca";

/// The files that say whom to let in.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Access")]
pub(super) struct AdmissionArgs {
    /// Let in only who has one of the tokens in this file, which `boltkv token` writes. Read again at SIGHUP
    #[arg(long, value_name = "FILE")]
    tokens: Option<PathBuf>,
    /// Encrypt with this certificate (PEM, those that lead to its root behind it); who comes from another machine has to.
    /// Read again at SIGHUP, as is its key
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,
    /// Let in over TLS only who has a certificate from one of those in this file (PEM). Read again at SIGHUP
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<PathBuf>,
}

impl AdmissionArgs {
    pub(super) fn apply(&self, config: &mut Config, wrong: &mut Vec<Wrong>) {
        match self.grants() {
            Ok(grants) => {
                let of_certificate = |grant: &&Grant| matches!(grant.proof, Proof::Certificate(_));
                let named = grants.iter().flatten().find(of_certificate).filter(|_| self.tls_client_ca.is_none());
                let why = |grant: &Grant| format!("has {} for a certificate, which needs --tls-client-ca", grant.name);
                wrong.extend(named.map(|grant| Wrong::new("tokens", why(grant))));
                config.grants = grants;
            }
            Err(why) => wrong.push(Wrong::new("tokens", why)),
        }
        match self.tls() {
            Ok(tls) => config.tls = tls,
            Err(why) => wrong.push(why),
        }
        wrong.extend(self.incomplete());
    }

    /// What is there without what it takes.
    fn incomplete(&self) -> Option<Wrong> {
        let Self { tls_cert, tls_key, tls_client_ca, .. } = self;
        let missing = match (tls_cert.is_some(), tls_key.is_some(), tls_client_ca.is_some()) {
            (true, false, _) => (CERT, "needs its key, --tls-key"),
            (false, true, _) => (KEY, "needs its certificate, --tls-cert"),
            (false, false, true) => (CLIENT_CA, "needs a certificate of the server's, --tls-cert and --tls-key"),
            _ => return None,
        };
        Some(Wrong::new(missing.0, missing.1))
    }

    /// Whether nobody reads on the way, and only who is known is let in.
    pub(super) const fn is_secure(&self) -> bool {
        self.tls_cert.is_some() && (self.tokens.is_some() || self.tls_client_ca.is_some())
    }

    /// Whether there is anything to read again.
    pub(super) const fn has_files(&self) -> bool {
        self.tokens.is_some() || self.tls_cert.is_some()
    }

    /// The tokens, where the server asks for some; why they cannot be used.
    pub(super) fn grants(&self) -> Result<Option<Vec<Grant>>, String> {
        let read = |file: &PathBuf| TokensFile::read(file).map(|tokens| tokens.grants);
        self.tokens.as_ref().map(read).transpose().map_err(|failure| format!("cannot be used: {failure}"))
    }

    /// How to encrypt, where the server does; why it cannot.
    pub(super) fn tls(&self) -> Result<Option<Tls>, Wrong> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let roots = self.tls_client_ca.as_deref().map(|file| read(CLIENT_CA, file)).transpose()?;
        let tls = Tls::from_pem(&read(CERT, cert)?, &read(KEY, key)?, roots.as_deref());
        let named = |error: TlsError| {
            let (setting, file) = match (&error, &self.tls_client_ca) {
                (TlsError::ClientRoots(_), Some(file)) => (CLIENT_CA, file),
                (TlsError::NoKey, _) => (KEY, key),
                _ => (CERT, cert),
            };
            unusable(setting, file, error)
        };
        tls.map(Some).map_err(named)
    }
}

fn read(setting: &str, file: &Path) -> Result<Vec<u8>, Wrong> {
    fs::read(file).map_err(|error| unusable(setting, file, format_args!("could not read: {error}")))
}

fn unusable(setting: &str, file: &Path, why: impl fmt::Display) -> Wrong {
    Wrong::new(setting, format!("cannot be used: {}: {why}", file.display()))
}
