//! A process whose file may have so many bytes and no more, by its options or by a limit that the process has: what does not
//! fit is refused, and it always ends cleanly, with all that was committed in its file.

use super::edit::Edit;
use super::edits::edits;
use super::explore::is_clean;
use super::ground::{Files, Ground};
use super::model::Model;
use super::random::Random;
use super::setup::Setup;
use crate::disk::sim::Trap;
use crate::{Db, Durability, Error, Options, Result};

const SEEDS: u64 = 8;
/// Processes one after the other.
const LIVES: usize = 5;
/// Commits that fill the file, and the most of each process after that.
const FILLING: usize = 300;
const COMMITS: usize = 100;

/// One file and the processes that write to it.
struct Limited {
    random: Random,
    options: Options,
    ground: Ground,
    model: Model,
    /// Keys of the bucket that fills the file, more than find room there.
    keys: usize,
    refused: usize,
}

impl Limited {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let journal = Some([20 << 10, 1 << 20, 4 << 20][random.below(3)]);
        let memory = [16 << 10, 1 << 20, 4 << 20][random.below(3)];
        let setup = Setup { durability: Durability::Always, journal, memory, ..Setup::random(&mut random) };
        let limit = [100_000, 300_000, 1_000_000][random.below(3)] + random.below(5000);
        let keys = limit / [100, 150, 200][random.below(3)];
        let mut options = setup.options().max_size_reserve(limit as u64 / 16);
        if random.once_in(3) {
            options = options.max_size(limit as u64);
        }
        let trap = Trap::default();
        let ground = Ground::new(&Files::new_database(&setup), &trap);
        trap.limit_len(limit as u64);
        Self { random, options, ground, model: Model::default(), keys, refused: 0 }
    }

    fn open(&self) -> Db {
        let db = self.ground.open(&self.options).expect("what is in the file opens");
        let tx = db.begin().expect("readers always may");
        assert!(self.model.is_seen_in(tx.buckets()).expect("it is whole"), "it does not hold what was committed");
        is_clean(&db).unwrap_or_else(|what| panic!("{what}"));
        drop(tx);
        db
    }

    fn life(&mut self, commits: usize) {
        let db = self.open();
        for _ in 0..commits {
            let mut model = self.model.clone();
            let edits =
                if self.random.once_in(3) { some_edits(&mut self.random, &mut model) } else { self.many(&mut model) };
            match write(&db, &edits) {
                Ok(()) => self.model = model,
                Err(error) => {
                    assert!(matches!(error, Error::MaxSizeReached { .. }), "{error}");
                    self.refused += 1;
                }
            }
        }
        db.close().unwrap_or_else(|error| panic!("it does not end cleanly: {error}"));
    }

    /// Puts, a fifth of them of keys that there are, and deletions of one key or a row of them.
    fn many(&mut self, model: &mut Model) -> Vec<Edit> {
        let path = vec![b"many".to_vec()];
        let mut edits = vec![Edit::CreateIfMissing(path.clone())];
        for _ in 0..[1, 1, 4, 16, 64][self.random.below(5)] {
            let first = self.random.below(self.keys);
            let key = |at: usize| format!("{at:06}").into_bytes();
            if self.random.below(10) < 8 {
                edits.push(Edit::Put(path.clone(), key(first), vec![7; 20 + self.random.below(180)]));
            } else {
                let end = first + [1, 1, 1, 5, 50][self.random.below(5)];
                edits.extend((first..end).map(|at| Edit::Delete(path.clone(), key(at))));
            }
        }
        for edit in &edits {
            edit.apply_to_model(model).expect("the bucket is there");
        }
        edits
    }
}

fn some_edits(random: &mut Random, model: &mut Model) -> Vec<Edit> {
    edits(random, model).into_iter().map(|(edit, _)| edit).collect()
}

fn write(db: &Db, edits: &[Edit]) -> Result<()> {
    let mut tx = db.begin_mut()?;
    edits.iter().try_for_each(|edit| edit.apply(&mut tx).map(drop))?;
    tx.commit().map(drop)
}

#[test]
fn a_process_whose_file_may_not_grow_any_more_ends_cleanly_with_all_that_was_committed() {
    let mut refused = 0;
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut limited = Limited::new(seed);
        limited.life(FILLING);
        for _ in 1..LIVES {
            let commits = 1 + limited.random.below(COMMITS);
            limited.life(commits);
        }
        drop(limited.open());
        refused += limited.refused;
    }
    assert!(refused > 100, "only {refused} commits were refused");
}
