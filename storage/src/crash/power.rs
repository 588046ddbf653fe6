//! A power cut at every moment of random work.
//!
//! `BOLTKV_CRASH_POINTS=2000000 BOLTKV_SEED=5000 cargo test -p boltkv-storage crash::power` looks at
//! more of them, beginning with another seed; a failure names the seed that shows it again.

use super::explore::{Explorer, Told};
use super::ground::{Files, Ground};
use super::model::Model;
use super::random::Random;
use super::setup::Setup;
use super::workload::{Done, Worker};
use crate::disk::sim::{Event, FileOp, Trap};
use crate::store::LONGEST_WRITE;
use crate::{Durability, FreelistStored, JournalKeep};

/// Crash points looked at, unless `BOLTKV_CRASH_POINTS` says otherwise.
const POINTS: u64 = 100_000;
/// A seed gives more crash points than this.
const FEWEST_OF_A_SEED: u64 = 200;
/// Each seed's work goes on so many times from what a crash left.
const LIVES: usize = 3;
/// Transactions between two crashes.
const TRANSACTIONS: usize = 16;

pub(super) fn from_environment(name: &str, default: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

/// What was looked at.
#[derive(Debug, Default)]
struct Looked {
    /// Crash points.
    points: u64,
    /// How often a follower was told of more.
    told: usize,
    /// How often one went on after a crash.
    gone_on: u64,
}

/// Works, crashes everywhere, and goes on from one of the crashes, as those do who have followed.
fn crash_points_of(seed: u64, setup: fn(&mut Random) -> Setup, looked: &mut Looked) -> Result<(), String> {
    let mut random = Random::new(seed);
    let setup = setup(&mut random);
    let mut files = Files::new_database(&setup);
    let (mut start, mut told) = (Model::default(), Vec::<Told>::new());
    let mut points = 0;
    for life in 0..LIVES {
        let ground = Ground::new(&files, &Trap::default());
        let Done { states, positions, .. } = Worker::new(setup, &mut random, ground.clone(), start).run(TRANSACTIONS);
        let mut explorer = Explorer::new(setup, &states, &positions, told, &mut random);
        let sound = explorer.explore(&files, &ground.log().take());
        points += explorer.points;
        looked.points += explorer.points;
        looked.told += positions.len();
        looked.gone_on += explorer.gone_on;
        sound.map_err(|what| format!("seed {seed}, crash point {points} (life {life}, {setup:?}): {what}"))?;
        let survivor = explorer.survivor.expect("a life has crash points");
        (files, start, told) = (survivor.files, states[survivor.state].clone(), survivor.told);
    }
    Ok(())
}

#[test]
fn a_crash_at_any_moment_leaves_what_was_promised_or_a_later_state() {
    look_at(from_environment("BOLTKV_CRASH_POINTS", POINTS), Setup::random);
}

#[test]
fn a_crash_at_any_moment_leaves_file_and_journal_with_what_was_promised_or_a_later_state() {
    let looked = look_at(from_environment("BOLTKV_CRASH_POINTS", POINTS / 4), Setup::random_with_journal);
    assert!(looked.told > 10 && looked.gone_on > 100, "{looked:?}");
}

fn look_at(wanted: u64, setup: fn(&mut Random) -> Setup) -> Looked {
    let first = from_environment("BOLTKV_SEED", 1);
    let mut looked = Looked::default();
    for seed in first..=first + wanted / FEWEST_OF_A_SEED {
        if let Err(what) = crash_points_of(seed, setup, &mut looked) {
            panic!("{what}\nThe same again: BOLTKV_SEED={seed} cargo test -p boltkv-storage crash::power")
        }
        if looked.points >= wanted {
            break;
        }
    }
    println!("{looked:?}");
    assert!(looked.points >= wanted, "only {} crash points", looked.points);
    looked
}

fn synced(freelist: FreelistStored) -> Setup {
    Setup {
        page_size: 1024,
        freelist,
        durability: Durability::Always,
        journal: None,
        keep: JournalKeep::UntilCheckpoint,
        memory: 0,
    }
}

/// Explores work that synced every commit, as if some of the syncs had not been there.
fn explore_without(lost: impl Fn(&Event, &Event) -> bool) -> Result<(), String> {
    let setup = synced(FreelistStored::Always);
    let start = Files::new_database(&setup);
    let mut random = Random::new(1);
    let ground = Ground::new(&start, &Trap::default());
    let Done { states, .. } = Worker::new(setup, &mut random, ground.clone(), Model::default()).run(TRANSACTIONS);
    let mut log = ground.log().take();
    for at in (1..log.len() - 1).rev() {
        if matches!(log[at], Event::SyncFile(_)) && lost(&log[at - 1], &log[at + 1]) {
            log.remove(at);
        }
    }
    Explorer::new(setup, &states, &[], Vec::new(), &mut random).explore(&start, &log)
}

fn is_meta(event: &Event) -> bool {
    matches!(event, Event::File(_, FileOp::Write { offset: 0 | 1024, .. }))
}

#[test]
fn the_simulation_shows_what_each_of_a_commits_syncs_is_for() {
    explore_without(|_, _| false).unwrap();
    explore_without(|_, next| is_meta(next)).expect_err("a meta came through before its pages");
    explore_without(|before, _| is_meta(before)).expect_err("a commit was acknowledged before its meta came through");
}

#[test]
fn pages_that_lie_side_by_side_go_out_in_one_write() {
    for freelist in [FreelistStored::Always, FreelistStored::OnCleanClose, FreelistStored::Never] {
        let setup = synced(freelist);
        let ground = Ground::new(&Files::new_database(&setup), &Trap::default());
        Worker::new(setup, &mut Random::new(1), ground.clone(), Model::default()).run(10 * TRANSACTIONS);
        let (mut end, mut several) = (None, 0);
        for event in ground.log().take() {
            match event {
                Event::File(_, FileOp::Write { offset, data }) => {
                    // Only a long one is followed by its continuation.
                    let long = data.len() >= LONGEST_WRITE;
                    assert_ne!(end, Some(offset), "{setup:?}: one run of pages, two writes");
                    several += usize::from(data.len() > 1024);
                    end = (!long).then_some(offset + data.len());
                }
                Event::SyncFile(_) => end = None,
                _ => {}
            }
        }
        assert!(several > 10 * TRANSACTIONS / 2, "{setup:?}: {several} writes of several pages");
    }
}
