//! A snapshot that the server holds open: one state, read for as long as it is wanted.

use std::sync::Arc;
use std::time::Duration;

use boltkv_protocol::{
    ErrorCode, Expect, ReadRequest, Reply, Request, SessionRequest, SnapshotRead, SnapshotRequest, StreamRequest, Txn,
};
use bytes::Bytes;

use crate::bucket::wrong_shape;
use crate::connection::Connection;
use crate::link::Lease;
use crate::{Bucket, BucketStat, Client, Committed, Entries, Error, Scan, Transaction};

/// One state of the server's database, which stays as it is for this handle, whatever is written meanwhile. From
/// [`Client::snapshot`]; cheap to clone. With the last clone, and the last scan that reads from it, the server lets it go.
///
/// It is leased: where nothing is asked of it for as long as [`lease`](Self::lease), the server lets it go by itself, and
/// what is asked then fails with `SNAPSHOT_EXPIRED`. Each use begins the lease anew, and a scan that is under way is a use. The
/// handle does not use it by itself, because the server keeps all pages of that state: one that was forgotten must end.
///
/// It has a connection of its own, which counts as one of [`max_scans`](crate::ClientBuilder::max_scans). Where that is lost, so
/// is the snapshot: no other connection can read from it.
///
/// ```no_run
/// # async fn example(client: boltkv_client::Client) -> Result<(), boltkv_client::Error> {
/// use std::time::Duration;
///
/// let accounts = client.bucket("accounts")?;
/// let snapshot = client.snapshot(Duration::from_secs(60)).await?;
/// let count = snapshot.count(accounts.scan()).await?;
/// let mut entries = snapshot.scan(accounts.scan()).await?;
/// for _ in 0..count {
///     println!("{:?}", entries.next().await.transpose()?);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Snapshot {
    client: Client,
    held: Arc<Held>,
    txid: u64,
    lease: Duration,
}

/// The snapshot at the server, for as long as anybody reads from it.
#[derive(Debug)]
pub(crate) struct Held {
    id: u64,
    lease: Lease,
}

impl Held {
    /// A request of what is read from it.
    pub(crate) const fn request<'a>(&self, read: SnapshotRead<&'a [u8]>) -> Request<&'a [u8]> {
        Request::OfSnapshot { snapshot: self.id, read }
    }

    /// The connection that it was opened on.
    pub(crate) fn connection(&self) -> &Connection {
        self.lease.connection()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let close = SessionRequest::Snapshot(SnapshotRequest::Close { snapshot: self.id });
        // Where it cannot be sent, the connection is closed, and the snapshot with it.
        if self.lease.connection().send_unheard(&close.into()) {
            self.lease.put_back();
        }
    }
}

impl Snapshot {
    /// Asks for one and waits until it is there. Where the connection is lost before, it is asked for once more.
    pub(crate) async fn open(client: &Client, lease: Duration) -> Result<Self, Error> {
        let lease_ms = u32::try_from(lease.as_millis()).unwrap_or(u32::MAX);
        let request = &Request::Session(SessionRequest::Snapshot(SnapshotRequest::Open { lease_ms }));
        let link = client.link();
        let deadline = link.deadline();
        let mut again = true;
        loop {
            let own = link.stream_connection(deadline).await?;
            match own.connection().request(request, Expect::Snapshot, deadline).await {
                Ok(Reply::Snapshot { id, txid, lease_ms }) => {
                    let held = Arc::new(Held { id, lease: own });
                    let lease = Duration::from_millis(lease_ms.into());
                    return Ok(Self { client: client.clone(), held, txid, lease });
                }
                Ok(Reply::Error(error)) => {
                    let error = Error::Server(error);
                    if error.is_shutting_down() {
                        own.connection().leave();
                    }
                    own.give_back();
                    if !(again && error.is_shutting_down()) {
                        return Err(error);
                    }
                }
                Ok(_) => return Err(wrong_shape()),
                Err(failure) if again && failure.can_be_repeated(request) => {}
                Err(failure) => return Err(failure.into_error(request, link.config())),
            }
            again = false;
        }
    }

    /// The id of the transaction whose state it is.
    #[must_use]
    pub const fn txid(&self) -> u64 {
        self.txid
    }

    /// How long the server keeps it without being asked anything of it.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// As [`Bucket::get`], as of the snapshot. The client that the bucket comes from does not matter, here and below.
    ///
    /// # Errors
    /// As for [`Bucket::get`], and `SNAPSHOT_EXPIRED`. [`Error::ConnectionLost`] also where the connection was lost before.
    ///
    /// # Cancellation
    /// May be dropped at any point.
    pub async fn get(&self, bucket: &Bucket, key: impl AsRef<[u8]>) -> Result<Option<Bytes>, Error> {
        let read = ReadRequest::Get { path: bucket.path().clone(), key: key.as_ref() };
        match self.ask(SnapshotRead::Read(read)).await {
            Ok(Reply::Value(value)) => Ok(Some(value)),
            Ok(_) => Err(wrong_shape()),
            Err(error) if error.code() == Some(ErrorCode::KeyNotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Scan::stream`], as of the snapshot. Once it has begun, its entries come also where the snapshot expires or its
    /// handle is dropped.
    ///
    /// # Errors
    /// As for [`Scan::stream`], and as for [`get`](Self::get).
    ///
    /// # Cancellation
    /// Dropped before it is ready, the scan is cancelled on the server.
    pub async fn scan(&self, scan: Scan) -> Result<Entries, Error> {
        if scan.is_of_nothing() {
            return Ok(Entries::none());
        }
        Entries::open_of_snapshot(&self.client, &self.held, scan.request()).await
    }

    /// As [`Scan::count`], as of the snapshot.
    ///
    /// # Errors
    /// As for [`scan`](Self::scan).
    ///
    /// # Cancellation
    /// As for [`scan`](Self::scan).
    pub async fn count(&self, scan: Scan) -> Result<u64, Error> {
        if scan.is_of_nothing() {
            return Ok(0);
        }
        match self.ask(SnapshotRead::Stream(scan.counting().request())).await? {
            Reply::Count(count) => Ok(count),
            _ => Err(wrong_shape()),
        }
    }

    /// As [`Bucket::sequence`], as of the snapshot.
    ///
    /// # Errors
    /// As for [`Bucket::sequence`], and as for [`get`](Self::get).
    ///
    /// # Cancellation
    /// May be dropped at any point.
    pub async fn sequence(&self, bucket: &Bucket) -> Result<u64, Error> {
        match self.ask(SnapshotRead::Read(ReadRequest::Sequence(bucket.path().clone()))).await? {
            Reply::Count(sequence) => Ok(sequence),
            _ => Err(wrong_shape()),
        }
    }

    /// As [`Bucket::stat`], as of the snapshot.
    ///
    /// # Errors
    /// As for [`Bucket::stat`], and as for [`get`](Self::get).
    ///
    /// # Cancellation
    /// As for [`Bucket::stat`].
    pub async fn stat(&self, bucket: &Bucket) -> Result<BucketStat, Error> {
        let stat = StreamRequest::BucketStat(bucket.path().clone());
        BucketStat::of(&self.ask(SnapshotRead::Stream(stat)).await?)
    }

    /// What a transaction that only reads finds in the snapshot, as [`Transaction::commit`] would in the newest state.
    ///
    /// # Errors
    /// As for [`Transaction::commit`], and as for [`get`](Self::get). `UNSUPPORTED` if it writes.
    ///
    /// # Cancellation
    /// May be dropped at any point.
    pub async fn read(&self, transaction: Transaction) -> Result<Committed, Error> {
        transaction.read_in(self).await
    }

    pub(crate) async fn execute(&self, txn: Txn) -> Result<Reply, Error> {
        self.ask(SnapshotRead::Stream(StreamRequest::Txn(txn))).await
    }

    /// Sends a request that has one reply, and waits for it.
    async fn ask(&self, read: SnapshotRead<&[u8]>) -> Result<Reply, Error> {
        let request = self.held.request(read);
        let link = self.client.link();
        let Some(expect) = request.expects() else { return Err(wrong_shape()) };
        match self.held.connection().request(&request, expect, link.deadline()).await {
            Ok(Reply::Error(error)) => Err(Error::Server(error)),
            Ok(reply) => Ok(reply),
            Err(failure) => Err(failure.into_error(&request, link.config())),
        }
    }
}
