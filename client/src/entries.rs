//! The entries of a scan as they arrive.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use boltkv_protocol::{Entry, Reply, StreamRequest};
use futures_core::Stream;

use crate::bucket::wrong_shape;
use crate::frames::Frames;
use crate::snapshot::Held;
use crate::{Client, Error};

/// The entries of a scan, in order, all of one snapshot: a [`Stream`], or call [`next`](Self::next).
///
/// It ends after the first error. What the caller has not taken yet is bounded: the server sends 256 KiB and one frame, and more
/// as that is taken. Who takes nothing for 30 s loses the rest (`SNAPSHOT_EXPIRED`), because the server keeps all pages of that
/// state meanwhile; or for 6 s, where it keeps what writes need. A server that does not keep to it loses the connection. Dropped
/// before its end, a scan is cancelled, and its connection serves the next one at once.
///
/// Keys and values are slices of the frame they came in: one that is kept keeps all of it. Copy what is to be kept long.
#[derive(Debug)]
pub struct Entries {
    current: std::vec::IntoIter<Entry>,
    frames: Frames,
}

impl Entries {
    /// Those of a scan that was not to give any.
    pub(crate) fn none() -> Self {
        Self { current: Vec::new().into_iter(), frames: Frames::none() }
    }

    /// Sends the request and waits for the first frame, as [`Frames::open`] does.
    pub(crate) async fn open(client: &Client, request: StreamRequest) -> Result<Self, Error> {
        let (frames, first) = Frames::open(client, request).await?;
        Ok(Self { current: entries(first)?.into_iter(), frames })
    }

    /// The same as of a snapshot.
    pub(crate) async fn open_of_snapshot(
        client: &Client,
        held: &Arc<Held>,
        request: StreamRequest,
    ) -> Result<Self, Error> {
        let (frames, first) = Frames::open_of_snapshot(client, held, request).await?;
        Ok(Self { current: entries(first)?.into_iter(), frames })
    }

    /// The next entry; `None` after the last.
    ///
    /// # Errors
    /// What the server says, [`Error::ConnectionLost`], or [`Error::Timeout`] when no more comes.
    ///
    /// # Cancellation
    /// May be dropped at any point, as in a `select!`: no entry is lost, and the next call goes on where this one stopped. The
    /// time for the next piece goes on running from the first call that waited for it.
    pub async fn next(&mut self) -> Option<Result<Entry, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for Entries {
    type Item = Result<Entry, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(entry) = self.current.next() {
                return Poll::Ready(Some(Ok(entry)));
            }
            match ready!(self.frames.poll_next(context)).map(|frame| frame.and_then(entries)) {
                Some(Ok(entries)) => self.current = entries.into_iter(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }
}

fn entries(frame: Reply) -> Result<Vec<Entry>, Error> {
    match frame {
        Reply::Entries(entries) => Ok(entries),
        _ => Err(wrong_shape()),
    }
}
