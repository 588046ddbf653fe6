//! How to connect: what is told to the server and how long to wait for it.

use std::fmt;
use std::time::Duration;

use boltkv_protocol::Token;
use bytes::Bytes;

use crate::{Client, Error, Tls};

/// Scans that may be open at once, unless the caller says how many.
const MOST_SCANS: usize = 64;

/// What every connection of a client has in common.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) addr: String,
    pub(crate) name: Bytes,
    pub(crate) token: Token,
    pub(crate) tls: Option<Tls>,
    pub(crate) timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_scans: usize,
}

/// The token stays out of logs.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("addr", &self.addr)
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("max_scans", &self.max_scans)
            .finish_non_exhaustive()
    }
}

/// Makes a [`Client`] that is not the usual one.
///
/// ```no_run
/// # async fn example() -> Result<(), boltkv_client::Error> {
/// use std::time::Duration;
/// let client = boltkv_client::Client::builder("db.internal:7878")
///     .name("billing")
///     .timeout(Duration::from_secs(2))
///     .connect()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    config: Config,
}

impl ClientBuilder {
    pub(crate) fn new(addr: String) -> Self {
        let config = Config {
            addr,
            name: Bytes::from_static(b"boltkv-client"),
            token: Token::NONE,
            tls: None,
            timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(5),
            max_scans: MOST_SCANS,
        };
        Self { config }
    }

    /// What the client calls itself in the server's logs. `boltkv-client` unless told otherwise.
    pub fn name(mut self, name: impl Into<Bytes>) -> Self {
        self.config.name = name.into();
        self
    }

    /// The token that says who the client is. None unless told otherwise.
    pub fn token(mut self, token: impl Into<Token>) -> Self {
        self.config.token = token.into();
        self
    }

    /// Encrypts what is sent and received. Not unless told so; to a socket in the file system never.
    pub fn tls(mut self, tls: Tls) -> Self {
        self.config.tls = Some(tls);
        self
    }

    /// How long a request may take from the call to its answer, waiting, connecting and sending again included; and how long a
    /// stream may go without the next piece. 30 s unless told otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.config.timeout = timeout;
        self
    }

    /// How long connecting may take, HELLO included. 5 s unless told otherwise.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.config.connect_timeout = timeout;
        self
    }

    /// How many scans may be open at once; each has a connection of its own, so that who reads one slowly holds up nobody.
    /// One more waits until another has ended or is dropped, for as long as a request may take, and then fails with
    /// [`Error::TooManyScans`]. At least 1; 64 unless told otherwise. Counts are not limited by it: they share the
    /// connection of all other requests.
    pub fn max_scans(mut self, scans: usize) -> Self {
        self.config.max_scans = scans.max(1);
        self
    }

    /// Connects.
    ///
    /// # Errors
    /// As for [`Client::connect`].
    ///
    /// # Cancellation
    /// As for [`Client::connect`].
    pub async fn connect(self) -> Result<Client, Error> {
        Client::open(self.config).await
    }
}
