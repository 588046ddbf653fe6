//! Requests that are answered at once, from a snapshot.
//!
//! A burst of them shares one snapshot and, as long as they name the same bucket, its look-up.

use std::cell::OnceCell;

use boltkv_protocol::resp::Writer;
use boltkv_protocol::{ErrorCode, ErrorReply, Path, ReadRequest, Reply};
use boltkv_storage::{Bucket, Db, Tx};

use super::refusal::refusal;
use super::resp::{self, Call, Failure};
use super::state::State as _;

/// Waits until the pages that these reads look at are in memory. Those that lie in one bucket and follow one another are
/// asked of the disk together.
pub(crate) fn fault_in(tx: &Tx, reads: &[ReadRequest]) {
    let wanted: Vec<_> = reads
        .iter()
        .filter_map(|read| match read {
            ReadRequest::Get { path, key } => Some((path, key)),
            ReadRequest::Ping(_) | ReadRequest::Sequence(_) => None,
        })
        .collect();
    for of_one_bucket in wanted.chunk_by(|(one, _), (other, _)| one == other) {
        let keys: Vec<_> = of_one_bucket.iter().map(|(_, key)| key).collect();
        if let Some((path, _)) = of_one_bucket.first()
            && let Ok(bucket) = tx.bucket_path(path.names())
        {
            bucket.fault_in(&keys);
        }
    }
}

/// Answers a read from a snapshot that is held open.
pub(crate) fn answer_at<'r>(state: &'r Tx, request: &'r ReadRequest, max_frame: usize) -> Reply<&'r [u8]> {
    answer(request, max_frame, |path| state.bucket_at(path).map_err(refusal))
}

/// Whether a read could be answered from this state without waiting for the disk.
pub(crate) fn is_resident_at(state: &Tx, request: &ReadRequest) -> bool {
    is_resident_in(request, |path| state.bucket_at(path))
}

/// Answers a read, from whatever state `bucket` finds buckets in.
pub(super) fn answer<'r, 's: 'r>(
    request: &'r ReadRequest,
    max_frame: usize,
    bucket: impl FnOnce(&Path) -> Result<Bucket<'s>, ErrorReply>,
) -> Reply<&'r [u8]> {
    match request {
        ReadRequest::Ping(bytes) => Reply::Pong(bytes),
        ReadRequest::Get { path, key } => {
            let value = bucket(path).and_then(|bucket| value_in(bucket, key, max_frame));
            value.map_or_else(Reply::Error, Reply::Value)
        }
        ReadRequest::Sequence(path) => bucket(path).map_or_else(Reply::Error, |bucket| Reply::Count(bucket.sequence())),
    }
}

fn is_resident_in<'s, E>(request: &ReadRequest, bucket: impl FnOnce(&Path) -> Result<Bucket<'s>, E>) -> bool {
    match request {
        // A bucket's own header lies where its parent's entries do, which every look-up in it has to pass.
        ReadRequest::Ping(_) | ReadRequest::Sequence(_) => true,
        // What cannot be had is found out at once.
        ReadRequest::Get { path, key } => bucket(path).map_or(true, |bucket| bucket.is_resident(key)),
    }
}

fn value_in<'t>(bucket: Bucket<'t>, key: &[u8], max_frame: usize) -> Result<&'t [u8], ErrorReply> {
    let value = bucket.get(key).map_err(refusal)?.ok_or_else(no_such_key)?;
    if Reply::<&[u8]>::value_frame_len(value.len()) > max_frame {
        return Err(ErrorReply::value_too_large(value.len() as u64, max_frame));
    }
    Ok(value)
}

pub(super) fn no_such_key() -> ErrorReply {
    ErrorReply::new(ErrorCode::KeyNotFound, "there is no such key")
}

/// One state of the database, taken when it is first asked for. It keeps pages from being used again, so it is not held
/// while anything is waited for.
#[derive(Debug, Default)]
pub(crate) struct Snapshot(OnceCell<Tx>);

impl Snapshot {
    fn get(&self, db: &Db) -> Result<&Tx, ErrorReply> {
        if let Some(tx) = self.0.get() {
            return Ok(tx);
        }
        let tx = db.begin().map_err(refusal)?;
        Ok(self.0.get_or_init(|| tx))
    }
}

/// Answers reads from one snapshot.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    db: &'a Db,
    snapshot: &'a Snapshot,
    max_frame: usize,
    /// The bucket that was looked up last.
    last: Option<(Path, Bucket<'a>)>,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(db: &'a Db, snapshot: &'a Snapshot, max_frame: usize) -> Self {
        Self { db, snapshot, max_frame, last: None }
    }

    /// Answers a read.
    pub(crate) fn answer<'r>(&mut self, request: &'r ReadRequest) -> Reply<&'r [u8]>
    where
        'a: 'r,
    {
        answer(request, self.max_frame, |path| self.bucket(path))
    }

    /// Whether a read could be answered without waiting for the disk.
    pub(crate) fn is_resident(&mut self, request: &ReadRequest) -> bool {
        is_resident_in(request, |path| self.bucket(path))
    }

    /// Whether there is such a bucket.
    pub(crate) fn check_bucket(&mut self, path: &Path) -> Result<(), ErrorReply> {
        if path.is_root() { Ok(()) } else { self.bucket(path).map(|_| ()) }
    }

    /// Answers what only the Redis dialect asks for, at this time.
    pub(crate) fn answer_resp(&self, call: &Call, now: u64, out: &mut Writer<'_>) -> Result<(), Failure> {
        resp::answer(self.snapshot.get(self.db)?, call, now, out)
    }

    fn bucket(&mut self, path: &Path) -> Result<Bucket<'a>, ErrorReply> {
        if let Some((last, bucket)) = &self.last
            && last == path
        {
            return Ok(*bucket);
        }
        let bucket = self.snapshot.get(self.db)?.bucket_path(path.names()).map_err(refusal)?;
        self.last = Some((path.clone(), bucket));
        Ok(bucket)
    }
}
