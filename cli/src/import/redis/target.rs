//! What is put into the server: changes, many as one transaction; and what is there already.

use std::time::Duration;

use boltkv_client::{Bucket, Client, Error, ErrorCode, Lifetime, Path, TxnPart};
use boltkv_protocol::{Txn, WriteRequest};
use bytes::Bytes;
use futures_util::future::try_join_all;

use crate::failure::{Failure, Outcome};
use crate::import::may_be_sent_again;
use crate::patience;

/// The server that is put into.
#[derive(Clone)]
pub(super) struct Target {
    client: Client,
    /// How long it is waited for where it is away or busy.
    timeout: Duration,
}

/// A change that is done as a whole, with others or alone.
#[derive(Debug)]
pub(super) struct Put {
    /// The key that it is about.
    pub(super) key: Bytes,
    pub(super) what: What,
    pub(super) requests: Vec<WriteRequest>,
}

/// What a change is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A key with its value, or only its time.
    String,
    /// The beginning of a hash, or only its time.
    Hash,
    /// A field of a hash.
    Field,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    /// Somebody else was faster, and nothing that is there is changed.
    Kept,
    /// The hash is no longer there: its time has come.
    Gone,
    /// It cannot be held, and why not.
    Unholdable(String),
}

/// What is under a key, and when it expires.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum There {
    Nothing,
    /// A value; `None`: one that is too long to be looked at.
    Value(Option<Bytes>, Option<u64>),
    Bucket(Option<u64>),
}

/// Why changes were not done.
enum Refused {
    /// Because of the one with this number.
    One(usize, Fate),
    /// They are more than the server takes at a time.
    TooMuch,
    Failed(Failure),
}

impl Put {
    /// Bytes that it takes to send it.
    pub(super) fn bytes(&self) -> u64 {
        let of = |request: &WriteRequest| match request {
            WriteRequest::Set { key, value, .. } | WriteRequest::SetExpiring { key, value, .. } => {
                key.len() + value.len()
            }
            _ => self.key.len(),
        };
        self.requests.iter().map(of).sum::<usize>() as u64
    }
}

impl Target {
    pub(super) const fn new(client: Client, timeout: Duration) -> Self {
        Self { client, timeout }
    }

    pub(super) fn bucket(&self, path: &Path) -> Bucket {
        self.client.bucket_at(path.clone())
    }

    /// Makes changes; answers what became of each.
    pub(super) async fn put(&self, puts: &[Put]) -> Outcome<Vec<Fate>> {
        let mut fates = vec![Fate::Done; puts.len()];
        // Those that are still to be sent, the next ones last.
        let mut ahead: Vec<Vec<usize>> = vec![(0..puts.len()).collect()];
        while let Some(mut these) = ahead.pop() {
            match (self.send(puts, &these).await, these.as_slice()) {
                (Ok(()), _) => {}
                (Err(Refused::One(at, fate)), _) => {
                    // What was to be done with it was undone.
                    these.retain(|other| *other != at);
                    ahead.push(these);
                    set(&mut fates, at, fate);
                }
                (Err(Refused::TooMuch), [at]) => {
                    let why = "values that are longer than the server takes (its option --max-frame)";
                    set(&mut fates, *at, Fate::Unholdable(why.to_owned()));
                }
                (Err(Refused::TooMuch), _) => {
                    let second = these.split_off(these.len() / 2);
                    ahead.extend([second, these]);
                }
                (Err(Refused::Failed(failure)), _) => return Err(failure),
            }
        }
        Ok(fates)
    }

    /// Has some of the changes made by one transaction.
    async fn send(&self, puts: &[Put], these: &[usize]) -> Result<(), Refused> {
        if these.is_empty() {
            return Ok(());
        }
        let (mut txn, mut put_of) = (Txn::builder(), Vec::new());
        for &at in these {
            for request in puts.get(at).map(|put| put.requests.as_slice()).unwrap_or_default() {
                let added = txn.request(&request.clone().into());
                added.map_err(|error| Refused::One(at, Fate::Unholdable(error.to_string())))?;
                put_of.push(at);
            }
        }
        let txn = txn.build();
        let done = self.patiently(may_be_sent_again, async || self.client.execute(txn.clone()).await).await;
        let Err(error) = done else { return Ok(()) };
        if matches!(error, Error::Unsendable(_)) || error.code() == Some(ErrorCode::FrameTooLarge) {
            return Err(Refused::TooMuch);
        }
        let blamed = match error.failed_part() {
            Some(TxnPart::Request(part)) => put_of.get(usize::from(part)).copied(),
            _ => None,
        };
        match blamed.zip(fate(&error)) {
            Some((at, fate)) => Err(Refused::One(at, fate)),
            None => Err(Refused::Failed(Failure::write(error))),
        }
    }

    /// What there is under these keys of a bucket.
    pub(super) async fn look(&self, path: &Path, keys: &[Bytes]) -> Outcome<Vec<There>> {
        self.of_each(path, keys, async |target, bucket, key| {
            let (value, time) = tokio::join!(
                target.patiently(Error::is_passing, async || bucket.get(&key).await),
                target.patiently(Error::is_passing, async || bucket.lifetime(&key).await)
            );
            let at = match time? {
                Some(Lifetime::Until { at_ms, .. }) => Some(at_ms),
                _ => None,
            };
            match value {
                Ok(None) => Ok(There::Nothing),
                Ok(value) => Ok(There::Value(value, at)),
                Err(error) if error.code() == Some(ErrorCode::IncompatibleValue) => Ok(There::Bucket(at)),
                Err(error) if error.code() == Some(ErrorCode::ValueTooLarge) => Ok(There::Value(None, at)),
                Err(error) => Err(error),
            }
        })
        .await
    }

    /// The values of these keys of a bucket; `None` where there is none that could be looked at.
    pub(super) async fn values(&self, path: &Path, keys: &[Bytes]) -> Outcome<Vec<Option<Bytes>>> {
        self.of_each(path, keys, async |target, bucket, key| {
            let value = target.patiently(Error::is_passing, async || bucket.get(&key).await).await;
            match value {
                Err(error)
                    if matches!(
                        error.code(),
                        Some(ErrorCode::IncompatibleValue | ErrorCode::ValueTooLarge | ErrorCode::BucketNotFound)
                    ) =>
                {
                    Ok(None)
                }
                value => value,
            }
        })
        .await
    }

    /// Asks something of each key, all at once; answers in their order.
    async fn of_each<T>(
        &self,
        path: &Path,
        keys: &[Bytes],
        ask: impl AsyncFn(Self, Bucket, Bytes) -> Result<T, Error>,
    ) -> Outcome<Vec<T>> {
        let asking = keys.iter().map(|key| ask(self.clone(), self.bucket(path), key.clone()));
        Ok(try_join_all(asking).await?)
    }

    /// Makes a bucket where there is none.
    pub(super) async fn create(&self, path: &Path) -> Outcome {
        let bucket = self.bucket(path);
        let made = self.patiently(may_be_sent_again, async || bucket.create_if_missing().await).await;
        made.map(drop).map_err(Failure::write)
    }

    /// How many keys a bucket has; buckets within count, too.
    pub(super) async fn count(&self, path: &Path) -> Outcome<u64> {
        let bucket = self.bucket(path);
        let counted = self.patiently(Error::is_passing, async || bucket.scan().count().await).await;
        match counted {
            Err(error) if error.code() == Some(ErrorCode::BucketNotFound) => Ok(0),
            counted => Ok(counted?),
        }
    }

    /// Whether there are buckets within a bucket, so that it is no hash.
    pub(super) async fn holds_buckets(&self, path: &Path) -> Outcome<bool> {
        let bucket = self.bucket(path);
        let count = self.patiently(Error::is_passing, async || bucket.buckets().limit(1).count().await).await;
        match count {
            Err(error) if error.code() == Some(ErrorCode::BucketNotFound) => Ok(false),
            count => Ok(count? > 0),
        }
    }

    /// Tries again, while that can help and there is time: a server that is restarted comes back.
    async fn patiently<T>(
        &self,
        helps: impl Fn(&Error) -> bool,
        act: impl AsyncFn() -> Result<T, Error>,
    ) -> Result<T, Error> {
        patience::patiently(self.timeout, helps, act).await
    }
}

fn set(fates: &mut [Fate], at: usize, fate: Fate) {
    if let Some(slot) = fates.get_mut(at) {
        *slot = fate;
    }
}

/// What a refusal of one change means for it; `None` where it is none of its own.
fn fate(error: &Error) -> Option<Fate> {
    match error.code()? {
        ErrorCode::ConditionFailed | ErrorCode::BucketExists => Some(Fate::Kept),
        ErrorCode::BucketNotFound => Some(Fate::Gone),
        ErrorCode::IncompatibleValue => Some(Fate::Unholdable("a bucket, or a value, is in its place".to_owned())),
        ErrorCode::KeyRequired | ErrorCode::KeyTooLarge | ErrorCode::ValueTooLarge => {
            Some(Fate::Unholdable("keys or values that are too long, or empty".to_owned()))
        }
        _ => None,
    }
}
