//! A power cut at every moment of random work.
//!
//! `BOLTKV_CRASH_POINTS=2000000 BOLTKV_SEED=5000 cargo test -p boltkv-storage crash::power` looks at
//! more of them, beginning with another seed; a failure names the seed that shows it again.

use super::explore::Explorer;
use super::ground::{Files, Ground};
use super::model::Model;
use super::random::Random;
use super::setup::Setup;
use super::workload::Worker;
use crate::disk::sim::{Event, FileOp, Mark, Trap};
use crate::store::LONGEST_WRITE;
use crate::{Durability, FreelistStored};

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

/// Works, crashes everywhere, and goes on from one of the crashes; returns how many there were, and how often a follower was
/// told of more.
fn crash_points_of(seed: u64, setup: fn(&mut Random) -> Setup) -> Result<(u64, usize), String> {
    let mut random = Random::new(seed);
    let setup = setup(&mut random);
    let mut files = Files::new_database(&setup);
    let mut start = Model::default();
    let (mut points, mut told) = (0, 0);
    for life in 0..LIVES {
        let ground = Ground::new(&files, &Trap::default());
        let states = Worker::new(setup, &mut random, ground.clone(), start).run(TRANSACTIONS);
        let mut explorer = Explorer { setup, states: &states, random: &mut random, points: 0, survivor: None };
        let log = ground.log().take();
        told += log.iter().filter(|event| matches!(event, Event::Mark(Mark::Told(_)))).count();
        let sound = explorer.explore(&files, &log);
        points += explorer.points;
        sound.map_err(|what| format!("seed {seed}, crash point {points} (life {life}, {setup:?}): {what}"))?;
        let survivor = explorer.survivor.expect("a life has crash points");
        (files, start) = (survivor.files, states[survivor.state].clone());
    }
    Ok((points, told))
}

#[test]
fn a_crash_at_any_moment_leaves_what_was_promised_or_a_later_state() {
    look_at(from_environment("BOLTKV_CRASH_POINTS", POINTS), Setup::random);
}

#[test]
fn a_crash_at_any_moment_leaves_file_and_journal_with_what_was_promised_or_a_later_state() {
    let told = look_at(from_environment("BOLTKV_CRASH_POINTS", POINTS / 10), Setup::random_with_journal);
    assert!(told > 10, "followers were told of more {told} times");
}

/// How often followers were told of more.
fn look_at(wanted: u64, setup: fn(&mut Random) -> Setup) -> usize {
    let first = from_environment("BOLTKV_SEED", 1);
    let (mut points, mut told) = (0, 0);
    for seed in first..=first + wanted / FEWEST_OF_A_SEED {
        match crash_points_of(seed, setup) {
            Ok((more, news)) => {
                points += more;
                told += news;
            }
            Err(what) => panic!("{what}\nThe same again: BOLTKV_SEED={seed} cargo test -p boltkv-storage crash::power"),
        }
        if points >= wanted {
            break;
        }
    }
    println!("{points} crash points");
    assert!(points >= wanted, "only {points} crash points");
    told
}

fn synced(freelist: FreelistStored) -> Setup {
    Setup { page_size: 1024, freelist, durability: Durability::Always, journal: None }
}

/// Explores work that synced every commit, as if some of the syncs had not been there.
fn explore_without(lost: impl Fn(&Event, &Event) -> bool) -> Result<(), String> {
    let setup = synced(FreelistStored::Always);
    let start = Files::new_database(&setup);
    let mut random = Random::new(1);
    let ground = Ground::new(&start, &Trap::default());
    let states = Worker::new(setup, &mut random, ground.clone(), Model::default()).run(TRANSACTIONS);
    let mut log = ground.log().take();
    for at in (1..log.len() - 1).rev() {
        if matches!(log[at], Event::SyncFile(_)) && lost(&log[at - 1], &log[at + 1]) {
            log.remove(at);
        }
    }
    Explorer { setup, states: &states, random: &mut random, points: 0, survivor: None }.explore(&start, &log)
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
