//! A process is killed whose disk is full. What it left opens with no room at all, but for one in a hundred and fifty, which
//! take no more than the shortest segment of a journal and a few pages do, and holds all that was promised. Where that is
//! missing, the error says what is, and nothing is lost.

use std::ops::Range;

use super::edits::{Answered, edits, in_longest};
use super::explore::is_clean;
use super::ground::{Files, Ground};
use super::model::Model;
use super::platters::Platters;
use super::random::Random;
use super::setup::Setup;
use super::workload::checkpoint_beside;
use crate::disk::sim::{Fault, Trap};
use crate::{Db, Durability, Error, FreelistStored, Result, TxMut};

const SEEDS: u64 = 16;
/// Commits of a process, most of them on a full disk.
const COMMITS: usize = 40;
/// Processes one after the other.
const LIVES: usize = 4;
/// More calls than an opening makes.
const MOST_CALLS: u64 = 2000;
/// What the shortest segment takes.
const SHORTEST: u64 = 8 * 4096;
/// What the file may take: what many commits did is done again in fewer, whose nodes are split elsewhere.
const MORE: u64 = 4 * 4096;

/// Whether an error says that there was no room.
fn is_full(error: &Error) -> bool {
    match error {
        Error::NoSpace { .. } => true,
        Error::JournalIo { source, .. } => source.kind() == std::io::ErrorKind::StorageFull,
        _ => false,
    }
}

fn write(db: &Db, edits: &[Answered]) -> Result<()> {
    let mut tx = db.begin_mut()?;
    edits.iter().try_for_each(|(edit, _)| edit.apply(&mut tx).map(drop))?;
    tx.commit().map(drop)
}

/// One disk and the processes that write to it.
struct Disk {
    setup: Setup,
    random: Random,
    trap: Trap,
    ground: Ground,
    model: Model,
    /// Commits that found no room, and openings that found none at all.
    refused: usize,
    without_room: usize,
    /// Checkpoints beside the commits.
    beside: usize,
}

impl Disk {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        // What is promised is there after a kill whatever the durability.
        let journal = Some([20 << 10, 1 << 20, 4 << 20][random.below(3)]);
        let memory = [0, 16 << 10, 1 << 20][random.below(3)];
        let setup = Setup { durability: Durability::Always, journal, memory, ..Setup::random(&mut random) };
        let trap = Trap::default();
        let ground = Ground::new(&Files::new_database(&setup), &trap);
        // A journal is begun where there is room.
        ground.open(&setup.options()).and_then(Db::close).expect("nothing fails");
        Self { setup, random, trap, ground, model: Model::default(), refused: 0, without_room: 0, beside: 0 }
    }

    fn life(&mut self) {
        let db = self.open();
        self.trap.limit_room(self.random.below(600_000) as u64);
        for _ in 0..COMMITS {
            let mut model = self.model.clone();
            // Leaves of a bucket that lies on several pages have patches in memory.
            let is_small = self.setup.memory > 0 && !self.random.once_in(4);
            let edits =
                if is_small { in_longest(&mut self.random, &mut model) } else { edits(&mut self.random, &mut model) };
            match write(&db, &edits) {
                Ok(()) => self.model = model,
                Err(error) => {
                    assert!(is_full(&error), "{error}");
                    self.refused += 1;
                }
            }
            if self.random.once_in(8) {
                self.checkpoint_beside(&db);
            }
        }
        self.assert_holds(&db);
        if self.setup.memory > 0 && self.random.once_in(2) {
            db.checkpoint().expect("what is in memory has its room");
            self.assert_holds(&db);
        }
        self.trap.arm(0, Fault::Killed);
        drop(db);
        self.trap.disarm();
    }

    fn checkpoint_beside(&mut self, db: &Db) {
        match checkpoint_beside(db) {
            Ok(done) => self.beside += usize::from(done),
            Err(error) => assert!(is_full(&error), "{error}"),
        }
        self.assert_holds(db);
    }

    /// Opens with what little room there may be.
    fn open(&mut self) -> Db {
        let opened = (0..2).find_map(|again| {
            self.trap.limit_room(if again == 0 { 0 } else { SHORTEST + MORE });
            match self.ground.open(&self.setup.options()) {
                Ok(db) => Some(db),
                Err(error) => {
                    let said = error.to_string();
                    assert!(again == 0 && is_full(&error), "{error}");
                    assert!(
                        said.contains("bytes has to be made there") || said.contains("were to be written"),
                        "{said}"
                    );
                    self.without_room += 1;
                    None
                }
            }
        });
        let db = opened.expect("the second time there is room");
        self.assert_holds(&db);
        db
    }

    fn assert_holds(&self, db: &Db) {
        let tx = db.begin().expect("readers always may");
        assert!(self.model.is_seen_in(tx.buckets()).expect("it is whole"), "it does not hold what was committed");
        is_clean(db).unwrap_or_else(|what| panic!("{what}"));
    }
}

/// Tells which seed it was, if the test fails.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it was seed {}", self.0);
        }
    }
}

#[test]
fn what_a_killed_process_leaves_on_a_full_disk_opens_with_little_more_room_than_none() {
    let (mut refused, mut without_room, mut beside) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let _told = Told(seed);
        let mut disk = Disk::new(seed);
        (0..LIVES).for_each(|_| disk.life());
        drop(disk.open());
        refused += disk.refused;
        without_room += disk.without_room;
        beside += disk.beside;
    }
    let seen = format!("{refused} commits refused, {without_room} openings; {beside} checkpoints beside commits");
    println!("{seen}");
    assert!(refused > 50 && without_room < 8 && beside > 10, "{seen}");
}

/// Whatever call of an opening finds no room first, half-way or not at all: it opens, or says so and has lost nothing.
#[test]
fn an_opening_whose_any_call_finds_no_room_is_done_or_refused_and_can_be_repeated() {
    let mut refused = 0;
    for (seed, fault) in [(1, Fault::Full), (2, Fault::Full), (3, Fault::FullHalfWay), (4, Fault::TooLarge)] {
        let _told = Told(seed);
        let mut disk = Disk::new(seed);
        let start = Files::new_database(&disk.setup);
        disk.life();
        disk.trap.limit_room(u64::MAX);
        let mut platters = Platters::of(&start);
        disk.ground.log().take().into_iter().for_each(|event| platters.happens(event));
        let left = platters.newest();
        for call in 0.. {
            let trap = Trap::after(call, fault);
            disk.ground = Ground::new(&left, &trap);
            let opened = disk.ground.open(&disk.setup.options());
            if let Err(error) = &opened {
                assert!(trap.sprung().is_some(), "{error}");
                // A call for which a full disk is no reason fails as on a broken one.
                let is_said = is_full(error) || matches!(error, Error::Io { .. } | Error::JournalIo { .. });
                assert!(is_said || matches!(error, Error::MaxSizeReached { .. }), "{call}: {error}");
                refused += 1;
            } else {
                disk.assert_holds(opened.as_ref().expect("it is open"));
            }
            let done = trap.sprung().is_none();
            // The process dies before it closes.
            trap.arm(0, Fault::Killed);
            drop(opened);
            trap.disarm();
            disk.assert_holds(&disk.ground.open(&disk.setup.options()).expect("there is room again"));
            if done || call > MOST_CALLS {
                assert!(done, "an opening makes more calls than {MOST_CALLS}");
                break;
            }
        }
    }
    assert!(refused > 20, "{refused}");
}

/// Keys that lie in leaves of their own, each of which is written again in each round.
const SCATTERED: u32 = 48;
const ROUNDS: usize = 4;

fn put(tx: &mut TxMut, key: u32, value: &[u8]) -> Result<()> {
    tx.create_bucket_if_not_exists("b")?.put(&key.to_be_bytes()[..], value)
}

/// Overwrites scattered keys, one a commit, with so much room and no more; the database is left as a kill leaves it.
fn overwritten_with(room: u64, setup: &Setup) -> Option<Ground> {
    let trap = Trap::default();
    let ground = Ground::new(&Files::new_database(setup), &trap);
    let db = ground.open(&setup.options()).expect("there is room");
    let mut tx = db.begin_mut().expect("nobody else writes");
    (0..SCATTERED * 40).for_each(|key| put(&mut tx, key, &[0; 100]).expect("it takes it"));
    tx.commit().and_then(|_| db.checkpoint()).expect("there is room");
    trap.limit_room(room);
    let mut commits = (0..ROUNDS).flat_map(|_| (0..SCATTERED).map(|key| key * 40));
    let written = commits.try_for_each(|key| {
        let mut tx = db.begin_mut()?;
        put(&mut tx, key, &[1; 5])?;
        tx.commit().map(drop)
    });
    trap.arm(0, Fault::Killed);
    drop(db);
    trap.disarm();
    written.map(|()| ground).inspect_err(|error| assert!(is_full(error), "{error}")).ok()
}

/// Each commit could take the place of what the one before had replaced. Of many done again at once, none can.
#[test]
fn what_found_room_commit_by_commit_finds_it_when_it_is_done_again() {
    let journal = Some(4 << 20);
    let setup = Setup { durability: Durability::Always, journal, ..Setup::random(&mut Random::new(1)) };
    let setup = Setup { page_size: 1024, ..setup };
    let ground = (0..256).find_map(|step| overwritten_with(step * 8 * 1024, &setup)).expect("it is enough");
    ground.trap().limit_room(SHORTEST + MORE);
    let db = ground.open(&setup.options()).unwrap_or_else(|error| panic!("{error}"));
    let tx = db.begin().expect("readers always may");
    let bucket = tx.bucket("b").expect("it is there");
    for key in (0..SCATTERED).map(|key| key * 40) {
        let value = bucket.get(&key.to_be_bytes()[..]).expect("it is whole");
        assert_eq!(value, Some(&[1; 5][..]));
    }
    is_clean(&db).unwrap_or_else(|what| panic!("{what}"));
}

/// Leaves some in memory, of which a checkpoint beside the commits is made where neither the file nor the journal may get more
/// than a few pages; whether it was made.
fn checkpointed_beside(loaded: u32, commits: u32) -> bool {
    let setup = Setup { durability: Durability::Always, journal: Some(1 << 20), ..Setup::random(&mut Random::new(1)) };
    let setup = Setup { page_size: 1024, memory: 1 << 20, freelist: FreelistStored::Never, ..setup };
    let trap = Trap::default();
    let db = Ground::new(&Files::new_database(&setup), &trap).open(&setup.options()).expect("there is room");
    let commit = |mut keys: Range<u32>| {
        let mut tx = db.begin_mut()?;
        keys.try_for_each(|key| put(&mut tx, key, &[0; 100]))?;
        tx.commit()
    };
    commit(0..loaded).and_then(|_| db.checkpoint()).expect("there is room");
    for key in (0..commits).map(|number| number * 5) {
        commit(key..key + 1).expect("there is room");
    }
    trap.limit_room(SHORTEST - 1);
    let is_made = checkpoint_beside(&db).expect("it is done, or left to the next one");
    db.checkpoint().unwrap_or_else(|error| panic!("{loaded} keys, {commits} commits: {error}"));
    is_clean(&db).unwrap_or_else(|what| panic!("{what}"));
    is_made
}

/// The link of a checkpoint beside the commits takes none of what the next one needs, however little the journal has left.
#[test]
fn after_a_checkpoint_beside_the_commits_there_is_room_for_the_next_one() {
    let of = |loaded| (4..12).filter(|&commits| checkpointed_beside(loaded, commits)).count();
    let made: usize = (40..480).step_by(8).map(of).sum();
    assert!(made > 100, "{made}");
}
