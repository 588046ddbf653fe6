//! The commands as data: one table for both dialects, from which parsing, help, completion and documentation come.
//!
//! A row says how a command is called and what it is for; what it does is the server's to know.

mod verb;

use crate::{BucketOp, Op};

pub use verb::Verb;

/// One command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its name: in the text dialect, where it has one there, otherwise in the binary one.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub summary: &'static str,
    /// What it touches.
    pub effect: Effect,
    /// Its number in the binary dialect; `None` for what only the text dialect has.
    pub wire: Option<Wire>,
    /// Its form in the text dialect; `None` for what only the binary dialect has.
    pub text: Option<TextForm>,
}

/// What a command touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It reads what is stored.
    Read,
    /// It changes what is stored.
    Write,
    /// It concerns the connection, or the server itself.
    Connection,
}

/// A command's number in the binary dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wire {
    /// The operation.
    pub op: Op,
    /// The sub-operation, for BUCKET.
    pub sub: Option<BucketOp>,
}

/// A command's form in the text dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    /// Which command it is, for the parser.
    pub verb: Verb,
    /// Another name for it.
    pub alias: Option<&'static str>,
    /// What follows the name, such as `key value`; empty for nothing.
    pub arguments: &'static str,
    /// The fewest arguments.
    pub min: usize,
    /// The most arguments.
    pub max: usize,
}

impl Command {
    /// How the text dialect writes it, such as `SET key value`; `None` for what only the binary dialect has.
    #[must_use]
    pub fn usage(&self) -> Option<String> {
        let form = self.text?;
        Some(match form.arguments {
            "" => self.name.to_owned(),
            arguments => format!("{} {arguments}", self.name),
        })
    }

    const fn read(name: &'static str, summary: &'static str) -> Self {
        Self { name, summary, effect: Effect::Read, wire: None, text: None }
    }

    const fn write(name: &'static str, summary: &'static str) -> Self {
        Self { effect: Effect::Write, ..Self::read(name, summary) }
    }

    const fn connection(name: &'static str, summary: &'static str) -> Self {
        Self { effect: Effect::Connection, ..Self::read(name, summary) }
    }

    const fn op(mut self, op: Op) -> Self {
        self.wire = Some(Wire { op, sub: None });
        self
    }

    const fn bucket(mut self, sub: BucketOp) -> Self {
        self.wire = Some(Wire { op: Op::Bucket, sub: Some(sub) });
        self
    }

    const fn text(mut self, verb: Verb, arguments: &'static str, min: usize, max: usize) -> Self {
        self.text = Some(TextForm { verb, alias: None, arguments, min, max });
        self
    }

    const fn alias(mut self, alias: &'static str) -> Self {
        if let Some(form) = &mut self.text {
            form.alias = Some(alias);
        }
        self
    }
}

/// Every command, in the order in which people read about them.
pub const COMMANDS: &[Command] = &[
    Command::read("GET", "the value of a key").op(Op::Get).text(Verb::Get, "key", 1, 1),
    Command::write("SET", "puts a value under a key; the value is the rest of the line").op(Op::Set).text(
        Verb::Set,
        "key value",
        2,
        2,
    ),
    Command::write("SETNX", "as SET, only if the key is not there").text(Verb::SetIfAbsent, "key value", 2, 2),
    Command::write("SETXX", "as SET, only if the key is there").text(Verb::SetIfPresent, "key value", 2, 2),
    Command::write("CAS", "as SET, only if the key's value is old; old is one word, quoted if it has blanks").text(
        Verb::CompareAndSet,
        "key old value",
        3,
        3,
    ),
    Command::write("CAD", "removes a key, only if its value is the rest of the line").text(
        Verb::CompareAndDelete,
        "key value",
        2,
        2,
    ),
    Command::write("DELETE", "removes a key").op(Op::Delete).text(Verb::Delete, "key", 1, 1).alias("DEL"),
    Command::write("DELRANGE", "removes keys from low up to high; \"\" is no bound; says MORE where some are left")
        .op(Op::DeleteRange)
        .text(Verb::DeleteRange, "low high [LIMIT n]", 2, 4),
    Command::write("INCR", "adds n, or 1, to the number that a key's value is").op(Op::Increment).text(
        Verb::Increment,
        "key [n]",
        1,
        2,
    ),
    Command::write("DECR", "as INCR, but takes n away").text(Verb::Decrement, "key [n]", 1, 2),
    Command::write("SETEX", "as SET; the key expires after so many seconds").op(Op::SetExpiring).text(
        Verb::SetExpiring,
        "key seconds value",
        3,
        3,
    ),
    Command::write("EXPIRE", "has a key expire after so many seconds: 1, or 0 where it is not there")
        .op(Op::Expire)
        .text(Verb::Expire, "key seconds", 2, 2),
    Command::write("PEXPIRE", "as EXPIRE, in milliseconds").text(Verb::ExpireMillis, "key ms", 2, 2),
    Command::write("PERSIST", "has a key never expire: 1, or 0 where it did not, or is not there").text(
        Verb::Persist,
        "key",
        1,
        1,
    ),
    Command::read("TTL", "seconds until a key expires; -1: never, -2: it is not there").text(
        Verb::TimeLeft,
        "key",
        1,
        1,
    ),
    Command::read("PTTL", "as TTL, in milliseconds").text(Verb::TimeLeftMillis, "key", 1, 1),
    Command::read("EXPIRETIME", "when a key expires").op(Op::ExpiryTime),
    Command::read("EXISTS", "1 if the key is there, 0 if not").text(Verb::Exists, "key", 1, 1),
    Command::read("MGET", "the values of several keys, one a line").text(Verb::MultiGet, "key…", 1, usize::MAX),
    Command::read("SCAN", "the entries whose key starts with prefix, in key order").op(Op::Scan).text(
        Verb::Scan,
        "[prefix] [LIMIT n]",
        0,
        3,
    ),
    Command::read("COUNT", "how many entries start with prefix").text(Verb::Count, "[prefix]", 0, 1),
    Command::write("BUCKET CREATE", "makes a bucket, and its parents where they are missing")
        .bucket(BucketOp::CreateIfMissing)
        .text(Verb::BucketCreate, "path", 1, 1),
    Command::write("BUCKET CREATE (strict)", "makes a bucket that must be new, in a parent that is there")
        .bucket(BucketOp::Create),
    Command::write("BUCKET DELETE", "removes a bucket with all within").bucket(BucketOp::Delete).text(
        Verb::BucketDelete,
        "path",
        1,
        1,
    ),
    Command::connection("BUCKET USE", "goes to a bucket: from now on keys are looked up there").text(
        Verb::BucketUse,
        "path",
        1,
        1,
    ),
    Command::read("BUCKET LIST", "the buckets within a bucket, or those at the top").bucket(BucketOp::List).text(
        Verb::BucketList,
        "[path]",
        0,
        1,
    ),
    Command::read("BUCKET STAT", "a bucket's figures, those of the buckets in it included")
        .bucket(BucketOp::Stat)
        .text(Verb::BucketStat, "path", 1, 1),
    Command::write("BUCKET NEXT", "raises a bucket's sequence by one, and gives it")
        .bucket(BucketOp::NextSequence)
        .text(Verb::BucketNext, "path", 1, 1),
    Command::write("BUCKET SEQUENCE", "a bucket's sequence; with n, sets it").bucket(BucketOp::SetSequence).text(
        Verb::BucketSequence,
        "path [n]",
        1,
        2,
    ),
    Command::read("BUCKET GET_SEQUENCE", "a bucket's sequence").bucket(BucketOp::GetSequence),
    Command::write("BUCKET MOVE", "moves a bucket to another path, which may end in another name")
        .bucket(BucketOp::Move)
        .text(Verb::BucketMove, "path path", 2, 2),
    Command::write("TXN", "several requests as one transaction").op(Op::Txn),
    Command::connection("MULTI", "begins a transaction: the lines up to EXEC are done together or not at all").text(
        Verb::Multi,
        "",
        0,
        0,
    ),
    Command::read("IF ABSENT", "after MULTI: only if the key is not there before").text(Verb::IfAbsent, "key", 1, 1),
    Command::read("IF PRESENT", "after MULTI: only if the key is there before").text(Verb::IfPresent, "key", 1, 1),
    Command::read("IF EQUALS", "after MULTI: only if the key's value before is the rest of the line").text(
        Verb::IfEquals,
        "key value",
        2,
        2,
    ),
    Command::write("EXEC", "has the transaction done; the replies to its lines, then END, or one ERR").text(
        Verb::Exec,
        "",
        0,
        0,
    ),
    Command::connection("DISCARD", "forgets the transaction").text(Verb::Discard, "", 0, 0),
    Command::read("SNAPSHOT", "holds a snapshot open, or lets it go").op(Op::Snapshot),
    Command::read("BACKUP", "the whole file as a stream").op(Op::Backup),
    Command::write("SHRINK", "makes the file smaller while it is in use").op(Op::Shrink),
    Command::read("WATCH", "what is committed from now on, or from a position, as a stream").op(Op::Watch),
    Command::connection("HELLO", "opens a binary connection").op(Op::Hello),
    Command::connection("CREDIT", "lets a stream send more").op(Op::Credit),
    Command::connection("CANCEL", "ends a stream early").op(Op::Cancel),
    Command::connection("AUTH", "says who is asking, where the server has tokens").text(Verb::Auth, "token", 1, 1),
    Command::connection("PING", "PONG").op(Op::Ping).text(Verb::Ping, "", 0, 0),
    Command::connection("STATS", "the server's figures").op(Op::Stats).text(Verb::Stats, "", 0, 0),
    Command::connection("CLIENT LIST", "the connections, name=value …, a line each").op(Op::ClientList).text(
        Verb::ClientList,
        "",
        0,
        0,
    ),
    Command::connection("CLIENT KILL", "ends a connection").op(Op::ClientKill).text(Verb::ClientKill, "id", 1, 1),
    Command::connection("SLOWLOG GET", "the newest requests that took long, a line each").op(Op::SlowlogGet).text(
        Verb::SlowlogGet,
        "[n]",
        0,
        1,
    ),
    Command::connection("SLOWLOG RESET", "forgets these").op(Op::SlowlogReset).text(Verb::SlowlogReset, "", 0, 0),
    Command::connection("HELP", "these lines").text(Verb::Help, "", 0, 0),
    Command::connection("QUIT", "closes the connection").text(Verb::Quit, "", 0, 0),
];

/// The text command of this name, in any letter case. Names of two words, such as `BUCKET LIST`, take both.
#[must_use]
pub fn find_text(first: &[u8], second: Option<&[u8]>) -> Option<(&'static Command, TextForm)> {
    COMMANDS.iter().find_map(|command| {
        let form = command.text?;
        let named = |name: &str| {
            let (head, tail) = match name.split_once(' ') {
                Some((head, tail)) => (head, Some(tail)),
                None => (name, None),
            };
            head.as_bytes().eq_ignore_ascii_case(first)
                && match (tail, second) {
                    (None, None) => true,
                    (Some(tail), Some(second)) => tail.as_bytes().eq_ignore_ascii_case(second),
                    _ => false,
                }
        };
        (named(command.name) || form.alias.is_some_and(named)).then_some((command, form))
    })
}

/// The second words that text commands starting with `first` can have; none when it starts no command of two words.
pub fn second_words(first: &[u8]) -> impl Iterator<Item = &'static str> {
    COMMANDS
        .iter()
        .filter(|command| command.text.is_some())
        .filter_map(|command| command.name.split_once(' '))
        .filter(move |(head, _)| head.as_bytes().eq_ignore_ascii_case(first))
        .map(|(_, tail)| tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_of_the_wire_has_one_row() {
        for op in Op::ALL {
            let rows: Vec<_> = COMMANDS.iter().filter_map(|c| c.wire).filter(|wire| wire.op == op).collect();
            if op == Op::Bucket {
                for number in 1..=8 {
                    let sub = BucketOp::from_u8(number);
                    assert_eq!(rows.iter().filter(|wire| wire.sub == sub).count(), 1, "{sub:?}");
                }
            } else {
                assert_eq!(rows, [Wire { op, sub: None }]);
            }
        }
    }

    #[test]
    fn rows_of_the_wire_carry_the_operations_own_name() {
        for command in COMMANDS.iter().filter(|command| command.text.is_none()) {
            let wire = command.wire.expect("a row is in one dialect at least");
            match wire.sub {
                None => assert_eq!(command.name, wire.op.name()),
                // The text dialect's BUCKET CREATE makes parents too, so the plain name is taken.
                Some(BucketOp::Create) => assert_eq!(command.name, "BUCKET CREATE (strict)"),
                Some(sub) => assert_eq!(command.name, sub.name()),
            }
        }
    }

    #[test]
    fn text_commands_are_found_in_any_case_and_by_alias() {
        let verb = |first: &str, second: Option<&str>| {
            find_text(first.as_bytes(), second.map(str::as_bytes)).map(|(_, form)| form.verb)
        };
        assert_eq!(verb("get", None), Some(Verb::Get));
        assert_eq!(verb("DeL", None), Some(Verb::Delete));
        assert_eq!(verb("bucket", Some("list")), Some(Verb::BucketList));
        assert_eq!(verb("bucket", None), None);
        assert_eq!(verb("get", Some("list")), None);
        assert_eq!(verb("hello", None), None, "binary only");
        assert_eq!(
            second_words(b"Bucket").collect::<Vec<_>>(),
            ["CREATE", "DELETE", "USE", "LIST", "STAT", "NEXT", "SEQUENCE", "MOVE"]
        );
        assert_eq!(second_words(b"GET").count(), 0);
    }

    #[test]
    fn usage_is_the_name_and_its_arguments() {
        let usage = |name: &[u8]| find_text(name, None).and_then(|(command, _)| command.usage());
        assert_eq!(usage(b"SET").as_deref(), Some("SET key value"));
        assert_eq!(usage(b"QUIT").as_deref(), Some("QUIT"));
    }
}
