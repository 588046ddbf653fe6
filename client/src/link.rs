//! Which connection a request takes.
//!
//! Requests with one reply share one connection. A stream takes one of its own for as long as it runs: one that its caller
//! reads as fast as the server sends would have all other replies wait behind its frames. So there is a bound to how many
//! streams are open at a time.
//!
//! A stream that was given up is no reason to wait, nor for another connection: the server takes what follows a CANCEL after it,
//! so that only what it had sent before comes first, which is bounded by the stream's credit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::Error;
use crate::builder::Config;
use crate::connection::Connection;
use crate::shared::Shared;

/// How many connections without a stream are kept for the next one.
const SPARE_CONNECTIONS: usize = 4;
/// How many requests may be unanswered on a connection that is used again. A server that works answers them before what follows
/// them, so that there are more only where much was given up at once; where it answers none, no more is sent there.
const MOST_UNANSWERED: usize = 4;
/// What counts as for ever, where a timeout is longer than clocks can tell.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct Link {
    config: Arc<Config>,
    shared: Arc<Shared>,
    spares: Arc<Spares>,
    /// A permit for each stream that may be open.
    scans: Arc<Semaphore>,
}

impl Link {
    pub(crate) async fn open(config: Config) -> Result<Self, Error> {
        let config = Arc::new(config);
        let shared = Arc::new(Shared::open(Arc::clone(&config)).await?);
        let scans = Arc::new(Semaphore::new(config.max_scans.min(Semaphore::MAX_PERMITS)));
        Ok(Self { config, shared, spares: Arc::default(), scans })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// When a request that starts now has to be done.
    pub(crate) fn deadline(&self) -> Instant {
        let now = Instant::now();
        now.checked_add(self.config.timeout).unwrap_or(now + FOR_EVER)
    }

    /// The connection that requests share; a new one if the last is lost.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        self.shared.connection(deadline).await
    }

    /// A connection for one stream, as soon as no more streams are open than the client may have.
    pub(crate) async fn stream_connection(&self, deadline: Instant) -> Result<Lease, Error> {
        let turn = timeout_at(deadline, Arc::clone(&self.scans).acquire_owned()).await;
        let Ok(turn) = turn else {
            return Err(Error::TooManyScans { limit: self.config.max_scans, waited: self.config.timeout });
        };
        let connection = match self.spares.take() {
            Some(connection) => connection,
            None => self.new_connection(deadline).await?,
        };
        // Nobody closes the semaphore.
        Ok(Lease { connection, spares: Arc::clone(&self.spares), _turn: turn.ok() })
    }

    async fn new_connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        // Where the server is gone, streams wait for the one attempt to find it again, and do not each make their own.
        self.shared.connection(deadline).await?;
        let opened = timeout_at(deadline, Connection::open(&self.config)).await;
        opened.map_err(|_| Error::Timeout(self.config.timeout))?.map(Arc::new)
    }
}

/// Connections that no stream holds, in the order in which they were given back. One whose stream was given up may still be
/// receiving the rest of it.
#[derive(Debug, Default)]
struct Spares {
    connections: Mutex<Vec<Arc<Connection>>>,
}

impl Spares {
    fn take(&self) -> Option<Arc<Connection>> {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| connection.is_usable());
        // The first of those with the fewest: one that is at rest, or else the one that has had most time for it.
        let unanswered = connections.iter().enumerate().filter_map(|(index, connection)| {
            let number = connection.in_flight();
            // One stream that was given up is waited for where the server allows no other beside it, several are not.
            let can_follow = number <= 1 || number <= MOST_UNANSWERED && connection.has_stream_left();
            can_follow.then_some((number, index))
        });
        let (_, best) = unanswered.min()?;
        Some(connections.remove(best))
    }

    fn put(&self, connection: Arc<Connection>) {
        let mut connections = lock(&self.connections);
        connections.push(connection);
        connections.retain(|connection| connection.is_usable());
        if connections.len() > SPARE_CONNECTIONS {
            // One that is still receiving what nobody wants is the first to go.
            let useless = connections.iter().position(|connection| connection.in_flight() > 0);
            connections.remove(useless.unwrap_or(0));
        }
    }
}

/// A connection that one stream holds. Dropped, it is closed; [given back](Self::give_back), it serves the next.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Arc<Connection>,
    spares: Arc<Spares>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Lease {
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn give_back(self) {
        self.put_back();
    }

    /// As [`give_back`](Self::give_back), for who is about to be dropped with it.
    pub(crate) fn put_back(&self) {
        self.spares.put(Arc::clone(&self.connection));
    }
}

/// Nothing panics while one of these locks is held; were it so, what they guard would be whole all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
