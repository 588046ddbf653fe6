//! Every single call to the disk fails once, in every way in which it can.
//!
//! A full disk, or a file that has reached its limit, rolls one transaction back and the database goes on. After anything else that fails
//! in a commit no more is written, and what was there before can still be read. Either way the
//! file holds the last state that was promised, or one that came after it.

use std::cell::Cell;
use std::collections::BTreeSet;

use super::edits::{Answered, edits, in_longest};
use super::explore::{is_clean, sound_state};
use super::ground::{Files, Ground};
use super::model::Model;
use super::platters::Platters;
use super::random::Random;
use super::setup::{Setup, every};
use super::workload::checkpoint_beside;
use crate::disk::sim::{Call, Fault, Trap};
use crate::{Db, Durability, Error, FreelistStored, JournalKeep, Result};

/// Transactions of the script, and how many there are to a sync point.
const TRANSACTIONS: usize = 12;
const TO_A_SYNC_POINT: usize = 4;
/// More calls than the script makes.
const MOST_CALLS: u64 = 1000;

/// What is done, and the state after each transaction (the first one is before all).
struct Script {
    transactions: Vec<Vec<Answered>>,
    states: Vec<Model>,
}

impl Script {
    /// Where leaves are kept in memory, with small changes of a bucket of several pages before most sync points: other leaves
    /// get no patches.
    fn new(seed: u64, is_in_memory: bool) -> Self {
        let mut random = Random::new(seed);
        let mut script = Self { transactions: Vec::new(), states: vec![Model::default()] };
        for number in 0..TRANSACTIONS {
            let mut model = script.states[number].clone();
            let is_small = is_in_memory && number > 0 && number % TO_A_SYNC_POINT != 1;
            let edits = if is_small { in_longest } else { edits };
            script.transactions.push(edits(&mut random, &mut model));
            script.states.push(model);
        }
        script
    }
}

/// Tells which call it was, if the test fails.
struct Told(u64, Fault, Setup);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it was call {} that failed: {:?}, {:?}", self.0, self.1, self.2);
        }
    }
}

/// One time through the script, with one call that fails.
struct Run<'a> {
    setup: Setup,
    script: &'a Script,
    fault: Fault,
    trap: Trap,
    ground: Ground,
    /// The state that readers see, and the last one that was promised to be durable.
    newest: usize,
    durable: usize,
    /// The newest state that the disk may hold.
    in_flight: usize,
    /// Commits since a sync point.
    unsynced: u64,
    /// Checkpoints that were made beside the commits.
    beside: Cell<usize>,
}

impl<'a> Run<'a> {
    fn new(setup: Setup, script: &'a Script, fault: Fault, trap: &Trap, ground: Ground) -> Self {
        let trap = trap.clone();
        Self {
            setup,
            script,
            fault,
            trap,
            ground,
            newest: 0,
            durable: 0,
            in_flight: 0,
            unsynced: 0,
            beside: Cell::default(),
        }
    }

    fn checkpoint_beside(&self, db: &Db) -> Result<()> {
        let is_done = checkpoint_beside(db)?;
        self.beside.set(self.beside.get() + usize::from(is_done));
        if is_done { Ok(()) } else { db.checkpoint().map(drop) }
    }

    fn open(&self) -> Db {
        let open = || self.ground.open(&self.setup.options());
        match open() {
            Ok(db) => db,
            Err(Error::Io { .. } | Error::JournalIo { .. }) if self.trap.sprung().is_some() => {
                open().expect("only one call fails")
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn go(&mut self) {
        let db = self.open();
        let alive = (0..self.script.transactions.len()).all(|number| {
            let reader = db.begin().expect("readers always may");
            let before = self.newest;
            let alive = self.transaction(&db, number) && (number % TO_A_SYNC_POINT != 0 || self.sync(&db));
            assert!(
                self.script.states[before].is_seen_in(reader.buckets()).expect("it is whole"),
                "what a reader sees has changed"
            );
            alive
        });
        if alive && self.goes_well(&db, |db| db.clone().close()) || db.is_all_in_journal() == Some(true) {
            self.is_durable();
        }
    }

    /// Whether writes go on.
    fn transaction(&mut self, db: &Db, number: usize) -> bool {
        self.in_flight = number + 1;
        let script = self.script;
        let committed = self.goes_well(db, |db| {
            let mut tx = db.begin_mut()?;
            script.transactions[number].iter().try_for_each(|(edit, _)| edit.apply(&mut tx).map(drop))?;
            tx.commit().map(drop)
        });
        if committed {
            self.newest = number + 1;
            self.unsynced += 1;
            let says_so = self.setup.journal.is_some() && db.stats().unsynced_commits == 0;
            if says_so || self.setup.is_durable_after(self.unsynced) {
                self.is_durable();
            }
        }
        committed
    }

    fn sync(&mut self, db: &Db) -> bool {
        let synced = self.goes_well(db, |db| match self.newest % 8 {
            5 if self.setup.journal.is_some() => db.checkpoint().map(drop),
            1 if self.setup.journal.is_some() => self.checkpoint_beside(db),
            _ => db.sync().map(drop),
        });
        if synced {
            self.is_durable();
        }
        synced
    }

    fn is_durable(&mut self) {
        self.durable = self.newest;
        self.unsynced = 0;
    }

    /// Does something, again if the disk was full the first time; `false` if writing is over.
    fn goes_well(&self, db: &Db, work: impl Fn(&Db) -> Result<()>) -> bool {
        let Err(error) = work(db) else { return true };
        let call = self.trap.sprung().unwrap_or_else(|| panic!("no call failed, and still: {error}"));
        self.assert_still_there(db);
        if self.rolls_back(call, &error) {
            match self.fault {
                Fault::TooLarge => assert!(matches!(error, Error::MaxSizeReached { .. }), "{error}"),
                _ => assert!(matches!(error, Error::NoSpace { .. }), "{error}"),
            }
            work(db).expect("there is room again");
            return true;
        }
        // A checkpoint that failed behind a commit which is durable is told of by the next one.
        let told_late = self.setup.journal.is_some() && matches!(error, Error::Poisoned { .. });
        assert!(told_late || matches!(error, Error::Io { .. }), "{error}");
        for refused in [db.begin_mut().map(drop), work(db), db.sync().map(drop), db.clone().close()] {
            assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
        }
        self.assert_still_there(db);
        false
    }

    /// Whether the failure of this call is one that nothing in the file knows of.
    fn rolls_back(&self, call: Call, error: &Error) -> bool {
        if self.setup.journal.is_some() {
            // Which file the call was for is not known: whatever says that it was rolled back has to be.
            return matches!(error, Error::NoSpace { .. } | Error::MaxSizeReached { .. });
        }
        let metas = 2 * u64::from(self.setup.page_size);
        let before_the_sync = match call {
            Call::Write { offset } => offset >= metas,
            Call::SetLen | Call::Map => true,
            Call::Len | Call::Read | Call::Sync | Call::Folder => false,
        };
        before_the_sync && matches!(self.fault, Fault::Full | Fault::FullHalfWay | Fault::TooLarge)
    }

    fn assert_still_there(&self, db: &Db) {
        let tx = db.begin().expect("readers always may");
        assert!(
            self.script.states[self.newest].is_seen_in(tx.buckets()).expect("it is whole"),
            "not state {}",
            self.newest
        );
        is_clean(db).unwrap_or_else(|what| panic!("{what}"));
    }

    /// Opens what is on the disk: as it is, and as a power cut now might leave it.
    fn assert_file_is_sound(&self, start: &Files, random: &mut Random) {
        let mut platters = Platters::of(start);
        for event in self.ground.log().take() {
            platters.happens(event);
        }
        let left = platters.after_some_crashes(random);
        for files in std::iter::once(platters.newest()).chain(left) {
            let state = sound_state(&files, self.setup, &self.script.states, &(self.durable..=self.in_flight));
            state.unwrap_or_else(|what| panic!("{what}"));
        }
    }
}

/// Fails the n-th call for all n, and returns what kinds of calls these were.
fn fail_every_call(setup: Setup, fault: Fault) -> Vec<&'static str> {
    let mut failed = Vec::new();
    fail_calls(setup, fault, 0..MOST_CALLS, &mut failed);
    assert!((failed.len() as u64) < MOST_CALLS, "the script makes more calls than {MOST_CALLS}");
    failed
}

/// Fails each of these calls, up to the first that the script does not make; adds what kinds of calls they were.
fn fail_calls(setup: Setup, fault: Fault, calls: impl IntoIterator<Item = u64>, failed: &mut Vec<&'static str>) {
    let script = Script::new(7, setup.memory > 0);
    let start = Files::new_database(&setup);
    let mut random = Random::new(7);
    for call in calls {
        let trap = Trap::after(call, fault);
        let ground = Ground::new(&start, &trap);
        let mut run = Run::new(setup, &script, fault, &trap, ground);
        let _told = Told(call, fault, setup);
        run.go();
        run.assert_file_is_sound(&start, &mut random);
        let Some(call) = trap.sprung() else {
            assert!(setup.memory == 0 || run.beside.get() > 0, "no checkpoint was made beside the commits");
            return;
        };
        failed.push(kind(call, setup));
    }
}

/// Fails every call in every way in which it can fail: only a write can get half-way.
fn fail_every_call_in_every_way(setup: Setup, kinds: &[&str]) {
    let is_write = |kind: &&str| kind.starts_with("write");
    for (fault, half_way) in [(Fault::Broken, Fault::BrokenHalfWay), (Fault::Full, Fault::FullHalfWay)] {
        let failed = fail_every_call(setup, fault);
        assert_eq!(failed.iter().copied().collect::<BTreeSet<_>>(), kinds.iter().copied().collect(), "{fault:?}");
        // Up to the call that fails all goes as it did before.
        let writes: Vec<_> = (0..).zip(&failed).filter(|(_, kind)| is_write(kind)).map(|(call, _)| call).collect();
        let mut half = Vec::new();
        fail_calls(setup, half_way, writes.iter().copied(), &mut half);
        assert!(half.len() == writes.len() && half.iter().all(is_write), "{half_way:?}: {half:?}");
    }
    let failed = fail_every_call(setup, Fault::TooLarge);
    assert_eq!(failed.iter().copied().collect::<BTreeSet<_>>(), kinds.iter().copied().collect());
}

fn kind(call: Call, setup: Setup) -> &'static str {
    match call {
        Call::Len => "length",
        Call::Read => "read",
        Call::Write { offset } if offset < 2 * u64::from(setup.page_size) => "write of a meta",
        Call::Write { .. } => "write of pages",
        Call::SetLen => "growth",
        Call::Sync => "sync",
        Call::Map => "map",
        Call::Folder => "folder",
    }
}

fn whatever_call_fails(durability: Durability, freelist: FreelistStored) {
    let setup =
        Setup { page_size: 1024, freelist, durability, journal: None, keep: JournalKeep::UntilCheckpoint, memory: 0 };
    let kinds = ["growth", "length", "map", "read", "sync", "write of a meta", "write of pages"];
    fail_every_call_in_every_way(setup, &kinds);
}

#[test]
fn whatever_call_fails_a_synced_commit_is_there_or_a_clean_error() {
    whatever_call_fails(Durability::Always, FreelistStored::Always);
}

#[test]
fn whatever_call_fails_without_a_stored_freelist_a_commit_is_there_or_a_clean_error() {
    whatever_call_fails(Durability::Always, FreelistStored::Never);
}

#[test]
fn whatever_call_fails_between_sync_points_the_last_of_them_is_there() {
    whatever_call_fails(Durability::Never, FreelistStored::OnCleanClose);
}

#[test]
fn whatever_call_fails_between_syncs_of_every_third_commit_the_last_of_them_is_there() {
    whatever_call_fails(every(3), FreelistStored::Always);
}

fn whatever_call_fails_with_a_journal(durability: Durability) {
    let (freelist, keep) = (FreelistStored::OnCleanClose, JournalKeep::UntilCheckpoint);
    let kinds = ["folder", "growth", "length", "map", "read", "sync", "write of a meta", "write of pages"];
    // A full journal empties the memory, so that nothing would be left to write beside the commits.
    for (journal, memory) in [(1 << 13, 0), (1 << 16, 16 << 10)] {
        let setup = Setup { page_size: 1024, freelist, durability, journal: Some(journal), keep, memory };
        fail_every_call_in_every_way(setup, &kinds);
    }
}

#[test]
fn whatever_call_fails_in_file_or_journal_a_commit_is_there_or_a_clean_error() {
    whatever_call_fails_with_a_journal(Durability::Always);
}

#[test]
fn whatever_call_fails_in_file_or_journal_that_are_not_synced_what_was_synced_is_there() {
    whatever_call_fails_with_a_journal(Durability::Never);
    whatever_call_fails_with_a_journal(every(3));
}
