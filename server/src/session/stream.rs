//! The streams of a connection: replies that are written part by part, in turn.
//!
//! A part is written only when the output has room, so a client that reads slowly holds up nothing but its own streams. A
//! stream whose source has nothing yet, or whose client has given it no credit, holds up nobody: the others have their turns,
//! and it has its own when it is woken.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use super::codec::Due;
use super::credit::Credit;
use super::flow::Flow;
use crate::commands::{Run, Source};

/// A reply that is under way.
#[derive(Debug)]
pub(super) struct Stream<T, R = Run> {
    pub(super) due: Due<T>,
    pub(super) run: R,
    pub(super) credit: Credit,
}

/// The open streams of a connection, the one whose turn it is first.
#[derive(Debug)]
pub(super) struct Streams<T, R = Run> {
    open: VecDeque<Stream<T, R>>,
    last_step: Instant,
}

impl<T: Copy, R: Source> Streams<T, R> {
    pub(super) fn new() -> Self {
        Self { open: VecDeque::new(), last_step: Instant::now() }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = &R> {
        self.open.iter().map(|stream| &stream.run)
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.open.iter().any(|stream| stream.due.id == id)
    }

    /// When a step was last taken.
    pub(super) const fn last_step(&self) -> Instant {
        self.last_step
    }

    /// The stream whose turn it is among those that have something, for a step; it comes back by one of the following two.
    pub(super) fn next(&mut self) -> Option<Stream<T, R>> {
        // Whoever finds none waits for `ready`, which leaves a waker that does something.
        let index = self.first_ready(&mut Context::from_waker(Waker::noop()))?;
        self.last_step = Instant::now();
        self.open.remove(index)
    }

    /// Whether a stream has entries to send.
    pub(super) fn have_ready(&mut self) -> bool {
        self.first_ready(&mut Context::from_waker(Waker::noop())).is_some()
    }

    /// Waits until one has something. Can be dropped and called again at any time.
    pub(super) async fn ready(&mut self) {
        poll_fn(|cx| self.first_ready(cx).map_or(Poll::Pending, |_| Poll::Ready(()))).await;
    }

    fn first_ready(&mut self, cx: &mut Context<'_>) -> Option<usize> {
        // One without credit is not asked: its session looks again when a CREDIT was taken.
        self.open.iter_mut().position(|stream| stream.credit.is_left() && stream.run.poll_ready(cx).is_ready())
    }

    /// Lets the stream of this id send so many bytes more.
    pub(super) fn give_credit(&mut self, id: u32, bytes: u32) {
        if let Some(stream) = self.open.iter_mut().find(|stream| stream.due.id == id) {
            stream.credit.give(bytes);
        }
    }

    /// Notes what has left for the client, and whether nothing can come from it any more.
    pub(super) fn note(&mut self, sent: Flow, has_ended: bool) {
        for stream in &mut self.open {
            if has_ended {
                stream.credit.lift();
            }
            stream.credit.note_sent(sent);
        }
    }

    /// Since when the client, which has all that was sent, gives a stream no credit: the one that has waited for longest.
    pub(super) fn without_credit_since(&self) -> Option<Instant> {
        self.open.iter().filter_map(|stream| stream.credit.missing_since()).min()
    }

    /// Ends those early that have had no credit since `since`, or before.
    pub(super) fn end_without_credit_since(&mut self, since: Instant) -> Vec<Due<T>> {
        self.end_those(|stream| stream.credit.missing_since().is_some_and(|at| at <= since))
    }

    /// Ends those early of which that is so.
    pub(super) fn end_those(&mut self, is_over: impl Fn(&Stream<T, R>) -> bool) -> Vec<Due<T>> {
        let (over, open) = self.open.drain(..).partition(is_over);
        self.open = open;
        let over: VecDeque<_> = over;
        over.into_iter().map(|stream| stream.due).collect()
    }

    /// After a step, or before its first.
    pub(super) fn wait_for_turn(&mut self, stream: Stream<T, R>) {
        self.open.push_back(stream);
    }

    /// Puts a stream in front, so that its turn goes on: a new one, or one whose step found no room.
    pub(super) fn keep_turn(&mut self, stream: Stream<T, R>) {
        self.open.push_front(stream);
    }

    /// Ends one early.
    pub(super) fn end(&mut self, id: u32) -> Option<Due<T>> {
        let index = self.open.iter().position(|stream| stream.due.id == id)?;
        self.open.remove(index).map(|stream| stream.due)
    }

    /// Ends all early.
    pub(super) fn end_all(&mut self) -> Vec<Due<T>> {
        self.open.drain(..).map(|stream| stream.due).collect()
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    /// A source that has something once it was sent something.
    struct MadeUp {
        from: UnboundedReceiver<()>,
        has: bool,
    }

    impl Source for MadeUp {
        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
            self.has = self.has || self.from.poll_recv(cx).is_ready();
            if self.has { Poll::Ready(()) } else { Poll::Pending }
        }
    }

    #[tokio::test]
    async fn a_stream_that_has_nothing_yet_lets_others_have_their_turn_and_is_woken() {
        let mut streams = Streams::new();
        let (senders, sources): (Vec<_>, Vec<_>) = (0..3).map(|_| unbounded_channel()).unzip();
        for (id, from) in (0..).zip(sources) {
            let credit = Credit::new(1);
            streams.wait_for_turn(Stream { due: Due::new(id, ()), run: MadeUp { from, has: false }, credit });
        }
        assert!(streams.next().is_none() && !streams.have_ready() && streams.len() == 3);
        senders[1].send(()).unwrap();
        streams.ready().await;
        assert_eq!(streams.next().map(|stream| stream.due.id), Some(1));

        let last = senders[2].clone();
        let waiting = tokio::spawn(async move {
            streams.ready().await;
            streams
        });
        // The stream is waiting by now, or will find what was sent when it looks.
        tokio::task::yield_now().await;
        last.send(()).unwrap();
        let mut streams = waiting.await.unwrap();
        assert_eq!(streams.next().map(|stream| stream.due.id), Some(2));
        assert_eq!(streams.end(0).map(|due| due.id), Some(0), "and one that waits can be ended");
    }
}
