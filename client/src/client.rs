//! The client: what callers hold, clone and share.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use boltkv_protocol::{
    Expect, OperatorRequest, Path, ReadRequest, Reply, Request, SessionRequest, StreamRequest, Txn, WriteRequest,
};

use bytes::Bytes;

use crate::bucket::wrong_shape;
use crate::builder::Config;
use crate::link::Link;
use crate::{Backup, Bucket, ClientBuilder, Error, Shrinking, Shrunk, Snapshot, Transaction, Watch, transaction};

/// A client of one server. Cheap to clone; all clones share one connection.
///
/// Made and used within a tokio runtime.
#[derive(Debug, Clone)]
pub struct Client {
    link: Arc<Link>,
}

impl Client {
    /// Connects to a server at `host:port` or `unix:/path`, without a token and with the usual timeouts.
    ///
    /// # Errors
    /// [`Error::Connect`] if the server cannot be reached in time, [`Error::NoAnswer`] if it is there and stuck,
    /// [`Error::Server`] if it refuses, [`Error::NotBoltkv`] or [`Error::Protocol`] if what is there does not speak the
    /// protocol.
    ///
    /// # Cancellation
    /// Dropped before it is ready, the connection is closed if there is one yet; nothing was asked of the server.
    pub async fn connect(addr: impl Into<String>) -> Result<Self, Error> {
        Self::builder(addr).connect().await
    }

    /// A client with other settings than the usual ones.
    pub fn builder(addr: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(addr.into())
    }

    pub(crate) async fn open(config: Config) -> Result<Self, Error> {
        Ok(Self { link: Arc::new(Link::open(config).await?) })
    }

    /// A bucket by the textual form of its path, such as `users/eu`: `/` separates; `\/`, `\\` and `\xNN` escape. Nothing is
    /// sent: whether the bucket is there shows when it is used.
    ///
    /// # Errors
    /// [`Error::Path`] if the text is no path.
    pub fn bucket(&self, path: &str) -> Result<Bucket, Error> {
        Ok(self.bucket_at(path.parse()?))
    }

    /// A bucket by its path.
    #[must_use]
    pub fn bucket_at(&self, path: Path) -> Bucket {
        Bucket::new(self.clone(), path)
    }

    /// The root, which holds buckets only: for [`Bucket::buckets`].
    #[must_use]
    pub fn root(&self) -> Bucket {
        self.bucket_at(Path::ROOT)
    }

    /// A transaction of no requests yet.
    pub fn transaction(&self) -> Transaction {
        Transaction::new(self.clone())
    }

    /// Has a transaction done that was put together with the protocol's own means, for those who translate from another form;
    /// answers its number, and what came of each request as its own reply would be. Otherwise see [`Self::transaction`].
    ///
    /// # Errors
    /// As for [`Transaction::commit`].
    ///
    /// # Cancellation
    /// As for [`Transaction::commit`].
    pub async fn execute(&self, txn: Txn) -> Result<(u64, Vec<Reply>), Error> {
        transaction::replies(txn, async |txn| self.call(txn).await).await
    }

    /// Asks the server whether it is there.
    ///
    /// # Errors
    /// As for every request: see [`Error`].
    ///
    /// # Cancellation
    /// May be dropped at any point.
    pub async fn ping(&self) -> Result<(), Error> {
        self.call(ReadRequest::Ping(&[][..])).await.map(drop)
    }

    /// The server's figures as names and values, in the order in which the server tells them, such as `uptime_seconds` and
    /// `71`. What they mean is described in `docs/monitoring.md`; later servers tell more.
    ///
    /// # Errors
    /// As for every request: see [`Error`].
    ///
    /// # Cancellation
    /// May be dropped at any point.
    pub async fn stats(&self) -> Result<Vec<(String, String)>, Error> {
        let Reply::Stats(figures) = self.call(StatsRequest).await? else { return Err(wrong_shape()) };
        Ok(as_text(&figures))
    }

    /// The connections that the server has open, in the order in which they came: names and values of each, such as `id` and
    /// `7`. What they mean is described in `docs/monitoring.md`; later servers tell more.
    ///
    /// # Errors
    /// `FORBIDDEN` without the right `admin` for everything; otherwise as for every request: see [`Error`].
    ///
    /// # Cancellation
    /// May be dropped at any point.
    pub async fn connections(&self) -> Result<Vec<Vec<(String, String)>>, Error> {
        let (mut all, mut after) = (Vec::new(), 0);
        while let Some((rows, last)) = self.rows(OperatorRequest::ListClients { after }).await? {
            // A server that goes back would never come to an end.
            after = if last > after { last } else { return Err(wrong_shape()) };
            all.extend(rows);
        }
        Ok(all)
    }

    /// Ends the connection of this id, from [`connections`](Self::connections). What it has sent and was not done is refused;
    /// a write that the server has taken is done.
    ///
    /// # Errors
    /// `KEY_NOT_FOUND` where there is none; `FORBIDDEN` without the right `admin` for everything; otherwise as for every
    /// request: see [`Error`].
    ///
    /// # Cancellation
    /// Dropped, it may end the connection or not.
    pub async fn kill(&self, id: u64) -> Result<(), Error> {
        self.call(OperatorRequest::KillClient { client: id }).await.map(drop)
    }

    /// The newest requests that took long, the newest first, at most `most` of them: names and values of each, such as
    /// `command` and `GET`. Never keys or values. What they mean is described in `docs/monitoring.md`.
    ///
    /// # Errors
    /// `FORBIDDEN` without the right `admin` for everything; otherwise as for every request: see [`Error`].
    ///
    /// # Cancellation
    /// May be dropped at any point.
    pub async fn slow_log(&self, most: Option<NonZeroU32>) -> Result<Vec<Vec<(String, String)>>, Error> {
        let (mut all, mut before) = (Vec::new(), 0);
        let mut left = most.map_or(0, NonZeroU32::get);
        while let Some((rows, last)) = self.rows(OperatorRequest::SlowLog { most: left, before }).await? {
            before = if before == 0 || last < before { last } else { return Err(wrong_shape()) };
            let got = u32::try_from(rows.len()).unwrap_or(u32::MAX);
            all.extend(rows);
            if most.is_some() && got >= left {
                break;
            }
            left = left.saturating_sub(got);
        }
        Ok(all)
    }

    /// Has the server forget the requests that took long.
    ///
    /// # Errors
    /// `FORBIDDEN` without the right `admin` for everything; otherwise as for every request: see [`Error`].
    ///
    /// # Cancellation
    /// Dropped, it may be done or not.
    pub async fn reset_slow_log(&self) -> Result<(), Error> {
        self.call(OperatorRequest::ResetSlowLog).await.map(drop)
    }

    /// One page of rows, and the id of the last one; `None` where there are no more.
    async fn rows(&self, request: OperatorRequest) -> Result<Option<(Vec<Row>, u64)>, Error> {
        let Reply::Rows(rows) = self.call(request).await? else { return Err(wrong_shape()) };
        let rows: Vec<Row> = rows.iter().map(|row| as_text(row)).collect();
        let Some(last) = rows.last() else { return Ok(None) };
        let id = last.iter().find(|(name, _)| name == "id").and_then(|(_, id)| id.parse().ok());
        Ok(Some((rows, id.ok_or_else(wrong_shape)?)))
    }

    /// Begins a backup: the server's whole file as of one transaction, while it goes on. It holds every write that was
    /// answered, to anyone, before this was called.
    ///
    /// # Errors
    /// `OVERLOADED` where as many are under way as the server does; otherwise as for every request: see [`Error`].
    ///
    /// # Cancellation
    /// Dropped before it is ready, the backup is cancelled on the server.
    pub async fn backup(&self) -> Result<Backup, Error> {
        Backup::open(self).await
    }

    /// Watches everything that is committed, in all buckets. See [`Bucket::watch`] for one of them.
    ///
    /// ```no_run
    /// # async fn example(client: boltkv_client::Client) -> Result<(), boltkv_client::Error> {
    /// let mut watching = client.watch().stream().await?;
    /// while let Some(watched) = watching.next().await {
    ///     let watched = watched?;
    ///     println!("transaction {} changed {} things", watched.position.txid, watched.changes.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self) -> Watch {
        Watch::new(self.clone(), Path::ROOT)
    }

    /// Has the server hold its newest state open, for as long as the answered handle is used at least once in every `lease`. It
    /// holds every write that was answered, to anyone, before this was called. The server may grant a shorter lease
    /// ([`Snapshot::lease`]); zero leaves it to the server.
    ///
    /// # Errors
    /// `OVERLOADED` where as many are open as the server holds; [`Error::TooManyScans`]; otherwise as for every request: see
    /// [`Error`].
    ///
    /// # Cancellation
    /// Dropped before it is ready, the snapshot is let go.
    pub async fn snapshot(&self, lease: Duration) -> Result<Snapshot, Error> {
        Snapshot::open(self, lease).await
    }

    /// Has the server make its file smaller, as far as free pages in it allow, while it goes on: it moves pages from the end
    /// of the file into free ones before them, in transactions of 250 pages between those of other writers, and cuts the
    /// file. `told` hears at least once a second how far that is. What an open snapshot can still see is not cut off.
    ///
    /// # Errors
    /// `OVERLOADED` where the server is at it already; `READ_ONLY`; otherwise as for every request: see [`Error`].
    ///
    /// # Cancellation
    /// Dropped before it is ready, the server ends it soon. What was moved by then stays so, and the file is sound.
    pub async fn shrink(&self, told: impl FnMut(Shrinking)) -> Result<Shrunk, Error> {
        crate::shrink::shrink(self, told).await
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    /// Sends a request that has one reply, and waits for it. Where that can do no harm it is sent once more, on a new connection:
    /// when the connection is lost, and when the server refuses it because it is stopping.
    pub(crate) async fn call<'a>(&self, request: impl Answered<'a>) -> Result<Reply, Error> {
        let expect = request.expects();
        let request = &request.into();
        let deadline = self.link.deadline();
        let mut again = true;
        let mut refused = None;
        loop {
            let connection = match self.link.connection(deadline).await {
                Ok(connection) => connection,
                // That the server stops says more than that nobody has taken its place yet.
                Err(error) => return Err(refused.unwrap_or(error)),
            };
            match connection.request(request, expect, deadline).await {
                Ok(Reply::Error(error)) => {
                    let error = Error::Server(error);
                    if !error.is_shutting_down() {
                        return Err(error);
                    }
                    connection.leave();
                    if !again {
                        return Err(error);
                    }
                    refused = Some(error);
                }
                Ok(reply) => return Ok(reply),
                Err(failure) if again && failure.can_be_repeated(request) => {}
                Err(failure) => return Err(failure.into_error(request, self.link.config())),
            }
            again = false;
        }
    }
}

/// A request that has a reply, which not every frame has that a client sends.
pub(crate) trait Answered<'a>: Into<Request<&'a [u8]>> {
    /// What the reply looks like when the request succeeds.
    fn expects(&self) -> Expect;
}

/// Names and values.
type Row = Vec<(String, String)>;

/// Names and values, which are text.
fn as_text(figures: &[(Bytes, Bytes)]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    figures.iter().map(|(name, value)| (text(name), text(value))).collect()
}

/// STATS, the one request about the server itself that is answered once the connection is open.
struct StatsRequest;

impl From<StatsRequest> for Request<&[u8]> {
    fn from(_: StatsRequest) -> Self {
        Self::Session(SessionRequest::Stats)
    }
}

impl Answered<'static> for StatsRequest {
    fn expects(&self) -> Expect {
        Expect::Stats
    }
}

impl Answered<'static> for OperatorRequest {
    fn expects(&self) -> Expect {
        (*self).expects()
    }
}

impl<'a> Answered<'a> for ReadRequest<&'a [u8]> {
    fn expects(&self) -> Expect {
        self.expects()
    }
}

impl<'a> Answered<'a> for WriteRequest<&'a [u8]> {
    fn expects(&self) -> Expect {
        self.expects()
    }
}

impl Answered<'_> for Txn {
    fn expects(&self) -> Expect {
        Expect::Txn
    }
}

impl Answered<'static> for StreamRequest {
    fn expects(&self) -> Expect {
        self.expects()
    }
}
