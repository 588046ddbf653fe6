//! Encryption: whom to trust, and who one is.

use std::sync::Arc;
use std::{fmt, io};

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

/// How a client encrypts: which certificates of servers it takes, and its own where servers ask for one.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use boltkv_client::{Client, Tls};
/// let tls = Tls::builder().roots(&std::fs::read("ca.pem")?)?.build()?;
/// let client = Client::builder("db.example.org:7878").tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    name: Option<ServerName<'static>>,
}

/// Makes a [`Tls`].
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until it builds"]
pub struct TlsBuilder {
    roots: Option<RootCertStore>,
    identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    name: Option<ServerName<'static>>,
}

/// Why nothing can be encrypted so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no certificate in what was given for some.
    #[error("there is no certificate in PEM in it")]
    NoCertificate,
    /// There is no private key in what was given for one.
    #[error("there is no private key in PEM in it")]
    NoKey,
    /// What stands there is none in PEM.
    #[error("it is no PEM: {0}")]
    Pem(String),
    /// It is no name of a host and no address.
    #[error("{0} is no name of a host, and no address")]
    Name(String),
    /// The system has no certificates that it trusts.
    #[error("the system has no certificates that it trusts: {0}")]
    NoSystemRoots(String),
    /// Certificates or key cannot be used, or do not belong together.
    #[error("{0}")]
    Unusable(String),
}

impl Tls {
    /// Trusts whom the system trusts, and has no certificate of its own, unless told otherwise.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::default()
    }

    /// Encrypts a connection to whoever is at `host:port`, whatever is spoken on it: other servers than boltkv's, too.
    ///
    /// # Errors
    /// The connection's, or why it cannot be trusted.
    pub async fn encrypt<S>(
        &self,
        addr: &str,
        stream: S,
    ) -> io::Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<S>>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let name = self.server_name(addr).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        TlsConnector::from(self.config()).connect(name, stream).await
    }

    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }

    /// The name that the certificate of the server at `host:port` must have.
    pub(crate) fn server_name(&self, addr: &str) -> Result<ServerName<'static>, TlsError> {
        if let Some(name) = &self.name {
            return Ok(name.clone());
        }
        let host = addr.rsplit_once(':').map_or(addr, |(host, _)| host);
        parse_name(host.trim_start_matches('[').trim_end_matches(']'))
    }
}

impl TlsBuilder {
    /// Trusts only these certificates, in PEM, and servers that have one from them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn roots(mut self, pem: &[u8]) -> Result<Self, TlsError> {
        let mut roots = RootCertStore::empty();
        for root in certificates(pem)? {
            roots.add(root).map_err(unusable)?;
        }
        self.roots = Some(roots);
        Ok(self)
    }

    /// The client's own certificate, with those that lead to its root, and its key, both in PEM; for servers that ask.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn identity(mut self, chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            pem::Error::NoItemsFound => TlsError::NoKey,
            error => TlsError::Pem(error.to_string()),
        })?;
        self.identity = Some((certificates(chain)?, key));
        Ok(self)
    }

    /// The name that the server's certificate must have, where that is not the host's in its address.
    ///
    /// # Errors
    /// It is no name.
    pub fn server_name(mut self, name: &str) -> Result<Self, TlsError> {
        self.name = Some(parse_name(name)?);
        Ok(self)
    }

    /// All of it together.
    ///
    /// # Errors
    /// What is wrong, or that the system has nobody whom it trusts.
    pub fn build(self) -> Result<Tls, TlsError> {
        let roots = self.roots.map_or_else(system_roots, Ok)?;
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?.with_root_certificates(roots);
        let config = match self.identity {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(unusable)?,
        };
        Ok(Tls { config: Arc::new(config), name: self.name })
    }
}

/// Nothing of the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

fn system_roots() -> Result<RootCertStore, TlsError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(|| "none was found".to_owned(), ToString::to_string);
        return Err(TlsError::NoSystemRoots(why));
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| TlsError::Pem(error.to_string()))?;
    if all.is_empty() { Err(TlsError::NoCertificate) } else { Ok(all) }
}

fn parse_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

fn unusable(error: impl fmt::Display) -> TlsError {
    TlsError::Unusable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_hosts_unless_another_is_said() {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let mut tls = Tls { config: Arc::new(config), name: None };
        for (addr, name) in
            [("db.example.org:7878", "db.example.org"), ("127.0.0.1:1", "127.0.0.1"), ("[::1]:1", "::1")]
        {
            assert_eq!(tls.server_name(addr).unwrap(), parse_name(name).unwrap(), "{addr}");
        }
        assert!(tls.server_name("no host:1").is_err());
        tls.name = Some(parse_name("db").unwrap());
        assert_eq!(tls.server_name("127.0.0.1:1").unwrap(), parse_name("db").unwrap());
    }

    #[test]
    fn what_is_no_certificate_is_said_to_be_none() {
        assert!(matches!(Tls::builder().roots(b""), Err(TlsError::NoCertificate)));
        assert!(matches!(Tls::builder().roots(b"-----BEGIN CERTIFICATE-----\nxx"), Err(TlsError::Pem(_))));
        assert!(matches!(Tls::builder().identity(b"", b""), Err(TlsError::NoKey)));
    }
}
