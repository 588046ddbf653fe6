//! Transactions: put together request by request, sent as one.

use boltkv_protocol::{
    Cond, ErrorCode, ErrorReply, ReadRequest, Reply, Request, Txn, TxnBuilder, TxnError, WriteRequest,
};
use bytes::Bytes;

use crate::bucket::wrong_shape;
use crate::{Bucket, Client, DeleteRange, Entry, Error, Lifetime, Path, Scan, Snapshot};

/// Several requests that are done as one transaction: all of them, or none. From [`Client::transaction`]; nothing is sent
/// before [`commit`](Self::commit).
///
/// Conditions are looked at first, in the state before the transaction; requests are done in the order in which they were
/// added, and each sees what those before it did. Where a condition does not hold, or a request fails, nothing is done, and
/// [`Error::failed_part`] tells which it was.
///
/// Ten pounds from one account to another, if neither has changed since it was read:
///
/// ```no_run
/// use boltkv_client::{Bucket, Client, Error, ErrorCode};
///
/// async fn pay(client: &Client, accounts: &Bucket) -> Result<bool, Error> {
///     let read = client.transaction().get(accounts, "ada").get(accounts, "bob").commit().await?;
///     let (Some(ada), Some(bob)) = (read.value(0), read.value(1)) else { return Ok(false) };
///     let number = |value: &[u8]| String::from_utf8_lossy(value).parse::<i64>().expect("only numbers are stored here");
///     let moved = client
///         .transaction()
///         .if_equals(accounts, "ada", ada)
///         .if_equals(accounts, "bob", bob)
///         .set(accounts, "ada", (number(ada) - 10).to_string())
///         .set(accounts, "bob", (number(bob) + 10).to_string())
///         .commit()
///         .await;
///     match moved {
///         Ok(_) => Ok(true),
///         // Somebody else was faster: nothing was done.
///         Err(error) if error.code() == Some(ErrorCode::ConditionFailed) => Ok(false),
///         Err(error) => Err(error),
///     }
/// }
/// ```
///
/// # Limits
/// 65,535 conditions and as many requests, all within one frame of the server's; the results within one frame, too. Scans in
/// a transaction that writes look at 100,000 entries at most (`TXN_TOO_LARGE`): all other writes wait for them.
#[derive(Debug, Clone)]
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    client: Client,
    parts: TxnBuilder,
    /// What each request's result will be.
    due: Vec<Due>,
    /// What could not be added first.
    refused: Option<TxnError>,
}

/// A result that is to come.
#[derive(Debug, Clone, Copy)]
enum Due {
    Asked,
    /// How long a key is there, if it is.
    Lifetime,
    /// A scan of nothing, which the wire has no way to ask for.
    NoEntries,
    NoCount,
    /// A deletion of at most nothing, as well.
    NothingDeleted,
}

/// What became of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Committed {
    /// The id of the transaction. Of one that changed nothing, the newest transaction whose state it saw.
    pub txid: u64,
    /// What came of each request, in the order in which they were added.
    pub results: Vec<TransactionResult>,
}

/// What came of one request of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransactionResult {
    /// Of `get`: the value; `None` if the key is not there.
    Value(Option<Bytes>),
    /// Of `set`, `set_sequence` and what makes, moves and deletes buckets.
    Written,
    /// Of `delete`.
    Deleted {
        /// Whether the key was there.
        existed: bool,
    },
    /// Of `expire`, `persist` and `set_expiry`.
    ExpirySet {
        /// Whether the key was there, and the condition held; and, where it was to persist, whether it did expire before.
        changed: bool,
    },
    /// Of `lifetime`: `None` if the key is not there.
    Lifetime(Option<Lifetime>),
    /// Of `scan`.
    Entries(Vec<Entry>),
    /// Of `count`.
    Count(u64),
    /// Of `increment`: the number that the key's value is now.
    Number(i64),
    /// Of `next_sequence`: the bucket's sequence now.
    Sequence(u64),
    /// Of `delete_range`: how many values were removed, and whether its own limit has left some.
    RangeDeleted {
        /// How many values were removed.
        deleted: u64,
        /// Whether its limit stopped it.
        more: bool,
    },
}

impl Transaction {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, parts: Txn::builder(), due: Vec::new(), refused: None }
    }

    /// Only if the condition holds of this key before the transaction.
    pub fn only_if(mut self, bucket: &Bucket, key: impl AsRef<[u8]>, cond: &Cond) -> Self {
        if self.refused.is_none() {
            self.refused = self.parts.condition(bucket.path(), key.as_ref(), cond).err();
        }
        self
    }

    /// Only if this key is not there.
    pub fn if_absent(self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Self {
        self.only_if(bucket, key, &Cond::IfAbsent)
    }

    /// Only if this key is there.
    pub fn if_present(self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Self {
        self.only_if(bucket, key, &Cond::IfPresent)
    }

    /// Only if this key has this value.
    pub fn if_equals(self, bucket: &Bucket, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.only_if(bucket, key, &Cond::IfEquals(Bytes::copy_from_slice(value.as_ref())))
    }

    /// As [`Bucket::get`].
    pub fn get(self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Self {
        self.add(&ReadRequest::Get { path: bucket.path().clone(), key: key.as_ref() }.into())
    }

    /// As [`Bucket::set`].
    pub fn set(self, bucket: &Bucket, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Self {
        self.set_if(bucket, key, value, &Cond::Always)
    }

    /// As [`Bucket::set_if`]: the condition sees what earlier requests did, and nothing at all is done if it does not hold.
    pub fn set_if(self, bucket: &Bucket, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, cond: &Cond) -> Self {
        let (path, cond) = (bucket.path().clone(), cond.as_slice());
        self.add(&WriteRequest::Set { path, key: key.as_ref(), value: value.as_ref(), cond }.into())
    }

    /// As [`Bucket::delete`].
    pub fn delete(self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Self {
        self.delete_if(bucket, key, &Cond::Always)
    }

    /// As [`Bucket::delete_if`], with a condition as of [`set_if`](Self::set_if).
    pub fn delete_if(self, bucket: &Bucket, key: impl AsRef<[u8]>, cond: &Cond) -> Self {
        let (path, cond) = (bucket.path().clone(), cond.as_slice());
        self.add(&WriteRequest::Delete { path, key: key.as_ref(), cond }.into())
    }

    /// As [`Bucket::increment`].
    pub fn increment(self, bucket: &Bucket, key: impl AsRef<[u8]>, delta: i64) -> Self {
        self.add(&WriteRequest::Increment { path: bucket.path().clone(), key: key.as_ref(), delta }.into())
    }

    /// As [`Bucket::delete_range`], but all at once: more than 10,000 values are `TXN_TOO_LARGE`. The client that it comes from
    /// does not matter.
    pub fn delete_range(mut self, range: DeleteRange) -> Self {
        if let Some(request) = range.into_request() {
            return self.add(&request.into());
        }
        self.due.push(Due::NothingDeleted);
        self
    }

    /// As [`Bucket::next_sequence`].
    pub fn next_sequence(self, bucket: &Bucket) -> Self {
        self.add(&WriteRequest::NextSequence(bucket.path().clone()).into())
    }

    /// As [`Bucket::set_sequence`].
    pub fn set_sequence(self, bucket: &Bucket, sequence: u64) -> Self {
        self.add(&WriteRequest::SetSequence { path: bucket.path().clone(), sequence }.into())
    }

    /// As [`Bucket::move_to`].
    pub fn move_to(self, bucket: &Bucket, to: &Path) -> Self {
        self.add(&WriteRequest::MoveBucket { path: bucket.path().clone(), to: to.clone() }.into())
    }

    /// As [`Bucket::create`].
    pub fn create(self, bucket: &Bucket) -> Self {
        self.add(&WriteRequest::CreateBucket(bucket.path().clone()).into())
    }

    /// As [`Bucket::create_if_missing`].
    pub fn create_if_missing(self, bucket: &Bucket) -> Self {
        self.add(&WriteRequest::CreateBucketIfMissing(bucket.path().clone()).into())
    }

    /// As [`Bucket::delete_bucket`].
    pub fn delete_bucket(self, bucket: &Bucket) -> Self {
        self.add(&WriteRequest::DeleteBucket(bucket.path().clone()).into())
    }

    /// The entries that a scan asks for, all of them in the answer's one frame, else `FRAME_TOO_LARGE`. The scan's own client
    /// does not matter.
    pub fn scan(mut self, scan: Scan) -> Self {
        if scan.is_of_nothing() {
            self.due.push(Due::NoEntries);
            return self;
        }
        self.add(&scan.request().into())
    }

    /// How many entries a scan would give.
    pub fn count(mut self, scan: Scan) -> Self {
        if scan.is_of_nothing() {
            self.due.push(Due::NoCount);
            return self;
        }
        self.add(&scan.counting().request().into())
    }

    pub(crate) fn add(self, request: &Request<&[u8]>) -> Self {
        self.add_due(request, Due::Asked)
    }

    pub(crate) fn add_lifetime(self, request: &Request<&[u8]>) -> Self {
        self.add_due(request, Due::Lifetime)
    }

    fn add_due(mut self, request: &Request<&[u8]>, due: Due) -> Self {
        if self.refused.is_none() {
            self.refused = self.parts.request(request).err();
            self.due.push(due);
        }
        self
    }

    /// Has it done. It is on the server's disk when this is ready, if it writes.
    ///
    /// # Errors
    /// `CONDITION_FAILED`, and what the single requests can fail with: [`Error::failed_part`] tells which part it was.
    /// `FRAME_TOO_LARGE` if the results do not fit one frame, `TXN_TOO_LARGE` if its scans look at too much. After each of
    /// these nothing was done. [`Error::Transaction`] or [`Error::Unsendable`] if it holds too much to be sent. If it writes,
    /// [`Error::OutcomeUnknown`] where the connection is lost before the answer; one that only reads is sent once more.
    ///
    /// # Cancellation
    /// Dropped before it is ready, all of it may have been done, or nothing.
    pub async fn commit(self) -> Result<Committed, Error> {
        if let Some(refused) = self.refused {
            return Err(refused.into());
        }
        let (txid, replies) = self.client.execute(self.parts.build()).await?;
        committed(txid, replies, self.due)
    }

    /// What it finds in a snapshot.
    pub(crate) async fn read_in(self, snapshot: &Snapshot) -> Result<Committed, Error> {
        if let Some(refused) = self.refused {
            return Err(refused.into());
        }
        let txn = self.parts.build();
        if txn.writes() {
            let message = "a transaction that writes cannot be of a snapshot";
            return Err(Error::Server(ErrorReply::new(ErrorCode::Unsupported, message)));
        }
        let (txid, replies) = replies(txn, async |txn| snapshot.execute(txn).await).await?;
        committed(txid, replies, self.due)
    }
}

/// Has a transaction done in whatever way; answers its number, and what came of each request as its own reply would be.
pub(crate) async fn replies(
    txn: Txn,
    execute: impl AsyncFnOnce(Txn) -> Result<Reply, Error>,
) -> Result<(u64, Vec<Reply>), Error> {
    let expects: Vec<_> = txn.expects().collect();
    let Reply::Txn { txid, results } = execute(txn).await? else { return Err(wrong_shape()) };
    let replies: Result<Vec<_>, _> = results.replies(expects.iter().copied()).collect();
    let replies = replies.map_err(|error| Error::Protocol(error.to_string().into()))?;
    if replies.len() == expects.len() { Ok((txid, replies)) } else { Err(wrong_shape()) }
}

fn committed(txid: u64, replies: Vec<Reply>, due: Vec<Due>) -> Result<Committed, Error> {
    let mut replies = replies.into_iter();
    let result = |due| match due {
        Due::Asked => result(replies.next()),
        Due::Lifetime => match replies.next() {
            Some(Reply::ExpiryTime { at, now }) => Ok(TransactionResult::Lifetime(Some(Lifetime::of(at, now)))),
            Some(Reply::Error(error)) if error.code.is_result() => Ok(TransactionResult::Lifetime(None)),
            _ => Err(wrong_shape()),
        },
        Due::NoEntries => Ok(TransactionResult::Entries(Vec::new())),
        Due::NoCount => Ok(TransactionResult::Count(0)),
        Due::NothingDeleted => Ok(TransactionResult::RangeDeleted { deleted: 0, more: false }),
    };
    Ok(Committed { txid, results: due.into_iter().map(result).collect::<Result<_, _>>()? })
}

fn result(reply: Option<Reply>) -> Result<TransactionResult, Error> {
    Ok(match reply.ok_or_else(wrong_shape)? {
        Reply::Value(value) => TransactionResult::Value(Some(value)),
        Reply::Error(error) if error.code.is_result() => TransactionResult::Value(None),
        Reply::Written { .. } => TransactionResult::Written,
        Reply::Deleted { existed, .. } => TransactionResult::Deleted { existed },
        Reply::ExpirySet { changed, .. } => TransactionResult::ExpirySet { changed },
        Reply::Entries(entries) => TransactionResult::Entries(entries),
        Reply::Count(count) => TransactionResult::Count(count),
        Reply::Number { value, .. } => TransactionResult::Number(value),
        Reply::Sequence { sequence, .. } => TransactionResult::Sequence(sequence),
        Reply::DeletedRange { deleted, more, .. } => TransactionResult::RangeDeleted { deleted, more },
        _ => return Err(wrong_shape()),
    })
}

impl Committed {
    /// The value that the request at this place, counted from 0, has found: `None` where that is no `get`, or there was none.
    #[must_use]
    pub fn value(&self, at: usize) -> Option<&Bytes> {
        match self.results.get(at) {
            Some(TransactionResult::Value(value)) => value.as_ref(),
            _ => None,
        }
    }
}
