//! How the databases of these tests are made and opened.

use std::time::Duration;

use super::random::Random;
use crate::{Durability, FreelistStored, JournalKeep, JournalOptions, Options};

/// So long that no test lives to see a sync that nobody asked for.
const NEVER_IN_A_TEST: Duration = Duration::from_secs(24 * 3600);

/// How a database is made and opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup {
    pub(super) page_size: u32,
    pub(super) freelist: FreelistStored,
    pub(super) durability: Durability,
    /// Bytes of journal between two checkpoints, where one is kept.
    pub(super) journal: Option<u64>,
    /// How long that is kept.
    pub(super) keep: JournalKeep,
    /// Bytes of memory for what is new.
    pub(super) memory: usize,
}

/// Every so many commits one is synced, and none because of the time.
pub(super) fn every(commits: u64) -> Durability {
    Durability::Interval { every: NEVER_IN_A_TEST, commits }
}

impl Setup {
    /// Each combination comes up; small pages come up most, because they show the most.
    pub(super) fn random(random: &mut Random) -> Self {
        let freelist = [FreelistStored::Always, FreelistStored::Never, FreelistStored::OnCleanClose];
        let interval = every(2 + random.below(4) as u64);
        Self {
            page_size: [1024, 1024, 1024, 2048, 4096][random.below(5)],
            freelist: freelist[random.below(3)],
            durability: [Durability::Always, Durability::Always, interval, Durability::Never][random.below(4)],
            journal: None,
            keep: JournalKeep::UntilCheckpoint,
            memory: 0,
        }
    }

    /// The same with a journal.
    pub(super) fn random_with_journal(random: &mut Random) -> Self {
        let setup = Self::random(random);
        let keep = [JournalKeep::UntilCheckpoint, JournalKeep::Bytes(1 << 30)][random.below(2)];
        let memory = [0, 4 << 10, 16 << 10][random.below(3)];
        Self { journal: Some([1 << 13, 20 << 10, 60 << 10][random.below(3)]), keep, memory, ..setup }
    }

    pub(super) fn options(&self) -> Options {
        let options = Options::new().page_size(self.page_size).freelist(self.freelist).durability(self.durability);
        match self.journal {
            Some(bytes) => {
                let journal = JournalOptions::new().checkpoint_size(bytes).keep(self.keep);
                options.journal(journal.memory(self.memory))
            }
            None => options,
        }
    }

    /// Whether the last of so many commits since a sync point is promised to be durable.
    pub(super) fn is_durable_after(&self, commits: u64) -> bool {
        match self.durability {
            Durability::Always => true,
            // A checkpoint in between is a sync too, and the next interval begins with it.
            Durability::Interval { .. } if self.journal.is_some() => false,
            Durability::Interval { commits: every, .. } => commits >= every,
            Durability::Never => false,
        }
    }
}
