//! Transactions: several requests as one, done wholly or not at all.
//!
//! One that writes is done by the writer, within its group's transaction: what it has changed is taken back where a part of it
//! fails, so that the others of its group are not hurt. Everybody's writes wait for it meanwhile; so what it looks at is
//! bounded. One that only reads is done in steps, from one snapshot, between other connections' requests.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use boltkv_protocol::{
    Cond, ErrorCode, ErrorReply, Path, ReadRequest, Reply, Request, ScanMode, StreamRequest, Txn, TxnCondition,
    TxnConditions, TxnPart, TxnRequests, WriteRequest,
};
use boltkv_storage::{Error, Tx};
use bytes::Bytes;
use tokio::sync::oneshot;

use super::delete_range::Counted;
use super::expiry::{Moment, Timed, View, check_own};
use super::read::{ColdReads, answer, is_resident_at, no_such_key};
use super::refusal::refusal;
use super::results::{Outcome, ReplyRoom, Results};
use super::scan::{Progress, Scanning, Source};
use super::state::State;
use super::values::check;
use super::write::{Asker, Effect, apply_request};

/// Entries that the scans of one transaction look at together, where it is the writer that does it: some milliseconds, while
/// nobody else's writes go on.
const MOST_SCANNED: u64 = 100_000;

/// Work that a step does before others have their turn, in entries of a scan,
const STEP: u64 = 4_096;
/// and what looking up one key is of it,
const LOOK_UP: u64 = 16;
/// and how many bytes of results count as much as one entry.
const BYTES: usize = 16;

/// So many of its keys are looked at, and asked of the disk, together.
const AT_ONCE: usize = 64;

impl Asker {
    /// Whether an error says only that the default bucket was not made yet.
    fn is_to_come(&self, path: &Path, error: &Error) -> bool {
        matches!(error, Error::BucketNotFound { .. }) && self.has_default(path)
    }

    /// Whether a condition holds in this state.
    fn check<S: State>(&self, view: &View<'_, S>, condition: &TxnCondition) -> Result<(), ErrorReply> {
        let TxnCondition { path, key, cond } = condition;
        check_own(path)?;
        if *cond == Cond::Always {
            return Ok(());
        }
        let bucket = match view.bucket(path) {
            Ok(bucket) => Some(bucket),
            Err(error) if self.is_to_come(path, &error) => None,
            Err(error) => return Err(refusal(error)),
        };
        let value = || bucket.map_or(Ok(None), |shown| shown.get(key, view.moment()));
        check(cond, value, key).map_err(ErrorReply::from)
    }
}

/// What a transaction in the writer has come to.
#[derive(Debug)]
pub(crate) struct TxnDone {
    results: Results,
    /// Whether it has changed anything.
    changed: bool,
}

impl TxnDone {
    pub(super) const fn is_change(&self) -> bool {
        self.changed
    }

    pub(super) fn reply(self, txid: u64) -> Outcome {
        self.results.finish(txid)
    }
}

/// Does a transaction within the writer's, or nothing of it.
pub(super) fn apply(timed: &mut Timed<'_>, txn: &Txn, asker: &Asker, room: &ReplyRoom) -> Result<TxnDone, ErrorReply> {
    // Looked up once, whatever comes.
    timed.any().map_err(refusal)?;
    let view = timed.view();
    for (index, condition) in (0..).zip(txn.conditions()) {
        asker.check(&view, &condition).map_err(|error| error.within_txn(TxnPart::Condition(index)))?;
    }
    timed.undoably(|timed| {
        let answers = Answers::new(asker.clone(), room);
        let mut doing = Doing { answers, changed: false, scanned: 0, ranges: Counted::default() };
        for (index, request) in (0..).zip(txn.requests()) {
            doing.request(timed, request).map_err(|error| error.within_txn(TxnPart::Request(index)))?;
        }
        Ok(TxnDone { results: doing.answers.results, changed: doing.changed })
    })
}

/// A transaction that the writer is doing.
struct Doing {
    answers: Answers,
    changed: bool,
    /// How many entries its scans have looked at.
    scanned: u64,
    ranges: Counted,
}

impl Doing {
    fn request(&mut self, timed: &mut Timed<'_>, request: Request) -> Result<(), ErrorReply> {
        match request {
            Request::Read(read) => self.answers.read(&timed.view(), &read),
            Request::Write(write) => self.write(timed, &write),
            Request::Stream(stream) => self.scan(&timed.view(), stream),
            Request::Session(_) | Request::OfSnapshot { .. } => Err(not_within()),
        }
    }

    fn write(&mut self, timed: &mut Timed<'_>, write: &WriteRequest) -> Result<(), ErrorReply> {
        check_own(write)?;
        let effect = match apply_request(timed, write, &self.answers.asker) {
            Err(error) => self.not_there(write, error)?,
            Ok(effect) => effect,
        };
        if let (Effect::DeletedRange { deleted, more }, WriteRequest::DeleteRange { limit, .. }) = (&effect, write) {
            self.ranges.add(*deleted, *more, *limit)?;
        }
        self.changed |= effect.is_change();
        // The number is not known before all of the group is done.
        self.answers.results.push(&effect.reply(0).reply)
    }

    /// Of a bucket that was not made yet there is nothing to delete.
    fn not_there(&self, write: &WriteRequest, error: ErrorReply) -> Result<Effect, ErrorReply> {
        let is_missing = error.code == ErrorCode::BucketNotFound;
        let is_to_come = |path: &Path| is_missing && self.answers.asker.has_default(path);
        match write {
            WriteRequest::DeleteRange { path, .. } if is_to_come(path) => {
                Ok(Effect::DeletedRange { deleted: 0, more: false })
            }
            WriteRequest::Expire { path, .. } if is_to_come(path) => Ok(Effect::ExpirySet { changed: false }),
            WriteRequest::Delete { path, cond, .. } if is_to_come(path) && cond.holds(None) => {
                Ok(Effect::Deleted { existed: false })
            }
            _ => Err(error),
        }
    }

    fn scan<S: State>(&mut self, view: &View<'_, S>, stream: StreamRequest) -> Result<(), ErrorReply> {
        let Some(mut scanning) = self.answers.begin_scan(view, stream)? else { return Ok(()) };
        loop {
            let more = self.answers.step_scan(view, &mut scanning)?;
            let scanned = self.scanned + scanning.looked_at();
            if scanned > MOST_SCANNED {
                let message = format!(
                    "the scans of a transaction that writes look at {MOST_SCANNED} entries at most, because all writes wait \
                     for them"
                );
                return Err(ErrorReply::new(ErrorCode::TxnTooLarge, message));
            }
            if !more {
                self.scanned = scanned;
                return Ok(());
            }
        }
    }
}

/// The results of a transaction's requests, those that change nothing answered in whatever state.
#[derive(Debug)]
struct Answers {
    asker: Asker,
    results: Results,
}

impl Answers {
    fn new(asker: Asker, room: &ReplyRoom) -> Self {
        let results = Results::new(room.clone(), asker.reply_growth);
        Self { asker, results }
    }

    fn read<S: State>(&mut self, view: &View<'_, S>, request: &ReadRequest) -> Result<(), ErrorReply> {
        check_own(request)?;
        let reply = answer(request, self.results.max_frame(), view.moment(), |path| view.bucket(path));
        match reply {
            Reply::Error(error) if error.code.is_result() => self.results.push(&Reply::<Bytes>::Error(error)),
            Reply::Error(error) => match request {
                ReadRequest::Get { path, .. } | ReadRequest::ExpiryTime { path, .. }
                    if error.code == ErrorCode::BucketNotFound && self.asker.has_default(path) =>
                {
                    self.results.push(&Reply::<Bytes>::Error(no_such_key()))
                }
                _ => Err(error),
            },
            reply => self.results.push(&reply),
        }
    }

    /// Begins a scan; `None` where it has ended already.
    fn begin_scan<S: State>(
        &mut self,
        view: &View<'_, S>,
        stream: StreamRequest,
    ) -> Result<Option<Scanning>, ErrorReply> {
        let (scan, buckets_only) = match stream {
            StreamRequest::Scan(scan) => (scan, false),
            StreamRequest::ListBuckets(scan) => (scan, true),
            StreamRequest::BucketStat(_)
            | StreamRequest::Txn(_)
            | StreamRequest::Backup
            | StreamRequest::Shrink
            | StreamRequest::Watch(_) => {
                return Err(not_within());
            }
        };
        check_own(&scan.path)?;
        let (path, mode) = (scan.path.clone(), scan.options.mode);
        let scanning = match Scanning::start(view, scan, buckets_only, self.results.max_frame()) {
            Ok(scanning) => Some(scanning),
            Err(error) if !buckets_only && self.asker.is_to_come(&path, &error) => None,
            Err(error) => return Err(refusal(error)),
        };
        let counts = mode == ScanMode::Count;
        match &scanning {
            None if counts => self.results.push(&Reply::<Bytes>::Count(0))?,
            None => self.results.push(&Reply::<Bytes>::Entries(vec![]))?,
            Some(_) if counts => {}
            Some(_) => self.results.begin_scan()?,
        }
        Ok(scanning)
    }

    /// Takes a step of a scan. `false` if it was the last.
    fn step_scan<S: State>(&mut self, view: &View<'_, S>, scanning: &mut Scanning) -> Result<bool, ErrorReply> {
        let (results, mut failed) = (&mut self.results, None);
        let full = results.len() + usize::try_from(STEP).unwrap_or(usize::MAX) * BYTES;
        let mut is_first = true;
        let progress = scanning.step(view, |entry| {
            // What breaks a step is handed over again by the next.
            if results.len() > full && !is_first {
                return ControlFlow::Break(());
            }
            is_first = false;
            failed = results.push_entry(entry).err();
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let progress = progress.map_err(refusal)?;
        if let Some(error) = failed {
            return Err(error);
        }
        match progress {
            Progress::More => return Ok(true),
            Progress::Done => self.results.end_scan()?,
            Progress::Counted(count) => self.results.push(&Reply::<Bytes>::Count(count))?,
        }
        Ok(false)
    }
}

/// What is done by itself only; it is refused when it is read, and again here.
pub(super) fn not_within() -> ErrorReply {
    ErrorReply::new(ErrorCode::Unsupported, "this cannot be part of a transaction")
}

/// A transaction that only reads, under way.
#[derive(Debug)]
pub(crate) struct TxnRun {
    tx: Arc<Tx>,
    /// When it began: what has expired is the same for all of it.
    now: u64,
    conditions: TxnConditions,
    requests: TxnRequests,
    /// How many conditions, or requests, were done.
    done: u16,
    scanning: Option<Scanning>,
    answers: Answers,
    /// So many of the next look-ups need not be looked at.
    warm: usize,
    /// What is waited for.
    faulting: Option<oneshot::Receiver<()>>,
}

impl Source for TxnRun {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(faulting) = &mut self.faulting {
            // Whether all pages were read or not, it goes on.
            let _ = ready!(Pin::new(faulting).poll(cx));
            self.faulting = None;
        }
        Poll::Ready(())
    }
}

impl TxnRun {
    pub(super) fn start(tx: Arc<Tx>, now: u64, txn: &Txn, asker: Asker, room: &ReplyRoom) -> Self {
        let answers = Answers::new(asker, room);
        let (conditions, requests) = (txn.conditions(), txn.requests());
        Self { tx, now, conditions, requests, done: 0, scanning: None, answers, warm: 0, faulting: None }
    }

    /// Does some of it. The answer, once all is done.
    pub(crate) fn step(&mut self, cold: &impl ColdReads) -> Result<Option<Outcome>, ErrorReply> {
        // Another handle of the state: what the step looks at is not what it changes.
        let tx = Arc::clone(&self.tx);
        let view = View::new(&*tx, Moment::at(self.now));
        let mut left = STEP;
        while left > 0 {
            let (before, scanned) = (self.answers.results.len(), self.scanned());
            if self.scanning.is_some() {
                self.go_on_scanning(&view)?;
            } else if self.waits_for(cold) {
                return Ok(None);
            } else if let Some(condition) = self.conditions.next() {
                self.condition(&view, &condition)?;
            } else if let Some(request) = self.requests.next() {
                self.request(&view, request)?;
            } else {
                return Ok(Some(self.finish()));
            }
            let grown = (self.answers.results.len() - before) / BYTES;
            let looked_at = self.scanned().saturating_sub(scanned);
            left = left.saturating_sub(LOOK_UP + looked_at + grown as u64);
        }
        Ok(None)
    }

    fn scanned(&self) -> u64 {
        self.scanning.as_ref().map_or(0, Scanning::looked_at)
    }

    fn condition(&mut self, view: &View<'_, Tx>, condition: &TxnCondition) -> Result<(), ErrorReply> {
        let at = TxnPart::Condition(self.done);
        self.answers.asker.check(view, condition).map_err(|error| error.within_txn(at))?;
        self.done = if self.conditions.len() == 0 { 0 } else { self.done + 1 };
        Ok(())
    }

    fn request(&mut self, view: &View<'_, Tx>, request: Request) -> Result<(), ErrorReply> {
        let at = TxnPart::Request(self.done);
        self.done = self.done.saturating_add(1);
        let done = match request {
            Request::Read(read) => self.answers.read(view, &read),
            Request::Stream(stream) => self.answers.begin_scan(view, stream).map(|scanning| {
                self.scanning = scanning;
            }),
            Request::Write(_) | Request::Session(_) | Request::OfSnapshot { .. } => Err(not_within()),
        };
        done.map_err(|error| error.within_txn(at))
    }

    fn go_on_scanning(&mut self, view: &View<'_, Tx>) -> Result<(), ErrorReply> {
        let Some(scanning) = &mut self.scanning else { return Ok(()) };
        let at = TxnPart::Request(self.done.saturating_sub(1));
        let more = self.answers.step_scan(view, scanning).map_err(|error| error.within_txn(at))?;
        if !more {
            self.scanning = None;
        }
        Ok(())
    }

    fn finish(&mut self) -> Outcome {
        self.answers.results.take().finish(self.tx.id())
    }

    /// Looks whether the next look-ups would wait for the disk, and has their pages brought from there if so.
    fn waits_for(&mut self, cold: &impl ColdReads) -> bool {
        if self.warm > 0 || !cold.is_wary() {
            self.warm = self.warm.saturating_sub(1);
            return false;
        }
        let reads: Vec<_> = self.look_ups().take(AT_ONCE).collect();
        self.warm = AT_ONCE - 1;
        if reads.iter().all(|read| is_resident_at(&self.tx, read)) {
            for _ in &reads {
                cold.is_warm();
            }
            return false;
        }
        self.warm = AT_ONCE;
        self.faulting = Some(cold.fault_in(reads));
        true
    }

    /// The look-ups that come next, up to the next scan.
    fn look_ups(&self) -> impl Iterator<Item = ReadRequest> + use<> {
        let get = |condition: TxnCondition| ReadRequest::Get { path: condition.path, key: condition.key };
        let reads = self.requests.clone().map_while(|request| match request {
            Request::Read(read) => Some(read),
            _ => None,
        });
        self.conditions.clone().map(get).chain(reads)
    }
}
