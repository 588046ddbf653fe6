//! The way back: where the writer's answers to one connection arrive.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use boltkv_protocol::{ErrorCode, ErrorReply, Reply};

use crate::commands::Outcome;

/// The reply to the request of this id.
pub(crate) type Answered = (u32, Outcome);

/// A connection's answers, in the order in which they came. There is room for all of them: connections bound what they have in
/// flight. While none is due it has none, so that it can be kept; a channel, made for each write of a client that waits for its
/// answer, was a seventh of the session's instructions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mailbox(Arc<Mutex<Arrived>>);

#[derive(Debug, Default)]
struct Arrived {
    answers: VecDeque<Answered>,
    /// The task that waits for the next one.
    task: Option<Waker>,
}

impl Mailbox {
    /// A promise that request `id` of this client is answered here.
    pub(crate) fn ticket(&self, client: u64, id: u32) -> Ticket {
        let mut arrived = self.lock();
        if arrived.answers.capacity() == 0 {
            // Made and given back by one thread: what one allocates and another frees costs more.
            arrived.answers.reserve_exact(1);
        }
        drop(arrived);
        Ticket { client, id, to: Some(self.clone()) }
    }

    /// An answer that is there already.
    pub(crate) fn try_next(&self) -> Option<Answered> {
        self.lock().answers.pop_front()
    }

    /// Waits for an answer. One task does. Can be dropped and called again at any time.
    pub(crate) async fn next(&self) -> Answered {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Answered> {
        let mut arrived = self.lock();
        if let Some(answered) = arrived.answers.pop_front() {
            return Poll::Ready(answered);
        }
        if !arrived.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            arrived.task = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// None is due: gives back the room.
    pub(crate) fn rest(&self) {
        let mut arrived = self.lock();
        if arrived.answers.is_empty() {
            arrived.answers = VecDeque::new();
        }
    }

    /// Who waits is woken with the first of several: it takes the others with it.
    fn push(&self, answered: Answered) {
        let mut arrived = self.lock();
        arrived.answers.push_back(answered);
        let task = arrived.task.take();
        drop(arrived);
        if let Some(task) = task {
            task.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Arrived> {
        // Nothing that is done while it is held stops half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A promise that a request is answered: one that is dropped answers that the outcome is unknown.
#[derive(Debug)]
pub(crate) struct Ticket {
    client: u64,
    id: u32,
    to: Option<Mailbox>,
}

impl Ticket {
    /// Whose request it is.
    pub(super) const fn client(&self) -> u64 {
        self.client
    }

    /// Keeps the promise.
    pub(crate) fn answer(mut self, outcome: Outcome) {
        self.send(outcome);
    }

    fn send(&mut self, outcome: Outcome) {
        // For a connection that is gone it arrives where nobody looks any more.
        if let Some(to) = self.to.take() {
            to.push((self.id, outcome));
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.to.is_some() {
            let message = "the writer stopped; whether this was written is unknown";
            self.send(Reply::Error(ErrorReply::new(ErrorCode::StorageFailed, message)).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn written() -> Outcome {
        Reply::Written { txid: 1 }.into()
    }

    #[test]
    fn answers_come_in_their_order_with_one_waking_and_a_broken_promise_is_one_too() {
        let (answers, woken) = (Mailbox::default(), Arc::<Woken>::default());
        let waker = Waker::from(Arc::clone(&woken));
        let cx = Context::from_waker(&waker);
        assert!(answers.poll_next(&cx).is_pending());
        for id in 0..3 {
            answers.ticket(1, id).answer(written());
        }
        drop(answers.ticket(1, 3));
        assert_eq!(woken.0.load(Relaxed), 1);
        let Poll::Ready((0, _)) = answers.poll_next(&cx) else { panic!("the first is first") };
        let rest: Vec<_> = std::iter::from_fn(|| answers.try_next()).collect();
        assert_eq!(rest.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(matches!(&rest[2].1.reply, Reply::Error(error) if error.code == ErrorCode::StorageFailed));
        assert!(answers.poll_next(&cx).is_pending());
        drop(answers.ticket(1, 4));
        assert_eq!(woken.0.load(Relaxed), 2, "who waits again is woken again");
    }

    #[test]
    fn at_rest_it_takes_no_room() {
        let answers = Mailbox::default();
        for most in [1, 40] {
            for id in 0..most {
                answers.ticket(1, id).answer(written());
            }
            while answers.try_next().is_some() {}
            answers.rest();
            assert_eq!(answers.lock().answers.capacity(), 0);
        }
    }
}
