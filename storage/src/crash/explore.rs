//! Goes through a log, crashes at every moment of it, and looks at what is left.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::losses::losses;
use super::model::Model;
use super::random::Random;
use super::workload::Setup;
use crate::disk::sim::{Event, Mark, Platter, SimDisk, Trap};
use crate::{Db, Durability, Options};

/// What a disk held after a crash, and which state of the database that is.
pub(super) struct Survivor {
    pub(super) bytes: Vec<u8>,
    pub(super) state: usize,
}

/// Looks at the crash points of one log.
pub(super) struct Explorer<'a> {
    pub(super) setup: Setup,
    /// The contents that the log leads through.
    pub(super) states: &'a [Model],
    pub(super) random: &'a mut Random,
    /// Crash points looked at.
    pub(super) points: u64,
    /// One of them, chosen at random.
    pub(super) survivor: Option<Survivor>,
}

impl Explorer<'_> {
    /// Crashes at every moment of what happened to a disk that held `start`. The error says what
    /// was wrong with the first bad one.
    pub(super) fn explore(&mut self, start: Vec<u8>, log: &[Event]) -> Result<(), String> {
        let mut platter = Platter::new(start);
        let mut allowed = 0..=0;
        for (moment, event) in log.iter().enumerate() {
            let look = happens(event, &mut platter, &mut allowed);
            if !look {
                continue;
            }
            for (number, loss) in losses(&platter, self.random).iter().enumerate() {
                let bytes = platter.after(loss);
                self.look(bytes, &allowed).map_err(|what| {
                    format!(
                        "after event {moment} of {} ({event}), loss {number}: {what}",
                        log.len(),
                        event = name(event)
                    )
                })?;
            }
        }
        Ok(())
    }

    fn look(&mut self, bytes: Vec<u8>, allowed: &RangeInclusive<usize>) -> Result<(), String> {
        self.points += 1;
        let state = sound_state(&bytes, self.setup, self.states, allowed)?;
        if self.survivor.is_none() || self.random.once_in(usize::try_from(self.points).unwrap_or(usize::MAX)) {
            self.survivor = Some(Survivor { bytes, state });
        }
        Ok(())
    }
}

/// Takes in an event; whether the disk may look different after a crash from now on, or has to.
fn happens(event: &Event, platter: &mut Platter, allowed: &mut RangeInclusive<usize>) -> bool {
    let newest = *allowed.end();
    match event {
        Event::File(_, change) => platter.push(change.clone()),
        // With all that came through, this disk was looked at before the sync.
        Event::SyncFile(_) => {
            platter.sync();
            return false;
        }
        Event::Mark(Mark::Begun) => {
            *allowed = *allowed.start()..=newest + 1;
            return false;
        }
        Event::Mark(Mark::Durable) => *allowed = newest..=newest,
        Event::Name(_) | Event::SyncFolder => return false,
    }
    true
}

/// Opens what a crash left: it must be sound, hold one of the allowed states (which one is
/// returned), and take further writes.
pub(super) fn sound_state(
    bytes: &[u8],
    setup: Setup,
    states: &[Model],
    allowed: &RangeInclusive<usize>,
) -> Result<usize, String> {
    let disk = SimDisk::new(bytes, Trap::default());
    let options = setup.options().durability(Durability::Always);
    let db = open(&disk, &options)?;
    let mut state = None;
    for candidate in allowed.clone().rev() {
        if holds(&db, &states[candidate])? {
            state = Some(candidate);
            break;
        }
    }
    let state = state.ok_or_else(|| format!("it holds none of the states {allowed:?}"))?;
    is_clean(&db)?;
    // Two commits, so that both metas are written.
    db.update(|tx| tx.create_bucket("~")?.put("k", [7; 300])).map_err(|error| format!("no write: {error}"))?;
    db.update(|tx| tx.delete_bucket("~")).map_err(|error| format!("no second write: {error}"))?;
    drop(db);
    let db = open(&disk, &options)?;
    is_clean(&db).map_err(|what| format!("after two more commits: {what}"))?;
    let same = holds(&db, &states[state])?;
    same.then_some(state).ok_or_else(|| format!("two more commits have changed state {state}"))
}

fn open(disk: &SimDisk, options: &Options) -> Result<Db, String> {
    Db::on_disk(Arc::new(disk.clone()), None, options).map_err(|error| format!("it does not open: {error}"))
}

fn holds(db: &Db, model: &Model) -> Result<bool, String> {
    db.begin().and_then(|tx| model.is_seen_in(tx.buckets())).map_err(|error| format!("it cannot be read: {error}"))
}

pub(super) fn is_clean(db: &Db) -> Result<(), String> {
    match db.check().map_err(|error| error.to_string())?.as_slice() {
        [] => Ok(()),
        problems => Err(format!("check finds {problems:?}")),
    }
}

fn name(event: &Event) -> &'static str {
    match event {
        Event::File(_, crate::disk::sim::FileOp::Write { .. }) => "a write",
        Event::File(_, crate::disk::sim::FileOp::SetLen(_)) => "a change of length",
        Event::SyncFile(_) => "a sync",
        Event::Name(_) => "a change of names",
        Event::SyncFolder => "a sync of the folder",
        Event::Mark(Mark::Begun) => "a commit's begin",
        Event::Mark(Mark::Durable) => "a promise",
    }
}
