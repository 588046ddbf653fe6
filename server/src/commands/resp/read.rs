//! Commands that only read, each kind in its file.

use boltkv_protocol::resp::{Group, Writer};

use super::failure::Failure;
use super::keyspace::Keyspace;
use super::scans::Scans;
use super::work::Call;
use super::{bits, hashes, keys, strings};
use crate::commands::expiry::View;
use crate::commands::state::State;

/// Answers a command from some state.
pub(in crate::commands) fn answer(
    view: &View<'_, impl State>,
    call: &Call,
    scans: &Scans,
    out: &mut Writer<'_>,
) -> Result<(), Failure> {
    let keyspace = Keyspace::of(view, call.db)?;
    match call.spec.group {
        Group::String => strings::answer(&keyspace, call, out),
        Group::Bitmap => bits::answer(&keyspace, call, out),
        Group::Hash => hashes::answer(&keyspace, call, scans, out),
        Group::Generic | Group::Server | Group::Transactions | Group::Connection => {
            keys::answer(&keyspace, call, scans, out)
        }
    }
}
