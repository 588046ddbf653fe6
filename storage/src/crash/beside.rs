//! A power cut at every moment of checkpoints that are made beside transactions, whose leaves are in memory.

use super::checkpoints::checkpoints;
use super::explore::Explorer;
use super::ground::{Files, Ground};
use super::model::Model;
use super::platters::Platters;
use super::random::Random;
use super::setup::Setup;
use super::workload::{Done, Worker};
use crate::disk::sim::{Event, Trap};
use crate::{Durability, FreelistStored};

const SEEDS: u64 = 12;
const CHECKPOINTS: usize = 2;

/// Explores checkpoints beside transactions, with another log; returns how many were made, and what was wrong.
fn explore(seed: u64, change: impl Fn(&mut Vec<Event>)) -> (usize, Result<(), String>) {
    let mut random = Random::new(seed);
    let memory = [4 << 10, 16 << 10][random.below(2)];
    let freelist = [FreelistStored::Never, FreelistStored::OnCleanClose][random.below(2)];
    let durability = Durability::Always;
    // None of them is made because the journal is full.
    let journal = Some(1 << 20);
    let setup =
        Setup { page_size: 1024, freelist, durability, journal, memory, ..Setup::random_with_journal(&mut random) };
    let empty = Files::new_database(&setup);
    let ground = Ground::new(&empty, &Trap::default());
    let loaded = Worker::new(setup, &mut random, ground.clone(), Model::default()).load();
    let mut platters = Platters::of(&empty);
    ground.log().take().into_iter().for_each(|event| platters.happens(event));
    let files = platters.newest();
    let ground = Ground::new(&files, &Trap::default());
    let Done { states, beside, .. } = Worker::new(setup, &mut random, ground.clone(), loaded).run_beside(CHECKPOINTS);
    let mut log = ground.log().take();
    change(&mut log);
    (beside, Explorer::new(setup, &states, &[], Vec::new(), &mut random).explore(&files, &log))
}

#[test]
fn a_crash_at_any_moment_of_a_checkpoint_beside_transactions_leaves_what_was_promised() {
    let mut made = 0;
    for seed in 1..=SEEDS {
        let (beside, explored) = explore(seed, |_| {});
        explored.unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        made += beside;
    }
    assert!(made as u64 > SEEDS, "only {made} checkpoints");
}

#[test]
fn that_its_pages_are_not_synced_is_noticed() {
    let without = |log: &mut Vec<Event>| {
        for checkpoint in checkpoints(log).iter().rev() {
            log.remove(checkpoint.pages_synced);
        }
    };
    let is_noticed = |seed: &u64| {
        let (beside, explored) = explore(*seed, without);
        beside > 0 && explored.is_err()
    };
    assert!((1..=SEEDS).filter(is_noticed).count() as u64 > SEEDS / 2);
}
