//! The commands of the Redis dialect by their names, and the kinds of them.

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
    /// MODULE: modules: there are none.
    Module,
    /// ACL: who is asking.
    Acl,
    /// CLUSTER: the server is none.
    Cluster,
    /// ROLE: what the server is among its replicas: it has none.
    Role,
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
