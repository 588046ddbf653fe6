//! What the dialect answers itself, and how it writes what others answer.

use crate::commands::{Call, Failure};

/// What is answered beside the executor.
#[derive(Debug)]
pub(crate) enum Own {
    /// A command that concerns the connection or the server.
    Call(Call),
    Queued,
    /// What the client asks for is not done.
    Failed(Failure),
}

/// How a reply is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// It is in this dialect already.
    Written,
    /// The value, or none.
    Value,
}
