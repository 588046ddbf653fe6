//! The server as a whole: what is opened before it runs, what runs, and in which order it stops.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use boltkv_storage::{Db, FreelistStored, Options};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::Error;
use crate::cold::{Cold, Waiting};
use crate::config::{Config, Database, OnWriteFailure, Timeouts};
use crate::executor::Executor;
use crate::health::Health;
use crate::listener::Listener;
use crate::memory::Memory;
use crate::shared::Shared;
use crate::stats::Stats;
use crate::writer::Writer;

/// Connections that wait to be accepted, as a burst of them does; the system may allow fewer (`net.core.somaxconn`).
const BACKLOG: u32 = 4_096;

/// A server that has its database open and its port taken, and is ready to run.
///
/// ```no_run
/// # async fn example() -> Result<(), boltkv_server::Error> {
/// use boltkv_server::{Config, Server};
/// let server = Server::bind(Config::for_file("boltkv.db")).await?;
/// println!("listening on {}", server.local_addr());
/// server.run(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    socket: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
    /// None where all writes are refused.
    writer: Option<Writer>,
    waiting: Waiting,
    on_write_failure: OnWriteFailure,
}

impl Server {
    /// Opens the database, starts the writer and takes the port. Clients can connect from here on; they are served by
    /// [`run`](Self::run).
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::Open`], [`Error::Listen`], [`Error::Thread`].
    pub async fn bind(config: Config) -> Result<Self, Error> {
        let Config { listen: address, database, read_only, on_write_failure, limits, timeouts } = config;
        limits.check()?;
        let socket = listen(address).map_err(|source| Error::Listen { address, source })?;
        let address = socket.local_addr().map_err(|source| Error::Listen { address, source })?;
        let db = open(database, read_only, &timeouts).await?;
        let read_only = read_only || db.is_read_only();
        let (memory, queue_bytes) = limits.shares();
        let stats = Arc::new(Stats::new());
        let health = Arc::new(Health::default());
        let (writer, queue) = if read_only {
            (None, None)
        } else {
            let writer = Writer::start(&db, limits.queue_requests, queue_bytes, &stats, &health);
            let (writer, queue) = writer.map_err(Error::Thread)?;
            (Some(writer), Some(queue))
        };
        let (cold, waiting) = Cold::start(&db).map_err(Error::Thread)?;
        let executor = Executor::new(db, queue, health, cold, limits.max_frame);
        let memory = Arc::new(Memory::new(memory));
        let shared = Arc::new(Shared { executor, limits, timeouts, stats, memory });
        Ok(Self { socket, address, shared, writer, waiting, on_write_failure })
    }

    /// The address that it listens on, with the port that it was given.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The file that it serves; `None` for a database in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.executor.db().path()
    }

    /// Whether it refuses all writes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.shared.executor.is_read_only()
    }

    /// Serves until `shutdown` is ready, or until no more writes can be done, where [`Config::on_write_failure`] says so. Then it stops accepting and reading, finishes what it has taken, commits, answers,
    /// closes the connections, and returns. What had arrived and was not yet taken, and scans under way, are answered with
    /// `SHUTTING_DOWN`. A client that does not take its answers delays this by a few seconds at most.
    ///
    /// To stop at once, end the process: what was answered is durable. Dropping the future stops as `shutdown` does, but
    /// nobody waits for it.
    ///
    /// # Errors
    /// [`Error::WritesFailed`] and [`Error::WriterStopped`], once it has stopped.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { socket, address, shared, writer, waiting, on_write_failure } = self;
        let stop = CancellationToken::new();
        let _stop_if_dropped = stop.clone().drop_guard();
        let connections = TaskTracker::new();
        let listener = Listener::new(socket, Arc::clone(&shared), connections.clone(), stop.clone());
        info!(%address, "serving");
        tokio::select! {
            () = listener.run() => {}
            () = shutdown => {}
            () = shared.executor.health().failed(), if on_write_failure == OnWriteFailure::Stop => {}
        }
        info!("stopping");
        drop(listener);
        stop.cancel();
        connections.close();
        connections.wait().await;
        let failure = shared.executor.health().failure().map(str::to_owned);
        // With the last of those who share it the last way to the writer is gone, so it ends.
        drop(shared);
        let sound = match writer {
            Some(writer) => spawn_blocking(|| writer.join()).await.unwrap_or(false),
            None => true,
        };
        // They hold the database, and shall not when it is opened again.
        let _ = spawn_blocking(|| waiting.join()).await;
        info!("stopped");
        match failure {
            _ if !sound => Err(Error::WriterStopped),
            Some(reason) => Err(Error::WritesFailed { reason }),
            None => Ok(()),
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again takes its port while connections of the one before it are still being forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn open(database: Database, read_only: bool, timeouts: &Timeouts) -> Result<Db, Error> {
    let path = match database {
        Database::Open(db) => return Ok(db),
        Database::File(path) => path,
    };
    // Stored with every commit the list would cost each of them 8 bytes a free page; so only the opening after a crash
    // pays, which reads every page.
    let freelist = FreelistStored::OnCleanClose;
    let options = Options::new().read_only(read_only).timeout(timeouts.lock).freelist(freelist);
    let opened = spawn_blocking(move || options.open(path)).await;
    let db = opened.map_err(|failed| Error::Thread(failed.into()))?.map_err(Error::Open)?;
    if let Some(damaged) = db.damaged_meta() {
        // It may be what a power cut in a commit leaves: no reason not to serve what is there.
        let file = db.path().unwrap_or(std::path::Path::new("")).display();
        warn!("{file}: {damaged}; the next write replaces that meta: to look into the file first, stop and copy it");
    }
    Ok(db)
}
