//! Goes through a log, crashes at every moment of it, and looks at what is left; also as somebody who has followed the journal
//! before, and goes on from where he was.

use std::ops::RangeInclusive;

use super::followed::try_follow;
use super::ground::{Files, Ground};
use super::model::Model;
use super::platters::Platters;
use super::random::Random;
use super::setup::Setup;
use crate::disk::sim::{Event, Fault, Mark, Trap};
use crate::{Db, Durability, Error, JournalKeep, JournalPosition, Options};

/// What a disk held after a crash, and which state of the database that is.
pub(super) struct Survivor {
    pub(super) files: Files,
    pub(super) state: usize,
    /// What followers had been told until then.
    pub(super) told: Vec<Told>,
}

/// A position that a follower was told of, in this life or an earlier one, and what he knew then.
pub(super) type Told = (JournalPosition, Model);

/// Looks at the crash points of one log.
pub(super) struct Explorer<'a> {
    pub(super) setup: Setup,
    /// The contents that the log leads through.
    pub(super) states: &'a [Model],
    /// The positions that a follower was told of on the way, in their order.
    pub(super) positions: &'a [JournalPosition],
    /// What followers were told before, and up to the crash that is being looked at.
    pub(super) told: Vec<Told>,
    pub(super) random: &'a mut Random,
    /// Crash points looked at.
    pub(super) points: u64,
    /// How often it was gone on from a position that had been told before a crash.
    pub(super) gone_on: u64,
    /// One of them, chosen at random.
    pub(super) survivor: Option<Survivor>,
}

impl<'a> Explorer<'a> {
    pub(super) fn new(
        setup: Setup,
        states: &'a [Model],
        positions: &'a [JournalPosition],
        told: Vec<Told>,
        random: &'a mut Random,
    ) -> Self {
        Self { setup, states, positions, told, random, points: 0, gone_on: 0, survivor: None }
    }

    /// Crashes at every moment of what happened to a disk that held `start`. The error says what
    /// was wrong with the first bad one.
    pub(super) fn explore(&mut self, start: &Files, log: &[Event]) -> Result<(), String> {
        let mut platters = Platters::of(start);
        let (mut allowed, mut positions) = (0..=0, self.positions.iter());
        for (moment, event) in log.iter().enumerate() {
            let look = happens(event, &mut platters, &mut allowed);
            if let Event::Mark(Mark::Told(state)) = event {
                let position = positions.next().expect("each was noted");
                self.told.push((*position, self.states[*state].clone()));
            }
            if !look {
                continue;
            }
            let looked_at = if let Event::File(id, _) = event { *id } else { 0 };
            for (number, files) in platters.after_crashes(looked_at, self.random).into_iter().enumerate() {
                self.look(files, &allowed).map_err(|what| {
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

    fn look(&mut self, files: Files, allowed: &RangeInclusive<usize>) -> Result<(), String> {
        self.points += 1;
        let state = sound_state(&files, self.setup, self.states, allowed)?;
        if !self.told.is_empty() && self.random.once_in(4) {
            let told = &self.told[self.random.below(self.told.len())];
            self.gone_on += u64::from(goes_on(&files, self.setup, told)?);
        }
        if self.survivor.is_none() || self.random.once_in(usize::try_from(self.points).unwrap_or(usize::MAX)) {
            self.survivor = Some(Survivor { files, state, told: self.told.clone() });
        }
        Ok(())
    }
}

/// Takes in an event; whether the disk may look different after a crash from now on, or has to.
fn happens(event: &Event, platters: &mut Platters, allowed: &mut RangeInclusive<usize>) -> bool {
    let newest = *allowed.end();
    platters.happens(event.clone());
    match event {
        // With all that came through, this disk was looked at before the sync.
        Event::SyncFile(_) | Event::SyncChange(_) | Event::SyncFolder => return false,
        Event::Mark(Mark::Begun) => {
            *allowed = *allowed.start()..=newest + 1;
            return false;
        }
        Event::Mark(Mark::Durable) => *allowed = newest..=newest,
        Event::Mark(Mark::Told(state)) => *allowed = *allowed.start().max(state)..=newest,
        Event::File(..) | Event::Name(_) => {}
    }
    true
}

/// Opens what a crash left: it must be sound, hold one of the allowed states (which one is
/// returned), and take further writes.
pub(super) fn sound_state(
    files: &Files,
    setup: Setup,
    states: &[Model],
    allowed: &RangeInclusive<usize>,
) -> Result<usize, String> {
    let ground = Ground::new(files, &Trap::default());
    let options = setup.options().durability(Durability::Always);
    let db = open(&ground, &options)?;
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
    if setup.journal.is_some() {
        // The process is killed: it closes nothing.
        ground.trap().arm(0, Fault::Killed);
    }
    drop(db);
    ground.trap().disarm();
    let db = open(&ground, &options)?;
    is_clean(&db).map_err(|what| format!("after two more commits: {what}"))?;
    let same = holds(&db, &states[state])?;
    same.then_some(state).ok_or_else(|| format!("two more commits have changed state {state}"))
}

/// Goes on behind what a follower was told before the crash: no crash has taken that back, and what he is told now leads to what
/// is there. `false` where what comes behind it is not kept.
fn goes_on(files: &Files, setup: Setup, (position, known): &Told) -> Result<bool, String> {
    let ground = Ground::new(files, &Trap::default());
    let db = open(&ground, &setup.options())?;
    let mut known = known.clone();
    let gone_on = db.follow(*position).and_then(|mut follower| {
        while let Some(transaction) = follower.next()? {
            try_follow(&mut known, transaction)?;
        }
        Ok(())
    });
    match gone_on {
        Ok(()) if holds(&db, &known)? => Ok(true),
        Ok(()) => Err(format!("who goes on behind {position:?} is led to another state")),
        Err(Error::JournalGap { .. }) if setup.keep == JournalKeep::UntilCheckpoint => Ok(false),
        Err(error) => Err(format!("who goes on behind {position:?} is told: {error}")),
    }
}

fn open(ground: &Ground, options: &Options) -> Result<Db, String> {
    ground.open(options).map_err(|error| format!("it does not open: {error}"))
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
        Event::SyncFile(_) | Event::SyncChange(_) => "a sync",
        Event::Name(_) => "a change of names",
        Event::SyncFolder => "a sync of the folder",
        Event::Mark(Mark::Begun) => "a commit's begin",
        Event::Mark(Mark::Durable) => "a promise",
        Event::Mark(Mark::Told(_)) => "a follower's news",
    }
}
