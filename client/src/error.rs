//! What can go wrong, told apart by what the caller can do about it.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use boltkv_protocol::{EncodeError, ErrorCode, ErrorReply, PathError, TxnError, TxnPart, WatchPosition};

/// Why a request failed.
///
/// Two questions matter to a caller, and each has a method. [`is_outcome_unknown`](Self::is_outcome_unknown): may a write have
/// been done all the same? Of [`OutcomeUnknown`](Self::OutcomeUnknown) and the server's `STORAGE_FAILED` it may; after every
/// other error nothing was written. [`is_passing`](Self::is_passing): may the same request succeed later?
///
/// ```no_run
/// # use boltkv_client::{Bucket, Error};
/// # use std::time::Duration;
/// /// Writes, and tries again while that can do no harm.
/// async fn set_patiently(bucket: &Bucket, key: &str, value: &str) -> Result<(), Error> {
///     for pause in [100, 400, 1600] {
///         match bucket.set(key, value).await {
///             Err(error) if error.is_passing() => tokio::time::sleep(Duration::from_millis(pause)).await,
///             other => return other.map(drop),
///         }
///     }
///     bucket.set(key, value).await.map(drop)
/// }
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server said no; its code tells why. Nothing was written, but for `STORAGE_FAILED`.
    #[error(transparent)]
    Server(ErrorReply),
    /// The server could not be reached. Nothing was sent.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// Where to.
        addr: String,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// The address names no server: it is no `HOST:PORT`, or no such host is known. Nothing was sent.
    #[error("{addr} names no server: {source}")]
    Address {
        /// What was given as the address.
        addr: String,
        /// What the system says.
        source: Arc<io::Error>,
    },
    /// So many scans are open on this client that another would be over its limit, and none ended in time: see
    /// [`ClientBuilder::max_scans`](crate::ClientBuilder::max_scans). Nothing was sent.
    #[error("{limit} scans of this client are open, which is its limit, and none ended within {waited:?}")]
    TooManyScans {
        /// How many there may be.
        limit: usize,
        /// How long this one has waited for its turn.
        waited: Duration,
    },
    /// Something accepted the connection and did not answer HELLO: a server that is stopped or stuck, or something else. No
    /// request was sent.
    #[error("{addr} takes connections but does not answer: {source}")]
    NoAnswer {
        /// Where to.
        addr: String,
        /// What happened instead.
        source: Arc<io::Error>,
    },
    /// The connection could not be encrypted: the server does not, or one of the two does not trust the other. No request was
    /// sent.
    #[error("could not encrypt the connection to {addr}: {source}")]
    Encryption {
        /// Where to.
        addr: String,
        /// Why not.
        source: Arc<io::Error>,
    },
    /// What answered is no boltkv server. No request was sent.
    #[error("{addr} is no boltkv server: {said}")]
    NotBoltkv {
        /// Where to.
        addr: String,
        /// What it speaks, or how its answer began.
        said: String,
    },
    /// The connection was lost under a read, also when it was sent once more; under a stream, which cannot be taken up again
    /// where it stopped; or before a write was sent. Nothing was written.
    #[error("the connection was lost: {0}")]
    ConnectionLost(Loss),
    /// The write was sent and its answer never came. It may have been done or not; read to find out.
    #[error("whether the write was done is unknown: {0}")]
    OutcomeUnknown(Loss),
    /// There was no answer in time, to a read; or a write could not be sent in time. Nothing was written.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// The server sent what the protocol does not allow. Nothing was written.
    #[error("the server broke the protocol: {0}")]
    Protocol(Cow<'static, str>),
    /// The request is larger than the wire, or this server, can take. Nothing was sent.
    #[error("the request cannot be sent: {0}")]
    Unsendable(#[from] EncodeError),
    /// The transaction holds what cannot be a part of one, or too many parts. Nothing was sent.
    #[error("the transaction cannot be sent: {0}")]
    Transaction(#[from] TxnError),
    /// A backup did not arrive as the server has read it: what came of it is no file.
    #[error("the backup did not arrive as it was sent: {0}")]
    BackupDamaged(String),
    /// What a backup was to be written to did not take it. Nothing is wrong with the server.
    #[error("the backup could not be written: {0}")]
    Write(Arc<io::Error>),
    /// The text is no bucket path.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Error {
    /// The server's code, where it was the server that said no.
    #[must_use]
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Server(reply) => Some(reply.code),
            _ => None,
        }
    }

    /// The part because of which a transaction was not done: a condition that does not hold, a request that was refused.
    /// `None` where it was for none in particular, and of what is no transaction.
    #[must_use]
    pub fn failed_part(&self) -> Option<TxnPart> {
        match self {
            Self::Server(reply) => reply.txn_part(),
            _ => None,
        }
    }

    /// The oldest position that the server keeps, where it does not keep the one that a watch was to begin behind, or to go on
    /// behind (`SNAPSHOT_EXPIRED`).
    #[must_use]
    pub fn oldest_position(&self) -> Option<WatchPosition> {
        match self {
            Self::Server(reply) if reply.code == ErrorCode::SnapshotExpired => {
                WatchPosition::from_detail(&reply.detail)
            }
            _ => None,
        }
    }

    /// Whether a write that failed so may have been done all the same. After every other error it was not.
    #[must_use]
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::OutcomeUnknown(_)) || self.code() == Some(ErrorCode::StorageFailed)
    }

    /// Whether no server was reached, so that nothing was asked of any.
    #[must_use]
    pub const fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. }
                | Self::Address { .. }
                | Self::NoAnswer { .. }
                | Self::Encryption { .. }
                | Self::NotBoltkv { .. }
        )
    }

    /// Whether nothing was done and the same request may succeed later, as it is: the server is not there, is stopping, has too
    /// much to do or no space. Wait a little before trying again. An [`Address`](Self::Address) is as wrong later as now.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::TooManyScans { .. }
            | Self::NoAnswer { .. }
            | Self::ConnectionLost(_)
            | Self::Timeout(_) => true,
            Self::Server(reply) => {
                matches!(reply.code, ErrorCode::Overloaded | ErrorCode::ShuttingDown | ErrorCode::NoSpace)
            }
            _ => false,
        }
    }

    /// Whether the server refused because it is stopping: nothing was done, and another may take its place.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.code() == Some(ErrorCode::ShuttingDown)
    }
}

/// Why a connection is no more. All that was in flight on it fails with the same.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Loss {
    /// It was closed.
    #[error("the connection was closed")]
    Closed,
    /// It failed.
    #[error(transparent)]
    Failed(Arc<io::Error>),
    /// The server ended it and said why.
    #[error("the server ended the connection: {0}")]
    Ended(ErrorReply),
    /// The server sent what the protocol does not allow, so that nothing more on it can be trusted.
    #[error("the server broke the protocol: {0}")]
    Protocol(Cow<'static, str>),
    /// The answer did not come in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
}

impl Loss {
    /// Whether a new connection may well fare better.
    pub(crate) const fn is_passing(&self) -> bool {
        matches!(self, Self::Closed | Self::Failed(_) | Self::Timeout(_))
    }

    /// The error of a read that was under way.
    pub(crate) fn under_read(self) -> Error {
        match self {
            Self::Protocol(what) => Error::Protocol(what),
            loss => Error::ConnectionLost(loss),
        }
    }
}

impl From<io::Error> for Loss {
    fn from(error: io::Error) -> Self {
        Self::Failed(Arc::new(error))
    }
}
