//! A backup as it arrives: the server's whole file as of one transaction.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use boltkv_protocol::{Reply, StreamRequest};
use bytes::Bytes;
use futures_core::Stream;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::bucket::wrong_shape;
use crate::frames::Frames;
use crate::{Client, Error};

/// The server's whole file as of one transaction, piece by piece and in order: a [`Stream`], or call [`next`](Self::next).
///
/// It ends after the first error. That the last piece was the last and all of them are what the server has read is checked by
/// their length and their checksum: what came before is a file only once it has ended without an error. Dropped before its
/// end, it is cancelled.
///
/// What the caller has not taken yet is bounded. Who takes nothing for 30 s loses it (`SNAPSHOT_EXPIRED`), because the server
/// keeps all pages of that transaction meanwhile.
#[derive(Debug)]
pub struct Backup {
    frames: Frames,
    first: Option<Reply>,
    received: u64,
    crc32c: u32,
    ended: bool,
}

impl Backup {
    /// Asks for one and waits until it has begun.
    pub(crate) async fn open(client: &Client) -> Result<Self, Error> {
        let (frames, first) = Frames::open(client, StreamRequest::Backup).await?;
        Ok(Self { frames, first: Some(first), received: 0, crc32c: 0, ended: false })
    }

    /// The next piece; `None` after the last, once length and checksum were found right.
    ///
    /// # Errors
    /// What the server says, [`Error::ConnectionLost`], [`Error::Timeout`] when no more comes, or [`Error::BackupDamaged`] at
    /// the end.
    ///
    /// # Cancellation
    /// May be dropped at any point: no piece is lost.
    pub async fn next(&mut self) -> Option<Result<Bytes, Error>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Writes all of it, and answers how many bytes that were. What was written is a bolt file only where this succeeds; that
    /// it is on a disk then is the caller's to see to.
    ///
    /// ```no_run
    /// # async fn example(client: boltkv_client::Client, mut file: Vec<u8>) -> Result<(), boltkv_client::Error> {
    /// let bytes = client.backup().await?.write_to(&mut file).await?;
    /// println!("{bytes} bytes");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As for [`next`](Self::next); [`Error::Write`] where `out` does not take it.
    ///
    /// # Cancellation
    /// Dropped before it is ready, a part of it has been written.
    pub async fn write_to<W: AsyncWrite + Unpin + ?Sized>(mut self, out: &mut W) -> Result<u64, Error> {
        let failed = |error| Error::Write(Arc::new(error));
        while let Some(piece) = self.next().await {
            out.write_all(&piece?).await.map_err(failed)?;
        }
        out.flush().await.map_err(failed)?;
        Ok(self.received)
    }

    /// How many bytes were taken so far.
    #[must_use]
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// The CRC-32C of what was taken so far.
    #[must_use]
    pub const fn crc32c(&self) -> u32 {
        self.crc32c
    }

    /// What a frame holds; `None` where it is the last, and right.
    fn take(&mut self, frame: Reply) -> Result<Option<Bytes>, Error> {
        match frame {
            Reply::Piece(piece) => {
                self.received += piece.len() as u64;
                self.crc32c = crc32c::crc32c_append(self.crc32c, &piece);
                Ok(Some(piece))
            }
            Reply::BackedUp { total, crc32c } if (total, crc32c) == (self.received, self.crc32c) => Ok(None),
            Reply::BackedUp { total, crc32c } => {
                let Self { received, crc32c: found, .. } = self;
                Err(Error::BackupDamaged(format!(
                    "{received} bytes came with the checksum {found:08x}, {total} bytes were sent with {crc32c:08x}"
                )))
            }
            _ => Err(wrong_shape()),
        }
    }
}

impl Stream for Backup {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let frame = match self.first.take() {
            Some(first) => Some(Ok(first)),
            None => ready!(self.frames.poll_next(context)),
        };
        // The last frame is told from one that is missing: a stream never ends without it.
        let piece = frame.unwrap_or_else(|| Err(wrong_shape())).and_then(|frame| self.take(frame)).transpose();
        self.ended = !matches!(piece, Some(Ok(_)));
        Poll::Ready(piece)
    }
}
