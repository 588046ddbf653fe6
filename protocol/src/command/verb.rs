//! What a line of the text dialect asks for.

/// The commands of the text dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// One value.
    Get,
    /// Put a value.
    Set,
    /// Put a value under a new key.
    SetIfAbsent,
    /// Put a value under a key that is there.
    SetIfPresent,
    /// Put a value in the place of another.
    CompareAndSet,
    /// Put a value that expires.
    SetExpiring,
    /// Set when a key expires, in seconds.
    Expire,
    /// The same, in milliseconds.
    ExpireMillis,
    /// When a key expires, in seconds.
    TimeLeft,
    /// The same, in milliseconds.
    TimeLeftMillis,
    /// A key is not to expire.
    Persist,
    /// Remove a key that has a certain value.
    CompareAndDelete,
    /// Remove a key.
    Delete,
    /// Remove a range of keys.
    DeleteRange,
    /// Add to a number.
    Increment,
    /// Take away from a number.
    Decrement,
    /// Whether a key is there.
    Exists,
    /// Several values.
    MultiGet,
    /// Make a bucket.
    BucketCreate,
    /// Remove a bucket.
    BucketDelete,
    /// Go to a bucket.
    BucketUse,
    /// The buckets within one.
    BucketList,
    /// A bucket's figures.
    BucketStat,
    /// Raise a bucket's sequence.
    BucketNext,
    /// A bucket's sequence, or set it.
    BucketSequence,
    /// Give a bucket another parent.
    BucketMove,
    /// The entries of the connection's bucket.
    Scan,
    /// How many they are.
    Count,
    /// Begin a transaction.
    Multi,
    /// A condition of it.
    IfAbsent,
    /// A condition of it.
    IfPresent,
    /// A condition of it.
    IfEquals,
    /// Have it done.
    Exec,
    /// Forget it.
    Discard,
    /// Who is asking?
    Auth,
    /// Is anyone there?
    Ping,
    /// The server's figures.
    Stats,
    /// Who is connected?
    ClientList,
    /// End a connection.
    ClientKill,
    /// What was slow?
    SlowlogGet,
    /// Forget that.
    SlowlogReset,
    /// This table.
    Help,
    /// The end.
    Quit,
}

impl Verb {
    /// Whether it is about when a key expires that is there.
    #[must_use]
    pub const fn is_about_time(self) -> bool {
        matches!(self, Self::Expire | Self::ExpireMillis | Self::Persist | Self::TimeLeft | Self::TimeLeftMillis)
    }

    /// Whether its last argument is a value, which takes all the rest of the line as it is.
    #[must_use]
    pub const fn ends_in_value(self) -> bool {
        matches!(
            self,
            Self::Set
                | Self::SetIfAbsent
                | Self::SetIfPresent
                | Self::CompareAndSet
                | Self::SetExpiring
                | Self::CompareAndDelete
                | Self::IfEquals
        )
    }
}
