//! Trying again what a server that is restarted, or busy, may do later.

use std::time::{Duration, Instant};

use boltkv_client::Error;

/// The longest pause before it is tried again; the first is a tenth.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long something is tried, and how long it has been.
pub(crate) struct Patience {
    timeout: Duration,
    since: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, since: Instant::now(), pause: LONGEST_PAUSE / 10 }
    }

    /// Pauses, each time for longer; `false`, at once, where the time ends before that.
    pub(crate) async fn is_left(&mut self) -> bool {
        if self.since.elapsed() + self.pause >= self.timeout {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        true
    }
}

/// Does something, again while that can help and there is time.
pub(crate) async fn patiently<T>(
    timeout: Duration,
    helps: impl Fn(&Error) -> bool,
    act: impl AsyncFn() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut patience = Patience::new(timeout);
    loop {
        match act().await {
            Err(error) if helps(&error) && patience.is_left().await => {}
            done => return done,
        }
    }
}
