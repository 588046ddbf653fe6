//! Does one work on one engine and tells what it cost. Runs in a process of its own; nothing may be timed here but the
//! engine and the making of keys, which costs a few nanoseconds.

use std::fs;
use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::data::Values;
use crate::engines::{Engine, Setup};
use crate::work::{Chore, Contents, Cost, Picks, Step, Told, Work};

/// Does a work from an empty folder on, and tells of each timed stage once it is done.
///
/// # Errors
/// The engine's, and those of `tell`.
pub fn run<E: Engine>(
    work: &Work,
    folder: &Path,
    setup: Setup,
    mut tell: impl FnMut(Told) -> Result<()>,
) -> Result<()> {
    let values = Values::new(work.value_bytes);
    let mut engine = E::open(folder, setup)?;
    for stage in &work.stages {
        let done = if stage.step == Step::Open {
            drop(engine);
            let start = Instant::now();
            engine = E::open(folder, setup)?;
            Done { operations: 1, time: start.elapsed(), witness: 0 }
        } else {
            Job { engine: &engine, values: &values, work, folder }.step(&stage.step)?
        };
        if let Some(figure) = stage.figure.clone() {
            let Done { operations, time, witness } = done;
            // Where instructions are counted, these would count, too.
            let file_bytes = if work.counted { None } else { Some(bytes(folder)?) };
            tell(Told::Cost(Cost { figure, operations, seconds: time.as_secs_f64(), witness, file_bytes }))?;
        }
    }
    tell(Told::Done(engine.used_bytes()?))?;
    // As above.
    if !work.counted {
        tell(Told::Holds(contents(&engine, work)?))?;
    }
    Ok(())
}

/// Everything that the database holds: what was only told to be written is missing here. Records are only counted: two
/// languages encode one as JSON or `MessagePack` in different bytes, and what is in them the tasks read.
fn contents<E: Engine>(engine: &E, work: &Work) -> Result<Contents> {
    let encoded = work.stages.iter().any(|stage| matches!(stage.step, Step::Records { .. }));
    let mut contents = Contents::default();
    engine.scan(|key, value| if encoded { contents.take(&[], &[]) } else { contents.take(key, value) })?;
    Ok(contents)
}

struct Job<'w, E> {
    engine: &'w E,
    values: &'w Values,
    work: &'w Work,
    folder: &'w Path,
}

struct Done {
    operations: u64,
    time: Duration,
    witness: u64,
}

impl<E: Engine> Job<'_, E> {
    fn step(&self, step: &Step) -> Result<Done> {
        match *step {
            Step::Put { picks, batch, nested } => timed(picks.count, || self.put(picks, batch, nested)),
            Step::Delete { picks, batch } => timed(picks.count, || self.delete(picks, batch)),
            Step::Get { picks, batch, threads: 1 } => timed(picks.count, || self.get(picks, batch)),
            Step::Get { picks, batch, threads } => self.get_on_threads(picks, batch, threads),
            Step::Scan { times } => self.scan(times),
            Step::Open => bail!("only the one who has the engine can open it again"),
            Step::Chore { chore } => self.chore(chore),
            Step::Records { layout, task, count } => {
                timed(task.records(count), || self.engine.records(layout, task, count))
            }
            Step::Clear => timed(1, || self.engine.clear().map(|()| 0)),
            // It is no operation of its own: it ends those that it is counted with.
            Step::Sync => timed(0, || self.engine.sync().map(|()| 0)),
        }
    }

    fn put(&self, picks: Picks, batch: u64, nested: bool) -> Result<u64> {
        let keys = self.work.keys;
        for (number, skip) in starts(picks, batch) {
            // Values are numbered from elsewhere in each stage, so that what is put again is another value.
            let entries =
                picks.numbers(skip, batch).map(|n| (keys.key(n), self.values.value(n.wrapping_add(picks.from))));
            self.engine.put(nested.then(|| keys.key(number)), entries)?;
        }
        Ok(0)
    }

    fn delete(&self, picks: Picks, batch: u64) -> Result<u64> {
        for (_, skip) in starts(picks, batch) {
            self.engine.delete(picks.numbers(skip, batch).map(|n| self.work.keys.key(n)))?;
        }
        Ok(0)
    }

    fn get(&self, picks: Picks, batch: u64) -> Result<u64> {
        let mut witness = 0;
        for (_, skip) in starts(picks, batch) {
            let keys = picks.numbers(skip, batch).map(|n| self.work.keys.key(n));
            self.engine.get(keys, |value| witness += 1 + first(value))?;
        }
        Ok(witness)
    }

    fn get_on_threads(&self, picks: Picks, batch: u64, threads: u64) -> Result<Done> {
        let ready = Barrier::new(usize::try_from(threads)? + 1);
        let witness = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..threads)
                .map(|thread| {
                    let (ready, witness) = (&ready, &witness);
                    let picks = Picks { from: picks.from + thread * picks.count, ..picks };
                    scope.spawn(move || {
                        ready.wait();
                        witness.fetch_add(self.get(picks, batch)?, Ordering::Relaxed);
                        Ok::<_, anyhow::Error>(())
                    })
                })
                .collect();
            timed(threads * picks.count, || {
                ready.wait();
                for reader in readers {
                    reader.join().map_err(|_| anyhow!("a reader panicked"))??;
                }
                Ok(witness.load(Ordering::Relaxed))
            })
        })
    }

    fn chore(&self, chore: Chore) -> Result<Done> {
        let target = self.folder.join("target");
        let done = timed(1, || self.engine.chore(chore, &target).map(|()| 0))?;
        if target.exists() {
            fs::remove_file(target)?;
            // Or the next sync pays for it, whoever's that is.
            fs::File::open(self.folder)?.sync_all()?;
        }
        Ok(done)
    }

    fn scan(&self, times: u64) -> Result<Done> {
        let (mut entries, mut witness) = (0, 0);
        let done = timed(0, || {
            (0..times).try_for_each(|_| {
                self.engine.scan(|key, value| {
                    entries += 1;
                    witness = sum(sum(witness, key), value);
                })
            })?;
            Ok(0)
        })?;
        Ok(Done { operations: entries, witness: black_box(witness), ..done })
    }
}

/// Bytes of all files in a folder. What is deleted meanwhile does not count.
pub(crate) fn bytes(folder: &Path) -> io::Result<u64> {
    let of = |entry: &fs::DirEntry| {
        let metadata = entry.metadata()?;
        if metadata.is_dir() { bytes(&entry.path()) } else { Ok(metadata.len()) }
    };
    fs::read_dir(folder)?.try_fold(0, |sum, entry| match of(&entry?) {
        Ok(bytes) => Ok(sum + bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(sum),
        Err(error) => Err(error),
    })
}

/// Where the batches of so many picks start, with their numbers.
fn starts(picks: Picks, batch: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..).zip((0..picks.count).step_by(usize::try_from(batch).unwrap_or(usize::MAX).max(1)))
}

/// The first byte: reading it makes an engine that only lends values fetch them.
fn first(bytes: &[u8]) -> u64 {
    bytes.first().copied().map_or(0, u64::from)
}

/// Adds up all bytes, eight at a time: as much as a loop has to do that looks at everything, and no more than any language
/// does in as few instructions.
fn sum(sum: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks();
    let sum = words.iter().fold(sum, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

fn timed(operations: u64, run: impl FnOnce() -> Result<u64>) -> Result<Done> {
    let start = Instant::now();
    let witness = black_box(run()?);
    Ok(Done { operations, time: start.elapsed(), witness })
}
