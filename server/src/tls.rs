//! Encryption: TLS 1.2 and 1.3 on the same port as everything else, and who has to use it.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use webpki::EndEntityCert;

use crate::Error;
use crate::config::Limits;
use crate::handshakes::{Handshakes, MOST_OF_HANDSHAKE, Rewound};
use crate::memory::Memory;
use crate::peer::Origin;
use crate::stats::Stats;

/// Handshakes of clients have at most so much of the memory, together.
const SHARE: usize = 8;
/// Handshakes of the admin address at a time: as many as it has connections.
const MOST_ADMINS: usize = 64;

/// How a server encrypts: its certificate and key, and whose clients' certificates it takes, if it asks for any.
#[derive(Clone)]
pub struct Tls(Arc<ServerConfig>);

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
    /// What is wrong with the certificates from one of which those of clients have to be.
    #[error("{0}")]
    ClientRoots(Box<Self>),
    /// The certificate or the key cannot be used, or they do not belong together.
    #[error("{0}")]
    Unusable(String),
}

impl Tls {
    /// From a chain of certificates, the server's own first, and its key, both in PEM. With `client_roots` (PEM) only clients
    /// are let in that have a certificate from one of them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn from_pem(chain: &[u8], key: &[u8], client_roots: Option<&[u8]>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(unusable)?;
        let builder = match client_roots {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let verifier = verifier(pem, provider).map_err(|error| TlsError::ClientRoots(Box::new(error)))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| match error {
            rustls::pki_types::pem::Error::NoItemsFound => TlsError::NoKey,
            error => TlsError::Pem(error.to_string()),
        })?;
        let mut config = builder.with_single_cert(certificates(chain)?, key).map_err(unusable)?;
        if client_roots.is_some() {
            // Whoever comes again is looked at again: a session that is taken up would go by what his certificate was then.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        } else {
            // What a session is taken up by, its client keeps, encrypted with a key of ours that changes every six hours: any
            // number of clients may come again, and nothing is kept for them.
            config.ticketer = ring::Ticketer::new().map_err(unusable)?;
        }
        Ok(Self(Arc::new(config)))
    }
}

/// Nothing of the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

/// Takes clients' certificates that are from one of these.
fn verifier(roots: &[u8], provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut store = RootCertStore::empty();
    for root in certificates(roots)? {
        store.add(root).map_err(unusable)?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(store), provider).build().map_err(unusable)
}

fn unusable(error: impl fmt::Display) -> TlsError {
    TlsError::Unusable(error.to_string())
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| TlsError::Pem(error.to_string()))?;
    if all.is_empty() { Err(TlsError::NoCertificate) } else { Ok(all) }
}

/// What the certificate of a client is for, where it has shown one: names of the DNS in small letters, and URIs. That it is from
/// where it has to be was looked at before.
pub(crate) fn client_names(shown: Option<&[CertificateDer<'_>]>) -> Vec<String> {
    let Some(first) = shown.and_then(<[_]>::first) else { return Vec::new() };
    let Ok(certificate) = EndEntityCert::try_from(first) else { return Vec::new() };
    let hosts = certificate.valid_dns_names().map(str::to_ascii_lowercase);
    hosts.chain(certificate.valid_uri_names().map(str::to_owned)).collect()
}

/// The encryption of a server that runs.
#[derive(Debug)]
pub(crate) struct Encryption {
    /// `None`: it does not encrypt.
    on: Option<On>,
}

#[derive(Debug)]
struct On {
    now: RwLock<Tls>,
    clients: Handshakes,
    /// Those of the admin address: no crowd of clients is before them.
    admins: Handshakes,
}

/// Whose handshakes are done together, and wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Clients,
    Admins,
}

impl Encryption {
    /// # Errors
    /// [`Error::Thread`].
    pub(crate) fn new(tls: Option<Tls>, limits: &Limits, memory: &Memory, stats: &Arc<Stats>) -> Result<Self, Error> {
        let places = (memory.limit() / SHARE / MOST_OF_HANDSHAKE).max(1);
        let threads = NonZeroUsize::new(limits.burst_threads / 2).unwrap_or(NonZeroUsize::MIN);
        let start = |threads, places| Handshakes::start(threads, places, Arc::clone(stats)).map_err(Error::Thread);
        let on = tls.map(|tls| {
            let (clients, admins) = (start(threads, places)?, start(NonZeroUsize::MIN, MOST_ADMINS)?);
            Ok::<_, Error>(On { now: RwLock::new(tls), clients, admins })
        });
        Ok(Self { on: on.transpose()? })
    }

    /// Whether clients from elsewhere have to encrypt.
    pub(crate) const fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// How a connection that begins now is encrypted.
    pub(crate) fn now(&self) -> Option<Arc<ServerConfig>> {
        let tls = self.on.as_ref()?.now.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&tls.0))
    }

    /// Encrypts what comes from there so, when it is its turn, unless `end` comes first.
    ///
    /// # Errors
    /// The socket's, or what is wrong with what the client sends.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        whose: Whose,
        socket: Rewound<S>,
        config: Arc<ServerConfig>,
        origin: Origin,
        end: CancellationToken,
    ) -> io::Result<TlsStream<Rewound<S>>> {
        let on = self.on.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let handshakes = match whose {
            Whose::Clients => &on.clients,
            Whose::Admins => &on.admins,
        };
        handshakes.accept(socket, config, origin, end).await
    }

    /// Connections that begin from now on are encrypted so; `false`, and nothing is done, where none was.
    pub(crate) fn replace(&self, tls: Tls) -> bool {
        let Some(on) = &self.on else { return false };
        *on.now.write().unwrap_or_else(PoisonError::into_inner) = tls;
        true
    }
}

/// A way to change the certificate of a server that runs.
#[derive(Debug, Clone)]
pub struct TlsHandle(Arc<Encryption>);

impl TlsHandle {
    pub(crate) const fn new(encryption: Arc<Encryption>) -> Self {
        Self(encryption)
    }

    /// Connections that begin from now on are encrypted so; those that are there go on as they are. `false`, and nothing is
    /// done, where the server was started without encryption.
    #[must_use]
    pub fn replace(&self, tls: Tls) -> bool {
        self.0.replace(tls)
    }
}
