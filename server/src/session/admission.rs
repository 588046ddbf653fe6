//! Who the client is, and whether what it asks for is allowed to it: looked at here for all dialects, before anything is done.

use std::sync::Arc;

use boltkv_protocol::{ErrorCode, ErrorReply, SnapshotRead, StreamRequest, Token, WriteRequest};
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use super::codec::{Asked, Codec};
use super::serve::Session;
use super::socket::Socket;
use crate::access::{Needs, NotAdmitted, Standing};
use crate::commands::{Reader, Snapshot, check_own};
use crate::executor::Caller;

impl<C: Codec, S: Socket> Session<C, S> {
    /// What was asked for, or a refusal in its place where the client may not.
    pub(super) fn permitted(&self, asked: Asked<C::Tag, C::Own>) -> Asked<C::Tag, C::Own> {
        let standing = &self.caller.standing;
        let (due, checked) = match &asked {
            Asked::Read(due, request) => (*due, self.check(request, false)),
            Asked::Write(due, request) => (*due, self.check(request, matches!(request, WriteRequest::Txn(_)))),
            Asked::Stream(due, request) => (*due, self.check(request, matches!(request, StreamRequest::Txn(_)))),
            Asked::OfSnapshot(due, _, read) => {
                (*due, self.check(read, matches!(read, SnapshotRead::Stream(StreamRequest::Txn(_)))))
            }
            // These name no bucket; and the databases of the Redis dialect are other buckets than boltkv's own.
            Asked::Snapshot(due, request) => (*due, standing.may(request)),
            Asked::Operator(due, request) => (*due, standing.may(request)),
            Asked::Resp(due, work) => (*due, standing.may(&**work)),
            Asked::Own(own) => match self.codec.reads(own).map(|path| self.check(path, false)) {
                Some(Err(error)) => return Asked::Own(self.codec.farewell(error)),
                Some(Ok(())) | None => return asked,
            },
            Asked::Refused(..)
            | Asked::Introduce(..)
            | Asked::Cancel(_)
            | Asked::Credit { .. }
            | Asked::Close(_)
            | Asked::Nothing => return asked,
        };
        match checked {
            Ok(()) => asked,
            Err(error) => Asked::Refused(due, error),
        }
    }

    /// Whether the client may have this, which must not name what is boltkv's own. Of what a transaction consists of
    /// (`is_txn`) the latter is looked at when that is done, which tells the part.
    fn check(&self, what: &impl Needs, is_txn: bool) -> Result<(), ErrorReply> {
        if !is_txn {
            check_own(what)?;
        }
        self.caller.standing.may(what)
    }

    /// The client says who it is. One that does not know a token waits for its answer, and is sent away, or may try again.
    pub(super) fn introduce(&mut self, own: C::Own, token: &Token, reader: &mut Reader<'_>) {
        let by_certificate =
            Some(&self.caller.standing).filter(|standing| token.is_none() && standing.is_holder()).cloned();
        let admitted = match by_certificate {
            Some(standing) => Ok(standing),
            None => self.conn.shared.access.admit(token, &self.conn.peer, self.conn.ending.token()),
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
                self.refused_as = C::command(&own);
                let (own, at) = (self.codec.instead(own, error), Instant::now() + wait);
                if !C::MAY_TRY_AGAIN || !self.caller.standing.is_holder() {
                    // Those who wait for a no make room for each other, and take none from who may get a yes.
                    self.conn.stranger = Some(
                        self.conn.shared.turned_away.add(self.conn.peer.origin(), self.conn.ending.token().clone()),
                    );
                }
                if C::MAY_TRY_AGAIN {
                    self.refusal = Some((at, own));
                } else {
                    self.answer_at = Some(at);
                    self.close(Some(own));
                }
            }
        }
    }

    /// Tells a client that it is not let in. It has as long as one that has just come to try again.
    pub(super) fn say_refusal(&mut self) {
        if let Some((_, own)) = self.refusal.take() {
            self.say(own);
            self.unknown_since = Instant::now();
        }
    }

    /// Answers what is the dialect's own, outside a turn.
    pub(super) fn say(&mut self, own: C::Own) {
        let (shared, snapshot) = (Arc::clone(&self.conn.shared), Snapshot::default());
        let mut reader = shared.executor.reader(&snapshot);
        self.answer_own(own, &mut reader);
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
            () = self.conn.ending.come(), if !self.conn.ending.has_come() => false,
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
