//! What a request changes. The writer calls [`apply`] for each request of a group, all in one transaction.
//!
//! A request that fails changes nothing, so that the others of its group are not hurt.

use boltkv_protocol::{Cond, ErrorCode, ErrorReply, Path, Reply, WriteRequest};
use boltkv_storage::{Bucket, BucketMut, Error, Result, TxMut};

use super::delete_range::delete_range;
use super::number;
use super::refusal::refusal;
use super::resp::{self, RespDone, RespWork, WatchedKeys};
use super::results::{Outcome, ReplyRoom};
use super::txn::{self, TxnDone};

/// Bytes of a key that a message shows at most.
const MOST_SHOWN: usize = 64;

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
            Self::Number { changed, .. } => *changed,
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
            Refused::Storage(error) => refusal(error),
        }
    }
}

/// Does what a request asks for within the writer's transaction, or nothing.
///
/// # Errors
/// The outer one leaves the writer's transaction in a state that must not be committed.
pub(crate) fn apply(
    tx: &mut TxMut,
    write: &Write,
    room: &ReplyRoom,
    watched: &mut WatchedKeys,
    now: u64,
) -> Result<Result<Effect, ErrorReply>> {
    let request = match &write.work {
        Work::Request(request) => request,
        Work::Resp(work) => {
            let done = resp::apply(tx, work, room, watched, now)?;
            return Ok(done.map(|done| Effect::Resp(Box::new(done))));
        }
    };
    let done = match request {
        WriteRequest::Txn(txn) => {
            let done = txn::apply(tx, txn, &write.asker, room)?;
            done.map(|done| Effect::Txn(Box::new(done)))
        }
        request => apply_request(tx, request, &write.asker),
    };
    if done.as_ref().is_ok_and(Effect::is_change) {
        watched.touch_by(request);
    }
    Ok(done)
}

/// Does what a single request asks for, or nothing.
pub(super) fn apply_request(tx: &mut TxMut, request: &WriteRequest, asker: &Asker) -> Result<Effect, ErrorReply> {
    let done = match request {
        WriteRequest::Set { path, key, value, cond } => match set(tx, path, key, value, cond) {
            Err(Refused::Storage(Error::BucketNotFound { .. })) if asker.has_default(path) => {
                in_new_bucket(tx, path, |tx| set(tx, path, key, value, cond))
            }
            done => done,
        },
        WriteRequest::Increment { path, key, delta } => match increment(tx, path, key, *delta) {
            Err(Refused::Storage(Error::BucketNotFound { .. })) if asker.has_default(path) => {
                in_new_bucket(tx, path, |tx| increment(tx, path, key, *delta))
            }
            done => done,
        },
        WriteRequest::DeleteRange { path, range, limit } => {
            delete_range(tx, path, range.clone(), *limit).map_err(Into::into)
        }
        WriteRequest::Delete { path, key, cond } => delete(tx, path, key, cond),
        WriteRequest::CreateBucket(path) => create(tx, path).map_err(Into::into),
        WriteRequest::CreateBucketIfMissing(path) => {
            create_missing(tx, path).map(|made| made.effect()).map_err(Into::into)
        }
        WriteRequest::DeleteBucket(path) => delete_bucket(tx, path).map_err(Into::into),
        WriteRequest::NextSequence(path) => {
            let bucket = tx.bucket_mut_path(path.names());
            bucket.and_then(|mut bucket| bucket.next_sequence()).map(Effect::Sequence).map_err(Into::into)
        }
        WriteRequest::SetSequence { path, sequence } => set_sequence(tx, path, *sequence).map_err(Into::into),
        WriteRequest::MoveBucket { path, to } => return move_bucket(tx, path, to),
        WriteRequest::Txn(_) => return Err(txn::not_within()),
    };
    done.map_err(ErrorReply::from)
}

fn set(tx: &mut TxMut, path: &Path, key: &[u8], value: &[u8], cond: &Cond) -> Result<Effect, Refused> {
    let mut bucket = tx.bucket_mut_path(path.names())?;
    check(cond, Some(bucket.as_bucket()), key)?;
    bucket.put(key, value)?;
    Ok(Effect::Written)
}

/// What makes its bucket, both or neither.
fn in_new_bucket(
    tx: &mut TxMut,
    path: &Path,
    act: impl FnOnce(&mut TxMut) -> Result<Effect, Refused>,
) -> Result<Effect, Refused> {
    let made = create_missing(tx, path)?;
    let done = act(tx);
    if done.is_err() {
        made.undo(tx, path)?;
    }
    done
}

fn delete(tx: &mut TxMut, path: &Path, key: &[u8], cond: &Cond) -> Result<Effect, Refused> {
    let mut bucket = tx.bucket_mut_path(path.names())?;
    check(cond, Some(bucket.as_bucket()), key)?;
    Ok(Effect::Deleted { existed: bucket.delete(key)? })
}

/// A key that is not there counts as 0; what adds nothing to one that is, changes nothing.
fn increment(tx: &mut TxMut, path: &Path, key: &[u8], delta: i64) -> Result<Effect, Refused> {
    let mut bucket = tx.bucket_mut_path(path.names())?;
    let found = bucket.get(key)?;
    let number = match found {
        None => 0,
        Some(value) => number::parse(value).ok_or_else(|| {
            Refused::NoNumber(format!("the value of key {} is no whole number of 64 bits", shown(key)))
        })?,
    };
    let changed = found.is_none() || delta != 0;
    let value = number.checked_add(delta).ok_or_else(|| {
        Refused::OutOfRange(format!("key {}: {number} plus {delta} does not fit 64 bits", shown(key)))
    })?;
    if changed {
        bucket.put(key, value.to_string())?;
    }
    Ok(Effect::Number { value, changed })
}

fn set_sequence(tx: &mut TxMut, path: &Path, sequence: u64) -> Result<Effect> {
    let mut bucket = tx.bucket_mut_path(path.names())?;
    if bucket.sequence() == sequence {
        return Ok(Effect::Unchanged);
    }
    bucket.set_sequence(sequence)?;
    Ok(Effect::Written)
}

/// Moves a bucket to another parent, to another name, or to both.
fn move_bucket(tx: &mut TxMut, path: &Path, to: &Path) -> Result<Effect, ErrorReply> {
    let (from, to): (Vec<_>, Vec<_>) = (path.names().collect(), to.names().collect());
    let (Some((name, from)), Some((its_name, to))) = (from.split_last(), to.split_last()) else {
        return Err(refusal(Error::BucketNameRequired));
    };
    tx.move_bucket_as(name, from, to, its_name).map(|()| Effect::Written).map_err(refusal)
}

/// Whether a condition holds of a key in a bucket; in none there is no key.
pub(super) fn check(cond: &Cond, bucket: Option<Bucket<'_>>, key: &[u8]) -> Result<(), Refused> {
    // What always holds costs no look-up.
    if *cond == Cond::Always {
        return Ok(());
    }
    let found = match &bucket {
        Some(bucket) => bucket.get(key)?,
        None => None,
    };
    if cond.holds(found) {
        return Ok(());
    }
    let is = match (cond, found) {
        (Cond::IfAbsent, _) => "is there already",
        (_, None) => "is not there",
        _ => "has another value",
    };
    Err(Refused::Condition(format!("key {} {is}", shown(key))))
}

/// A key for a message, escaped and cut.
fn shown(key: &[u8]) -> String {
    let cut = &key[..key.len().min(MOST_SHOWN)];
    let more = if cut.len() < key.len() { "…" } else { "" };
    format!("\"{}\"{more}", cut.escape_ascii())
}

fn create(tx: &mut TxMut, path: &Path) -> Result<Effect> {
    match split(path)? {
        (Parent::Root, name) => tx.create_bucket(name).map(|_| Effect::Written),
        (Parent::Bucket(parents), name) => tx.bucket_mut_path(parents)?.create_bucket(name).map(|_| Effect::Written),
    }
}

fn delete_bucket(tx: &mut TxMut, path: &Path) -> Result<Effect> {
    match split(path)? {
        (Parent::Root, name) => tx.delete_bucket(name)?,
        (Parent::Bucket(parents), name) => tx.bucket_mut_path(parents)?.delete_bucket(name)?,
    }
    Ok(Effect::Written)
}

/// Where a bucket lies.
enum Parent<P> {
    Root,
    Bucket(P),
}

/// A path's parent and its last name.
fn split(path: &Path) -> Result<(Parent<impl Iterator<Item = &[u8]>>, &[u8])> {
    let name = path.names().last().ok_or(Error::BucketNameRequired)?;
    let parents = path.depth() - 1;
    let parent = if parents == 0 { Parent::Root } else { Parent::Bucket(path.names().take(parents)) };
    Ok((parent, name))
}

/// How many buckets of a path were there before the others were made.
struct Made {
    existed: usize,
    depth: usize,
}

impl Made {
    const fn effect(&self) -> Effect {
        if self.existed == self.depth { Effect::Unchanged } else { Effect::Written }
    }

    /// Takes the new buckets away again, as far as they were made.
    fn undo(&self, tx: &mut TxMut, path: &Path) -> Result<()> {
        let Some(topmost) = path.names().nth(self.existed) else { return Ok(()) };
        let undone = match self.existed {
            0 => tx.delete_bucket(topmost),
            existed => tx.bucket_mut_path(path.names().take(existed))?.delete_bucket(topmost),
        };
        match undone {
            Err(Error::BucketNotFound { .. }) => Ok(()),
            undone => undone,
        }
    }
}

/// Creates what is missing of a path: all of it, or after an error nothing.
fn create_missing(tx: &mut TxMut, path: &Path) -> Result<Made> {
    let made = Made { existed: count_existing(tx, path)?, depth: path.depth() };
    let created = create_all(tx, path);
    if created.is_err() {
        made.undo(tx, path)?;
    }
    created.map(|()| made)
}

/// How many of a path's buckets are there, from the top down.
fn count_existing(tx: &TxMut, path: &Path) -> Result<usize> {
    let mut names = path.names();
    let top = names.next().ok_or(Error::BucketNameRequired)?;
    let mut found = tx.bucket(top);
    let mut existed = 0;
    loop {
        let bucket = match found {
            Ok(bucket) => bucket,
            Err(Error::BucketNotFound { .. }) => return Ok(existed),
            // Told once more with the whole path: one step of it knows only the bucket right above.
            Err(_) => return tx.bucket_path(path.names()).map(|_| existed),
        };
        existed += 1;
        match names.next() {
            Some(name) => found = bucket.bucket(name),
            None => return Ok(existed),
        }
    }
}

fn create_all(tx: &mut TxMut, path: &Path) -> Result<()> {
    let mut names = path.names();
    let top = names.next().ok_or(Error::BucketNameRequired)?;
    create_below(tx.create_bucket_if_not_exists(top)?, names)
}

fn create_below<'n>(mut bucket: BucketMut<'_>, mut names: impl Iterator<Item = &'n [u8]>) -> Result<()> {
    match names.next() {
        Some(name) => create_below(bucket.create_bucket_if_not_exists(name)?, names),
        None => Ok(()),
    }
}
