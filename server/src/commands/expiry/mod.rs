//! When keys expire: where that is kept, what reads show of it, and what becomes of keys whose time has come.
//!
//! A time is a number of milliseconds since 1970, decided by the writer, and stored with what it is of in one transaction,
//! with puts like any other. So whatever keeps a transaction, a journal, a backup, a file that is copied, keeps its times.
//! All of them lie in one bucket at the top, [`OWN`], which is there only while there are any:
//!
//! - `of`: a bucket for each bucket that has keys with times, named by its path (each name as the wire has it: what lies
//!   within it is what begins with it). Its sequence is a number of its own. In it: key → time u64, serial u64.
//! - `ids`: that number u64 → the path.
//! - `at`: time u64, serial u64 → the number u64, key. What is due next comes first.
//! - `gone`: by its number, what `of` said of a bucket that was deleted: what `at` still says of its keys.
//!
//! `of` is the truth. Where a bucket is deleted, its records are moved to `gone`, and they and what `at` says of its keys are
//! dropped in steps, as what has expired is; where it is moved, only its path is written anew. So either costs as much as
//! there are buckets within it, however many keys they have. What comes up in `at` meanwhile, or was left there by somebody
//! else, does nothing, because `of` does not say so too.
//!
//! - `records`: how these look; `clock`: what time it is
//! - `kept`: what they say to who reads them without a server
//! - `view`: a state as it is to be seen at a time; `sieve`: the same for who goes through a bucket
//! - `timed`: the writer's transaction at a time; `buckets`: what happens to whole buckets in it
//! - `backlog`: removing what has expired, in steps
//!
//! A key whose time has come is not shown and not counted from that moment on, whether it was removed or not. Whoever writes
//! removes it first ([`Timed::enter`]), so that what follows finds it absent.

mod backlog;
mod buckets;
mod clock;
mod kept;
mod records;
mod shared;
mod sieve;
#[cfg(test)]
mod tests;
mod timed;
mod view;

use boltkv_protocol::{ErrorCode, ErrorReply, Path};

use crate::access::Needs;

pub(crate) use backlog::{Backlog, earliest};
pub use clock::Clock;
pub use kept::KeptTime;
pub(crate) use shared::Expiration;
pub(super) use sieve::Sieve;
pub(crate) use timed::{Timed, after};
pub(in crate::commands) use view::Records;
pub(crate) use view::{Moment, Shown, View};

/// The bucket at the top that all of it lies in.
pub(crate) const OWN: &[u8] = b"boltkv.expires";

/// What is in it.
const OF: &[u8] = b"of";
const IDS: &[u8] = b"ids";
const AT: &[u8] = b"at";
const GONE: &[u8] = b"gone";

/// Whether a path leads to what is boltkv's own.
pub(crate) fn is_own(path: &Path) -> bool {
    path.names().next() == Some(OWN)
}

/// Refuses what names boltkv's own bucket: who could write there could bring keys back, or leave them for ever.
pub(crate) fn check_own(request: &impl Needs) -> Result<(), ErrorReply> {
    request.needs(&mut |_, path| {
        if is_own(path) {
            let message = "the bucket boltkv.expires is boltkv's own: it keeps when keys expire";
            return Err(ErrorReply::new(ErrorCode::Forbidden, message));
        }
        Ok(())
    })
}
