//! A bucket's handle: the requests that concern one bucket.

use boltkv_protocol::{Cond, ErrorCode, Path, ReadRequest, Reply, WriteRequest};
use bytes::Bytes;

use crate::{Client, Error, Scan};

/// A bucket of the server, by its path. Cheap to clone. The bucket need not be there until it is used.
///
/// Every request can fail as [`Error`] says; what is listed with each is what the server may say to it in particular.
#[derive(Debug, Clone)]
pub struct Bucket {
    client: Client,
    path: Path,
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
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the key is a bucket; `VALUE_TOO_LARGE` if the value does not fit a frame.
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Bytes>, Error> {
        let request = ReadRequest::Get { path: self.path.clone(), key: owned(key) };
        match self.client.call(&request.into()).await {
            Ok(Reply::Value(value)) => Ok(Some(value)),
            Ok(_) => Err(wrong_shape()),
            Err(error) if error.code() == Some(ErrorCode::KeyNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Puts a value under a key, and returns the id of the transaction that did.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the key is a bucket; `KEY_REQUIRED`, `KEY_TOO_LARGE`, `VALUE_TOO_LARGE`.
    /// [`Error::OutcomeUnknown`] if the connection is lost before the answer.
    pub async fn set(&self, key: impl AsRef<[u8]>, value: impl Into<Bytes>) -> Result<u64, Error> {
        self.set_if(key, value, Cond::Always).await
    }

    /// Puts a value under a key if a condition holds, and returns the id of the transaction that did.
    ///
    /// After [`Error::OutcomeUnknown`] a write that asks for the key's absence or for its old value can be sent again: if the
    /// first attempt was done, the second fails with `CONDITION_FAILED` (unless somebody has put the old state back meanwhile).
    /// Reading the key then tells whose value it is. Only the caller can judge that, so this client does not do it by itself.
    ///
    /// # Errors
    /// As for [`set`](Self::set), and `CONDITION_FAILED`.
    pub async fn set_if(&self, key: impl AsRef<[u8]>, value: impl Into<Bytes>, cond: Cond) -> Result<u64, Error> {
        let path = self.path.clone();
        self.write(WriteRequest::Set { path, key: owned(key), value: value.into(), cond }).await
    }

    /// Removes a key, and returns whether it was there.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the key is a bucket. [`Error::OutcomeUnknown`] if the connection is lost
    /// before the answer.
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        self.delete_if(key, Cond::Always).await
    }

    /// Removes a key if a condition holds, and returns whether it was there.
    ///
    /// # Errors
    /// As for [`delete`](Self::delete), and `CONDITION_FAILED`.
    pub async fn delete_if(&self, key: impl AsRef<[u8]>, cond: Cond) -> Result<bool, Error> {
        let request = WriteRequest::Delete { path: self.path.clone(), key: owned(key), cond };
        match self.client.call(&request.into()).await? {
            Reply::Deleted { existed, .. } => Ok(existed),
            _ => Err(wrong_shape()),
        }
    }

    /// The bucket's entries, keys and buckets alike, in key order.
    pub fn scan(&self) -> Scan {
        Scan::entries(self.client.clone(), self.path.clone())
    }

    /// The buckets within this one, in the order of their names.
    pub fn buckets(&self) -> Scan {
        Scan::buckets(self.client.clone(), self.path.clone())
    }

    /// Creates the bucket, and returns the id of the transaction that did. Its parents must be there, itself must not.
    ///
    /// # Errors
    /// `BUCKET_EXISTS`; `BUCKET_NOT_FOUND` if a parent is not there; `INCOMPATIBLE_VALUE` if a name on the path is a key;
    /// `BUCKET_NAME_REQUIRED`. [`Error::OutcomeUnknown`] if the connection is lost before the answer.
    pub async fn create(&self) -> Result<u64, Error> {
        self.write(WriteRequest::CreateBucket(self.path.clone())).await
    }

    /// Creates the bucket and its parents where they are missing, and returns the id of the transaction that did.
    ///
    /// # Errors
    /// `INCOMPATIBLE_VALUE` if a name on the path is a key; `BUCKET_NAME_REQUIRED`. [`Error::OutcomeUnknown`] if the connection
    /// is lost before the answer; to send it again is harmless.
    pub async fn create_if_missing(&self) -> Result<u64, Error> {
        self.write(WriteRequest::CreateBucketIfMissing(self.path.clone())).await
    }

    /// Deletes the bucket with all within, and returns the id of the transaction that did.
    ///
    /// # Errors
    /// `BUCKET_NOT_FOUND`; `INCOMPATIBLE_VALUE` if the last name is a key. [`Error::OutcomeUnknown`] if the connection is lost
    /// before the answer.
    pub async fn delete_bucket(&self) -> Result<u64, Error> {
        self.write(WriteRequest::DeleteBucket(self.path.clone())).await
    }

    /// Sends what is answered with a transaction's id.
    async fn write(&self, request: WriteRequest) -> Result<u64, Error> {
        match self.client.call(&request.into()).await? {
            Reply::Written { txid } => Ok(txid),
            _ => Err(wrong_shape()),
        }
    }
}

fn owned(key: impl AsRef<[u8]>) -> Bytes {
    Bytes::copy_from_slice(key.as_ref())
}

/// A reply of another shape than its request has: the decoder does not make one, and no caller shall pay if it did.
pub(crate) const fn wrong_shape() -> Error {
    Error::Protocol(std::borrow::Cow::Borrowed("the reply does not belong to the request"))
}
