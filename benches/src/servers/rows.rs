//! The rows: what is asked, by how many, of whom, and what it should come to beside Redis.

use std::fmt;

use clap::ValueEnum;

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Who {
    /// boltkv on a file into which every key was put once, in a random order.
    Fresh,
    /// boltkv on such a file after three times as many random overwrites as it has keys.
    Aged,
    /// boltkv with a journal, but without memory for what is new, on a file as the fresh one, and made anew as that is.
    NoMemory,
    /// boltkv without a journal, on a file as the fresh one, on which rows write one after the other.
    Plain,
    /// Redis, which has every write on the disk before it answers.
    Redis,
    /// memcached, which writes nothing down.
    Memcached,
}

impl Who {
    /// All of them, in the order in which they take turns.
    pub const ALL: [Self; 6] = [Self::Fresh, Self::Aged, Self::NoMemory, Self::Plain, Self::Redis, Self::Memcached];

    /// What a reader takes it for.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Fresh => "boltkv",
            Self::Aged => "boltkv, aged",
            Self::NoMemory => "boltkv, no memory",
            Self::Plain => "boltkv, no journal",
            Self::Redis => "Redis",
            Self::Memcached => "memcached",
        }
    }

    pub(super) const fn is_boltkv(self) -> bool {
        matches!(self, Self::Fresh | Self::Aged | Self::NoMemory | Self::Plain)
    }

    /// Whether rows that write begin with the file as it was loaded.
    pub(super) const fn is_renewed(self) -> bool {
        matches!(self, Self::Fresh | Self::NoMemory)
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.title())
    }
}

/// How many keys with small values there are where nothing else is said.
pub const KEYS: u64 = 1_000_000;

/// Entries of one size, in a bucket of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Data {
    /// The bucket, and Redis' database.
    pub(super) number: u32,
    pub(super) value_size: usize,
    pub(super) keys: u64,
}

/// As the table of goals has them.
pub(super) const SMALL: Data = Data { number: 0, value_size: 100, keys: KEYS };
pub(super) const KIBI: Data = Data { number: 1, value_size: 1024, keys: 100_000 };
pub(super) const LARGE: Data = Data { number: 2, value_size: 16 * 1024, keys: 10_000 };

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Its name, for `--only`.
    pub name: &'static str,
    /// What it is, for readers.
    pub title: &'static str,
    pub(super) mix: &'static str,
    pub(super) data: Data,
    pub(super) connections: usize,
    pub(super) pipeline: usize,
    /// Beside so many SETs a second, of 50 connections.
    pub(super) beside: Option<u64>,
    /// After so many SETs, which are not measured.
    pub(super) after: Option<u64>,
    /// A whole scan: its figure is entries a second.
    pub scan: bool,
    /// Whether it writes, so that the fresh file is made anew for it.
    pub writes: bool,
    pub(super) who: &'static [Who],
    /// boltkv's rate on a fresh file is to be so many times Redis'.
    pub bar: f64,
    /// Where it is going.
    pub aim: f64,
}

const READERS: &[Who] = &[Who::Fresh, Who::Aged, Who::Redis, Who::Memcached];
const WRITERS: &[Who] = &[Who::Fresh, Who::Aged, Who::Redis];
/// Where the journal, and memory for what is new, are what makes the difference.
const JOURNAL: &[Who] = &[Who::Fresh, Who::Aged, Who::NoMemory, Who::Plain, Who::Redis];
/// Where that memory is what is read.
const MEMORY: &[Who] = &[Who::Fresh, Who::NoMemory, Who::Redis];
/// SETs of different keys that fill half of the memory for what is new.
const HALF: u64 = 80_000;

const fn row(name: &'static str, title: &'static str, mix: &'static str, goals: [f64; 2]) -> Row {
    let [bar, aim] = goals;
    Row {
        name,
        title,
        mix,
        data: SMALL,
        connections: 50,
        pipeline: 1,
        beside: None,
        after: None,
        scan: false,
        writes: true,
        who: WRITERS,
        bar,
        aim,
    }
}

const fn reads(row: Row) -> Row {
    Row { writes: false, who: READERS, ..row }
}

/// While half of the memory for what is new is full.
const fn half_full(row: Row) -> Row {
    Row { writes: true, who: MEMORY, after: Some(HALF), ..row }
}

/// Of 8 connections, beside so many SETs a second.
const fn beside(row: Row, sets: u64) -> Row {
    Row { connections: 8, beside: Some(sets), ..row }
}

const SCAN: Row = Row {
    connections: 1,
    scan: true,
    writes: false,
    ..row("scan", "full scan, keys and values; Redis: SCAN and MGET", "scan", [15.0, 17.0])
};

const ROWS: [Row; 19] = [
    Row { connections: 1, ..reads(row("get-1", "GET, 1 connection", "get", [1.0, 1.0])) },
    reads(row("get-50", "GET, 50", "get", [1.0, 1.0])),
    Row { pipeline: 16, ..reads(row("get-50x16", "GET, 50, 16 in flight each", "get", [1.3, 2.0])) },
    Row { connections: 8, ..reads(row("get-8", "GET, 8", "get", [1.0, 1.0])) },
    beside(row("get-8-beside-set", "GET of 8 beside 4,000 SETs a second of 50", "get", [5.0, 10.0]), 4_000),
    beside(row("get-8-beside-20k", "GET of 8 beside 20,000 SETs a second of 50", "get", [5.0, 10.0]), 20_000),
    // About as many as both can do on two processors and a quick disk while they are asked for what they have, too.
    beside(row("get-8-beside-60k", "GET of 8 beside 60,000 SETs a second of 50", "get", [5.0, 10.0]), 60_000),
    Row { connections: 1, who: JOURNAL, ..row("set-1", "durable SET, 1 connection", "set", [1.0, 1.3]) },
    Row { who: JOURNAL, ..row("set-50", "durable SET, 50", "set", [1.1, 1.5]) },
    Row { pipeline: 16, who: JOURNAL, ..row("set-50x16", "durable SET, 50, 16 in flight each", "set", [0.8, 1.3]) },
    row("mix-50", "80 % GET, 20 % SET, 50", "get:80+set:20", [1.0, 1.5]),
    Row { writes: false, data: KIBI, ..row("get-1k", "GET of 1 KiB, 50", "get", [1.0, 1.3]) },
    Row { data: KIBI, ..row("set-1k", "durable SET of 1 KiB, 50", "set", [1.0, 1.3]) },
    Row { writes: false, data: LARGE, ..row("get-16k", "GET of 16 KiB, 50", "get", [1.0, 1.0]) },
    Row { data: LARGE, ..row("set-16k", "durable SET of 16 KiB, 50", "set", [1.0, 1.5]) },
    SCAN,
    Row {
        connections: 1,
        ..half_full(row("half-get-1", "GET, 1 connection, 80,000 keys new in memory", "get", [1.0, 1.0]))
    },
    half_full(row("half-get-50", "GET, 50, 80,000 keys new in memory", "get", [1.0, 1.0])),
    half_full(Row { name: "half-scan", title: "full scan, 80,000 keys new in memory", ..SCAN }),
];

/// All rows, in the order of the table.
#[must_use]
pub const fn rows() -> &'static [Row] {
    &ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_mixes_that_are_some() {
        for (at, row) in rows().iter().enumerate() {
            assert!(row.mix.parse::<boltkv_load::Mix>().is_ok(), "{}", row.name);
            assert!(rows()[..at].iter().all(|before| before.name != row.name), "{}", row.name);
            let writes = row.mix.contains("set") || row.beside.is_some() || row.after.is_some();
            assert_eq!(row.writes, writes, "{}", row.name);
        }
    }
}
