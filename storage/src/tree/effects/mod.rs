//! Effects: what a write transaction has done, as bytes that a journal keeps, and doing it again.
//!
//! - `codec`: what they look like; `record`: writing them down; `replay`: making them in others,
//!   `gathered`: in which order, `range`: ranges, `batches`: how many of them at a time

mod batches;
mod codec;
mod gathered;
mod range;
mod record;
mod replay;

pub(crate) use batches::Batch;
pub(crate) use codec::{Effect, Reader};
pub(crate) use record::Effects;
pub(super) use record::{Done, EffectsMark};
pub(crate) use replay::{Recorded, Refused, Replay};
