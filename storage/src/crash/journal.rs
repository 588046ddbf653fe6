//! A journal beside a file that has nothing but metas: whatever the disk loses of either at whatever moment, what was synced is
//! there, what is there was appended, and the newest is lost first. What was synced and is damaged is refused, and never
//! taken for the end.
//!
//! `BOLTKV_CRASH_POINTS=2000000 BOLTKV_SEED=5000 cargo test -p boltkv-storage crash::journal` looks at more.

mod damage;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::platters::{Left, Platters};
use super::power::from_environment;
use super::random::Random;
use crate::disk::sim::{Event, Fault, FileId, SimFolder, SimJournalFolder, Trap};
use crate::disk::{Disk, Folder as _, JournalFolder};
use crate::journal::{Journal, JournalKeep, JournalLimits, MetaBytes, read};
use crate::{Error, Result, TxId};

const FILE: &str = "db";
const FOLDER: &str = "db-journal";
/// Crash points looked at, unless `BOLTKV_CRASH_POINTS` says otherwise.
const POINTS: u64 = 10_000;
/// A seed gives more crash points than this.
const FEWEST_OF_A_SEED: u64 = 100;
const LIVES: usize = 3;
const STEPS: usize = 24;
const SECTOR: usize = 512;

/// Transactions with the checksum of their effects, in their order.
type Content = Vec<(TxId, u32, usize)>;

/// What each meta that was ever written contains. Metas are told apart by a number of their own and some salt.
type Contained = BTreeMap<[u8; 64], (TxId, Content)>;

fn meta(number: u64, salt: u64) -> MetaBytes {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&salt.to_le_bytes());
    bytes[48..56].copy_from_slice(&number.to_le_bytes());
    let sum = crc32c::crc32c(&bytes[..56]);
    bytes[56..60].copy_from_slice(&sum.to_le_bytes());
    MetaBytes(bytes)
}

/// A file as it is made: two metas, each in a sector of its own.
fn new_file() -> Vec<u8> {
    let mut bytes = vec![0; 2 * SECTOR];
    bytes[..64].copy_from_slice(&meta(0, 0).0);
    bytes[SECTOR..SECTOR + 64].copy_from_slice(&meta(1, 0).0);
    bytes
}

fn newest_meta(file: &dyn Disk) -> MetaBytes {
    let mut metas = Vec::new();
    for slot in 0..2 {
        let mut bytes = [0; 64];
        file.read_at(&mut bytes, slot * SECTOR as u64).unwrap();
        if crc32c::crc32c(&bytes[..56]).to_le_bytes() == bytes[56..60] && bytes[60..] == [0; 4] {
            metas.push(MetaBytes(bytes));
        }
    }
    metas.into_iter().max_by_key(MetaBytes::txid).expect("one of two metas is whole")
}

#[derive(Debug, Clone, Copy)]
struct Setup {
    limits: JournalLimits,
    /// Every so many records are synced.
    synced: usize,
}

impl Setup {
    fn random(random: &mut Random) -> Self {
        let segment_size = 4096 * [2, 3, 4, 8][random.below(4)];
        let checkpoint_size = [9_000, 30_000][random.below(2)];
        let limits = JournalLimits { segment_size, checkpoint_size, keep: Self::keep(random), ahead: false };
        Self { limits, synced: [1, 1, 4, 1000][random.below(4)] }
    }

    /// How much a process keeps. One that keeps less than the one before it has segments to remove.
    fn keep(random: &mut Random) -> JournalKeep {
        let long = JournalKeep::Bytes([40_000, 200_000][random.below(2)]);
        if random.once_in(2) { long } else { JournalKeep::UntilCheckpoint }
    }
}

/// The simulated folder with both files' handles.
struct Place {
    folder: Arc<SimFolder>,
    journal: Arc<dyn JournalFolder>,
    trap: Trap,
}

impl Place {
    fn new((names, contents): &Left, seed: u64) -> Self {
        let trap = Trap::default();
        let folder = Arc::new(SimFolder::new(names.clone(), contents, true, &trap));
        let journal = Arc::new(SimJournalFolder::new(Arc::clone(&folder), Path::new(FOLDER), seed));
        Self { folder, journal, trap }
    }

    fn file(&self) -> Arc<dyn Disk> {
        Arc::new(self.folder.open(Path::new(FILE), true).expect("it is there from the beginning"))
    }

    /// What would be found, and the file's meta.
    fn content(&self, contained: &Contained) -> Result<(Content, MetaBytes)> {
        let newest = newest_meta(&*self.file());
        let mut content = contained[&newest.0].1.clone();
        for record in read(&self.journal)?.after(&newest)?.iter() {
            let mut record = record?;
            let mut effects = Vec::new();
            record.effects.read_to_end(&mut effects).map_err(Error::io("read", None))?;
            content.push((record.txid, crc32c::crc32c(&effects), effects.len()));
        }
        Ok((content, newest))
    }
}

/// A process that has the journal open.
struct Worker<'a> {
    setup: Setup,
    random: &'a mut Random,
    place: &'a Place,
    file: Arc<dyn Disk>,
    contained: &'a mut Contained,
    journal: Journal,
    meta: MetaBytes,
    /// What was there at first and after each append, and up to which of them is promised.
    states: Vec<Content>,
    durable: usize,
    unsynced: usize,
    /// The number of the last transaction.
    last: TxId,
    /// What happened, and which states may be found after a crash meanwhile.
    happened: Vec<(Event, RangeInclusive<usize>)>,
}

impl<'a> Worker<'a> {
    fn open(setup: Setup, random: &'a mut Random, place: &'a Place, contained: &'a mut Contained) -> Self {
        let (content, newest) = place.content(contained).expect("it was looked at before");
        let journal = begin(setup, place, &newest).expect("nothing fails");
        let last = content.last().map_or(1, |record| record.0).max(contained[&newest.0].0);
        let mut worker = Self {
            setup,
            random,
            place,
            file: place.file(),
            contained,
            journal,
            meta: newest,
            states: vec![content],
            durable: 0,
            unsynced: 0,
            last,
            happened: Vec::new(),
        };
        worker.note();
        worker.checkpoint().expect("nothing fails");
        worker
    }

    /// Takes in what happened since the last time.
    fn note(&mut self) {
        let allowed = self.durable..=self.states.len() - 1;
        self.happened.extend(self.place.folder.log().take().into_iter().map(|event| (event, allowed.clone())));
    }

    fn run(mut self) -> (Vec<(Event, RangeInclusive<usize>)>, Vec<Content>) {
        for _ in 0..STEPS {
            if self.random.once_in(8) {
                self.place.trap.arm(self.random.below(8) as u64, Fault::Killed);
            }
            let done = match self.random.below(16) {
                0 | 1 => self.checkpoint(),
                2 => self.sync_beside(),
                3 => self.journal.sync().map(|()| self.all_durable()),
                4 => Err(std::io::ErrorKind::Interrupted.into()),
                _ => self.append(),
            };
            self.note();
            if done.is_err() {
                self = self.next_process();
            }
            self.place.trap.disarm();
        }
        (self.happened, self.states)
    }

    fn all_durable(&mut self) {
        self.note();
        self.durable = self.states.len() - 1;
        self.unsynced = 0;
    }

    fn append(&mut self) -> std::io::Result<()> {
        let len = match self.random.below(10) {
            0 => 0,
            1..=5 => self.random.below(300),
            6 => 4096 - 72 + self.random.below(2),
            7 | 8 => self.random.below(9000),
            _ => self.random.below(40_000),
        };
        let effects = self.random.bytes(len);
        self.last += 1;
        let mut content = self.states[self.states.len() - 1].clone();
        content.push((self.last, crc32c::crc32c(&effects), len));
        self.states.push(content);
        let cut = self.random.below(len + 1);
        self.journal.reserve(Some(len as u64))?;
        let parts = [&effects[..cut], &effects[cut..]];
        if self.unsynced + 1 >= self.setup.synced && self.random.once_in(2) {
            self.journal.append_synced(self.last, self.last, &parts)?;
            self.all_durable();
            return Ok(());
        }
        self.journal.append(self.last, self.last, &parts)?;
        self.unsynced += 1;
        if self.unsynced >= self.setup.synced {
            self.journal.sync()?;
            self.all_durable();
        }
        Ok(())
    }

    /// A sync beside the writer, which goes on meanwhile.
    fn sync_beside(&mut self) -> std::io::Result<()> {
        let Some(pending) = self.journal.begin_sync() else { return Ok(()) };
        let upto = self.states.len() - 1;
        let threshold = std::mem::replace(&mut self.setup.synced, usize::MAX);
        let appended = self.append();
        self.setup.synced = threshold;
        appended?;
        pending.run()?;
        self.journal.synced(&pending);
        self.note();
        self.durable = self.durable.max(upto);
        Ok(())
    }

    /// As the store does it; sometimes of a state that is not the newest.
    fn checkpoint(&mut self) -> std::io::Result<()> {
        let newest = self.states.len() - 1;
        let state = if self.random.once_in(3) { newest - self.random.below(newest - self.durable + 1) } else { newest };
        let content = self.states[state].clone();
        let contains = content.last().map_or(1, |record| record.0).max(self.contained[&self.meta.0].0);
        let meta = meta(self.meta.txid() + 1, self.random.next());
        self.contained.insert(meta.0, (contains, content));
        self.journal.link(contains, &meta, self.journal.recorded())?;
        self.journal.sync()?;
        self.all_durable();
        self.file.write_at(&meta.0, (meta.txid() % 2) * SECTOR as u64)?;
        self.file.sync()?;
        self.journal.checkpointed();
        self.meta = meta;
        if state == newest && self.random.once_in(2) {
            // A meta may take a number of its own.
            self.last += 1;
        }
        Ok(())
    }

    /// What a killed process has written is there, if not on the disk: the cache of the system has it.
    fn next_process(self) -> Self {
        let Self { mut setup, random, place, contained, journal, states, durable, mut happened, .. } = self;
        drop(journal);
        place.trap.disarm();
        let (content, _) = place.content(contained).expect("nothing was lost");
        assert!(states[durable..].contains(&content), "a process that was killed has lost something");
        let before = states.len();
        setup.limits.keep = Setup::keep(random);
        let mut next = Worker::open(setup, random, place, contained);
        // What was found is one of the states before until the first sync of it.
        for (_, allowed) in &mut next.happened {
            *allowed = durable..=before + *allowed.end();
        }
        happened.append(&mut next.happened);
        let mut all = states;
        all.append(&mut next.states);
        next.durable += before;
        (next.states, next.happened) = (all, happened);
        next
    }
}

fn begin(setup: Setup, place: &Place, newest: &MetaBytes) -> Result<Journal> {
    let waiting = read(&place.journal)?.after(newest)?;
    let contains = waiting.contains();
    Journal::begin(Arc::clone(&place.journal), &setup.limits, waiting, newest, contains, 0)
}

/// Looks at what a crash left: the error says what is wrong with it.
fn look(
    left: &Left,
    setup: Setup,
    contained: &Contained,
    allowed: &[Content],
    random: &mut Random,
) -> Result<(), String> {
    let place = Place::new(left, random.next());
    let found = place.content(contained).map_err(|error| error.to_string())?;
    if !allowed.contains(&found.0) {
        let numbers: Vec<TxId> = found.0.iter().map(|record| record.0).collect();
        let least: Vec<TxId> = allowed[0].iter().map(|record| record.0).collect();
        return Err(format!("it holds {numbers:?}, and at least {least:?} are promised"));
    }
    // Opened again and again, and killed before the checkpoint, it holds the same.
    for _ in 0..random.below(3) {
        drop(begin(setup, &place, &found.1).map_err(|error| error.to_string())?);
        let again = place.content(contained).map_err(|error| format!("opened again: {error}"))?;
        if again != found {
            return Err("opened again it holds something else".into());
        }
    }
    Ok(())
}

fn start() -> (Left, Contained) {
    let names = BTreeMap::from([(PathBuf::from(FILE), 0)]);
    let contained = [meta(0, 0), meta(1, 0)].map(|meta| (meta.0, (1, Content::new())));
    ((names, vec![new_file()]), contained.into())
}

fn file_of(event: &Event) -> FileId {
    match event {
        Event::File(id, _) | Event::SyncFile(id) | Event::SyncChange(id) => *id,
        _ => 0,
    }
}

/// Works, crashes everywhere, and goes on from one of the crashes; returns how many there were.
fn crash_points_of(seed: u64) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let setup = Setup::random(&mut random);
    let (mut left, mut contained) = start();
    let mut points = 0;
    for life in 0..LIVES {
        let place = Place::new(&left, random.next());
        let (happened, states) = Worker::open(setup, &mut random, &place, &mut contained).run();
        let mut platters = Platters::new(left.0.clone(), left.1.clone());
        let (count, mut survivor) = (happened.len(), left);
        for (moment, (event, allowed)) in happened.into_iter().enumerate() {
            let (file, synced) =
                (file_of(&event), matches!(event, Event::SyncFile(_) | Event::SyncChange(_) | Event::Mark(_)));
            let what = format!("{event:?}").chars().take(70).collect::<String>();
            platters.happens(event);
            if synced {
                continue;
            }
            for crash in platters.crashes(file, &mut random) {
                points += 1;
                look(&crash, setup, &contained, &states[allowed.clone()], &mut random).map_err(|wrong| {
                    format!("seed {seed}, life {life}, {setup:?}, after event {moment} of {count} ({what}): {wrong}")
                })?;
                if random.once_in(100) {
                    survivor = crash;
                }
            }
        }
        left = survivor;
    }
    Ok(points)
}

#[test]
fn a_crash_at_any_moment_leaves_what_was_synced_and_loses_the_newest_first() {
    let wanted = from_environment("BOLTKV_CRASH_POINTS", POINTS);
    let first = from_environment("BOLTKV_SEED", 1);
    let mut points = 0;
    for seed in first..=first + wanted / FEWEST_OF_A_SEED {
        match crash_points_of(seed) {
            Ok(more) => points += more,
            Err(what) => {
                panic!("{what}\nThe same again: BOLTKV_SEED={seed} cargo test -p boltkv-storage crash::journal")
            }
        }
        if points >= wanted {
            break;
        }
    }
    println!("{points} crash points");
    assert!(points >= wanted, "only {points} crash points");
}
