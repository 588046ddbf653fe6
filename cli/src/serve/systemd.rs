//! What systemd is told where it has started the server (`Type=notify`): what it is doing, that it is ready, lives, and stops.
//! Started by anybody else, it tells nobody anything.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};
use tracing::warn;

/// What the server is doing, for `systemctl status`.
pub(super) fn tell_status(status: &str) {
    tell(&[NotifyState::Status(status)]);
}

/// It serves: units that come after it may be started.
pub(super) fn tell_ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It has begun to stop.
pub(super) fn tell_stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Where a watchdog is asked for (`WatchdogSec=`), says twice in its time that the server lives. From a thread that serves
/// connections: where these are stuck, nothing is said, and systemd starts the server again.
pub(super) fn keep_watchdog_quiet() {
    let Some(within) = sd_notify::watchdog_enabled() else { return };
    tokio::spawn(async move {
        let mut beats = interval((within / 2).max(Duration::from_millis(1)));
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            beats.tick().await;
            tell(&[NotifyState::Watchdog]);
        }
    });
}

fn tell(state: &[NotifyState<'_>]) {
    // The server serves all the same; systemd draws its own conclusions.
    if let Err(error) = sd_notify::notify(state) {
        warn!(%error, "could not notify the supervisor (NOTIFY_SOCKET)");
    }
}
