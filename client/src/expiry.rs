//! Keys that expire: set so, told to, and asked when.

use std::time::Duration;

use boltkv_protocol::{Cond, ErrorCode, ExpireCond, ExpireTo, Expiry, NEVER, ReadRequest, Reply, WriteRequest};

use crate::bucket::wrong_shape;
use crate::{Bucket, Error, Transaction, Written};

/// What became of a change of when a key expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExpirySet {
    /// The id of the transaction that did it.
    pub txid: u64,
    /// Whether the key was there, and the condition held; and, where it was to persist, whether it did expire before.
    pub changed: bool,
}

/// How long a key is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// It never expires.
    Forever,
    /// It expires.
    Until {
        /// When, in milliseconds since 1970, by the server's clock.
        at_ms: u64,
        /// How long that was from when the server answered: this machine's clock need not agree with the server's.
        left: Duration,
    },
}

impl Lifetime {
    /// How long a key is there still; `None` for what never expires.
    #[must_use]
    pub const fn left(self) -> Option<Duration> {
        match self {
            Self::Forever => None,
            Self::Until { left, .. } => Some(left),
        }
    }

    pub(crate) const fn of(at: u64, now: u64) -> Self {
        match at {
            NEVER => Self::Forever,
            at => Self::Until { at_ms: at, left: Duration::from_millis(at.saturating_sub(now)) },
        }
    }
}

impl Bucket {
    /// Puts a value under a key, which is gone after this time: counted from when the server does it, in whole milliseconds.
    /// [`set`](Self::set) has it stay.
    ///
    /// ```no_run
    /// # async fn example(sessions: boltkv_client::Bucket) -> Result<(), boltkv_client::Error> {
    /// use std::time::Duration;
    ///
    /// sessions.set_with_ttl("4711", "ada", Duration::from_secs(3600)).await?;
    /// sessions.expire("4711", Duration::from_secs(3600)).await?; // an hour from now
    /// let left = sessions.lifetime("4711").await?; // None: it is gone
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`set`](Self::set); `KEY_TOO_LARGE` also where the names that lead to the bucket are too long together.
    ///
    /// # Cancellation
    /// As for [`set`](Self::set).
    pub async fn set_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<Written, Error> {
        self.set_expiring(key, value, Cond::Always, Expiry::In(millis(ttl))).await
    }

    /// Puts a value under a key if a condition holds, and says when the key expires: at a time, after one, or when it did
    /// before.
    ///
    /// # Errors
    /// As for [`set_with_ttl`](Self::set_with_ttl), and `CONDITION_FAILED`.
    ///
    /// # Cancellation
    /// As for [`set`](Self::set).
    pub async fn set_expiring(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        cond: Cond,
        expiry: Expiry,
    ) -> Result<Written, Error> {
        let (path, cond) = (self.path().clone(), cond.as_slice());
        self.write(WriteRequest::SetExpiring { path, key: key.as_ref(), value: value.as_ref(), cond, expiry }).await
    }

    /// Has a key be gone after this time: a value's, or that of a bucket in this one, which goes with all within. One that is
    /// not there is no error: [`ExpirySet`] tells.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `KEY_TOO_LARGE` where the names that lead to the bucket are too long together.
    /// [`Error::OutcomeUnknown`] if the connection is lost before the answer.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the time may have been set or not.
    pub async fn expire(&self, key: impl AsRef<[u8]>, ttl: Duration) -> Result<ExpirySet, Error> {
        self.set_expiry(key, ExpireTo::In(millis(ttl)), ExpireCond::Always).await
    }

    /// Has a key never expire.
    ///
    /// # Errors
    /// As for [`expire`](Self::expire).
    ///
    /// # Cancellation
    /// As for [`expire`](Self::expire).
    pub async fn persist(&self, key: impl AsRef<[u8]>) -> Result<ExpirySet, Error> {
        self.set_expiry(key, ExpireTo::Never, ExpireCond::Always).await
    }

    /// Sets when a key expires, if a condition holds. A time that is past removes it.
    ///
    /// # Errors
    /// As for [`expire`](Self::expire).
    ///
    /// # Cancellation
    /// As for [`expire`](Self::expire).
    pub async fn set_expiry(&self, key: impl AsRef<[u8]>, to: ExpireTo, cond: ExpireCond) -> Result<ExpirySet, Error> {
        let request = WriteRequest::Expire { path: self.path().clone(), key: key.as_ref(), to, cond };
        match self.client().call(request).await? {
            Reply::ExpirySet { txid, changed } => Ok(ExpirySet { txid, changed }),
            _ => Err(wrong_shape()),
        }
    }

    /// How long a key is there; `None` if it is not.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`.
    ///
    /// # Cancellation
    /// May be dropped at any point: a read changes nothing.
    pub async fn lifetime(&self, key: impl AsRef<[u8]>) -> Result<Option<Lifetime>, Error> {
        let request = ReadRequest::ExpiryTime { path: self.path().clone(), key: key.as_ref() };
        match self.client().call(request).await {
            Ok(Reply::ExpiryTime { at, now }) => Ok(Some(Lifetime::of(at, now))),
            Ok(_) => Err(wrong_shape()),
            Err(error) if error.code() == Some(ErrorCode::KeyNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Transaction {
    /// As [`Bucket::set_with_ttl`].
    pub fn set_with_ttl(self, bucket: &Bucket, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, ttl: Duration) -> Self {
        self.set_expiring(bucket, key, value, &Cond::Always, Expiry::In(millis(ttl)))
    }

    /// As [`Bucket::set_expiring`], with a condition as of [`set_if`](Self::set_if).
    pub fn set_expiring(
        self,
        bucket: &Bucket,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        cond: &Cond,
        expiry: Expiry,
    ) -> Self {
        let (path, cond) = (bucket.path().clone(), cond.as_slice());
        self.add(&WriteRequest::SetExpiring { path, key: key.as_ref(), value: value.as_ref(), cond, expiry }.into())
    }

    /// As [`Bucket::expire`].
    pub fn expire(self, bucket: &Bucket, key: impl AsRef<[u8]>, ttl: Duration) -> Self {
        self.set_expiry(bucket, key, ExpireTo::In(millis(ttl)), ExpireCond::Always)
    }

    /// As [`Bucket::persist`].
    pub fn persist(self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Self {
        self.set_expiry(bucket, key, ExpireTo::Never, ExpireCond::Always)
    }

    /// As [`Bucket::set_expiry`]. That its condition does not hold is no reason not to do the rest.
    pub fn set_expiry(self, bucket: &Bucket, key: impl AsRef<[u8]>, to: ExpireTo, cond: ExpireCond) -> Self {
        self.add(&WriteRequest::Expire { path: bucket.path().clone(), key: key.as_ref(), to, cond }.into())
    }

    /// As [`Bucket::lifetime`].
    pub fn lifetime(self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Self {
        self.add_lifetime(&ReadRequest::ExpiryTime { path: bucket.path().clone(), key: key.as_ref() }.into())
    }
}

/// What is longer than any number is as long as there is.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
