//! One connection: a socket that does not block, what is to be written and has arrived, and what is in flight.

use std::io::{self, ErrorKind, Write as _};
use std::net::TcpStream;

use bytes::BytesMut;

use crate::Op;
use crate::input::Input;
use crate::wire::{Answer, Asked, Wire};

/// A connection that is open: its socket and its protocol.
pub(crate) type Opened = (TcpStream, Box<dyn Wire>);

/// A buffer that has grown beyond this is given back once it is empty.
const MOST_KEPT: usize = 1024 * 1024;

/// One connection.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    wire: Box<dyn Wire>,
    input: Input,
    out: BytesMut,
    /// How much of `out` was written.
    written: usize,
    free: Vec<u32>,
    slots: Vec<Started>,
    /// When it last said anything, or had nothing to say; in nanoseconds since the start.
    heard: u64,
}

/// A request that is in flight, or was.
#[derive(Debug, Clone, Copy)]
struct Started {
    op: Op,
    at: u64,
}

/// A request that was answered.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) op: Op,
    /// When it was put on its way, or was due.
    pub(crate) started: u64,
    pub(crate) answer: Answer,
}

/// What a read has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// As much as there was room for.
    More,
    /// All that there was, but for the end.
    All,
    /// Nothing that had not been read.
    Nothing,
}

impl Connection {
    /// Takes over a connection that is open, for so many requests in flight.
    pub(crate) fn new((stream, wire): Opened, pipeline: usize) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let slots = u32::try_from(pipeline).unwrap_or(u32::MAX);
        Ok(Self {
            stream,
            wire,
            input: Input::new(),
            out: BytesMut::with_capacity(4096),
            written: 0,
            // The lowest is taken first.
            free: (0..slots).rev().collect(),
            slots: vec![Started { op: Op::Get, at: 0 }; pipeline],
            heard: 0,
        })
    }

    /// Whether one more request may be in flight.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// How many requests are in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Puts a request among what is to be written. `at` is when it was due, `now` when it is.
    pub(crate) fn ask(&mut self, mut asked: Asked<'_>, at: u64, now: u64) -> Result<(), String> {
        if self.in_flight() == 0 {
            self.heard = now;
        }
        let Some(slot) = self.free.pop() else { return Err("no room for a request".to_owned()) };
        asked.slot = slot;
        if let Err(broken) = self.wire.ask(&asked, &mut self.out) {
            self.free.push(slot);
            return Err(broken);
        }
        if let Some(started) = self.slots.get_mut(slot as usize) {
            *started = Started { op: asked.op, at };
        }
        Ok(())
    }

    /// Writes what there is to write, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.written = 0;
        if self.out.capacity() > MOST_KEPT {
            self.out = BytesMut::new();
        }
        self.out.clear();
        Ok(())
    }

    /// Reads what has arrived, once.
    pub(crate) fn read(&mut self, now: u64) -> io::Result<Arrived> {
        loop {
            match self.input.read(&mut self.stream) {
                Ok(is_full) => {
                    self.heard = now;
                    return Ok(if is_full { Arrived::More } else { Arrived::All });
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Arrived::Nothing),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next answer among what was read.
    pub(crate) fn answer(&mut self) -> Result<Option<Answered>, String> {
        let Some(answer) = self.wire.answer(&mut self.input, &mut self.out)? else { return Ok(None) };
        let started = self.slots.get(answer.slot as usize).filter(|_| self.free.len() < self.slots.len());
        let Started { op, at } = *started.ok_or("an answer that nobody asked for")?;
        self.free.push(answer.slot);
        Ok(Some(Answered { op, started: at, answer }))
    }

    /// For how long it has owed an answer and said nothing, in nanoseconds.
    pub(crate) fn silent_for(&self, now: u64) -> u64 {
        if self.in_flight() == 0 { 0 } else { now.saturating_sub(self.heard) }
    }
}
