//! Requests that are answered at once, from a snapshot.
//!
//! A burst of them shares one snapshot and, as long as they name the same bucket, its look-up.

use std::cell::OnceCell;

use boltkv_protocol::resp::Writer;
use boltkv_protocol::{ErrorCode, ErrorReply, Path, ReadRequest, Reply};
use boltkv_storage::{Db, Error, Tx};
use tokio::sync::oneshot;

use super::expiry::{Clock, Expiration, Moment, Shown, View};
use super::refusal::refusal;
use super::resp::{self, Call, Failure, Watching};
use super::results::ReplyRoom;

/// Where reads wait for the disk, so that no session has to.
pub(crate) trait ColdReads {
    /// Whether there is reason to think that reads have to wait.
    fn is_wary(&self) -> bool;
    /// A read was looked at, and would not have waited.
    fn is_warm(&self);
    /// Has these reads' pages brought into memory.
    fn fault_in(&self, reads: Vec<ReadRequest>) -> oneshot::Receiver<()>;
}

/// Waits until the pages that these reads look at are in memory. Those that lie in one bucket and follow one another are
/// asked of the disk together.
pub(crate) fn fault_in(tx: &Tx, reads: &[ReadRequest]) {
    let wanted: Vec<_> = reads
        .iter()
        .filter_map(|read| match read {
            ReadRequest::Get { path, key } | ReadRequest::ExpiryTime { path, key } => Some((path, key)),
            ReadRequest::Ping(_) | ReadRequest::Sequence(_) => None,
        })
        .collect();
    let view = View::new(tx, before_all_times());
    for of_one_bucket in wanted.chunk_by(|(one, _), (other, _)| one == other) {
        let keys: Vec<_> = of_one_bucket.iter().map(|(_, key)| key).collect();
        if let Some((path, _)) = of_one_bucket.first()
            && let Ok(bucket) = view.bucket(path)
        {
            bucket.fault_in(&keys);
        }
    }
}

/// Answers a read from a snapshot that is held open.
pub(crate) fn answer_at<'r>(
    state: &'r Tx,
    request: &'r ReadRequest,
    max_frame: usize,
    clock: &'r Clock,
) -> Reply<&'r [u8]> {
    let view = View::new(state, Moment::of(clock));
    answer(request, max_frame, view.moment(), |path| view.bucket(path))
}

/// Whether a read could be answered from this state without waiting for the disk.
pub(crate) fn is_resident_at(state: &Tx, request: &ReadRequest) -> bool {
    let view = View::new(state, before_all_times());
    is_resident_in(request, |path| view.bucket(path))
}

/// When nothing has expired yet: for who wants to know where all lies.
fn before_all_times() -> Moment<'static> {
    Moment::at(0)
}

/// Answers a read, from whatever state `bucket` finds buckets in, as of a moment.
pub(super) fn answer<'r, 's: 'r>(
    request: &'r ReadRequest,
    max_frame: usize,
    moment: &Moment<'_>,
    bucket: impl FnOnce(&Path) -> Result<Shown<'s>, Error>,
) -> Reply<&'r [u8]> {
    let bucket = |path| bucket(path).map_err(refusal);
    let reply = match request {
        ReadRequest::Ping(bytes) => Ok(Reply::Pong(&bytes[..])),
        ReadRequest::Get { path, key } => {
            bucket(path).and_then(|shown| value_in(&shown, key, moment, max_frame)).map(Reply::Value)
        }
        ReadRequest::ExpiryTime { path, key } => bucket(path).and_then(|shown| time_in(&shown, key, moment)),
        ReadRequest::Sequence(path) => bucket(path).map(|shown| Reply::Count(shown.bucket.sequence())),
    };
    reply.unwrap_or_else(Reply::Error)
}

fn is_resident_in<'s>(request: &ReadRequest, bucket: impl FnOnce(&Path) -> Result<Shown<'s>, Error>) -> bool {
    match request {
        // A bucket's own header lies where its parent's entries do, which every look-up in it has to pass.
        ReadRequest::Ping(_) | ReadRequest::Sequence(_) => true,
        // What cannot be had is found out at once.
        ReadRequest::Get { path, key } | ReadRequest::ExpiryTime { path, key } => {
            bucket(path).map_or(true, |bucket| bucket.is_resident(key))
        }
    }
}

fn value_in<'t>(shown: &Shown<'t>, key: &[u8], moment: &Moment<'_>, max_frame: usize) -> Result<&'t [u8], ErrorReply> {
    let value = shown.get(key, moment).map_err(refusal)?.ok_or_else(no_such_key)?;
    if Reply::<&[u8]>::value_frame_len(value.len()) > max_frame {
        return Err(ErrorReply::value_too_large(value.len() as u64, max_frame));
    }
    Ok(value)
}

fn time_in<B>(shown: &Shown<'_>, key: &[u8], moment: &Moment<'_>) -> Result<Reply<B>, ErrorReply> {
    let at = shown.time_of(key, moment).map_err(refusal)?.ok_or_else(no_such_key)?;
    Ok(Reply::ExpiryTime { at, now: moment.now() })
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

/// A snapshot as it is to be seen. Whether anything expires is asked once it is there.
fn view<'s>(snapshot: &'s Tx, expiry: &'s Expiration) -> View<'s, Tx> {
    let moment = Moment::of(&expiry.clock);
    if expiry.any() { View::new(snapshot, moment) } else { View::without_times(snapshot, moment) }
}

/// Answers reads from one snapshot.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    db: &'a Db,
    snapshot: &'a Snapshot,
    expiry: &'a Expiration,
    room: &'a ReplyRoom,
    /// The snapshot as it is to be seen, once somebody has looked.
    view: OnceCell<View<'a, Tx>>,
    /// The bucket that was looked up last; of a first look-up it is not kept, for most turns have one.
    last: Option<(Path, Shown<'a>)>,
    has_looked: bool,
}

impl<'a> Reader<'a> {
    pub(crate) const fn new(db: &'a Db, snapshot: &'a Snapshot, expiry: &'a Expiration, room: &'a ReplyRoom) -> Self {
        Self { db, snapshot, expiry, room, view: OnceCell::new(), last: None, has_looked: false }
    }

    /// Answers a read.
    pub(crate) fn answer<'r>(&mut self, request: &'r ReadRequest) -> Reply<&'r [u8]>
    where
        'a: 'r,
    {
        let max_frame = self.room.max_frame();
        match request {
            ReadRequest::Ping(bytes) => Reply::Pong(bytes),
            ReadRequest::Get { path, .. } | ReadRequest::ExpiryTime { path, .. } | ReadRequest::Sequence(path) => {
                match self.bucket(path) {
                    Err(error) => Reply::Error(error),
                    Ok((shown, moment)) => answer(request, max_frame, moment, |_| Ok(shown)),
                }
            }
        }
    }

    /// Whether a read could be answered without waiting for the disk.
    pub(crate) fn is_resident(&mut self, request: &ReadRequest) -> bool {
        match request {
            ReadRequest::Ping(_) => true,
            // What cannot be had is found out at once.
            ReadRequest::Get { path, .. } | ReadRequest::ExpiryTime { path, .. } | ReadRequest::Sequence(path) => {
                self.bucket(path).map_or(true, |(shown, _)| is_resident_in(request, |_| Ok(shown)))
            }
        }
    }

    /// Whether there is such a bucket.
    pub(crate) fn check_bucket(&mut self, path: &Path) -> Result<(), ErrorReply> {
        if path.is_root() { Ok(()) } else { self.bucket(path).map(|_| ()) }
    }

    /// Answers what only the Redis dialect asks for.
    pub(crate) fn answer_resp(&self, call: &Call, out: &mut Writer<'_>) -> Result<(), Failure> {
        resp::answer(self.view()?, call, self.room.scans(), out)
    }

    /// Answers what looks at everything, where that is little; see [`resp::answer_short`].
    pub(crate) fn answer_resp_if_short(&self, call: &Call, out: &mut Writer<'_>) -> Result<bool, Failure> {
        resp::answer_short(self.view()?, call, out)
    }

    /// Begins to watch keys where nobody changes any more.
    pub(crate) fn watch_resp(&self, call: &Call, watching: &Watching) -> Result<(), Failure> {
        watching.begin_in(call, self.view()?, self.snapshot.get(self.db)?, self.room)
    }

    fn view(&self) -> Result<&View<'a, Tx>, ErrorReply> {
        let tx = self.snapshot.get(self.db)?;
        Ok(self.view.get_or_init(|| view(tx, self.expiry)))
    }

    /// A bucket, and the moment at which it is looked at.
    fn bucket(&mut self, path: &Path) -> Result<(Shown<'a>, &Moment<'a>), ErrorReply> {
        let tx = self.snapshot.get(self.db)?;
        let view = self.view.get_or_init(|| view(tx, self.expiry));
        if let Some((last, shown)) = &self.last
            && last == path
        {
            return Ok((*shown, view.moment()));
        }
        let shown = view.bucket(path).map_err(refusal)?;
        if std::mem::replace(&mut self.has_looked, true) {
            self.last = Some((path.clone(), shown));
        }
        Ok((shown, view.moment()))
    }
}
