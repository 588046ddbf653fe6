//! What is answered in steps, from one state: a command that looks at everything, or a transaction that changes nothing.

use std::sync::Arc;
use std::task::{Context, Poll};

use boltkv_protocol::resp::{Version, Writer};
use boltkv_storage::Tx;
use bytes::BytesMut;

use super::exec::Exec;
use super::failure::Failure;
use super::walk::Walk;
use super::work::{Call, Transaction};
use crate::commands::expiry::{Moment, View};
use crate::commands::read::ColdReads;
use crate::commands::results::ReplyRoom;
use crate::commands::scan::Source;

/// A step is not taken with less room than this: an error, or how many there are of something, always fits.
pub(super) const LEAST_ROOM: usize = 512;

/// What is answered in steps, under way.
#[derive(Debug)]
pub(crate) struct RespRun {
    tx: Arc<Tx>,
    version: Version,
    /// One time for all of it, so that what expires meanwhile is found twice or not at all.
    now: u64,
    doing: Doing,
}

#[derive(Debug)]
enum Doing {
    Walk(Walk),
    Exec(Exec),
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stepped {
    More,
    Ended,
    /// The next entry needs room for so many bytes.
    Needs(usize),
}

/// Who answers what concerns the connection or the server.
pub(crate) type Tell<'t> = &'t mut dyn FnMut(&Call, &mut Writer<'_>) -> Result<(), Failure>;

impl Source for RespRun {
    /// What it gives is in the file; now and then its pages are waited for.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.doing {
            Doing::Walk(_) => Poll::Ready(()),
            Doing::Exec(exec) => exec.poll_ready(cx),
        }
    }
}

impl RespRun {
    pub(crate) const fn walk(tx: Arc<Tx>, version: Version, call: Call, now: u64) -> Self {
        Self { tx, version, now, doing: Doing::Walk(Walk::new(call)) }
    }

    /// All of these, which change nothing, in this state; or none, where something has changed since it is watched.
    pub(crate) fn exec(
        tx: Arc<Tx>,
        version: Version,
        transaction: Transaction,
        now: u64,
        room: ReplyRoom,
    ) -> Result<Self, Failure> {
        let Transaction { calls, watching, .. } = transaction;
        let has_changed = watching.map_or(Ok(false), |watching| watching.has_changed_in(&tx, now))?;
        Ok(Self { tx, version, now, doing: Doing::Exec(Exec::new(calls, !has_changed, room)) })
    }

    /// What it reads.
    pub(crate) const fn state(&self) -> &Arc<Tx> {
        &self.tx
    }

    /// Whether it is done at all.
    pub(crate) const fn is_done(&self) -> bool {
        match &self.doing {
            Doing::Walk(_) => true,
            Doing::Exec(exec) => exec.is_done(),
        }
    }

    /// Whether a part of the reply was written: what fails from then on ends the connection, for nothing else can be said.
    pub(crate) fn has_begun(&self) -> bool {
        match &self.doing {
            Doing::Walk(walk) => walk.has_begun(),
            Doing::Exec(exec) => exec.has_begun(),
        }
    }

    /// Writes the next part of the reply, of at most `room` bytes.
    pub(crate) fn step(
        &mut self,
        room: usize,
        out: &mut BytesMut,
        cold: &impl ColdReads,
        tell: Tell<'_>,
    ) -> Result<Stepped, Failure> {
        if room < LEAST_ROOM {
            return Ok(Stepped::Needs(LEAST_ROOM));
        }
        let from = out.len();
        let mut writer = Writer::new(out, self.version, room);
        let view = View::new(&*self.tx, Moment::at(self.now));
        let stepped = match &mut self.doing {
            Doing::Walk(walk) => walk.step(&view, &mut writer)?,
            Doing::Exec(exec) => exec.step(&self.tx, &view, (&mut writer, room), cold, tell)?,
        };
        if let Stepped::Needs(_) = stepped {
            out.truncate(from);
        }
        Ok(stepped)
    }
}
