//! Making the server's file smaller.

use std::future::poll_fn;

use boltkv_protocol::{Reply, StreamRequest};

use crate::bucket::wrong_shape;
use crate::frames::Frames;
use crate::{Client, Error};

/// How far the server is with making its file smaller: see [`Client::shrink`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrinking {
    /// Pages that were moved so far.
    pub moved: u64,
    /// Pages that are known to be left; more may be found.
    pub left: u64,
}

/// What making the server's file smaller has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shrunk {
    /// Bytes that the file had before.
    pub before: u64,
    /// Bytes that it has now.
    pub after: u64,
    /// Pages that were moved.
    pub moved: u64,
}

pub(crate) async fn shrink(client: &Client, mut told: impl FnMut(Shrinking)) -> Result<Shrunk, Error> {
    let (mut frames, first) = Frames::open(client, StreamRequest::Shrink).await?;
    let mut next = Some(Ok(first));
    // The last frame is told from one that is missing: a stream never ends without it.
    loop {
        match next.unwrap_or_else(|| Err(wrong_shape()))? {
            Reply::Shrinking { moved, left } => told(Shrinking { moved, left }),
            Reply::Shrunk { before, after, moved } => return Ok(Shrunk { before, after, moved }),
            _ => return Err(wrong_shape()),
        }
        next = poll_fn(|context| frames.poll_next(context)).await;
    }
}
