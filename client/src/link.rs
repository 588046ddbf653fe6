//! Which connection a request takes, and when a new one is made.
//!
//! Requests with one reply share one connection. A stream takes one of its own for as long as it runs: a server may send faster
//! than a caller reads, and then the connection has to wait for the caller, but nobody else shall.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::{Instant, timeout_at};

use crate::Error;
use crate::builder::Config;
use crate::connection::Connection;

/// How many connections without a stream are kept for the next one.
const SPARE_CONNECTIONS: usize = 4;

#[derive(Debug)]
pub(crate) struct Link {
    config: Config,
    /// A std mutex: held for a clone or an exchange, never while waiting.
    shared: Mutex<Arc<Connection>>,
    /// Held while connecting, so that a lost connection is replaced by one, not by one for each caller.
    connecting: tokio::sync::Mutex<()>,
    spares: Arc<Spares>,
}

impl Link {
    /// Makes the first connection, so that what is wrong with it shows at once.
    pub(crate) async fn open(config: Config) -> Result<Self, Error> {
        let connection = Arc::new(Connection::open(&config).await?);
        Ok(Self {
            config,
            shared: Mutex::new(connection),
            connecting: tokio::sync::Mutex::new(()),
            spares: Arc::default(),
        })
    }

    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// When a request that starts now has to be done.
    pub(crate) fn deadline(&self) -> Instant {
        Instant::now() + self.config.timeout
    }

    /// The connection that requests share; a new one if the last is lost.
    pub(crate) async fn connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let _alone = self.in_time(deadline, self.connecting.lock()).await?;
        if let Some(connection) = self.current() {
            return Ok(connection);
        }
        let connection = self.new_connection(deadline).await?;
        *lock(&self.shared) = Arc::clone(&connection);
        Ok(connection)
    }

    fn current(&self) -> Option<Arc<Connection>> {
        let shared = lock(&self.shared);
        (!shared.is_lost()).then(|| Arc::clone(&shared))
    }

    /// A connection for one stream.
    pub(crate) async fn stream_connection(&self, deadline: Instant) -> Result<Lease, Error> {
        let connection = match self.spares.take() {
            Some(connection) => connection,
            None => self.new_connection(deadline).await?,
        };
        Ok(Lease { connection, spares: Arc::clone(&self.spares) })
    }

    async fn new_connection(&self, deadline: Instant) -> Result<Arc<Connection>, Error> {
        self.in_time(deadline, Connection::open(&self.config)).await?.map(Arc::new)
    }

    async fn in_time<T>(&self, deadline: Instant, what: impl Future<Output = T>) -> Result<T, Error> {
        timeout_at(deadline, what).await.map_err(|_| Error::Timeout(self.config.timeout))
    }
}

/// Connections that no stream holds. One whose stream was given up may still be receiving the rest of it.
#[derive(Debug, Default)]
struct Spares {
    connections: Mutex<Vec<Arc<Connection>>>,
}

impl Spares {
    fn take(&self) -> Option<Arc<Connection>> {
        let mut connections = lock(&self.connections);
        connections.retain(|connection| !connection.is_lost());
        let idle = connections.iter().position(|connection| connection.is_idle())?;
        Some(connections.swap_remove(idle))
    }

    fn put(&self, connection: Arc<Connection>) {
        let mut connections = lock(&self.connections);
        connections.push(connection);
        connections.retain(|connection| !connection.is_lost());
        if connections.len() > SPARE_CONNECTIONS {
            // One that is still receiving what nobody wants is the first to go.
            let useless = connections.iter().position(|connection| !connection.is_idle());
            connections.swap_remove(useless.unwrap_or(0));
        }
    }
}

/// A connection that one stream holds. Dropped, it is closed; [given back](Self::give_back), it serves the next.
#[derive(Debug)]
pub(crate) struct Lease {
    connection: Arc<Connection>,
    spares: Arc<Spares>,
}

impl Lease {
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(crate) fn give_back(self) {
        self.spares.put(self.connection);
    }
}

/// Nothing panics while one of these locks is held; were it so, what they guard would be whole all the same.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
