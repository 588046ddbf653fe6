//! Commands that only read, each kind in its file.

use boltkv_protocol::resp::{Group, RespCommand, Writer};

use super::failure::Failure;
use super::keyspace::Keyspace;
use super::work::Call;
use super::{bits, hashes, keys, sizes, strings};
use crate::commands::state::State;

/// Answers a command from some state.
pub(in crate::commands) fn answer(
    state: &impl State,
    call: &Call,
    now: u64,
    out: &mut Writer<'_>,
) -> Result<(), Failure> {
    let keyspace = Keyspace::of(state, call.db, now)?;
    if call.spec.command == RespCommand::Memory {
        return sizes::usage(&keyspace, call, out);
    }
    match call.spec.group {
        Group::String => strings::answer(&keyspace, call, out),
        Group::Bitmap => bits::answer(&keyspace, call, out),
        Group::Hash => hashes::answer(&keyspace, call, out),
        Group::Generic | Group::Server | Group::Transactions | Group::Connection => keys::answer(&keyspace, call, out),
    }
}
