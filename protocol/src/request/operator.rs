//! What whoever looks after a server asks of it: who is connected, and what was slow.

use bytes::{BufMut, BytesMut};

use crate::field::{DecodeError, Fields};
use crate::{Expect, Op};

/// What concerns the server and all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorRequest {
    /// The connections that are open, a row each, in the order of their ids: as many as fit into a reply.
    ListClients {
        /// Those with a higher id; 0: from the first one on.
        after: u64,
    },
    /// The end of a connection.
    KillClient {
        /// Its id, from the list.
        client: u64,
    },
    /// The requests that took long, the newest first: as many as fit into a reply.
    SlowLog {
        /// How many at most; 0: all there are.
        most: u32,
        /// Those with a lower id; 0: from the newest one on.
        before: u64,
    },
    /// Forgets those.
    ResetSlowLog,
}

impl OperatorRequest {
    /// The operation's number.
    #[must_use]
    pub const fn op(self) -> Op {
        match self {
            Self::ListClients { .. } => Op::ClientList,
            Self::KillClient { .. } => Op::ClientKill,
            Self::SlowLog { .. } => Op::SlowlogGet,
            Self::ResetSlowLog => Op::SlowlogReset,
        }
    }

    /// What its reply looks like when it succeeds.
    #[must_use]
    pub const fn expects(self) -> Expect {
        match self {
            Self::ListClients { .. } | Self::SlowLog { .. } => Expect::Rows,
            Self::KillClient { .. } | Self::ResetSlowLog => Expect::Closed,
        }
    }

    pub(super) fn decode_list(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self::ListClients { after: fields.u64("after")? })
    }

    pub(super) fn decode_kill(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self::KillClient { client: fields.u64("client")? })
    }

    pub(super) fn decode_slow_log(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self::SlowLog { most: fields.u32("most")?, before: fields.u64("before")? })
    }

    pub(super) fn encode_body(self, out: &mut BytesMut) {
        match self {
            Self::ResetSlowLog => {}
            Self::ListClients { after } => out.put_u64(after),
            Self::KillClient { client } => out.put_u64(client),
            Self::SlowLog { most, before } => {
                out.put_u32(most);
                out.put_u64(before);
            }
        }
    }
}
