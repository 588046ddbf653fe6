//! The bits of values.

use boltkv_protocol::resp::Writer;

use super::failure::Failure;
use super::keyspace::{Keyspace, KeyspaceMut};
use super::work::Call;

/// Answers a command that only reads.
pub(super) fn answer(_keyspace: &Keyspace<'_>, call: &Call, _out: &mut Writer<'_>) -> Result<(), Failure> {
    Err(Failure::unsupported(call.spec.name))
}

/// Does a command that changes something.
pub(super) fn apply(_keyspace: &mut KeyspaceMut<'_, '_>, call: &Call, _out: &mut Writer<'_>) -> Result<(), Failure> {
    Err(Failure::unsupported(call.spec.name))
}
