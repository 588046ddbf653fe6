//! A bucket's handle: the requests that concern one bucket.

use boltkv_protocol::{Cond, ErrorCode, Path, ReadRequest, Reply, StreamRequest, WriteRequest};
use bytes::Bytes;

use crate::{BucketStat, Client, DeleteRange, Error, Scan, Watch};

/// A bucket of the server, by its path. Cheap to clone. The bucket need not be there until it is used.
///
/// Keys and values are any bytes: `&str`, `String`, `&[u8]`, `Vec<u8>`, `[u8; N]`, `Bytes`, borrowed or owned. They are copied
/// once, into the connection's buffer.
///
/// Every request can fail as [`Error`] says; what is listed with each is what the server may say to it in particular.
///
/// # Cancellation
/// A request that is dropped before it is ready (in a `select!`, by a timeout) leaves the client whole and its other requests
/// unhurt. One that had not been sent yet never will be. One that had been sent is done all the same, and its answer is thrown
/// away: so a dropped write is like one that failed with [`Error::OutcomeUnknown`].
#[derive(Debug, Clone)]
pub struct Bucket {
    client: Client,
    path: Path,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The id of the transaction that did it. Later transactions have higher ids; writes of one group commit share one.
    pub txid: u64,
}

/// What became of a delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Deleted {
    /// The id of the transaction that did it.
    pub txid: u64,
    /// Whether the key was there.
    pub existed: bool,
}

/// What became of an increment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Incremented {
    /// The id of the transaction that did it.
    pub txid: u64,
    /// The number that the key's value is now.
    pub value: i64,
}

/// A bucket's sequence after it was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sequence {
    /// The id of the transaction that did it.
    pub txid: u64,
    /// The sequence now: no other raise gives the same, unless somebody has set it back.
    pub value: u64,
}

impl Bucket {
    pub(crate) const fn new(client: Client, path: Path) -> Self {
        Self { client, path }
    }

    /// Its path.
    #[must_use]
    pub const fn path(&self) -> &Path {
        &self.path
    }

    /// The value of a key; `None` if the key is not there.
    ///
    /// ```no_run
    /// # async fn example(users: boltkv_client::Bucket) -> Result<(), boltkv_client::Error> {
    /// if let Some(name) = users.get("ada").await? {
    ///     println!("{}", String::from_utf8_lossy(&name));
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the key is a bucket; `VALUE_TOO_LARGE` if the value does not fit a frame.
    ///
    /// # Cancellation
    /// May be dropped at any point: a read changes nothing.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>, Error> {
        let request = ReadRequest::Get { path: self.path.clone(), key: key.as_ref() };
        match self.client.call(request).await {
            Ok(Reply::Value(value)) => Ok(Some(value)),
            Ok(_) => Err(wrong_shape()),
            Err(error) if error.code() == Some(ErrorCode::KeyNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a value under a key. It is on the server's disk when this is ready.
    ///
    /// ```no_run
    /// # async fn example(users: boltkv_client::Bucket, photo: &[u8]) -> Result<(), boltkv_client::Error> {
    /// users.set("ada", "Lovelace").await?;
    /// users.set(42_u64.to_be_bytes(), photo).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the key is a bucket; `KEY_REQUIRED`, `KEY_TOO_LARGE`, `VALUE_TOO_LARGE`.
    /// [`Error::OutcomeUnknown`] if the connection is lost before the answer.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the value may have been stored or not.
    pub async fn set(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Written, Error> {
        self.set_if(key, value, Cond::Always).await
    }

    /// Puts a value under a key if a condition holds.
    ///
    /// After [`Error::OutcomeUnknown`] a write that asks for the key's absence or for its old value can be sent again: if the
    /// first attempt was done, the second fails with `CONDITION_FAILED` (unless somebody has put the old state back meanwhile).
    /// Reading the key then tells whose value it is. Only the caller can judge that, so this client does not do it by itself.
    ///
    /// A list that several clients add to (for a counter there is [`increment`](Self::increment)):
    ///
    /// ```no_run
    /// use boltkv_client::{Bucket, Cond, Error, ErrorCode};
    ///
    /// async fn append(bucket: &Bucket, key: &str, item: &str) -> Result<(), Error> {
    ///     loop {
    ///         let old = bucket.get(key).await?;
    ///         let longer = [old.as_deref().unwrap_or_default(), item.as_bytes(), b"\n"].concat();
    ///         let unchanged = old.map_or(Cond::IfAbsent, Cond::IfEquals);
    ///         match bucket.set_if(key, longer, unchanged).await {
    ///             Ok(_) => return Ok(()),
    ///             // Somebody was faster: read again.
    ///             Err(error) if error.code() == Some(ErrorCode::ConditionFailed) => {}
    ///             Err(error) => return Err(error),
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As for [`set`](Self::set), and `CONDITION_FAILED`.
    ///
    /// # Cancellation
    /// As for [`set`](Self::set).
    pub async fn set_if(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, cond: Cond) -> Result<Written, Error> {
        let path = self.path.clone();
        self.write(WriteRequest::Set { path, key: key.as_ref(), value: value.as_ref(), cond: cond.as_slice() }).await
    }

    /// Removes a key. One that is not there is no error: [`Deleted`] tells.
    ///
    /// ```no_run
    /// # async fn example(users: boltkv_client::Bucket) -> Result<(), boltkv_client::Error> {
    /// if !users.delete("ada").await?.existed {
    ///     println!("there was no ada");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the key is a bucket. [`Error::OutcomeUnknown`] if the connection is lost
    /// before the answer.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the key may have been removed or not.
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<Deleted, Error> {
        self.delete_if(key, Cond::Always).await
    }

    /// Removes a key if a condition holds.
    ///
    /// # Errors
    /// As for [`delete`](Self::delete), and `CONDITION_FAILED`.
    ///
    /// # Cancellation
    /// As for [`delete`](Self::delete).
    pub async fn delete_if(&self, key: impl AsRef<[u8]>, cond: Cond) -> Result<Deleted, Error> {
        let path = self.path.clone();
        let request = WriteRequest::Delete { path, key: key.as_ref(), cond: cond.as_slice() };
        match self.client.call(request).await? {
            Reply::Deleted { txid, existed } => Ok(Deleted { txid, existed }),
            _ => Err(wrong_shape()),
        }
    }

    /// Adds to the number that a key's value is, in one round trip, however many do the same at once. The value is decimal text
    /// (`-12`), as anybody may also set and read it. A key that is not there counts as 0.
    ///
    /// ```no_run
    /// # async fn example(counters: boltkv_client::Bucket) -> Result<(), boltkv_client::Error> {
    /// let visits = counters.increment("visits", 1).await?.value;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the value is no whole number of 64 bits in its plain form (no blanks, no
    /// `+`, no leading zeros), or the key is a bucket; `NUMBER_OUT_OF_RANGE` if the sum does not fit. Nothing is written then.
    /// [`Error::OutcomeUnknown`] if the connection is lost before the answer: nothing but the number itself then tells whether
    /// it was done. Where that matters, use [`set_if`](Self::set_if).
    ///
    /// # Cancellation
    /// Dropped before it is ready, the number may have been changed or not.
    pub async fn increment(&self, key: impl AsRef<[u8]>, delta: i64) -> Result<Incremented, Error> {
        let request = WriteRequest::Increment { path: self.path.clone(), key: key.as_ref(), delta };
        match self.client.call(request).await? {
            Reply::Number { txid, value } => Ok(Incremented { txid, value }),
            _ => Err(wrong_shape()),
        }
    }

    /// Removes many keys, buckets excepted: by their bounds or a prefix.
    pub fn delete_range(&self) -> DeleteRange {
        DeleteRange::new(self.client.clone(), self.path.clone())
    }

    /// The bucket's entries, keys and buckets alike, in key order.
    pub fn scan(&self) -> Scan {
        Scan::entries(self.client.clone(), self.path.clone())
    }

    /// Watches what is committed in this bucket and all within it, and what becomes of the buckets that it lies in. It need not
    /// be there.
    pub fn watch(&self) -> Watch {
        Watch::new(self.client.clone(), self.path.clone())
    }

    /// The buckets within this one, in the order of their names.
    pub fn buckets(&self) -> Scan {
        Scan::buckets(self.client.clone(), self.path.clone())
    }

    /// The bucket's figures: how many keys, pages and bytes it has, with the buckets within it. The server reads all their pages
    /// for it, beside everything else that it does: of a large bucket for seconds.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the path leads to a key; `BUCKET_NAME_REQUIRED`; `OVERLOADED` where the
    /// server counts several buckets already.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the server stops counting.
    pub async fn stat(&self) -> Result<BucketStat, Error> {
        BucketStat::of(&self.client.call(StreamRequest::BucketStat(self.path.clone())).await?)
    }

    /// Creates the bucket. Its parents must be there, itself must not.
    ///
    /// # Errors
    /// `BUCKET_EXISTS`; `BUCKET_NOT_FOUND` if a parent is not there; `INCOMPATIBLE_VALUE` if a name on the path is a key;
    /// `BUCKET_NAME_REQUIRED`. [`Error::OutcomeUnknown`] if the connection is lost before the answer.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the bucket may have been created or not.
    pub async fn create(&self) -> Result<Written, Error> {
        self.write(WriteRequest::CreateBucket(self.path.clone())).await
    }

    /// Creates the bucket and its parents where they are missing.
    ///
    /// # Errors
    /// `INCOMPATIBLE_VALUE` if a name on the path is a key; `BUCKET_NAME_REQUIRED`. [`Error::OutcomeUnknown`] if the connection
    /// is lost before the answer; to send it again is harmless.
    ///
    /// # Cancellation
    /// As for [`create`](Self::create).
    pub async fn create_if_missing(&self) -> Result<Written, Error> {
        self.write(WriteRequest::CreateBucketIfMissing(self.path.clone())).await
    }

    /// Deletes the bucket with all within.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the last name is a key. [`Error::OutcomeUnknown`] if the connection is lost
    /// before the answer.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the bucket may have been deleted or not.
    pub async fn delete_bucket(&self) -> Result<Written, Error> {
        self.write(WriteRequest::DeleteBucket(self.path.clone())).await
    }

    /// The bucket's sequence: see [`next_sequence`](Self::next_sequence).
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the path leads to a key; `BUCKET_NAME_REQUIRED`.
    ///
    /// # Cancellation
    /// May be dropped at any point: a read changes nothing.
    pub async fn sequence(&self) -> Result<u64, Error> {
        match self.client.call(ReadRequest::Sequence(self.path.clone())).await? {
            Reply::Count(sequence) => Ok(sequence),
            _ => Err(wrong_shape()),
        }
    }

    /// Raises the bucket's sequence by one: a number of 64 bits that is stored with the bucket and begins with 0.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `NUMBER_OUT_OF_RANGE` if it is as high as it can be. [`Error::OutcomeUnknown`] if the connection is
    /// lost before the answer: it may have been raised.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the sequence may have been raised or not.
    pub async fn next_sequence(&self) -> Result<Sequence, Error> {
        match self.client.call(WriteRequest::NextSequence(self.path.clone())).await? {
            Reply::Sequence { txid, sequence: value } => Ok(Sequence { txid, value }),
            _ => Err(wrong_shape()),
        }
    }

    /// Sets the bucket's sequence.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`. [`Error::OutcomeUnknown`] if the connection is lost before the answer; to send it again is harmless.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the sequence may have been set or not.
    pub async fn set_sequence(&self, sequence: u64) -> Result<Written, Error> {
        self.write(WriteRequest::SetSequence { path: self.path.clone(), sequence }).await
    }

    /// Moves the bucket, with all within, to another path, which may end in another name; its new parent must be there. This
    /// handle keeps the old path.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND` for the bucket or a parent; `BUCKET_EXISTS` if there is a bucket at the new path, this one also;
    /// `INCOMPATIBLE_VALUE` if a name on a path is a key, or the new path leads into the bucket itself.
    /// [`Error::OutcomeUnknown`] if the connection is lost before the answer.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the bucket may have been moved or not.
    pub async fn move_to(&self, path: &Path) -> Result<Written, Error> {
        self.write(WriteRequest::MoveBucket { path: self.path.clone(), to: path.clone() }).await
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Sends what is answered with a transaction's id.
    pub(crate) async fn write(&self, request: WriteRequest<&[u8]>) -> Result<Written, Error> {
        match self.client.call(request).await? {
            Reply::Written { txid } => Ok(Written { txid }),
            _ => Err(wrong_shape()),
        }
    }
}

/// A reply of another shape than its request has: the decoder does not make one, and no caller shall pay if it did.
pub(crate) const fn wrong_shape() -> Error {
    Error::Protocol(std::borrow::Cow::Borrowed("the reply does not belong to the request"))
}
