//! Who the client is, and whether what it asks for is allowed to it: looked at here for all dialects, before anything is done.

use std::sync::Arc;

use boltkv_protocol::{ErrorCode, ErrorReply, SnapshotRead, StreamRequest, Token, WriteRequest};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::codec::{Asked, Codec};
use super::serve::Session;
use super::socket::Socket;
use crate::access::{NotAdmitted, Standing};
use crate::commands::{Reader, check_own};
use crate::executor::Caller;

impl<C: Codec, S: Socket> Session<C, S> {
    /// What was asked for, or a refusal in its place where the client may not.
    pub(super) fn permitted(&self, asked: Asked<C::Tag, C::Own>) -> Asked<C::Tag, C::Own> {
        let asked = self.not_own(asked);
        let standing = &self.caller.standing;
        if matches!(standing, Standing::Anyone) {
            return asked;
        }
        let refused = match &asked {
            Asked::Read(due, request) => standing.may(request).map_err(|error| (*due, error)),
            Asked::Write(due, request) => standing.may(request).map_err(|error| (*due, error)),
            Asked::Stream(due, request) => standing.may(request).map_err(|error| (*due, error)),
            Asked::Snapshot(due, request) => standing.may(request).map_err(|error| (*due, error)),
            Asked::OfSnapshot(due, _, read) => standing.may(read).map_err(|error| (*due, error)),
            Asked::Operator(due, request) => standing.may(request).map_err(|error| (*due, error)),
            Asked::Resp(due, work) => standing.may(&**work).map_err(|error| (*due, error)),
            Asked::Own(own) => match self.codec.reads(own).map(|path| standing.may(path)) {
                Some(Err(error)) => return Asked::Own(self.codec.farewell(error)),
                Some(Ok(())) | None => Ok(()),
            },
            Asked::Refused(..)
            | Asked::Introduce(..)
            | Asked::Cancel(_)
            | Asked::Credit { .. }
            | Asked::Close(_)
            | Asked::Nothing => Ok(()),
        };
        match refused {
            Ok(()) => asked,
            Err((due, error)) => Asked::Refused(due, error),
        }
    }

    /// What was asked for, or a refusal where it names what is boltkv's own. What a transaction consists of is looked at when
    /// that is done.
    #[expect(clippy::match_same_arms, reason = "the others are of another kind")]
    fn not_own(&self, asked: Asked<C::Tag, C::Own>) -> Asked<C::Tag, C::Own> {
        let refused = match &asked {
            Asked::Write(_, WriteRequest::Txn(_))
            | Asked::Stream(_, StreamRequest::Txn(_))
            | Asked::OfSnapshot(_, _, SnapshotRead::Stream(StreamRequest::Txn(_))) => Ok(()),
            Asked::Read(due, request) => check_own(request).map_err(|error| (*due, error)),
            Asked::Write(due, request) => check_own(request).map_err(|error| (*due, error)),
            Asked::Stream(due, request) => check_own(request).map_err(|error| (*due, error)),
            Asked::OfSnapshot(due, _, read) => check_own(read).map_err(|error| (*due, error)),
            Asked::Own(own) => match self.codec.reads(own).map(check_own) {
                Some(Err(error)) => return Asked::Own(self.codec.farewell(error)),
                Some(Ok(())) | None => Ok(()),
            },
            // Databases are other buckets.
            Asked::Resp(..)
            | Asked::Snapshot(..)
            | Asked::Operator(..)
            | Asked::Refused(..)
            | Asked::Introduce(..)
            | Asked::Cancel(_)
            | Asked::Credit { .. }
            | Asked::Close(_)
            | Asked::Nothing => Ok(()),
        };
        match refused {
            Ok(()) => asked,
            Err((due, error)) => Asked::Refused(due, error),
        }
    }

    /// The client says who it is. One that does not know a token waits for its answer, and is sent away.
    pub(super) fn introduce(&mut self, own: C::Own, token: &Token, reader: &mut Reader<'_>) {
        let by_certificate =
            Some(&self.caller.standing).filter(|standing| token.is_none() && standing.is_holder()).cloned();
        let admitted = match by_certificate {
            Some(standing) => Ok(standing),
            None => self.conn.shared.access.admit(token, &self.conn.peer, &self.conn.end),
        };
        match admitted {
            Ok(standing) => {
                if let Some(name) = self.codec.names(&own) {
                    self.conn.listed.calls_itself(name);
                }
                self.let_in(standing);
                self.answer_own(own, reader);
            }
            Err(NotAdmitted { error, wait }) => {
                // Those who wait for a no make room for each other, and take none from who may get a yes.
                self.conn.stranger =
                    Some(self.conn.shared.turned_away.add(self.conn.peer.origin(), self.conn.end.clone()));
                self.answer_at = Some(Instant::now() + wait);
                let own = self.codec.instead(own, error);
                self.close(Some(own));
            }
        }
    }

    /// Lets a client in whose certificate says who it is.
    pub(super) fn let_in_if_known(&mut self) {
        if let Some(standing) = self.conn.known.take() {
            self.let_in(standing);
        }
    }

    fn let_in(&mut self, standing: Standing) {
        if let Standing::Holder(held) = &standing {
            debug!(peer = %self.conn.peer, token = held.name(), "let in");
            self.conn.listed.says(|said| said.token = Some(held.name().into()));
        }
        let left = standing.expires_in();
        // A time that clocks cannot tell never comes.
        self.expires_at = left.and_then(|left| Instant::now().checked_add(left));
        self.caller = Arc::new(Caller { asker: self.codec.asker(), standing });
        self.conn.stranger = None;
        self.conn.wire.set_strangers(false);
        self.codec.introduced();
    }

    /// Waits until the last words may be said. `false` where its place is needed before, or the server stops: whoever has
    /// others of his own push him out is not told sooner than who waits.
    pub(super) async fn wait_for_answer(&mut self) -> bool {
        let Some(at) = self.answer_at else { return true };
        tokio::select! {
            () = sleep_until(at) => true,
            () = &mut self.conn.stop, if !self.conn.stopping => {
                self.conn.stopping = true;
                false
            }
        }
    }

    /// Why everything ends that is under way.
    pub(super) fn ending(&self) -> ErrorReply {
        if self.caller.standing.is_revoked() {
            return ErrorReply::new(ErrorCode::Unauthenticated, "the token was taken back; this was not done");
        }
        if self.conn.listed.is_killed() {
            return ErrorReply::new(ErrorCode::Cancelled, "an operator has ended this connection; this was not done");
        }
        ErrorReply::new(ErrorCode::ShuttingDown, "the server is stopping; this was not done")
    }
}

/// What a client is told whose token was one until now.
pub(super) fn expired() -> ErrorReply {
    ErrorReply::new(ErrorCode::Unauthenticated, "the token has expired")
}
