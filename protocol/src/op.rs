//! The numbers of the operations on the wire. Names and numbers only: which of them a server can do is not said here.

/// An operation of the binary dialect, by its number in the frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum Op {
    /// The first request of a connection: versions, features, token.
    Hello = 0x01,
    /// The body comes back as it was.
    Ping = 0x02,
    /// One value by its key.
    Get = 0x10,
    /// Put a value under a key.
    Set = 0x11,
    /// Remove a key.
    Delete = 0x12,
    /// Add to a number.
    Increment = 0x13,
    /// Put a value under a key that expires.
    SetExpiring = 0x14,
    /// Set when a key expires.
    Expire = 0x15,
    /// When a key expires.
    ExpiryTime = 0x16,
    /// Buckets; the body's first byte is a [`BucketOp`].
    Bucket = 0x20,
    /// A range of entries as a stream, or their count.
    Scan = 0x30,
    /// Remove a range of entries.
    DeleteRange = 0x31,
    /// Several requests as one transaction.
    Txn = 0x40,
    /// Open or close a snapshot; the body's first byte says which.
    Snapshot = 0x50,
    /// The server's figures.
    Stats = 0x60,
    /// The whole file as a stream.
    Backup = 0x61,
    /// Make the file smaller, and tell how far that is.
    Shrink = 0x62,
    /// Who is connected.
    ClientList = 0x63,
    /// End a connection.
    ClientKill = 0x64,
    /// What was slow.
    SlowlogGet = 0x65,
    /// Forget what was slow.
    SlowlogReset = 0x66,
    /// Let a stream send more; has no reply.
    Credit = 0x70,
    /// End a stream early; has no reply.
    Cancel = 0x71,
    /// Follow what is committed, as a stream.
    Watch = 0x80,
}

impl Op {
    /// Every operation that has a number.
    pub const ALL: [Self; 24] = [
        Self::Hello,
        Self::Ping,
        Self::Get,
        Self::Set,
        Self::Delete,
        Self::Increment,
        Self::SetExpiring,
        Self::Expire,
        Self::ExpiryTime,
        Self::Bucket,
        Self::Scan,
        Self::DeleteRange,
        Self::Txn,
        Self::Snapshot,
        Self::Stats,
        Self::Backup,
        Self::Shrink,
        Self::ClientList,
        Self::ClientKill,
        Self::SlowlogGet,
        Self::SlowlogReset,
        Self::Credit,
        Self::Cancel,
        Self::Watch,
    ];

    /// The operation with this number, if there is one.
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            0x01 => Self::Hello,
            0x02 => Self::Ping,
            0x10 => Self::Get,
            0x11 => Self::Set,
            0x12 => Self::Delete,
            0x13 => Self::Increment,
            0x14 => Self::SetExpiring,
            0x15 => Self::Expire,
            0x16 => Self::ExpiryTime,
            0x20 => Self::Bucket,
            0x30 => Self::Scan,
            0x31 => Self::DeleteRange,
            0x40 => Self::Txn,
            0x50 => Self::Snapshot,
            0x60 => Self::Stats,
            0x61 => Self::Backup,
            0x62 => Self::Shrink,
            0x63 => Self::ClientList,
            0x64 => Self::ClientKill,
            0x65 => Self::SlowlogGet,
            0x66 => Self::SlowlogReset,
            0x70 => Self::Credit,
            0x71 => Self::Cancel,
            0x80 => Self::Watch,
            _ => return None,
        })
    }

    /// The operation's name, as the documentation writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::Ping => "PING",
            Self::Get => "GET",
            Self::Set => "SET",
            Self::Delete => "DELETE",
            Self::Increment => "INCREMENT",
            Self::SetExpiring => "SETEX",
            Self::Expire => "EXPIRE",
            Self::ExpiryTime => "EXPIRETIME",
            Self::Bucket => "BUCKET",
            Self::Scan => "SCAN",
            Self::DeleteRange => "DELETE_RANGE",
            Self::Txn => "TXN",
            Self::Snapshot => "SNAPSHOT",
            Self::Stats => "STATS",
            Self::Backup => "BACKUP",
            Self::Shrink => "SHRINK",
            Self::ClientList => "CLIENT_LIST",
            Self::ClientKill => "CLIENT_KILL",
            Self::SlowlogGet => "SLOWLOG_GET",
            Self::SlowlogReset => "SLOWLOG_RESET",
            Self::Credit => "CREDIT",
            Self::Cancel => "CANCEL",
            Self::Watch => "WATCH",
        }
    }
}

/// What a BUCKET request is to do: the first byte of its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum BucketOp {
    /// Create a bucket whose parents exist.
    Create = 1,
    /// Create a bucket and its parents, where they are missing.
    CreateIfMissing = 2,
    /// Delete a bucket with all within.
    Delete = 3,
    /// The buckets within a bucket, as a stream.
    List = 4,
    /// A bucket's figures.
    Stat = 5,
    /// Raise a bucket's sequence by one.
    NextSequence = 6,
    /// Set a bucket's sequence.
    SetSequence = 7,
    /// Give a bucket another path.
    Move = 8,
    /// A bucket's sequence, as it is.
    GetSequence = 9,
}

impl BucketOp {
    /// The sub-operation with this number, if there is one.
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Create,
            2 => Self::CreateIfMissing,
            3 => Self::Delete,
            4 => Self::List,
            5 => Self::Stat,
            6 => Self::NextSequence,
            7 => Self::SetSequence,
            8 => Self::Move,
            9 => Self::GetSequence,
            _ => return None,
        })
    }

    /// The sub-operation's full name, as the documentation writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "BUCKET CREATE",
            Self::CreateIfMissing => "BUCKET CREATE_IF_MISSING",
            Self::Delete => "BUCKET DELETE",
            Self::List => "BUCKET LIST",
            Self::Stat => "BUCKET STAT",
            Self::NextSequence => "BUCKET NEXT_SEQUENCE",
            Self::SetSequence => "BUCKET SET_SEQUENCE",
            Self::Move => "BUCKET MOVE",
            Self::GetSequence => "BUCKET GET_SEQUENCE",
        }
    }
}
