//! What whoever looks after a server asks of it: who is connected, and what was slow.

use bytes::{BufMut, BytesMut};

use crate::field::{DecodeError, Fields};
use crate::{Expect, Op};

/// What concerns the server and all its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorRequest {
    /// The connections that are open, a row each.
    ListClients,
    /// The end of a connection.
    KillClient {
        /// Its id, from the list.
        client: u64,
    },
    /// The requests that took long, the newest first.
    SlowLog {
        /// How many at most; 0: all there are.
        most: u32,
    },
    /// Forgets those.
    ResetSlowLog,
}

impl OperatorRequest {
    /// The operation's number.
    #[must_use]
    pub const fn op(self) -> Op {
        match self {
            Self::ListClients => Op::ClientList,
            Self::KillClient { .. } => Op::ClientKill,
            Self::SlowLog { .. } => Op::SlowlogGet,
            Self::ResetSlowLog => Op::SlowlogReset,
        }
    }

    /// What its reply looks like when it succeeds.
    #[must_use]
    pub const fn expects(self) -> Expect {
        match self {
            Self::ListClients | Self::SlowLog { .. } => Expect::Rows,
            Self::KillClient { .. } | Self::ResetSlowLog => Expect::Closed,
        }
    }

    pub(super) fn decode_kill(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self::KillClient { client: fields.u64("client")? })
    }

    pub(super) fn decode_slow_log(fields: &mut Fields) -> Result<Self, DecodeError> {
        Ok(Self::SlowLog { most: fields.u32("most")? })
    }

    pub(super) fn encode_body(self, out: &mut BytesMut) {
        match self {
            Self::ListClients | Self::ResetSlowLog => {}
            Self::KillClient { client } => out.put_u64(client),
            Self::SlowLog { most } => out.put_u32(most),
        }
    }
}
