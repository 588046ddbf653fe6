//! SIGTERM and SIGINT: the first one asks, the second one ends the process. SIGHUP does not end it: supervisors send it to have
//! the configuration read again, and a terminal that is closed is no reason to end.

use std::io;
use std::process;
use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tracing::warn;

use super::reload::Reload;

/// `SIGXFSZ`, on every platform that this is built for.
const FILE_SIZE_EXCEEDED: i32 = 25;

/// Signals within this time are one.
const ONE_WISH: Duration = Duration::from_millis(250);

/// The signals that a server minds.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// From now on a write past the file-size limit (`ulimit -f`) fails, as one to a full disk does, and does not end the process.
pub(super) fn fail_writes_past_the_size_limit() -> io::Result<()> {
    // What is minded once stays minded.
    signal(SignalKind::from_raw(FILE_SIZE_EXCEEDED)).map(drop)
}

/// From now on SIGHUP does not end the process: opening a large file takes long. One that comes is kept for [`Signals`].
pub(super) fn mind_hangups() -> io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl Signals {
    /// From now on the signals come here, and do not end the process by themselves.
    pub(super) fn new(hangup: Signal) -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())?, hangup })
    }

    /// Ready at the first signal. The second one ends the process, whatever it is doing: what was answered is on disk. One that
    /// comes with the first is the same one: `timeout` signals its child, and then the group that the child is in. A server
    /// that stops by itself, where writing has failed, waits for none any more: there the first one is the second.
    pub(super) async fn shutdown(mut self, reload: Reload) {
        let (ask, asked) = oneshot::channel();
        tokio::spawn(async move {
            let mut signal = self.next(&reload).await;
            if ask.send(()).is_ok() {
                let first = Instant::now();
                signal = self.next(&reload).await;
                while first.elapsed() < ONE_WISH {
                    signal = self.next(&reload).await;
                }
            }
            warn!("ended at once");
            // What shells report for a process that a signal ended.
            #[expect(clippy::disallowed_methods, reason = "whoever asks a second time wants no orderly end")]
            process::exit(128 + signal.as_raw_value());
        });
        // The task ends with the process.
        let _ = asked.await;
    }

    async fn next(&mut self, reload: &Reload) -> SignalKind {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return SignalKind::terminate(),
                _ = self.interrupt.recv() => return SignalKind::interrupt(),
                _ = self.hangup.recv() => reload.ask(),
            }
        }
    }
}
