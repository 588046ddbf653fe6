//! A transaction that changes nothing: its commands are done one after the other, in steps, in one state. No write waits for
//! it, and it waits for none.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use boltkv_protocol::resp::{Kind, Writer};
use boltkv_storage::Tx;
use tokio::sync::oneshot;

use super::failure::Failure;
use super::run::{LEAST_ROOM, Stepped, Tell};
use super::walk::Walk;
use super::work::{Call, too_large};
use super::{read, write};
use crate::commands::expiry::View;
use crate::commands::read::{ColdReads, is_resident_at};
use crate::commands::results::ReplyRoom;

/// After so long others on the thread have their turn.
const STEP: Duration = Duration::from_micros(500);

/// A transaction under way.
#[derive(Debug)]
pub(super) struct Exec {
    calls: Vec<Call>,
    /// How many of them were done; `None`: nothing was said yet.
    done: Option<usize>,
    /// Nothing that is watched has changed.
    goes: bool,
    /// The one that is being done, where that takes several steps.
    walk: Option<Walk>,
    room: ReplyRoom,
    /// What is waited for: pages that the next command looks at.
    faulting: Option<oneshot::Receiver<()>>,
    /// They were waited for.
    is_warm: bool,
}

impl Exec {
    pub(super) const fn new(calls: Vec<Call>, goes: bool, room: ReplyRoom) -> Self {
        Self { calls, done: None, goes, walk: None, room, faulting: None, is_warm: false }
    }

    pub(super) const fn is_done(&self) -> bool {
        self.goes
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.done.is_some()
    }

    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(faulting) = &mut self.faulting {
            // Whether all pages were read or not, it goes on.
            let _ = ready!(Pin::new(faulting).poll(cx));
            self.faulting = None;
        }
        Poll::Ready(())
    }

    /// Writes the next part of the reply.
    pub(super) fn step(
        &mut self,
        tx: &Tx,
        view: &View<'_, Tx>,
        (out, room): (&mut Writer<'_>, usize),
        cold: &impl ColdReads,
        tell: Tell<'_>,
    ) -> Result<Stepped, Failure> {
        if !self.goes {
            out.null_array();
            return Ok(Stepped::Ended);
        }
        if self.done.is_none() {
            out.array(self.calls.len());
        }
        let begun = Instant::now();
        let mut at = *self.done.get_or_insert(0);
        while at < self.calls.len() {
            let before = out.len();
            let is_full = before + LEAST_ROOM > room || begun.elapsed() >= STEP;
            if is_full && before > 0 || self.waits_for(at, tx, cold) {
                return Ok(Stepped::More);
            }
            if let Err(stepped) = self.one(at, view, out, tell)? {
                let needs_more = before > 0 && matches!(stepped, Stepped::Needs(_));
                return Ok(if needs_more { Stepped::More } else { stepped });
            }
            if !out.fits() {
                let needed = out.len() - before;
                out.rewind(before);
                return Ok(if before > 0 { Stepped::More } else { Stepped::Needs(needed) });
            }
            (self.walk, self.is_warm) = (None, false);
            at += 1;
            self.done = Some(at);
        }
        Ok(Stepped::Ended)
    }

    /// Does a command, whole or a step of it. What it is refused with is its own reply.
    fn one(
        &mut self,
        at: usize,
        view: &View<'_, Tx>,
        out: &mut Writer<'_>,
        tell: Tell<'_>,
    ) -> Result<Result<(), Stepped>, Failure> {
        let (call, before) = (&self.calls[at], out.len());
        let done = match call.kind() {
            Kind::Walk => {
                let walk = self.walk.get_or_insert_with(|| Walk::new(call.clone()));
                match walk.step(view, out) {
                    Ok(Stepped::Ended) => return Ok(Ok(())),
                    Ok(stepped) => return Ok(Err(stepped)),
                    Err(failure) if walk.has_begun() => return Err(failure),
                    Err(failure) => Err(failure),
                }
            }
            Kind::Session => match write::in_exec(call, view.moment().now(), out) {
                Ok(false) => tell(call, out),
                Ok(true) => Ok(()),
                Err(failure) => Err(failure),
            },
            Kind::Read | Kind::Write => read::answer(view, call, self.room.scans(), out),
        };
        let is_too_large = out.len() - before > self.room.max_frame();
        if let Some(failure) = done.err().or_else(|| is_too_large.then(|| too_large(self.room.max_frame()))) {
            out.rewind(before);
            out.error(&failure.line);
        }
        Ok(Ok(()))
    }

    /// Looks whether the next command would wait for the disk, and has its pages brought from there if so.
    fn waits_for(&mut self, at: usize, tx: &Tx, cold: &impl ColdReads) -> bool {
        if self.is_warm || !cold.is_wary() {
            return false;
        }
        self.is_warm = true;
        let Some(call) = self.calls.get(at).filter(|call| call.kind() == Kind::Read) else { return false };
        let look_ups = call.look_ups();
        if look_ups.iter().all(|read| is_resident_at(tx, read)) {
            cold.is_warm();
            return false;
        }
        self.faulting = Some(cold.fault_in(look_ups));
        true
    }
}
