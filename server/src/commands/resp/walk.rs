//! Commands that look at everything: in steps, twice where the reply begins with how much it is. Both times they look at the
//! same state, so that they find the same.

use std::ops::Bound;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{RespCommand, Writer};
use bytes::Bytes;

use super::failure::Failure;
use super::glob;
use super::keyspace::Keyspace;
use super::run::Stepped;
use super::work::Call;
use crate::commands::expiry::{Moment, Shown, View};
use crate::commands::state::State;
use boltkv_protocol::resp::names::said;

/// The most entries that one step looks at,
const STEP: u64 = 4_096;
/// and that a transaction does, for which all writes wait.
const MOST_IN_TXN: u64 = 100_000;

/// Entries of a hash that are told at once: in steps it would wait for its turn, and what came behind it for the reply.
const FEW: usize = 128;

/// Answers one that looks at few entries, and has room, at once; `false`, and nothing written, where it is to go in steps.
pub(in crate::commands) fn answer_short(
    view: &View<'_, impl State>,
    call: &Call,
    out: &mut Writer<'_>,
) -> Result<bool, Failure> {
    if call.spec.command == RespCommand::Keys {
        return Ok(false);
    }
    let before = out.len();
    let mut walk = Walk::new(call.clone());
    let mut done = walk.step(view, out)?;
    if walk.has_begun() && walk.count <= FEW && !matches!(done, Stepped::Ended) {
        done = walk.step(view, out)?;
    }
    let is_whole = matches!(done, Stepped::Ended) && out.fits();
    if !is_whole {
        out.rewind(before);
    }
    Ok(is_whole)
}

/// Answers one within a transaction.
pub(super) fn answer(view: &View<'_, impl State>, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
    let mut walk = Walk::new(call.clone());
    loop {
        match walk.step(view, out)? {
            Stepped::Ended => return Ok(()),
            // It is refused where the whole reply is too large.
            Stepped::Needs(_) | Stepped::More if !out.fits() => return Ok(()),
            Stepped::Needs(_) | Stepped::More if walk.looked_at > MOST_IN_TXN => {
                let line = format!(
                    "ERR in a transaction {} looks at {MOST_IN_TXN} entries at most, because all writes wait for it",
                    call.spec.name
                );
                return Err(Failure::new(ErrorCode::TxnTooLarge, line));
            }
            Stepped::Needs(_) | Stepped::More => {}
        }
    }
}

/// What is walked through, and how far it has come.
#[derive(Debug)]
pub(super) struct Walk {
    call: Call,
    phase: Phase,
    /// The last key that was passed.
    passed: Option<Bytes>,
    /// How many there are.
    count: usize,
    /// Entries that this phase has looked at.
    looked_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Counting,
    Telling,
}

impl Walk {
    pub(super) const fn new(call: Call) -> Self {
        Self { call, phase: Phase::Counting, passed: None, count: 0, looked_at: 0 }
    }

    /// Whether a part of the reply was written.
    pub(super) fn has_begun(&self) -> bool {
        self.phase == Phase::Telling
    }

    /// Writes the next part of the reply. There must be room for how many there are.
    pub(super) fn step(&mut self, view: &View<'_, impl State>, out: &mut Writer<'_>) -> Result<Stepped, Failure> {
        let keyspace = Keyspace::of(view, self.call.db)?;
        if self.call.spec.command == RespCommand::Keys {
            glob::check(self.call.args.word(1))?;
        }
        let shown = match self.call.spec.command {
            RespCommand::Keys | RespCommand::DbSize => keyspace.shown,
            _ => keyspace.hash(self.call.args.word(1))?,
        };
        let moment = &keyspace.moment;
        if self.phase == Phase::Telling {
            return self.tell(shown.as_ref(), moment, out);
        }
        if !self.count(shown.as_ref(), moment)? {
            return Ok(Stepped::More);
        }
        match self.call.spec.command {
            RespCommand::DbSize | RespCommand::HLen => {
                out.count(self.count);
                return Ok(Stepped::Ended);
            }
            RespCommand::HGetAll => out.map(self.count),
            _ => out.array(self.count),
        }
        (self.phase, self.passed, self.looked_at) = (Phase::Telling, None, 0);
        Ok(if self.count == 0 { Stepped::Ended } else { Stepped::More })
    }

    /// Counts on. Whether that was all.
    fn count(&mut self, shown: Option<&Shown<'_>>, moment: &Moment<'_>) -> Result<bool, Failure> {
        let mut count = 0;
        let ended = self.go_on(shown, moment, |walk, key, value| {
            count += usize::from(walk.is_meant(key, value)?);
            Ok(true)
        })?;
        self.count += count;
        Ok(ended)
    }

    fn tell(
        &mut self,
        shown: Option<&Shown<'_>>,
        moment: &Moment<'_>,
        out: &mut Writer<'_>,
    ) -> Result<Stepped, Failure> {
        let begun_with = out.len();
        let mut needs = None;
        let ended = self.go_on(shown, moment, |walk, key, value| {
            if !walk.is_meant(key, value)? {
                return Ok(true);
            }
            let before = out.len();
            match walk.call.spec.command {
                RespCommand::HVals => out.bulk(value.unwrap_or_default()),
                RespCommand::HGetAll => {
                    out.bulk(said(key));
                    out.bulk(value.unwrap_or_default());
                }
                _ => out.bulk(said(key)),
            }
            if out.fits() {
                return Ok(true);
            }
            needs = (before == begun_with).then(|| out.len() - before);
            out.rewind(before);
            Ok(false)
        })?;
        Ok(match needs {
            Some(needs) => Stepped::Needs(needs),
            None if ended => Stepped::Ended,
            None => Stepped::More,
        })
    }

    /// Whether an entry is one of those that are asked for.
    fn is_meant(&self, key: &[u8], value: Option<&[u8]>) -> Result<bool, Failure> {
        match self.call.spec.command {
            RespCommand::Keys => Ok(glob::matches(self.call.args.word(1), said(key))),
            RespCommand::DbSize => Ok(true),
            _ if value.is_none() => Err(Failure::wrong_type()),
            _ => Ok(true),
        }
    }

    /// Hands the next entries over, until one is not taken (it comes again) or the step was long enough. Whether that was all.
    fn go_on(
        &mut self,
        shown: Option<&Shown<'_>>,
        moment: &Moment<'_>,
        mut take: impl FnMut(&Self, &[u8], Option<&[u8]>) -> Result<bool, Failure>,
    ) -> Result<bool, Failure> {
        let Some(shown) = shown else { return Ok(true) };
        let from = self.passed.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let (mut last, mut looked_at) = (None, 0);
        let pattern = if self.call.spec.command == RespCommand::Keys { self.call.args.slice(1) } else { Bytes::new() };
        let pattern = &pattern[..];
        let mut ended = true;
        for entry in shown.bucket.range((from, Bound::<Bytes>::Unbounded)) {
            let (key, value) = entry?;
            if looked_at >= STEP || !shown.is_past(key, moment)? && !take(self, key, value)? {
                ended = false;
                break;
            }
            looked_at += glob::work(pattern, key);
            last = Some(key);
        }
        self.looked_at += looked_at;
        if let Some(key) = last {
            self.passed = Some(Bytes::copy_from_slice(key));
        }
        Ok(ended)
    }
}
