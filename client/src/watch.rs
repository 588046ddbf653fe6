//! What the server commits, as it comes, taken up again where it stopped.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use boltkv_protocol as protocol;
use boltkv_protocol::{Change, Changes, ErrorCode, Reply, StreamRequest, WatchFrom, WatchPosition};
use bytes::Bytes;
use futures_core::Stream;
use tokio::time::{Instant, sleep};

use crate::bucket::wrong_shape;
use crate::frames::Frames;
use crate::{Client, Error, Path};

/// A server tells at least once a second that it is there; one that says nothing for so long is not.
const SILENCE: Duration = Duration::from_secs(10);
/// Pauses between attempts to take a watch up again.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long a server may be away, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// A watch to be begun: from [`Client::watch`] or [`Bucket::watch`](crate::Bucket::watch).
///
/// A program that is to miss nothing, also while it does not run, keeps the position of what it has done, and goes on behind
/// that:
///
/// ```no_run
/// use boltkv_client::{Client, Error, WatchPosition, Watched};
///
/// /// Follows `jobs` behind the transaction that was kept last; `act` does what is to be done and keeps its `position`.
/// async fn follow(client: &Client, last: Option<WatchPosition>, mut act: impl FnMut(Watched)) -> Result<(), Error> {
///     let mut watch = client.bucket("jobs")?.watch();
///     if let Some(last) = last {
///         watch = watch.after(last);
///     }
///     let mut watching = watch.stream().await?;
///     while let Some(watched) = watching.next().await {
///         // With `SNAPSHOT_EXPIRED` what came behind `last` is not kept any more: read the whole state anew.
///         act(watched?);
///     }
///     Ok(())
/// }
/// ```
///
/// A position is its two numbers, `epoch` and `txid`: no more has to be kept.
#[derive(Debug, Clone)]
#[must_use = "nothing is watched until the stream is asked for"]
pub struct Watch {
    client: Client,
    wanted: protocol::Watch,
    patience: Duration,
}

impl Watch {
    pub(crate) fn new(client: Client, path: Path) -> Self {
        let wanted = protocol::Watch { path, ..protocol::Watch::default() };
        Self { client, wanted, patience: PATIENCE }
    }

    /// From behind this transaction on, and not from now.
    pub fn after(mut self, position: WatchPosition) -> Self {
        self.wanted.from = WatchFrom::Position(position);
        self
    }

    /// From the oldest transaction on that the server can tell.
    pub fn from_oldest(mut self) -> Self {
        self.wanted.from = WatchFrom::Oldest;
        self
    }

    /// Only keys of the bucket, and buckets in it, whose names start so; of the latter all that is within.
    pub fn prefix(mut self, prefix: impl AsRef<[u8]>) -> Self {
        self.wanted.prefix = Bytes::copy_from_slice(prefix.as_ref());
        self
    }

    /// Keys only; values are left empty.
    pub fn keys_only(mut self) -> Self {
        self.wanted.keys_only = true;
        self
    }

    /// How long the server may be away before the stream ends with the error. Default: a minute.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Begins to watch. When this returns, the server has said where: nothing that is committed from then on is missed.
    ///
    /// # Errors
    /// `SNAPSHOT_EXPIRED` where what is behind the position is not kept any more, or a crash took the position back: then the
    /// state is to be read anew ([`Error::oldest_position`] is what is kept). `UNSUPPORTED` where the server keeps no journal;
    /// `OVERLOADED` where as many watches are under way as it does; otherwise as for every request: see [`Error`].
    ///
    /// # Cancellation
    /// Dropped before it is ready, the watch is cancelled on the server.
    pub async fn stream(self) -> Result<Watching, Error> {
        let Self { client, wanted, patience } = self;
        let (frames, first) = open(client.clone(), wanted.clone()).await?;
        let Reply::Changes(first) = first else { return Err(wrong_shape()) };
        let mut watching = Watching {
            client,
            wanted,
            patience,
            state: State::Open(frames),
            position: first.position,
            gathered: None,
            away_since: None,
            pause: FIRST_PAUSE,
        };
        match watching.take(first)? {
            None => Ok(watching),
            Some(_) => Err(wrong_shape()),
        }
    }
}

/// What a transaction has changed of what is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Watched {
    /// The transaction: a watch that begins behind it goes on with the next one.
    pub position: WatchPosition,
    /// When it was committed, in milliseconds since 1970, by the server's clock.
    pub time_ms: u64,
    /// What it has changed, in order. Keys and values are slices of the frames that they came in: copy what is kept long.
    pub changes: Vec<Change>,
}

/// Transactions as they are committed, in order and none left out: a [`Stream`], or call [`next`](Self::next).
///
/// Where the connection is lost, or the server is started again, it goes on by itself behind the last transaction that it has
/// handed over. It ends after the first error: when the server was away for longer than the
/// [`patience`](Watch::patience), or does not keep any more what was missed meanwhile (`SNAPSHOT_EXPIRED`). Dropped, it is
/// cancelled.
///
/// A transaction is handed over as a whole, and gathered in memory before; the server bounds how large it can be. What the
/// caller has not taken yet is bounded by credit; who takes nothing for 30 s is taken up again when it does, if what it has
/// missed is kept. A watch has a connection of its own, and counts as one of the client's
/// [scans](crate::ClientBuilder::max_scans).
pub struct Watching {
    client: Client,
    wanted: protocol::Watch,
    patience: Duration,
    state: State,
    /// The last transaction of which all is handed over, or nothing was watched.
    position: WatchPosition,
    /// What has come of the next one.
    gathered: Option<Watched>,
    away_since: Option<Instant>,
    pause: Duration,
}

type Opening = Pin<Box<dyn Future<Output = Result<(Frames, Reply), Error>> + Send>>;

enum State {
    Open(Frames),
    Opening(Opening),
    Ended,
}

async fn open(client: Client, wanted: protocol::Watch) -> Result<(Frames, Reply), Error> {
    let (frames, first) = Frames::open(&client, StreamRequest::Watch(wanted)).await?;
    Ok((frames.patient_for(SILENCE), first))
}

impl Watching {
    /// The next transaction that has changed something that is watched. It waits for as long as there is none.
    ///
    /// # Errors
    /// What the server says, or [`Error`]s of a server that was away for too long.
    ///
    /// # Cancellation
    /// May be dropped at any point, as in a `select!`: no transaction is lost.
    pub async fn next(&mut self) -> Option<Result<Watched, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// How far it is: all that was committed up to here was handed over. It goes on, too, while nothing changes that is
    /// watched, as far as the stream is asked for more. Kept, it is where another watch can go on.
    #[must_use]
    pub const fn position(&self) -> WatchPosition {
        self.position
    }

    /// What a frame makes whole.
    fn take(&mut self, Changes { position, time_ms, is_whole, changes }: Changes) -> Result<Option<Watched>, Error> {
        match &mut self.gathered {
            Some(gathered) if gathered.position == position => gathered.changes.extend(changes),
            Some(_) => return Err(Error::Protocol("a transaction of a watch has no end".into())),
            None if changes.is_empty() => {
                self.position = position;
                return Ok(None);
            }
            none => *none = Some(Watched { position, time_ms, changes }),
        }
        if !is_whole {
            return Ok(None);
        }
        self.position = position;
        Ok(self.gathered.take())
    }

    /// Takes it up again after an error, or ends with that.
    fn after(&mut self, error: Error, is_opening: bool) -> Result<(), Error> {
        // What a stream ends with says little of the next one: whether what follows is kept, that is told when it begins.
        let is_expired = !is_opening && error.code() == Some(ErrorCode::SnapshotExpired);
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if !(error.is_passing() || is_expired) || since.elapsed() >= self.patience {
            self.state = State::Ended;
            return Err(error);
        }
        self.gathered = None;
        self.wanted.from = WatchFrom::Position(self.position);
        let (client, wanted, pause) = (self.client.clone(), self.wanted.clone(), self.pause);
        self.pause = (pause * 2).min(LONGEST_PAUSE);
        self.state = State::Opening(Box::pin(async move {
            sleep(pause).await;
            open(client, wanted).await
        }));
        Ok(())
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Reply, Error>>> {
        match &mut self.state {
            State::Ended => Poll::Ready(None),
            State::Open(frames) => {
                let frame = ready!(frames.poll_next(context)).unwrap_or_else(|| Err(wrong_shape()));
                if frame.is_ok() {
                    (self.away_since, self.pause) = (None, FIRST_PAUSE);
                }
                Poll::Ready(Some(frame))
            }
            State::Opening(opening) => {
                Poll::Ready(Some(ready!(opening.as_mut().poll(context)).map(|(frames, first)| {
                    self.state = State::Open(frames);
                    first
                })))
            }
        }
    }
}

impl Stream for Watching {
    type Item = Result<Watched, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let is_opening = matches!(self.state, State::Opening(_));
            let Some(frame) = ready!(self.poll_frame(context)) else { return Poll::Ready(None) };
            let taken = match frame {
                Ok(Reply::Changes(changes)) => self.take(changes),
                Ok(_) => Err(wrong_shape()),
                Err(error) => self.after(error, is_opening).map(|()| None),
            };
            match taken {
                Ok(None) => {}
                Ok(Some(watched)) => return Poll::Ready(Some(Ok(watched))),
                Err(error) => {
                    self.state = State::Ended;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching")
            .field("wanted", &self.wanted)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
