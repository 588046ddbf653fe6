//! A work: what an engine is asked to do and what of it is timed, as data that Rust and Go read alike. What a step
//! means is in `worker.rs`; nothing here may name an engine.

use std::hash::Hasher as _;

use fnv::FnvHasher;
use serde::{Deserialize, Serialize};

use crate::data::{Keys, splitmix};
use crate::records::{Layout, Task};

/// A work, done by one engine in one process of its own from an empty folder on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// What it is called on the command line and in results.
    pub name: String,
    /// The kind of its keys.
    pub keys: Keys,
    /// Bytes of a value.
    pub value_bytes: usize,
    /// Whether a commit is on the disk before the next one begins. Where it is not, a [`Step::Sync`] ends what is timed.
    pub synced: bool,
    /// Whether instructions are counted in place of seconds; each timed stage is then done by itself.
    pub counted: bool,
    /// What is done, in this order.
    pub stages: Vec<Stage>,
}

/// A step, and whether it is timed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The figure that its time and operations count for; `None`: it only prepares. Stages that count for the same
    /// figure are summed.
    pub figure: Option<String>,
    /// What is done.
    #[serde(flatten)]
    pub step: Step,
}

/// What an engine can be asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// Put the picked entries, `batch` of them a transaction.
    Put {
        /// Which.
        picks: Picks,
        /// Entries a transaction.
        batch: u64,
        /// Whether each batch goes to a nested bucket of its own, whose name is the key of the batch's number.
        nested: bool,
    },
    /// Delete the picked entries, `batch` of them a transaction.
    Delete {
        /// Which.
        picks: Picks,
        /// Entries a transaction.
        batch: u64,
    },
    /// Look the picked entries up, `batch` of them a transaction, on so many threads that each do it all.
    Get {
        /// Which.
        picks: Picks,
        /// Entries a transaction.
        batch: u64,
        /// Threads.
        threads: u64,
    },
    /// Go through all entries in key order and read every byte of them, so many times.
    Scan {
        /// Times.
        times: u64,
    },
    /// Close the database and open it again; the opening is timed.
    Open,
    /// Do something to the file as a whole.
    Chore {
        /// What.
        chore: Chore,
    },
    /// Do something with so many records, by engines after bolt's.
    Records {
        /// How records are stored.
        layout: Layout,
        /// What is done.
        task: Task,
        /// Records that there are.
        count: u64,
    },
    /// Delete everything.
    Clear,
    /// Bring everything committed to the disk.
    Sync,
}

/// What is done to a file as a whole, by engines after bolt's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Chore {
    /// Look for damage.
    Check,
    /// Copy a snapshot to another file.
    Backup,
    /// Write the database anew to another file.
    Compact,
}

/// Which entries, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picks {
    /// The first number; for random ones where their sequence begins.
    pub from: u64,
    /// How many.
    pub count: u64,
    /// What lies between two numbers.
    pub stride: u64,
    /// Random numbers below this one, with repetitions; 0: in order.
    pub random_below: u64,
}

impl Picks {
    /// The first `count` entries.
    #[must_use]
    pub fn first(count: u64) -> Self {
        Self { from: 0, count, stride: 1, random_below: 0 }
    }

    /// `count` random ones of the first `of`.
    #[must_use]
    pub fn random(count: u64, of: u64) -> Self {
        // They start where no key's number does: the order of look-ups is not the order of insertion.
        Self { from: 1 << 40, count, stride: 1, random_below: of }
    }

    /// The numbers, from the `skip`-th on at most `count` of them.
    pub fn numbers(self, skip: u64, count: u64) -> impl Iterator<Item = u64> {
        (skip..self.count.min(skip + count)).map(move |at| {
            let n = self.from + at * self.stride;
            if self.random_below == 0 { n } else { splitmix(n) % self.random_below }
        })
    }
}

impl Work {
    /// A work without steps; `then` and `timed` add them.
    #[must_use]
    pub fn new(name: impl Into<String>, keys: Keys, value_bytes: usize) -> Self {
        Self { name: name.into(), keys, value_bytes, synced: true, counted: false, stages: Vec::new() }
    }

    /// Without syncs, but for those that are steps.
    #[must_use]
    pub fn unsynced(mut self) -> Self {
        self.synced = false;
        self
    }

    /// Counted in place of timed.
    #[must_use]
    pub fn counted(mut self) -> Self {
        self.counted = true;
        self
    }

    /// Adds a step that is not timed.
    #[must_use]
    pub fn then(mut self, step: Step) -> Self {
        self.stages.push(Stage { figure: None, step });
        self
    }

    /// Adds a step that is timed for a figure.
    #[must_use]
    pub fn timed(mut self, figure: impl Into<String>, step: Step) -> Self {
        self.stages.push(Stage { figure: Some(figure.into()), step });
        self
    }
}

/// What a stage has cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// The figure that it counts for.
    pub figure: String,
    /// Operations.
    pub operations: u64,
    /// Seconds, by the clock.
    pub seconds: f64,
    /// What was read, as a number that has to be the same for every engine.
    pub witness: u64,
    /// Bytes of all files in the folder after it; `None` where instructions are counted.
    pub file_bytes: Option<u64>,
}

/// What a database holds, as a number of entries and a hash of all their keys and values in key order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Entries; where buckets nest, a bucket is one and its own entries come right after it.
    pub entries: u64,
    /// FNV-1a with 64 bits over the bytes of each key, then of its value.
    pub hash: u64,
}

impl Default for Contents {
    fn default() -> Self {
        Self { entries: 0, hash: FnvHasher::default().finish() }
    }
}

impl Contents {
    /// Takes in the next entry.
    pub fn take(&mut self, key: &[u8], value: &[u8]) {
        let mut hash = FnvHasher::with_key(self.hash);
        hash.write(key);
        hash.write(value);
        self.entries += 1;
        self.hash = hash.finish();
    }
}

/// What a worker writes: one of these a line, as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Told {
    /// A timed stage is done.
    Cost(Cost),
    /// All is done, and so many bytes of the file are in use; `None`: the engine does not tell.
    Done(Option<u64>),
    /// What the database holds then, to be compared with the others'. Nothing is measured any more while it is read.
    Holds(Contents),
    /// It cannot be done.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picks_are_cut_into_batches_without_gap_or_overlap() {
        for picks in [Picks::first(10), Picks::random(10, 4), Picks { stride: 3, ..Picks::first(10) }] {
            let whole: Vec<_> = picks.numbers(0, u64::from(u32::MAX)).collect();
            let batches: Vec<_> = (0..10).step_by(4).flat_map(|skip| picks.numbers(skip, 4)).collect();
            assert_eq!(whole, batches);
            assert_eq!(whole.len(), 10);
        }
    }

    #[test]
    fn random_picks_stay_below_their_limit() {
        assert!(Picks::random(1000, 7).numbers(0, 1000).all(|n| n < 7));
    }

    #[test]
    fn contents_differ_by_any_byte() {
        let of = |entries: &[(&[u8], &[u8])]| {
            entries.iter().fold(Contents::default(), |mut all, (key, value)| {
                all.take(key, value);
                all
            })
        };
        let all = of(&[(b"a", b"foo"), (b"b", b"bar")]);
        // "afoobbar", by the reference's offset and prime.
        assert_eq!(all, Contents { entries: 2, hash: 0xaeaa_b135_6cac_b183 });
        for other in
            [&[(&b"a"[..], &b"foo"[..])][..], &[(b"a", b"foo"), (b"b", b"baz")], &[(b"b", b"bar"), (b"a", b"foo")]]
        {
            assert_ne!(all, of(other));
        }
    }

    #[test]
    fn a_work_survives_its_way_to_a_worker() {
        let work = Work::new("w", Keys::Random16, 100)
            .unsynced()
            .then(Step::Put { picks: Picks::first(9), batch: 3, nested: true })
            .timed("get", Step::Get { picks: Picks::random(5, 9), batch: 1, threads: 2 })
            .timed("sync", Step::Sync);
        let told = serde_json::to_string(&work).unwrap();
        assert_eq!(serde_json::from_str::<Work>(&told).unwrap(), work);
    }
}
