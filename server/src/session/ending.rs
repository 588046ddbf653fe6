//! The end of a connection that somebody else brings about: the server stops, needs its place, or does not want it any more.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use tokio::task::coop::has_budget_remaining;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// So many times it is not looked at, where something else has come each time.
const SELDOM: u32 = 64;

/// What ends a connection, and who waits for that: its task.
#[derive(Debug)]
pub(crate) struct Ending {
    token: CancellationToken,
    called: Pin<Box<WaitForCancellationFutureOwned>>,
    /// That was asked, and will wake the task.
    listens: bool,
    looks: u32,
    /// It was seen: nothing more is taken from the client.
    has_come: bool,
}

impl Ending {
    pub(super) fn new(token: CancellationToken) -> Self {
        Self { called: Box::pin(token.clone().cancelled_owned()), token, listens: false, looks: 0, has_come: false }
    }

    /// What brings it about.
    pub(super) const fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Whether it is known to have come.
    pub(super) const fn has_come(&self) -> bool {
        self.has_come
    }

    /// Whether it is time to look at what is seen only where nothing else goes on, for who has always something to do first.
    pub(super) const fn is_time_to_look(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.looks.is_multiple_of(SELDOM)
    }

    /// Whether it has just come.
    pub(super) fn comes(&mut self) -> bool {
        let comes = !self.has_come && self.token.is_cancelled();
        self.has_come |= comes;
        comes
    }

    /// Waits until it comes. Can be dropped and called again at any time, by one task.
    pub(super) async fn come(&mut self) {
        poll_fn(|cx| {
            // Once it is known whom to wake, only that is looked at which says so: the rest takes 120 instructions more, and
            // several locks.
            if self.listens && !self.token.is_cancelled() {
                return Poll::Pending;
            }
            let called = self.called.as_mut().poll(cx);
            // A task that has had its share may be sent away without anything being noted.
            self.listens = has_budget_remaining();
            called
        })
        .await;
        self.has_come = true;
    }

    /// Another task waits from now on.
    pub(super) const fn hand_over(&mut self) {
        self.listens = false;
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    #[tokio::test]
    async fn it_is_waited_for_again_and_again_and_seen_in_between() {
        let token = CancellationToken::new();
        let mut ending = Ending::new(token.clone());
        for _ in 0..3 {
            tokio::select! {
                biased;
                () = ending.come() => panic!("nobody has called"),
                () = ready(()) => {}
            }
        }
        assert!(!ending.comes());
        let caller = tokio::spawn(async move { token.cancel() });
        ending.come().await;
        caller.await.unwrap();
        assert!(ending.has_come() && !ending.comes(), "it comes once");
    }

    #[test]
    fn who_never_waits_sees_it_too() {
        let token = CancellationToken::new();
        let mut ending = Ending::new(token.clone());
        token.cancel();
        assert!(!ending.has_come());
        assert_eq!((0..2 * SELDOM).filter(|_| ending.is_time_to_look() && ending.comes()).count(), 1);
        assert!(ending.has_come());
    }

    #[tokio::test]
    async fn another_task_is_woken_after_it_was_handed_over() {
        let token = CancellationToken::new();
        let mut ending = Ending::new(token.clone());
        tokio::select! {
            biased;
            () = ending.come() => panic!("nobody has called"),
            () = ready(()) => {}
        }
        ending.hand_over();
        let other = tokio::spawn(async move { ending.come().await });
        tokio::task::yield_now().await;
        token.cancel();
        other.await.unwrap();
    }
}
