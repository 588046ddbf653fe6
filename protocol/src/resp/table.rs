//! The commands of the Redis dialect, a row each: its name; how many words it has, its name among them, at the least if the
//! number is below 0; what becomes of it; flags, as COMMAND INFO tells them; which words are keys (the first, the last,
//! counted from the end if below 0, and the step from one to the next); its group; since when Redis has it; what it is for.

use super::command::{Group, Kind, RespCommand};
use super::spec::{Flags, Keys, Spec};

macro_rules! table {
    ($($variant:ident, $name:literal, $arity:literal, $kind:ident, [$($flag:ident),*], ($first:literal, $last:literal, $step:literal), $group:ident, $since:literal, $summary:literal;)+) => {
        /// Every command of the Redis dialect, by groups.
        pub const RESP_COMMANDS: &[Spec] = &[$(Spec {
            command: RespCommand::$variant,
            name: $name,
            arity: $arity,
            kind: Kind::$kind,
            flags: Flags::NONE$(.and(Flags::$flag))*,
            keys: Keys { first: $first, last: $last, step: $step },
            group: Group::$group,
            since: $since,
            summary: $summary,
        },)+];
    };
}

table! {
    Get, "GET", 2, Read, [READONLY, FAST], (1, 1, 1), String, "1.0.0", "the value of a key";
    Set, "SET", -3, Write, [WRITE, DENYOOM], (1, 1, 1), String, "1.0.0", "puts a value under a key, whatever is there; with NX, XX, GET, KEEPTTL and times";
    SetNx, "SETNX", 3, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "1.0.0", "puts a value under a key that is not there";
    SetEx, "SETEX", 4, Write, [WRITE, DENYOOM], (1, 1, 1), String, "2.0.0", "puts a value that is gone after so many seconds";
    PSetEx, "PSETEX", 4, Write, [WRITE, DENYOOM], (1, 1, 1), String, "2.6.0", "puts a value that is gone after so many milliseconds";
    GetSet, "GETSET", 3, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "1.0.0", "puts a value, and answers the one before it";
    GetDel, "GETDEL", 2, Write, [WRITE, FAST], (1, 1, 1), String, "6.2.0", "removes a value, and answers it";
    GetEx, "GETEX", -2, Write, [WRITE, FAST], (1, 1, 1), String, "6.2.0", "the value of a key, whose time is changed";
    MGet, "MGET", -2, Read, [READONLY, FAST], (1, -1, 1), String, "1.0.0", "the values of several keys";
    MSet, "MSET", -3, Write, [WRITE, DENYOOM], (1, -1, 2), String, "1.0.1", "puts several values";
    MSetNx, "MSETNX", -3, Write, [WRITE, DENYOOM], (1, -1, 2), String, "1.0.1", "puts several values, if none of the keys is there";
    Append, "APPEND", 3, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "2.0.0", "adds to the end of a value";
    StrLen, "STRLEN", 2, Read, [READONLY, FAST], (1, 1, 1), String, "2.2.0", "how many bytes a value has";
    GetRange, "GETRANGE", 4, Read, [READONLY], (1, 1, 1), String, "2.4.0", "a part of a value";
    SubStr, "SUBSTR", 4, Read, [READONLY], (1, 1, 1), String, "1.0.0", "a part of a value (GETRANGE)";
    SetRange, "SETRANGE", 4, Write, [WRITE, DENYOOM], (1, 1, 1), String, "2.2.0", "overwrites a part of a value";
    Incr, "INCR", 2, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "1.0.0", "adds 1 to a number";
    Decr, "DECR", 2, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "1.0.0", "takes 1 from a number";
    IncrBy, "INCRBY", 3, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "1.0.0", "adds to a number";
    DecrBy, "DECRBY", 3, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "1.0.0", "takes from a number";
    IncrByFloat, "INCRBYFLOAT", 3, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), String, "2.6.0", "adds to a number with a fraction";
    Lcs, "LCS", -3, Read, [READONLY], (1, 2, 1), String, "7.0.0", "the longest sequence of bytes that two values have in common";
    SetBit, "SETBIT", 4, Write, [WRITE, DENYOOM], (1, 1, 1), Bitmap, "2.2.0", "sets or clears a bit, and answers what it was";
    GetBit, "GETBIT", 3, Read, [READONLY, FAST], (1, 1, 1), Bitmap, "2.2.0", "a bit";
    BitCount, "BITCOUNT", -2, Read, [READONLY], (1, 1, 1), Bitmap, "2.6.0", "how many bits are set";
    BitPos, "BITPOS", -3, Read, [READONLY], (1, 1, 1), Bitmap, "2.8.7", "where the first bit is that is set, or is not";
    BitOp, "BITOP", -4, Write, [WRITE, DENYOOM], (2, -1, 1), Bitmap, "2.6.0", "AND, OR, XOR or NOT of values, kept under a key";
    BitField, "BITFIELD", -2, Write, [WRITE, DENYOOM], (1, 1, 1), Bitmap, "3.2.0", "numbers of any width within a value, read and changed";
    BitFieldRo, "BITFIELD_RO", -2, Read, [READONLY, FAST], (1, 1, 1), Bitmap, "6.0.0", "numbers of any width within a value";
    Del, "DEL", -2, Write, [WRITE], (1, -1, 1), Generic, "1.0.0", "removes keys, whatever they hold";
    Unlink, "UNLINK", -2, Write, [WRITE, FAST], (1, -1, 1), Generic, "4.0.0", "removes keys, as DEL does";
    Exists, "EXISTS", -2, Read, [READONLY, FAST], (1, -1, 1), Generic, "1.0.0", "how many of the keys are there";
    Type, "TYPE", 2, Read, [READONLY, FAST], (1, 1, 1), Generic, "1.0.0", "what a key holds: string, hash, bucket or none";
    Rename, "RENAME", 3, Write, [WRITE], (1, 2, 1), Generic, "1.0.0", "gives a key another name, in the place of what has it";
    RenameNx, "RENAMENX", 3, Write, [WRITE, FAST], (1, 2, 1), Generic, "1.0.0", "gives a key another name, if nothing has it";
    Copy, "COPY", -3, Write, [WRITE, DENYOOM], (1, 2, 1), Generic, "6.2.0", "copies a key";
    Move, "MOVE", 3, Write, [WRITE, FAST], (1, 1, 1), Generic, "1.0.0", "moves a key to another database";
    Keys, "KEYS", 2, Walk, [READONLY], (0, 0, 0), Generic, "1.0.0", "the keys that match a pattern; looks at all";
    Scan, "SCAN", -2, Read, [READONLY], (0, 0, 0), Generic, "2.8.0", "some of the keys, and where to go on";
    RandomKey, "RANDOMKEY", 1, Read, [READONLY], (0, 0, 0), Generic, "1.0.0", "a key";
    Touch, "TOUCH", -2, Read, [READONLY, FAST], (1, -1, 1), Generic, "3.2.1", "how many of the keys are there";
    Dump, "DUMP", 2, Read, [READONLY], (1, 1, 1), Generic, "2.6.0", "what a key holds, for RESTORE";
    Restore, "RESTORE", -4, Write, [WRITE, DENYOOM], (1, 1, 1), Generic, "2.6.0", "puts what DUMP gave";
    Object, "OBJECT", -2, Read, [READONLY], (2, 2, 1), Generic, "2.2.3", "how a key is kept";
    Expire, "EXPIRE", -3, Write, [WRITE, FAST], (1, 1, 1), Generic, "1.0.0", "has a key be gone after so many seconds";
    PExpire, "PEXPIRE", -3, Write, [WRITE, FAST], (1, 1, 1), Generic, "2.6.0", "has a key be gone after so many milliseconds";
    ExpireAt, "EXPIREAT", -3, Write, [WRITE, FAST], (1, 1, 1), Generic, "1.2.0", "has a key be gone at a time, in seconds";
    PExpireAt, "PEXPIREAT", -3, Write, [WRITE, FAST], (1, 1, 1), Generic, "2.6.0", "has a key be gone at a time, in milliseconds";
    Ttl, "TTL", 2, Read, [READONLY, FAST], (1, 1, 1), Generic, "1.0.0", "for how many seconds a key is there yet";
    PTtl, "PTTL", 2, Read, [READONLY, FAST], (1, 1, 1), Generic, "2.6.0", "for how many milliseconds a key is there yet";
    ExpireTime, "EXPIRETIME", 2, Read, [READONLY, FAST], (1, 1, 1), Generic, "7.0.0", "when a key is gone, in seconds";
    PExpireTime, "PEXPIRETIME", 2, Read, [READONLY, FAST], (1, 1, 1), Generic, "7.0.0", "when a key is gone, in milliseconds";
    Persist, "PERSIST", 2, Write, [WRITE, FAST], (1, 1, 1), Generic, "2.2.0", "has a key stay";
    Wait, "WAIT", 3, Session, [], (0, 0, 0), Generic, "3.0.0", "how many replicas have what was written: none";
    HSet, "HSET", -4, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), Hash, "2.0.0", "puts fields of a hash";
    HMSet, "HMSET", -4, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), Hash, "2.0.0", "puts fields of a hash (HSET)";
    HSetNx, "HSETNX", 4, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), Hash, "2.0.0", "puts a field of a hash that is not there";
    HGet, "HGET", 3, Read, [READONLY, FAST], (1, 1, 1), Hash, "2.0.0", "a field of a hash";
    HMGet, "HMGET", -3, Read, [READONLY, FAST], (1, 1, 1), Hash, "2.0.0", "fields of a hash";
    HGetAll, "HGETALL", 2, Walk, [READONLY], (1, 1, 1), Hash, "2.0.0", "all fields of a hash with their values";
    HDel, "HDEL", -3, Write, [WRITE, FAST], (1, 1, 1), Hash, "2.0.0", "removes fields of a hash";
    HLen, "HLEN", 2, Walk, [READONLY, FAST], (1, 1, 1), Hash, "2.0.0", "how many fields a hash has; looks at all of a large one";
    HExists, "HEXISTS", 3, Read, [READONLY, FAST], (1, 1, 1), Hash, "2.0.0", "whether a field is there";
    HKeys, "HKEYS", 2, Walk, [READONLY], (1, 1, 1), Hash, "2.0.0", "all fields of a hash";
    HVals, "HVALS", 2, Walk, [READONLY], (1, 1, 1), Hash, "2.0.0", "all values of a hash";
    HIncrBy, "HINCRBY", 4, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), Hash, "2.0.0", "adds to a number in a hash";
    HIncrByFloat, "HINCRBYFLOAT", 4, Write, [WRITE, DENYOOM, FAST], (1, 1, 1), Hash, "2.6.0", "adds to a number with a fraction in a hash";
    HStrLen, "HSTRLEN", 3, Read, [READONLY, FAST], (1, 1, 1), Hash, "3.2.0", "how many bytes a field's value has";
    HScan, "HSCAN", -3, Read, [READONLY], (1, 1, 1), Hash, "2.8.0", "some fields of a hash, and where to go on";
    HRandField, "HRANDFIELD", -2, Read, [READONLY], (1, 1, 1), Hash, "6.2.0", "some fields of a hash, drawn at random";
    Multi, "MULTI", 1, Session, [NOSCRIPT, FAST], (0, 0, 0), Transactions, "1.2.0", "begins a transaction: what follows is done together by EXEC";
    Exec, "EXEC", 1, Session, [NOSCRIPT], (0, 0, 0), Transactions, "1.2.0", "has a transaction done";
    Discard, "DISCARD", 1, Session, [NOSCRIPT, FAST], (0, 0, 0), Transactions, "2.0.0", "forgets a transaction";
    Watch, "WATCH", -2, Write, [NOSCRIPT, FAST], (1, -1, 1), Transactions, "2.2.0", "has EXEC do nothing if one of the keys changes before it";
    Unwatch, "UNWATCH", 1, Session, [NOSCRIPT, FAST], (0, 0, 0), Transactions, "2.2.0", "forgets what was watched";
    Hello, "HELLO", -1, Session, [NOSCRIPT, FAST, NO_AUTH], (0, 0, 0), Connection, "6.0.0", "which protocol is spoken, and who is asking";
    Auth, "AUTH", -2, Session, [NOSCRIPT, FAST, NO_AUTH], (0, 0, 0), Connection, "1.0.0", "who is asking, where the server has tokens";
    Ping, "PING", -1, Session, [FAST], (0, 0, 0), Connection, "1.0.0", "PONG";
    Echo, "ECHO", 2, Session, [FAST], (0, 0, 0), Connection, "1.0.0", "what was said";
    Quit, "QUIT", -1, Session, [NOSCRIPT, FAST, NO_AUTH], (0, 0, 0), Connection, "1.0.0", "closes the connection";
    Reset, "RESET", 1, Session, [NOSCRIPT, FAST, NO_AUTH], (0, 0, 0), Connection, "6.2.0", "as after connecting";
    Select, "SELECT", 2, Session, [FAST], (0, 0, 0), Connection, "1.0.0", "goes to another database";
    Client, "CLIENT", -2, Session, [NOSCRIPT], (0, 0, 0), Connection, "2.4.0", "connections: who they are, and their end";
    Command, "COMMAND", -1, Session, [], (0, 0, 0), Server, "2.8.13", "the commands";
    Config, "CONFIG", -2, Session, [ADMIN, NOSCRIPT], (0, 0, 0), Server, "2.0.0", "settings";
    Function, "FUNCTION", -2, Session, [NOSCRIPT], (0, 0, 0), Server, "7.0.0", "functions: there are none";
    Module, "MODULE", -2, Session, [NOSCRIPT], (0, 0, 0), Server, "4.0.0", "modules: there are none";
    Acl, "ACL", -2, Session, [NOSCRIPT], (0, 0, 0), Server, "6.0.0", "who is asking";
    Cluster, "CLUSTER", -2, Session, [], (0, 0, 0), Server, "3.0.0", "an error, as the server is no part of one";
    Role, "ROLE", 1, Session, [NOSCRIPT, FAST], (0, 0, 0), Server, "2.8.12", "what the server is among its replicas: it has none";
    Info, "INFO", -1, Session, [], (0, 0, 0), Server, "1.0.0", "the server's figures";
    Time, "TIME", 1, Session, [FAST], (0, 0, 0), Server, "2.6.0", "the server's clock";
    DbSize, "DBSIZE", 1, Walk, [READONLY, FAST], (0, 0, 0), Server, "1.0.0", "how many keys there are; looks at all of a large database";
    LastSave, "LASTSAVE", 1, Session, [FAST], (0, 0, 0), Server, "1.0.0", "when the newest transaction was committed";
    FlushDb, "FLUSHDB", -1, Write, [WRITE], (0, 0, 0), Server, "1.0.0", "removes all keys of the database";
    FlushAll, "FLUSHALL", -1, Write, [WRITE], (0, 0, 0), Server, "1.0.0", "removes all keys of all databases";
    SwapDb, "SWAPDB", 3, Write, [WRITE, FAST], (0, 0, 0), Server, "4.0.0", "has two databases take each other's place";
    Debug, "DEBUG", -2, Session, [ADMIN, NOSCRIPT], (0, 0, 0), Server, "1.0.0", "not there";
    Memory, "MEMORY", -2, Read, [READONLY], (2, 2, 1), Server, "4.0.0", "how much room a key takes";
    SlowLog, "SLOWLOG", -2, Session, [ADMIN], (0, 0, 0), Server, "2.2.12", "the requests that took long";
}
