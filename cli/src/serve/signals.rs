//! SIGTERM and SIGINT: the first one asks, the second one ends the process. SIGHUP does not end it: a terminal that is closed
//! is no reason to, and supervisors send it to have a configuration read again.

use std::io;
use std::process;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::warn;

/// `SIGXFSZ`, on every platform that this is built for.
const FILE_SIZE_EXCEEDED: i32 = 25;

/// The signals that a server minds.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    reload: Box<dyn Fn() + Send>,
}

/// From now on a write past the file-size limit (`ulimit -f`) fails, as one to a full disk does, and does not end the process.
pub(super) fn fail_writes_past_the_size_limit() -> io::Result<()> {
    // What is minded once stays minded.
    signal(SignalKind::from_raw(FILE_SIZE_EXCEEDED)).map(drop)
}

impl Signals {
    /// From now on the signals come here, and do not end the process by themselves. SIGHUP has `reload` called.
    pub(super) fn new(reload: impl Fn() + Send + 'static) -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            reload: Box::new(reload),
        })
    }

    /// Ready at the first signal. The second one ends the process, whatever it is doing: what was answered is on disk.
    pub(super) async fn shutdown(mut self) {
        self.next().await;
        tokio::spawn(async move {
            let signal = self.next().await;
            warn!("ended at once");
            // What shells report for a process that a signal ended.
            #[expect(clippy::disallowed_methods, reason = "whoever asks a second time wants no orderly end")]
            process::exit(128 + signal.as_raw_value());
        });
    }

    async fn next(&mut self) -> SignalKind {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return SignalKind::terminate(),
                _ = self.interrupt.recv() => return SignalKind::interrupt(),
                _ = self.hangup.recv() => (self.reload)(),
            }
        }
    }
}
