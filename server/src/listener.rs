//! Accepting connections, up to a limit, whatever the system says meanwhile.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use boltkv_protocol::{ErrorCode, ErrorReply};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, debug, debug_span, error, warn};

use crate::dialect;
use crate::peer::Peer;
use crate::session::{Connection, Stream};
use crate::shared::Shared;
use crate::silent::SilentOnes;
use crate::sockets::{Sockets, Speaks};
use crate::stats::Stats;

/// Waits between attempts when the system cannot give us a connection, for want of descriptors or memory.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The same is told once in so long.
const QUIET: Duration = Duration::from_secs(10);
/// Connections that may wait for a place that another one is leaving, or for their first turn. While there are as many, no more
/// are accepted. A flood that comes faster than connections can end would take a descriptor and memory for each, and those who
/// only wait for their turn would seem to be silent, and make room for the flood.
const MOST_ARRIVING: usize = 64;
/// Connections over the limit that are being told so; further ones are just closed.
const MOST_REFUSALS: usize = 64;
/// Where clients have to say who they are, those who have not yet may have one in so many of all connections.
const STRANGERS_SHARE: usize = 4;
/// How long one over the limit has to say which dialect it speaks.
const REFUSAL_PATIENCE: Duration = Duration::from_secs(1);

/// Accepts connections and gives each a task.
pub(crate) struct Listener {
    sockets: Sockets,
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: CancellationToken,
    slots: Arc<Semaphore>,
    arriving: Arc<Semaphore>,
    silent: Arc<SilentOnes>,
    refusals: Arc<Semaphore>,
}

impl Listener {
    pub(crate) fn new(sockets: Sockets, shared: Arc<Shared>, tasks: TaskTracker, stop: CancellationToken) -> Self {
        let most = shared.limits.max_connections;
        let slots = Arc::new(Semaphore::new(most));
        let most_silent = if shared.access.asks() { (most / STRANGERS_SHARE).max(1) } else { most };
        let silent = Arc::new(SilentOnes::new(most_silent, Arc::clone(&shared.stats)));
        let refusals = Arc::new(Semaphore::new(MOST_REFUSALS));
        let arriving = Arc::new(Semaphore::new(MOST_ARRIVING));
        Self { sockets, shared, tasks, stop, slots, arriving, silent, refusals }
    }

    /// Accepts until it is dropped.
    pub(crate) async fn run(&self) {
        let (mut pause, mut told) = (FIRST_PAUSE, None::<Instant>);
        loop {
            // Nobody closes it.
            let Ok(arrival) = Arc::clone(&self.arriving).acquire_owned().await else { return };
            match self.sockets.accept().await {
                Ok((socket, peer, speaks)) => {
                    pause = FIRST_PAUSE;
                    self.welcome(socket, peer, speaks, arrival);
                }
                // That connection's own trouble.
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    self.shared.stats.accept_failed();
                    if told.is_none_or(|told| told.elapsed() >= QUIET) {
                        warn!(%error, "cannot accept connections; they wait");
                        told = Some(Instant::now());
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn welcome(&self, socket: Stream, peer: Peer, speaks: Speaks, arrival: OwnedSemaphorePermit) {
        if let Err(error) = socket.prepare(peer) {
            debug!(%peer, %error, "gone before it was served");
            return;
        }
        let slots = Arc::clone(&self.slots);
        if let Ok(slot) = Arc::clone(&slots).try_acquire_owned() {
            self.serve(socket, peer, speaks, arrival, async { Ok(slot) });
        } else if self.silent.end_one() {
            debug!(%peer, "takes the place of one that was silent");
            self.serve(socket, peer, speaks, arrival, slots.acquire_owned());
        } else {
            self.refuse(socket, peer, speaks);
        }
    }

    /// Serves a connection as soon as it has a place.
    fn serve(
        &self,
        socket: Stream,
        peer: Peer,
        speaks: Speaks,
        arrival: OwnedSemaphorePermit,
        slot: impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send + 'static,
    ) {
        // A token of its own: waiting for it touches nothing that other connections touch.
        let stop = self.stop.child_token();
        let silent = self.silent.add(peer.origin(), stop.clone());
        let shared = Arc::clone(&self.shared);
        let served = async move {
            // Nobody closes the places.
            let Ok(slot) = slot.await else { return };
            drop(arrival);
            let open = OpenConnection::new(Arc::clone(&shared.stats), peer, slot);
            open.log_end(dialect::serve(Connection::new(socket, peer, speaks, shared, stop), silent).await);
        };
        // Whatever is logged of its requests says whose they are.
        self.tasks.spawn(served.instrument(debug_span!("connection", %peer)));
    }

    fn refuse(&self, socket: Stream, peer: Peer, speaks: Speaks) {
        self.shared.stats.connection_refused();
        debug!(%peer, "over the limit of connections");
        let Ok(permit) = Arc::clone(&self.refusals).try_acquire_owned() else { return };
        let conn = Connection::new(socket, peer, speaks, Arc::clone(&self.shared), self.stop.child_token());
        let message = format!("the server has {} connections open", self.shared.limits.max_connections);
        self.tasks.spawn(async move {
            let _permit = permit;
            let error = ErrorReply::new(ErrorCode::Overloaded, message);
            // One that cannot even be told is gone all the same.
            let _ = dialect::refuse(conn, error, Instant::now() + REFUSAL_PATIENCE).await;
        });
    }
}

fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

/// Counts a connection as long as it is open, however it ends.
struct OpenConnection {
    stats: Arc<Stats>,
    peer: Peer,
    _slot: OwnedSemaphorePermit,
}

impl OpenConnection {
    fn new(stats: Arc<Stats>, peer: Peer, slot: OwnedSemaphorePermit) -> Self {
        stats.connection_accepted();
        debug!(%peer, "connection opened");
        Self { stats, peer, _slot: slot }
    }

    fn log_end(&self, ended: io::Result<()>) {
        match ended {
            Ok(()) => debug!(peer = %self.peer, "connection closed"),
            Err(error) => debug!(peer = %self.peer, %error, "connection lost"),
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if thread::panicking() {
            self.stats.connection_panicked();
            error!(peer = %self.peer, "a defect of the server has ended this connection; the others go on");
        }
        self.stats.connection_closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promises: ops-panic.
    #[tokio::test]
    async fn a_defect_costs_one_connection_and_is_counted() {
        let stats = Arc::new(Stats::new());
        let slots = Arc::new(Semaphore::new(2));
        let open = |stats: &Arc<Stats>| {
            let slot = Arc::clone(&slots).try_acquire_owned().unwrap();
            OpenConnection::new(Arc::clone(stats), Peer::Unix(None), slot)
        };
        let (other, broken) = (open(&stats), open(&stats));
        let ended = tokio::spawn(async move {
            let _broken = broken;
            panic!("a defect");
        });
        assert!(ended.await.unwrap_err().is_panic());
        assert_eq!((stats.panicked(), stats.connections()[0], slots.available_permits()), (1, 1, 1));
        drop(other);
        assert_eq!((stats.panicked(), stats.connections()[0]), (1, 0));
    }
}
