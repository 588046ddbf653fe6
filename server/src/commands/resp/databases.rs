//! Whole databases.

use boltkv_protocol::resp::Writer;

use super::failure::Failure;
use super::keyspace::KeyspaceMut;
use super::work::Call;

/// Does a command that changes something.
pub(super) fn apply(_keyspace: &mut KeyspaceMut<'_>, call: &Call, _out: &mut Writer<'_>) -> Result<(), Failure> {
    Err(Failure::unsupported(call.spec.name))
}
