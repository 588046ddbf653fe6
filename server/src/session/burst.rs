//! A connection that sends many requests at once may be served by the threads that there are for such.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use tracing::{Instrument as _, debug};

use super::codec::Codec;
use super::serve::Session;
use super::socket::Socket;
use crate::bursts::Place;
use crate::shared::Shared;

/// So many requests in one turn are a burst,
const BURST: u32 = 8;
/// and a connection that has sent so many bursts, one after the other, goes on doing so.
const HABIT: u32 = 16;

/// How a session's run has ended.
pub(super) enum Until {
    /// With the connection.
    Ended,
    /// It has been handed over to this runtime, and is to go on there.
    Moved(Handle),
}

/// What a connection's way to send is, and where that leads it.
#[derive(Debug)]
pub(super) struct Burst {
    shared: Arc<Shared>,
    in_a_row: u32,
    /// Once it sends bursts. It is not given up before the connection's end.
    place: Option<Place>,
}

impl Burst {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), in_a_row: 0, place: None }
    }

    /// Counts a turn in which so many requests were taken.
    pub(super) const fn count(&mut self, taken: u32) {
        if taken >= BURST {
            self.in_a_row = self.in_a_row.saturating_add(1);
        } else if taken > 0 {
            self.in_a_row = 0;
        }
    }

    /// The threads that it is to be served by from now on; told once.
    fn is_to_move(&mut self) -> Option<Handle> {
        if self.in_a_row < HABIT || self.place.is_some() {
            return None;
        }
        let bursts = self.shared.bursts.as_ref()?;
        let place = *self.place.insert(bursts.take_place());
        if place == Place::There { bursts.handle().cloned() } else { None }
    }
}

impl Drop for Burst {
    fn drop(&mut self) {
        if let (Some(bursts), Some(place)) = (&self.shared.bursts, self.place) {
            bursts.leave(place);
        }
    }
}

impl<C: Codec, S: Socket> Session<C, S> {
    /// Serves the connection until it ends, by whichever threads.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) async fn serve(mut self: Box<Self>) -> io::Result<()> {
        match self.run().await? {
            Until::Ended => Ok(()),
            // This task stays, so that the connection is counted, and waited for, as others are.
            Until::Moved(there) => {
                let rest = async move { self.run().await.map(|_| ()) }.in_current_span();
                there.spawn(rest).await.map_err(io::Error::other)?
            }
        }
    }

    /// Hands the connection over to the threads for bursts, where it is to go there and that can be done.
    pub(super) fn move_over(&mut self) -> Option<Handle> {
        let there = self.burst.is_to_move()?;
        let _entered = there.enter();
        match self.conn.hand_over() {
            Ok(()) => Some(there),
            Err(error) => {
                debug!(%error, "a connection that sends bursts stays where it is");
                None
            }
        }
    }
}
