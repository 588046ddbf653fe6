//! Which command a request is, as a number: its row in the protocol's table.
//!
//! Requests are counted by what they are, whichever dialect they came in: EXISTS and each key of MGET are a GET, CAS is a
//! SET with a condition, EXEC is a transaction. So a command that only the text dialect has is counted only where it is
//! nothing else.

use std::sync::LazyLock;

use boltkv_protocol::command::{COMMANDS, Verb};
use boltkv_protocol::resp::{RESP_COMMANDS, RespCommand, Spec};
use boltkv_protocol::{BucketOp, Op, ReadRequest, SnapshotRead, StreamRequest, WriteRequest};

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command(u8);

impl Command {
    /// How many there are.
    pub(crate) const COUNT: usize = COMMANDS.len() + RESP_COMMANDS.len() + 1;
    /// What could not be read, or is unknown.
    pub(crate) const OTHER: Self = Self::at(Self::COUNT - 1);

    pub(crate) const SNAPSHOT: Self = Self::of_op(Op::Snapshot);
    pub(crate) const WATCH: Self = Self::of_op(Op::Watch);

    /// All that can be counted.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self::at).filter(|command| {
            let name = command.name();
            command.index() < COMMANDS.len() || !COMMANDS.iter().any(|row| row.name == name)
        })
    }

    /// One of the Redis dialect. Where another dialect has one that is called so, they are counted together.
    pub(crate) fn of_resp(command: RespCommand) -> Self {
        static PLACES: LazyLock<Vec<Command>> = LazyLock::new(|| {
            let place = |(at, spec): (usize, &Spec)| {
                let shared = COMMANDS.iter().position(|row| row.name == spec.name);
                Command::at(shared.unwrap_or(COMMANDS.len() + at))
            };
            RESP_COMMANDS.iter().enumerate().map(place).collect()
        });
        // The table has a row for each, in their order.
        PLACES.get(command as usize).copied().unwrap_or(Self::OTHER)
    }

    #[expect(clippy::cast_possible_truncation, reason = "looked at when this is compiled")]
    const fn at(index: usize) -> Self {
        const { assert!(Self::COUNT <= 256, "a number has a byte") };
        Self(index as u8)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its name in the table; `other` for what is none.
    pub(crate) fn name(self) -> &'static str {
        let resp = || RESP_COMMANDS.get(self.index() - COMMANDS.len()).map_or("other", |spec| spec.name);
        COMMANDS.get(self.index()).map_or_else(resp, |row| row.name)
    }

    /// Whether the binary dialect has it, and it is answered.
    pub(crate) fn is_on_the_wire(self) -> bool {
        let wire = COMMANDS.get(self.index()).and_then(|row| row.wire);
        wire.is_some_and(|wire| !matches!(wire.op, Op::Credit | Op::Cancel))
    }

    pub(crate) const fn of_read<B>(request: &ReadRequest<B>) -> Self {
        match request {
            ReadRequest::Ping(_) => const { Self::of_op(Op::Ping) },
            ReadRequest::Get { .. } => const { Self::of_op(Op::Get) },
            ReadRequest::ExpiryTime { .. } => const { Self::of_op(Op::ExpiryTime) },
            ReadRequest::Sequence(_) => const { Self::of_bucket(BucketOp::GetSequence) },
        }
    }

    pub(crate) const fn of_write<B>(request: &WriteRequest<B>) -> Self {
        match request {
            WriteRequest::Set { .. } => const { Self::of_op(Op::Set) },
            WriteRequest::SetExpiring { .. } => const { Self::of_op(Op::SetExpiring) },
            WriteRequest::Expire { .. } => const { Self::of_op(Op::Expire) },
            WriteRequest::Delete { .. } => const { Self::of_op(Op::Delete) },
            WriteRequest::Increment { .. } => const { Self::of_op(Op::Increment) },
            WriteRequest::DeleteRange { .. } => const { Self::of_op(Op::DeleteRange) },
            WriteRequest::CreateBucket(_) => const { Self::of_bucket(BucketOp::Create) },
            WriteRequest::CreateBucketIfMissing(_) => const { Self::of_bucket(BucketOp::CreateIfMissing) },
            WriteRequest::DeleteBucket(_) => const { Self::of_bucket(BucketOp::Delete) },
            WriteRequest::NextSequence(_) => const { Self::of_bucket(BucketOp::NextSequence) },
            WriteRequest::SetSequence { .. } => const { Self::of_bucket(BucketOp::SetSequence) },
            WriteRequest::MoveBucket { .. } => const { Self::of_bucket(BucketOp::Move) },
            WriteRequest::Txn(_) => const { Self::of_op(Op::Txn) },
        }
    }

    pub(crate) const fn of_stream(request: &StreamRequest) -> Self {
        match request {
            StreamRequest::Scan(_) => const { Self::of_op(Op::Scan) },
            StreamRequest::ListBuckets(_) => const { Self::of_bucket(BucketOp::List) },
            StreamRequest::BucketStat(_) => const { Self::of_bucket(BucketOp::Stat) },
            StreamRequest::Txn(_) => const { Self::of_op(Op::Txn) },
            StreamRequest::Backup => const { Self::of_op(Op::Backup) },
            StreamRequest::Shrink => const { Self::of_op(Op::Shrink) },
            StreamRequest::Watch(_) => const { Self::of_op(Op::Watch) },
        }
    }

    /// What is read as of a snapshot is counted as what it is.
    pub(crate) const fn of_snapshot_read(read: &SnapshotRead) -> Self {
        match read {
            SnapshotRead::Read(request) => Self::of_read(request),
            SnapshotRead::Stream(request) => Self::of_stream(request),
        }
    }

    /// One of the binary dialect.
    pub(crate) const fn of_op(op: Op) -> Self {
        let mut index = 0;
        while index < COMMANDS.len() {
            if let Some(wire) = COMMANDS[index].wire
                && wire.op as u8 == op as u8
            {
                return Self::at(index);
            }
            index += 1;
        }
        Self::OTHER
    }

    const fn of_bucket(sub: BucketOp) -> Self {
        let mut index = 0;
        while index < COMMANDS.len() {
            if let Some(wire) = COMMANDS[index].wire
                && let Some(found) = wire.sub
                && found as u8 == sub as u8
            {
                return Self::at(index);
            }
            index += 1;
        }
        Self::OTHER
    }

    /// One of the text dialect.
    pub(crate) fn of_verb(verb: Verb) -> Self {
        let index = COMMANDS.iter().position(|row| row.text.is_some_and(|form| form.verb == verb));
        index.map_or(Self::OTHER, Self::at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_wire_is_counted_under_its_name() {
        for (index, row) in COMMANDS.iter().enumerate() {
            let Some(wire) = row.wire else { continue };
            let command = wire.sub.map_or_else(|| Command::of_op(wire.op), Command::of_bucket);
            assert_eq!((command.index(), command.name()), (index, row.name));
            assert_eq!(command.is_on_the_wire(), !matches!(wire.op, Op::Credit | Op::Cancel));
        }
        assert_eq!(Command::of_verb(Verb::Help).name(), "HELP");
        assert_eq!((Command::OTHER.name(), Command::OTHER.is_on_the_wire()), ("other", false));
        assert!(Command::all().count() > COMMANDS.len() + 1);
        assert_eq!(Command::of_resp(RespCommand::HSet).name(), "HSET");
        assert_eq!(Command::of_resp(RespCommand::Get), Command::of_op(Op::Get));
    }
}
