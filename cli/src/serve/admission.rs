//! Whom a server lets in, and how it encrypts: files that are read when it starts, and again at SIGHUP.

use std::fs;
use std::path::{Path, PathBuf};

use boltkv_server::{AccessHandle, Config, Grant, Server, Tls, TlsError, TlsHandle};
use clap::Args;
use tracing::{error, warn};

use crate::failure::{Failure, Outcome};
use crate::token::file::TokensFile;

/// The files that say whom to let in.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Who may")]
pub(super) struct AdmissionArgs {
    /// Let in only who has one of the tokens in this file, which `boltkv token` writes. Read again at SIGHUP
    #[arg(long, value_name = "FILE", env = "BOLTKV_TOKENS")]
    tokens: Option<PathBuf>,
    /// Encrypt with this certificate (PEM, those that lead to its root behind it); who comes from another machine has to.
    /// Read again at SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM). Read again at SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Let in over TLS only who has a certificate from one of those in this file (PEM). Read again at SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
}

impl AdmissionArgs {
    pub(super) fn apply(&self, config: &mut Config) -> Outcome {
        config.grants = self.grants()?;
        config.tls = self.tls()?;
        Ok(())
    }

    /// Whether nobody reads on the way, and only who is known is let in.
    pub(super) const fn is_secure(&self) -> bool {
        self.tls_cert.is_some() && (self.tokens.is_some() || self.tls_client_ca.is_some())
    }

    fn grants(&self) -> Outcome<Option<Vec<Grant>>> {
        self.tokens.as_deref().map(|file| TokensFile::read(file).map(|tokens| tokens.grants)).transpose()
    }

    fn tls(&self) -> Outcome<Option<Tls>> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let roots = self.tls_client_ca.as_deref().map(read).transpose()?;
        let tls = Tls::from_pem(&read(cert)?, &read(key)?, roots.as_deref());
        let named = |error: TlsError| {
            let file = if matches!(error, TlsError::NoKey) { key } else { cert };
            Failure::usage(format!("{}: {error}", file.display()))
        };
        tls.map(Some).map_err(named)
    }

    /// What SIGHUP has done to a server that runs. What cannot be used changes nothing.
    pub(super) fn reload(&self, server: &Server) -> impl Fn() + Send + 'static {
        let (files, access, encryption) = (self.clone(), server.access(), server.tls());
        move || {
            if files.tokens.is_none() && files.tls_cert.is_none() {
                return warn!("SIGHUP: there is nothing to read again; the server goes on");
            }
            files.reload_tokens(&access);
            files.reload_certificate(&encryption);
        }
    }

    fn reload_tokens(&self, access: &AccessHandle) {
        match self.grants() {
            Ok(None) => {}
            Ok(Some(grants)) => {
                let count = grants.len();
                let gone = access.replace(grants).unwrap_or(0);
                warn!("SIGHUP: there are {count} tokens; {gone} are gone or changed");
            }
            Err(failure) => error!("SIGHUP: {failure}; the tokens stay as they were"),
        }
    }

    fn reload_certificate(&self, encryption: &TlsHandle) {
        match self.tls() {
            Ok(None) => {}
            Ok(Some(tls)) => {
                if encryption.replace(tls) {
                    warn!("SIGHUP: the certificate was read again, for connections that begin from now on");
                }
            }
            Err(failure) => error!("SIGHUP: {failure}; the certificate stays as it was"),
        }
    }
}

fn read(file: &Path) -> Outcome<Vec<u8>> {
    fs::read(file).map_err(|error| Failure::unreachable(format!("{}: could not read: {error}", file.display())))
}
