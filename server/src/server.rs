//! The server as a whole: what is opened before it runs, what runs, and in which order it stops.

use std::mem;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use boltkv_storage::Displaced;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use crate::Error;
use crate::access::{Access, AccessHandle};
use crate::admin::{Admin, Gate};
use crate::bursts::Bursts;
use crate::cold::{Cold, Waiting};
use crate::commands::{Backups, BucketStats, Expiration, ReplyRoom, Shrinks, Snapshots, Turns, Watches};
use crate::config::{Config, Database, Listen, OnWriteFailure};
use crate::counters::Counters;
use crate::executor::Executor;
use crate::health::Health;
use crate::listener::Listener;
use crate::memory::Memory;
use crate::open::{close, open};
use crate::shared::Shared;
use crate::silent::SilentOnes;
use crate::since::Since;
use crate::slow_log::SlowLog;
use crate::sockets::Sockets;
use crate::stats::Stats;
use crate::tls::{Encryption, TlsHandle};
use crate::writer::Writer;

/// How often a database is asked whether what it does by itself, late syncs and checkpoints, has failed.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Who has said a wrong token, and waits to be told so, may have one in so many of all connections.
const TURNED_AWAY_SHARE: usize = 16;

/// A server that has its database open and its port taken, and is ready to run.
///
/// ```no_run
/// # async fn example() -> Result<(), boltkv_server::Error> {
/// use boltkv_server::{Config, Server};
/// let server = Server::bind(Config::for_file("boltkv.db")).await?;
/// println!("listening on {}", server.addresses()[0]);
/// server.run(async { tokio::signal::ctrl_c().await.unwrap_or_default() }).await
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    sockets: Sockets,
    addresses: Vec<Listen>,
    shared: Arc<Shared>,
    /// None where all writes are refused.
    writer: Option<Writer>,
    waiting: Waiting,
    admin: Option<Admin>,
    on_write_failure: OnWriteFailure,
    /// The database was opened here, and so is closed here.
    is_opened_here: bool,
}

impl Server {
    /// Opens the database, starts the writer and takes the port. Clients can connect from here on; they are served by
    /// [`run`](Self::run). Who looks after the server is answered at [`Config::admin`] while the database is being opened.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::Open`], [`Error::Listen`], [`Error::Thread`].
    pub async fn bind(mut config: Config) -> Result<Self, Error> {
        config.limits.check()?;
        let refused = |(address, source)| Error::Listen { address, source };
        let (sockets, addresses) = Sockets::open(&config.listen).map_err(refused)?;
        let (memory, queue_bytes) = config.limits.shares();
        let memory = Arc::new(Memory::new(memory));
        let access = Arc::new(Access::new(config.grants.take()));
        let (stats, health) = (Arc::new(Stats::new()), Arc::new(Health::default()));
        let encryption = Arc::new(Encryption::new(config.tls.take(), &config.limits, &memory, &stats)?);
        let gate = || Gate { access: Arc::clone(&access), encryption: Arc::clone(&encryption) };
        let admin = config.admin.map(|address| Admin::start(address, gate())).transpose()?;
        let db = open(&config).await?;
        let Config { database, read_only, on_write_failure, limits, timeouts, clock, .. } = config;
        let is_opened_here = matches!(database, Database::File(_));
        let read_only = read_only || db.is_read_only();
        let room = ReplyRoom::new(Arc::clone(&memory), limits.max_frame);
        // Who has opened it elsewhere may write to it.
        let expiry = Expiration::of(&db, clock, is_opened_here).map_err(Error::Open)?;
        let (writer, queue) = if read_only {
            (None, None)
        } else {
            let writer = Writer::start(&db, &expiry, limits.queue_requests, queue_bytes, &room, &stats, &health);
            let (writer, queue) = writer.map_err(Error::Thread)?;
            (Some(writer), Some(queue))
        };
        let (cold, waiting) = Cold::start(&db).map_err(Error::Thread)?;
        let backups = Backups::new(limits.max_backups);
        let turns = Turns {
            backups,
            shrinks: Shrinks::new(),
            watches: Watches::new(limits.max_watches, &memory),
            bucket_stats: BucketStats::new(),
        };
        let snapshots = Snapshots::new(limits.max_snapshots);
        let executor = Executor::new(db, queue, health, cold, room, turns, snapshots, expiry);
        let bursts = NonZeroUsize::new(limits.burst_threads).map(Bursts::start).transpose().map_err(Error::Thread)?;
        let slow_log = SlowLog::new(limits.slow_log, timeouts.slow);
        let (counters, clients) = (Counters::new(), Arc::default());
        let most_turned_away = (limits.max_connections / TURNED_AWAY_SHARE).max(1);
        let turned_away = Arc::new(SilentOnes::new(most_turned_away, Arc::clone(&stats)));
        let shared = Arc::new(Shared {
            executor,
            access,
            encryption,
            limits,
            timeouts,
            stats,
            counters,
            since: Since::new(),
            port: first_port(&addresses),
            clients,
            slow_log,
            turned_away,
            memory,
            bursts,
        });
        if let Some(admin) = &admin {
            admin.opened(&shared);
        }
        Ok(Self { sockets, addresses, shared, writer, waiting, admin, on_write_failure, is_opened_here })
    }

    /// Where it listens, with the ports that it was given.
    #[must_use]
    pub fn addresses(&self) -> &[Listen] {
        &self.addresses
    }

    /// The first port that it listens on, where it does on one.
    #[must_use]
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.addresses.iter().find_map(Listen::tcp)
    }

    /// Where it tells how it is, with the port that it was given; `None` where it does not.
    #[must_use]
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::local_addr)
    }

    /// The file that it serves; `None` for a database in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.shared.executor.db().path()
    }

    /// A way to change the tokens while it runs.
    #[must_use]
    pub fn access(&self) -> AccessHandle {
        AccessHandle::new(Arc::clone(&self.shared.access))
    }

    /// A way to change the certificate while it runs.
    #[must_use]
    pub fn tls(&self) -> TlsHandle {
        TlsHandle::new(Arc::clone(&self.shared.encryption))
    }

    /// Whether it refuses all writes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.shared.executor.is_read_only()
    }

    /// The folder of the journal that writes are recorded in, where there is one.
    #[must_use]
    pub fn journal(&self) -> Option<&Path> {
        self.shared.executor.db().journal()
    }

    /// Transactions that only the journal had when the file was opened, and that were done again.
    #[must_use]
    pub fn replayed(&self) -> u64 {
        self.shared.executor.db().stats().journal.map_or(0, |journal| journal.replayed)
    }

    /// How long that took when the file was opened.
    #[must_use]
    pub fn replay_time(&self) -> Duration {
        self.shared.executor.db().stats().journal.map_or(Duration::ZERO, |journal| journal.replay_time)
    }

    /// Serves until `shutdown` is ready, or until no more writes can be done, where [`Config::on_write_failure`] says so.
    /// Then it stops accepting and reading, finishes what it has taken, commits, answers, closes the connections, brings the
    /// file up to date, and returns. What had arrived and was not yet taken, and scans under way, are answered with
    /// `SHUTTING_DOWN`. A client that does not take its answers delays this by a few seconds at most.
    ///
    /// To stop at once, end the process: what was answered is durable. Dropping the future stops as `shutdown` does, but
    /// nobody waits for it.
    ///
    /// # Errors
    /// [`Error::WritesFailed`], [`Error::WriterStopped`], [`Error::Close`] and [`Error::FileGone`], once it has stopped.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let Self { sockets, addresses, shared, writer, waiting, admin, on_write_failure, is_opened_here } = self;
        let stop = CancellationToken::new();
        let _stop_if_dropped = stop.clone().drop_guard();
        let connections = TaskTracker::new();
        let listener = Listener::new(sockets, Arc::clone(&shared), connections.clone(), stop.clone());
        for address in &addresses {
            info!(%address, "serving");
        }
        tokio::select! {
            () = listener.run() => {}
            () = shutdown => {}
            () = end_of_writes(&shared, on_write_failure) => {}
        }
        info!("stopping");
        if let Some(admin) = &admin {
            admin.stopping();
        }
        drop(listener);
        stop.cancel();
        connections.close();
        connections.wait().await;
        let failure = shared.executor.health().failure().map(str::to_owned);
        let db = is_opened_here.then(|| shared.executor.db().clone());
        let turns = shared.executor.turns().clone();
        // With the last of those who share it the last way to the writer is gone, so it ends.
        drop(shared);
        let sound = match writer {
            Some(writer) => spawn_blocking(|| writer.join()).await.unwrap_or(false),
            None => true,
        };
        // They hold the database, and shall not when it is opened again.
        turns.end().await;
        let _ = spawn_blocking(|| waiting.join()).await;
        let ended = match (failure, db) {
            _ if !sound => Err(Error::WriterStopped),
            (Some(reason), _) => Err(Error::WritesFailed { reason }),
            (None, Some(db)) => close(db).await,
            (None, None) => Ok(()),
        };
        info!("stopped");
        drop(admin);
        ended
    }
}

/// The port that clients of the Redis dialect are told of.
fn first_port(addresses: &[Listen]) -> u16 {
    let redis = addresses.iter().find(|listen| matches!(listen, Listen::Redis(_)));
    redis.into_iter().chain(addresses).find_map(Listen::tcp).map_or(0, |address| address.port())
}

/// Ready when no more writes can be done, where the server is to stop then. A write that fails says so itself; what the
/// database does late or by itself, a sync or a checkpoint, is asked after, and whether its files are where they were.
async fn end_of_writes(shared: &Shared, then: OnWriteFailure) {
    let executor = &shared.executor;
    let mut is_told = false;
    loop {
        tokio::select! {
            () = executor.health().failed() => break,
            () = sleep(LOOK_AFTER) => {}
        }
        let displaced = executor.db().displaced();
        if displaced == Some(Displaced::Journal) && executor.is_writable() {
            let db = executor.db().clone();
            // Its error is the database's failure, or it is tried again.
            if let Ok(Err(error)) = spawn_blocking(move || db.checkpoint()).await
                && executor.db().failure().is_none()
            {
                error!(%error, "the journal is not in its place any more, and the file could not be brought up to date yet");
            }
        }
        if displaced == Some(Displaced::File) && !mem::replace(&mut is_told, true) {
            let file = executor.db().path().unwrap_or(Path::new("")).display();
            error!(
                "{file} was moved or removed while it is served, and what is written goes on to the file that it was: \
                 `boltkv backup` makes another of it"
            );
        }
        if let Some(reason) = executor.db().failure() {
            executor.health().fail(reason.to_owned());
        }
    }
    if then == OnWriteFailure::ServeReads {
        std::future::pending::<()>().await;
    }
}
