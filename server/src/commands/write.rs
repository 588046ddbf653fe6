//! What a request changes. The writer calls [`apply`] for each request of a group, all in one transaction.
//!
//! A request that fails changes nothing, so that the others of its group are not hurt.

use boltkv_protocol::{ErrorCode, ErrorReply, Path, Reply, WriteRequest};
use boltkv_storage::{Error, Result};

use super::buckets::{create, create_missing, delete_bucket, in_new_bucket, move_bucket, next_sequence, set_sequence};
use super::delete_range::delete_range;
use super::expiry::Timed;
use super::refusal::refusal;
use super::resp::{self, RespDone, RespWork, WatchedKeys};
use super::results::{Outcome, ReplyRoom};
use super::txn::{self, TxnDone};
use super::values::{delete, expire, increment, set, set_expiring};

/// A request that the writer is to apply. It keeps no buffer that it was read into.
#[derive(Debug)]
pub(crate) struct Write {
    work: Work,
    asker: Asker,
}

/// What is asked for, in the words of all dialects, or of one.
#[derive(Debug)]
enum Work {
    Request(WriteRequest),
    Resp(Box<RespWork>),
}

/// What the one who asks has to do with how it is done.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    /// The bucket that a SET makes where it is missing, if any; until then a transaction finds it empty.
    pub(crate) default_bucket: Option<Path>,
    /// How many bytes of the reply that is written one byte of a transaction's results becomes at most.
    pub(crate) reply_growth: usize,
}

impl Default for Asker {
    /// Nobody's bucket is made by itself, and replies are written as results are.
    fn default() -> Self {
        Self { default_bucket: None, reply_growth: 1 }
    }
}

impl Asker {
    /// Whether this is the bucket that need not be there.
    pub(super) fn has_default(&self, path: &Path) -> bool {
        self.default_bucket.as_ref() == Some(path)
    }
}

impl Write {
    pub(crate) fn new(request: WriteRequest, asker: Asker) -> Self {
        Self { work: Work::Request(request.detached()), asker }
    }

    /// What the Redis dialect asks for.
    pub(crate) fn resp(work: RespWork) -> Self {
        Self { work: Work::Resp(Box::new(work.detached())), asker: Asker::default() }
    }

    /// The bucket and the key that it looks up first, where it is about one key.
    fn place(&self) -> Option<(&Path, &[u8])> {
        match &self.work {
            Work::Request(
                WriteRequest::Set { path, key, .. }
                | WriteRequest::SetExpiring { path, key, .. }
                | WriteRequest::Increment { path, key, .. }
                | WriteRequest::Delete { path, key, .. },
            ) => Some((path, key)),
            Work::Request(_) => None,
            Work::Resp(work) => work.first_place(),
        }
    }

    /// How many bytes it keeps in memory.
    pub(crate) fn bytes(&self) -> usize {
        let variable = match &self.work {
            Work::Request(request) => request.variable_len(),
            Work::Resp(work) => work.kept(),
        };
        size_of::<Self>() + variable
    }
}

/// What a request did. It holds all that its reply needs, which is due once it is committed.
#[derive(Debug)]
pub(crate) enum Effect {
    /// It wrote something.
    Written,
    /// What it asked for was so already.
    Unchanged,
    /// It deleted a key, if the key existed.
    Deleted { existed: bool },
    /// It made a number this one.
    Number { value: i64, changed: bool },
    /// It raised a sequence to this.
    Sequence(u64),
    /// It changed when a key expires, if the key was there and its condition held.
    ExpirySet { changed: bool },
    /// It deleted so many values of a range, and there are more or not.
    DeletedRange { deleted: u64, more: bool },
    /// It was a transaction.
    Txn(Box<TxnDone>),
    /// It was asked for in the Redis dialect.
    Resp(Box<RespDone>),
}

impl Effect {
    /// Whether there is anything to commit.
    pub(crate) const fn is_change(&self) -> bool {
        match self {
            Self::Written | Self::Deleted { existed: true } | Self::Sequence(_) => true,
            Self::Unchanged | Self::Deleted { existed: false } => false,
            Self::Number { changed, .. } | Self::ExpirySet { changed } => *changed,
            Self::DeletedRange { deleted, .. } => *deleted > 0,
            Self::Txn(done) => done.is_change(),
            Self::Resp(done) => done.is_change(),
        }
    }

    /// How many bytes the values have that it made of what is there, beside those that were sent.
    pub(crate) fn made(&self) -> usize {
        if let Self::Resp(done) = self { done.made() } else { 0 }
    }

    /// The reply, once transaction `txid` is the newest.
    pub(crate) fn reply(self, txid: u64) -> Outcome {
        match self {
            Self::Written | Self::Unchanged => Reply::Written { txid }.into(),
            Self::Deleted { existed } => Reply::Deleted { txid, existed }.into(),
            Self::Number { value, .. } => Reply::Number { txid, value }.into(),
            Self::Sequence(sequence) => Reply::Sequence { txid, sequence }.into(),
            Self::ExpirySet { changed } => Reply::ExpirySet { txid, changed }.into(),
            Self::DeletedRange { deleted, more } => Reply::DeletedRange { txid, deleted, more }.into(),
            Self::Txn(done) => done.reply(txid),
            Self::Resp(done) => done.reply(),
        }
    }
}

/// Why a write was not done.
pub(super) enum Refused {
    /// The key, and what is there instead of what the condition asks for.
    Condition(String),
    /// The key whose value is no number.
    NoNumber(String),
    /// What would become too large or too small.
    OutOfRange(String),
    /// A bucket that expires was to be moved to where nothing does.
    AtTheTop,
    /// A bucket whose keys expire would have too many names.
    TooDeep,
    Storage(Error),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self::Storage(error)
    }
}

impl From<Refused> for ErrorReply {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Condition(what) => {
                Self::new(ErrorCode::ConditionFailed, format!("the condition does not hold: {what}"))
            }
            Refused::NoNumber(what) => Self::new(ErrorCode::IncompatibleValue, what),
            Refused::OutOfRange(what) => Self::new(ErrorCode::NumberOutOfRange, what),
            Refused::AtTheTop => {
                let message = "the bucket expires, which none at the top does: persist it first";
                Self::new(ErrorCode::IncompatibleValue, message)
            }
            Refused::TooDeep => {
                let most = Path::MOST_NAMES;
                let message =
                    format!("a bucket in it whose keys expire would have more than {most} names: none can say so");
                Self::new(ErrorCode::KeyTooLarge, message)
            }
            Refused::Storage(error) => refusal(error),
        }
    }
}

/// Has the processor fetch what these requests, which are applied next, look up: one after the other would wait for it.
pub(crate) fn prefetch<'w>(timed: &Timed<'_>, writes: impl Iterator<Item = &'w Write>) {
    let places: Vec<_> = writes.filter_map(Write::place).collect();
    for of_one in places.chunk_by(|(one, _), (other, _)| one == other).filter(|of_one| of_one.len() > 1) {
        // A bucket that is not there is whose business it is that asks for it.
        if let Ok(bucket) = timed.tx.bucket_path(of_one[0].0.names()) {
            let keys: Vec<_> = of_one.iter().map(|(_, key)| *key).collect();
            bucket.prefetch(&keys);
        }
    }
}

/// Does what a request asks for within the writer's transaction, or nothing. What had expired before is removed either way.
///
/// # Errors
/// The outer one leaves the writer's transaction in a state that must not be committed.
pub(crate) fn apply(
    timed: &mut Timed<'_>,
    write: &Write,
    room: &ReplyRoom,
    watched: &WatchedKeys,
) -> Result<Result<Effect, ErrorReply>> {
    let done = match &write.work {
        Work::Request(request) => {
            let done = match request {
                WriteRequest::Txn(txn) => {
                    txn::apply(timed, txn, &write.asker, room).map(|done| Effect::Txn(Box::new(done)))
                }
                request => apply_request(timed, request, &write.asker),
            };
            if done.as_ref().is_ok_and(Effect::is_change) {
                watched.touch_by(request);
            }
            done
        }
        Work::Resp(work) => Ok(Effect::Resp(Box::new(resp::apply(timed, work, room, watched)))),
    };
    watched.touch_expired(timed);
    timed.broken.take().map_or(Ok(done), Err)
}

/// Does what a single request asks for, or nothing.
pub(super) fn apply_request(
    timed: &mut Timed<'_>,
    request: &WriteRequest,
    asker: &Asker,
) -> Result<Effect, ErrorReply> {
    let done = match request {
        WriteRequest::Set { path, key, value, cond } => {
            in_its_bucket(timed, path, asker, |timed| set(timed, path, key, value, cond))
        }
        WriteRequest::SetExpiring { path, key, value, cond, expiry } => {
            in_its_bucket(timed, path, asker, |timed| set_expiring(timed, path, key, value, cond, *expiry))
        }
        WriteRequest::Expire { path, key, to, cond } => expire(timed, path, key, *to, *cond),
        WriteRequest::Increment { path, key, delta } => {
            in_its_bucket(timed, path, asker, |timed| increment(timed, path, key, *delta))
        }
        WriteRequest::DeleteRange { path, range, limit } => delete_range(timed, path, range.clone(), *limit),
        WriteRequest::Delete { path, key, cond } => delete(timed, path, key, cond),
        WriteRequest::CreateBucket(path) => create(timed, path),
        WriteRequest::CreateBucketIfMissing(path) => create_missing(timed, path),
        WriteRequest::DeleteBucket(path) => delete_bucket(timed, path),
        WriteRequest::NextSequence(path) => next_sequence(timed, path),
        WriteRequest::SetSequence { path, sequence } => set_sequence(timed, path, *sequence),
        WriteRequest::MoveBucket { path, to } => move_bucket(timed, path, to),
        WriteRequest::Txn(_) => return Err(txn::not_within()),
    };
    done.map_err(ErrorReply::from)
}

/// Does what makes its bucket where that is the asker's default one and not there yet: both or neither.
fn in_its_bucket(
    timed: &mut Timed<'_>,
    path: &Path,
    asker: &Asker,
    mut act: impl FnMut(&mut Timed<'_>) -> Result<Effect, Refused>,
) -> Result<Effect, Refused> {
    match act(timed) {
        Err(Refused::Storage(Error::BucketNotFound { .. })) if asker.has_default(path) => {
            in_new_bucket(timed, path, act)
        }
        done => done,
    }
}
