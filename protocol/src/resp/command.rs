//! What a command of the Redis dialect is, as far as it can be told without doing it.

use std::collections::HashMap;
use std::sync::OnceLock;

use fnv::FnvBuildHasher;

use super::args::Args;
use super::table::RESP_COMMANDS;

/// The commands of the Redis dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RespCommand {
    /// GET: the value of a key.
    Get,
    /// SET: puts a value under a key, whatever is there; with NX, XX, GET, KEEPTTL and times.
    Set,
    /// SETNX: puts a value under a key that is not there.
    SetNx,
    /// SETEX: puts a value that is gone after so many seconds.
    SetEx,
    /// PSETEX: puts a value that is gone after so many milliseconds.
    PSetEx,
    /// GETSET: puts a value, and answers the one before it.
    GetSet,
    /// GETDEL: removes a value, and answers it.
    GetDel,
    /// GETEX: the value of a key, whose time is changed.
    GetEx,
    /// MGET: the values of several keys.
    MGet,
    /// MSET: puts several values.
    MSet,
    /// MSETNX: puts several values, if none of the keys is there.
    MSetNx,
    /// APPEND: adds to the end of a value.
    Append,
    /// STRLEN: how many bytes a value has.
    StrLen,
    /// GETRANGE: a part of a value.
    GetRange,
    /// SUBSTR: a part of a value (GETRANGE).
    SubStr,
    /// SETRANGE: overwrites a part of a value.
    SetRange,
    /// INCR: adds 1 to a number.
    Incr,
    /// DECR: takes 1 from a number.
    Decr,
    /// INCRBY: adds to a number.
    IncrBy,
    /// DECRBY: takes from a number.
    DecrBy,
    /// INCRBYFLOAT: adds to a number with a fraction.
    IncrByFloat,
    /// LCS: the longest sequence of bytes that two values have in common.
    Lcs,
    /// SETBIT: sets or clears a bit, and answers what it was.
    SetBit,
    /// GETBIT: a bit.
    GetBit,
    /// BITCOUNT: how many bits are set.
    BitCount,
    /// BITPOS: where the first bit is that is set, or is not.
    BitPos,
    /// BITOP: AND, OR, XOR or NOT of values, kept under a key.
    BitOp,
    /// BITFIELD: numbers of any width within a value, read and changed.
    BitField,
    /// `BITFIELD_RO`: numbers of any width within a value.
    BitFieldRo,
    /// DEL: removes keys, whatever they hold.
    Del,
    /// UNLINK: removes keys, as DEL does.
    Unlink,
    /// EXISTS: how many of the keys are there.
    Exists,
    /// TYPE: what a key holds: string, hash, bucket or none.
    Type,
    /// RENAME: gives a key another name, in the place of what has it.
    Rename,
    /// RENAMENX: gives a key another name, if nothing has it.
    RenameNx,
    /// COPY: copies a key.
    Copy,
    /// MOVE: moves a key to another database.
    Move,
    /// KEYS: the keys that match a pattern; looks at all.
    Keys,
    /// SCAN: some of the keys, and where to go on.
    Scan,
    /// RANDOMKEY: a key.
    RandomKey,
    /// TOUCH: how many of the keys are there.
    Touch,
    /// DUMP: what a key holds, for RESTORE.
    Dump,
    /// RESTORE: puts what DUMP gave.
    Restore,
    /// OBJECT: how a key is kept.
    Object,
    /// EXPIRE: has a key be gone after so many seconds.
    Expire,
    /// PEXPIRE: has a key be gone after so many milliseconds.
    PExpire,
    /// EXPIREAT: has a key be gone at a time, in seconds.
    ExpireAt,
    /// PEXPIREAT: has a key be gone at a time, in milliseconds.
    PExpireAt,
    /// TTL: for how many seconds a key is there yet.
    Ttl,
    /// PTTL: for how many milliseconds a key is there yet.
    PTtl,
    /// EXPIRETIME: when a key is gone, in seconds.
    ExpireTime,
    /// PEXPIRETIME: when a key is gone, in milliseconds.
    PExpireTime,
    /// PERSIST: has a key stay.
    Persist,
    /// WAIT: how many replicas have what was written: none.
    Wait,
    /// HSET: puts fields of a hash.
    HSet,
    /// HMSET: puts fields of a hash (HSET).
    HMSet,
    /// HSETNX: puts a field of a hash that is not there.
    HSetNx,
    /// HGET: a field of a hash.
    HGet,
    /// HMGET: fields of a hash.
    HMGet,
    /// HGETALL: all fields of a hash with their values.
    HGetAll,
    /// HDEL: removes fields of a hash.
    HDel,
    /// HLEN: how many fields a hash has; looks at all of a large one.
    HLen,
    /// HEXISTS: whether a field is there.
    HExists,
    /// HKEYS: all fields of a hash.
    HKeys,
    /// HVALS: all values of a hash.
    HVals,
    /// HINCRBY: adds to a number in a hash.
    HIncrBy,
    /// HINCRBYFLOAT: adds to a number with a fraction in a hash.
    HIncrByFloat,
    /// HSTRLEN: how many bytes a field's value has.
    HStrLen,
    /// HSCAN: some fields of a hash, and where to go on.
    HScan,
    /// HRANDFIELD: some fields of a hash, drawn at random.
    HRandField,
    /// MULTI: begins a transaction: what follows is done together by EXEC.
    Multi,
    /// EXEC: has a transaction done.
    Exec,
    /// DISCARD: forgets a transaction.
    Discard,
    /// WATCH: has EXEC do nothing if one of the keys changes before it.
    Watch,
    /// UNWATCH: forgets what was watched.
    Unwatch,
    /// HELLO: which protocol is spoken, and who is asking.
    Hello,
    /// AUTH: who is asking, where the server has tokens.
    Auth,
    /// PING: PONG.
    Ping,
    /// ECHO: what was said.
    Echo,
    /// QUIT: closes the connection.
    Quit,
    /// RESET: as after connecting.
    Reset,
    /// SELECT: goes to another database.
    Select,
    /// CLIENT: connections: who they are, and their end.
    Client,
    /// COMMAND: the commands.
    Command,
    /// CONFIG: settings.
    Config,
    /// FUNCTION: functions: there are none.
    Function,
    /// INFO: the server's figures.
    Info,
    /// TIME: the server's clock.
    Time,
    /// DBSIZE: how many keys there are; looks at all of a large database.
    DbSize,
    /// LASTSAVE: when the newest transaction was committed.
    LastSave,
    /// FLUSHDB: removes all keys of the database.
    FlushDb,
    /// FLUSHALL: removes all keys of all databases.
    FlushAll,
    /// SWAPDB: has two databases take each other's place.
    SwapDb,
    /// DEBUG: not there.
    Debug,
    /// MEMORY: how much room a key takes.
    Memory,
    /// SLOWLOG: the requests that took long.
    SlowLog,
}

/// What becomes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It concerns the connection, or the server itself.
    Session,
    /// It is answered at once, and changes nothing.
    Read,
    /// It is answered in steps, and changes nothing.
    Walk,
    /// It goes to the writer.
    Write,
}

/// What a command is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Group {
    /// Values.
    String,
    /// The bits of values.
    Bitmap,
    /// Keys, whatever they hold.
    Generic,
    /// Hashes, which are buckets.
    Hash,
    /// Several commands as one.
    Transactions,
    /// The connection.
    Connection,
    /// The server.
    Server,
}

impl Group {
    /// What COMMAND DOCS calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Bitmap => "bitmap",
            Self::Generic => "generic",
            Self::Hash => "hash",
            Self::Transactions => "transactions",
            Self::Connection => "connection",
            Self::Server => "server",
        }
    }
}

/// What COMMAND INFO tells of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// It changes something.
    pub const WRITE: Self = Self(1);
    /// It reads something.
    pub const READONLY: Self = Self(2);
    /// It may take room, and is refused where there is none.
    pub const DENYOOM: Self = Self(4);
    /// It takes hardly any time.
    pub const FAST: Self = Self(8);
    /// It is for whoever looks after the server.
    pub const ADMIN: Self = Self(16);
    /// It is not for scripts.
    pub const NOSCRIPT: Self = Self(32);
    /// It may be said by somebody who has not said who he is.
    pub const NO_AUTH: Self = Self(64);

    const NAMES: [(Self, &str); 7] = [
        (Self::WRITE, "write"),
        (Self::READONLY, "readonly"),
        (Self::DENYOOM, "denyoom"),
        (Self::FAST, "fast"),
        (Self::ADMIN, "admin"),
        (Self::NOSCRIPT, "noscript"),
        (Self::NO_AUTH, "no_auth"),
    ];

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether all of the others are among these.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

/// Which words of a request are keys: the first of them, the last, and the step from one to the next. All 0: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Keys {
    /// The first; 0 is the command's name.
    pub first: usize,
    /// The last; below 0 it is counted from the end, -1 is the last word.
    pub last: isize,
    /// How far it is from one to the next.
    pub step: usize,
}

impl Keys {
    /// The numbers of the words that are keys, of a request of `len` words.
    pub fn positions(self, len: usize) -> impl Iterator<Item = usize> + Clone {
        let last = if self.last < 0 { len.checked_add_signed(self.last) } else { usize::try_from(self.last).ok() };
        let end = last.map_or(0, |last| (last + 1).min(len));
        let none = self.first == 0;
        (self.first..end).step_by(self.step.max(1)).take(if none { 0 } else { len })
    }
}

/// A command of the Redis dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Which one it is.
    pub command: RespCommand,
    /// Its name, in capitals.
    pub name: &'static str,
    /// How many words it has, its name among them; below 0: so many at the least.
    pub arity: i8,
    /// What becomes of it.
    pub kind: Kind,
    /// What COMMAND INFO tells of it.
    pub flags: Flags,
    /// Which of its words are keys.
    pub keys: Keys,
    /// What it is about.
    pub group: Group,
    /// The version of Redis that had it first.
    pub since: &'static str,
    /// What it is for, in a few words.
    pub summary: &'static str,
}

impl Spec {
    /// Whether a request of so many words, the name among them, can be one.
    #[must_use]
    pub fn takes(&self, words: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { words >= arity } else { words == arity }
    }

    /// The keys among the words of a request.
    pub fn keys_of<'a>(&self, args: &'a Args) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.keys.positions(args.len()).map(|at| args.word(at))
    }
}

/// The longest name, in bytes.
const LONGEST: usize = 16;

/// The command of this name, in any letter case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    static BY_NAME: OnceLock<HashMap<&'static [u8], &'static Spec, FnvBuildHasher>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| RESP_COMMANDS.iter().map(|spec| (spec.name.as_bytes(), spec)).collect());
    let mut capitals = [0; LONGEST];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    by_name.get(&*capitals).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case_and_no_other() {
        for spec in RESP_COMMANDS {
            assert!(spec.name.len() <= LONGEST && spec.arity != 0, "{}", spec.name);
            assert_eq!(find(spec.name.to_lowercase().as_bytes()), Some(spec));
            assert_eq!(RESP_COMMANDS[spec.command as usize], *spec, "rows are in the order of the commands");
        }
        for name in ["", "GE", "GETT", "A-NAME-THAT-IS-TOO-LONG", "get "] {
            assert_eq!(find(name.as_bytes()), None);
        }
    }

    #[test]
    fn keys_are_the_words_that_a_row_says() {
        let keys = |words: &[&str]| {
            let args = Args::of(words);
            let spec = find(args.word(0)).unwrap();
            spec.keys_of(&args).map(|key| String::from_utf8(key.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(keys(&["mset", "a", "1", "b", "2"]), ["a", "b"]);
        assert_eq!(keys(&["del", "a", "b"]), ["a", "b"]);
        assert_eq!(keys(&["bitop", "and", "a", "b", "c"]), ["a", "b", "c"]);
        assert_eq!(keys(&["rename", "a", "b"]), ["a", "b"]);
        assert_eq!(keys(&["ping"]), [""; 0]);
        assert_eq!(keys(&["object", "encoding"]), [""; 0]);
    }
}
