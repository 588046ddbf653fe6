//! The streams of a connection: replies that are written part by part, in turn.
//!
//! A part is written only when the output has room, so a client that reads slowly holds up nothing but its own streams.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::codec::Due;
use crate::commands::ScanRun;

/// A reply that is under way.
#[derive(Debug)]
pub(super) struct Stream<T> {
    pub(super) due: Due<T>,
    pub(super) run: ScanRun,
}

/// The open streams of a connection, the one whose turn it is first.
#[derive(Debug)]
pub(super) struct Streams<T> {
    open: VecDeque<Stream<T>>,
    last_step: Instant,
}

impl<T: Copy> Streams<T> {
    pub(super) fn new() -> Self {
        Self { open: VecDeque::new(), last_step: Instant::now() }
    }

    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn contains(&self, id: u32) -> bool {
        self.open.iter().any(|stream| stream.due.id == id)
    }

    /// When a step was last taken.
    pub(super) const fn last_step(&self) -> Instant {
        self.last_step
    }

    /// The stream whose turn it is, for a step; it comes back by one of the following two.
    pub(super) fn next(&mut self) -> Option<Stream<T>> {
        self.last_step = Instant::now();
        self.open.pop_front()
    }

    /// After a step, or before its first.
    pub(super) fn wait_for_turn(&mut self, stream: Stream<T>) {
        self.open.push_back(stream);
    }

    /// After a step that found no room.
    pub(super) fn keep_turn(&mut self, stream: Stream<T>) {
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
