//! How a command encrypts what it says to a server.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use boltkv_client::{Tls, TlsError};
use clap::Args;
use clap::builder::{BoolishValueParser, TypedValueParser as _};
use rustls::{AlertDescription, CertificateError, OtherError};

use crate::failure::{Failure, Outcome};
use crate::remote::unless_empty;

/// The variables of the environment, each the same as an option.
const TLS: &str = "BOLTKV_TLS";
const CA: &str = "BOLTKV_TLS_CA";
const NAME: &str = "BOLTKV_TLS_NAME";
const CERT: &str = "BOLTKV_CLIENT_CERT";
const KEY: &str = "BOLTKV_CLIENT_KEY";

/// Whether and how to encrypt.
#[derive(Debug, Args)]
pub(crate) struct TlsArgs {
    /// Encrypt (TLS), and take only a server that has a certificate from whom this system trusts
    #[arg(long, env = unless_empty(TLS), value_parser = BoolishValueParser::new())]
    tls: bool,
    /// Encrypt, and take only a server that has a certificate from one of those in this file (PEM)
    #[arg(long, value_name = "FILE", env = unless_empty(CA))]
    tls_ca: Option<PathBuf>,
    /// The name that the server's certificate must have, where that is not the host's
    #[arg(long, value_name = "NAME", env = unless_empty(NAME))]
    tls_name: Option<String>,
    /// Encrypt, and show this certificate (PEM) to a server that asks for one
    #[arg(long, value_name = "FILE", env = unless_empty(CERT), requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", env = unless_empty(KEY), requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// How to encrypt; `None`: not at all.
    pub(crate) fn tls(&self) -> Outcome<Option<Tls>> {
        let Self { tls, tls_ca, tls_name, tls_cert, tls_key } = self;
        if !tls && tls_ca.is_none() && tls_name.is_none() && tls_cert.is_none() {
            return Ok(None);
        }
        let mut builder = Tls::builder();
        if let Some(file) = tls_ca {
            builder = builder.roots(&read(file)?).map_err(|error| unusable(file, &error))?;
        }
        if let (Some(cert), Some(key)) = (tls_cert, tls_key) {
            builder = builder.identity(&read(cert)?, &read(key)?).map_err(|error| match error {
                TlsError::NoKey => unusable(key, &error),
                error => unusable(cert, &error),
            })?;
        }
        if let Some(name) = tls_name {
            builder = builder.server_name(name).map_err(|error| Failure::usage(format!("--tls-name: {error}")))?;
        }
        builder.build().map(Some).map_err(|error| Failure::usage(format!("cannot encrypt: {error}")))
    }
}

/// The variable that has commands encrypt, if one does.
pub(crate) fn asked_by() -> Option<&'static str> {
    [TLS, CA, NAME, CERT].into_iter().find(|name| {
        let value = env::var_os(name).filter(|value| !value.is_empty());
        value.is_some_and(|value| *name != TLS || is_yes(&value))
    })
}

/// As the option reads it. What cannot be read is no reason to send anything in the clear.
fn is_yes(value: &OsStr) -> bool {
    BoolishValueParser::new().parse_ref(&clap::Command::new(""), None, value).unwrap_or(true)
}

/// What helps where a connection could not be encrypted, to stand behind the message.
pub(crate) fn hint(error: &boltkv_client::Error) -> &'static str {
    let boltkv_client::Error::Encryption { source, .. } = error else { return "" };
    let Some(why) = source.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>()) else { return "" };
    match why {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "; --tls-ca FILE (BOLTKV_TLS_CA) names who has signed the server's certificate"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; --tls-name NAME (BOLTKV_TLS_NAME) says by which name the server is to be known",
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(other)))
            if other.to_string().contains("CaUsedAsEndEntity") =>
        {
            "; the server's certificate is one for signing others: make it with basicConstraints=critical,CA:FALSE"
        }
        rustls::Error::InvalidMessage(_) | rustls::Error::AlertReceived(AlertDescription::HandshakeFailure) => {
            "; it looks as if the server does not encrypt (it has no --tls-cert)"
        }
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "; --tls-cert FILE and --tls-key FILE (BOLTKV_CLIENT_CERT, BOLTKV_CLIENT_KEY) show the server who you are"
        }
        _ => "",
    }
}

fn read(file: &Path) -> Outcome<Vec<u8>> {
    fs::read(file).map_err(|error| Failure::usage(format!("{}: could not read: {error}", file.display())))
}

fn unusable(file: &Path, error: &TlsError) -> Failure {
    Failure::usage(format!("{}: {error}", file.display()))
}
