//! The connection that all requests share, and how it is made anew: by one attempt at a time, whose outcome everybody who
//! waits is told, and with a pause after each that failed.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::Error;
use crate::builder::Config;
use crate::connection::Connection;

/// The pause after the first failed attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Shared {
    config: Arc<Config>,
    /// A std mutex: held for moments, never while waiting.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The newest connection, which may be lost.
    connection: Arc<Connection>,
    /// The attempt to replace it that is under way.
    attempt: Option<Attempt>,
    /// What the last attempts ended with, if they failed.
    failing: Option<Failing>,
}

type Outcome = Result<Arc<Connection>, Error>;
/// Where an attempt's outcome will be found. The sender is dropped with the attempt's task.
type Attempt = watch::Receiver<Option<Outcome>>;

#[derive(Debug)]
struct Failing {
    /// How many attempts in a row.
    times: u32,
    last: Error,
    /// No attempt is made before.
    until: Instant,
}

impl Shared {
    /// Makes the first connection, so that what is wrong with it shows at once.
    pub(crate) async fn open(config: Arc<Config>) -> Result<Self, Error> {
        let connection = Arc::new(Connection::open(&config).await?);
        Ok(Self { config, state: Mutex::new(State { connection, attempt: None, failing: None }) })
    }

    /// The connection; a new one if the last is lost.
    ///
    /// A caller may give up at any moment: the attempt is a task of its own and goes on for the others.
    pub(crate) async fn connection(self: &Arc<Self>, deadline: Instant) -> Outcome {
        loop {
            let mut attempt = {
                let mut state = self.lock();
                if state.connection.is_usable() {
                    return Ok(Arc::clone(&state.connection));
                }
                // All the time went by waiting for an answer on the connection before.
                if deadline <= Instant::now() {
                    return Err(Error::Timeout(self.config.timeout));
                }
                self.join_attempt(&mut state)
            };
            match timeout_at(deadline, attempt.wait_for(Option::is_some)).await {
                Ok(Ok(outcome)) => {
                    if let Some(outcome) = &*outcome {
                        return outcome.clone();
                    }
                }
                // Its task has ended with the runtime that it ran on: the next one is ours.
                Ok(Err(_)) => {}
                Err(_) => return Err(self.not_in_time()),
            }
        }
    }

    /// The attempt that is under way, or a new one.
    fn join_attempt(self: &Arc<Self>, state: &mut State) -> Attempt {
        if let Some(attempt) = &state.attempt
            && attempt.has_changed().is_ok()
        {
            return attempt.clone();
        }
        let (sender, attempt) = watch::channel(None);
        let not_before = state.failing.as_ref().map(|failing| failing.until);
        state.attempt = Some(attempt.clone());
        // It does not keep the client alive: a client that is dropped meanwhile needs no connection.
        let (shared, config) = (Arc::downgrade(self), Arc::clone(&self.config));
        tokio::spawn(async move {
            if let Some(not_before) = not_before {
                sleep_until(not_before).await;
            }
            if shared.strong_count() > 0 {
                let outcome = Connection::open(&config).await.map(Arc::new).map_err(|error| match error {
                    // The name was good once. That it is not known now is as passing as that nobody is there.
                    Error::Address { addr, source } => Error::Connect { addr, source },
                    error => error,
                });
                Self::finish(&shared, &outcome);
                sender.send_replace(Some(outcome));
            }
        });
        attempt
    }

    fn finish(shared: &Weak<Self>, outcome: &Outcome) {
        let Some(shared) = shared.upgrade() else { return };
        let mut state = shared.lock();
        state.attempt = None;
        match outcome {
            Ok(connection) => {
                state.connection = Arc::clone(connection);
                state.failing = None;
            }
            Err(error) => {
                let times = state.failing.as_ref().map_or(1, |failing| failing.times.saturating_add(1));
                state.failing = Some(Failing { times, last: error.clone(), until: Instant::now() + pause(times) });
            }
        }
    }

    /// What a caller is told whose time is over before there is a connection: why there is none, as far as that is known.
    fn not_in_time(&self) -> Error {
        match &self.lock().failing {
            Some(failing) => failing.last.clone(),
            None => Error::Connect {
                addr: self.config.addr.clone(),
                source: Arc::new(io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("no connection within {:?}", self.config.timeout.min(self.config.connect_timeout)),
                )),
            },
        }
    }

    /// Nothing panics while the lock is held; were it so, the state would be whole all the same.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long to wait after so many failures: twice as long each time, and between half and all of that, so that clients which
/// lost the same server do not all come back at the same moment.
fn pause(failures: u32) -> Duration {
    let doubled = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let longest = FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE);
    let random = RandomState::new().build_hasher().finish() % 1024;
    let share = 512 + u32::try_from(random / 2).unwrap_or(0);
    longest * share / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_second_and_differ() {
        for (failures, longest) in [(1, 20), (2, 40), (3, 80), (6, 640), (7, 1000), (40, 1000), (u32::MAX, 1000)] {
            let longest = Duration::from_millis(longest);
            for _ in 0..50 {
                let pause = pause(failures);
                assert!(pause >= longest / 2 && pause <= longest, "{failures}: {pause:?}");
            }
        }
        let some: std::collections::HashSet<_> = (0..50).map(|_| pause(7)).collect();
        assert!(some.len() > 10, "{some:?}");
    }
}
