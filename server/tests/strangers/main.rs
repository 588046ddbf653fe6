//! Who is not let in, whatever he sends: the seeds of the fuzz target `strangers`, what is near them, and their pieces in other
//! orders. (The target has the rest.)
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod claim;

use std::fs;
use std::path::Path;
use std::thread;

use claim::Guarded;
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Inputs that are made of the seeds, by each of the threads.
const MADE: usize = 60;
const THREADS: u64 = 4;

fn seeds() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/strangers");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 15, "{files:?}");
    files.into_iter().map(|file| fs::read(file).unwrap()).collect()
}

/// A number below `end`.
fn below(random: &mut TestRng, end: usize) -> usize {
    usize::try_from(random.next_u64() % u64::try_from(end).unwrap()).unwrap()
}

/// The beginning of one seed and the end of another, with some bytes changed.
fn made(random: &mut TestRng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let [one, other] = [0, 1].map(|_| &seeds[below(random, seeds.len())]);
    let (end, start) = (below(random, one.len()) + 1, below(random, other.len()));
    let mut made = [&one[..end], &other[start..]].concat();
    for _ in 0..below(random, 4) {
        let at = below(random, made.len());
        made[at] = random.next_u64().to_be_bytes()[0];
    }
    made
}

fn try_it(server: &Guarded, input: &[u8]) {
    let (step, sent) = input.split_first().unwrap();
    server.try_to_get_in(usize::from(*step) << 4 | 1, sent);
}

// Promises: ops-strangers.
#[test]
fn whatever_strangers_send_they_change_nothing_and_learn_nothing() {
    let seeds = seeds();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let seeds = &seeds;
            scope.spawn(move || {
                let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[u8::try_from(thread).unwrap(); 32]);
                let mut server = Guarded::start();
                for number in 0..seeds.len() + MADE {
                    // The answers to wrong tokens wait ever longer; another server has heard of none.
                    if number % 3 == 0 {
                        server = Guarded::start();
                    }
                    match seeds.get(number) {
                        Some(seed) => try_it(&server, seed),
                        None => try_it(&server, &made(&mut random, seeds)),
                    }
                }
            });
        }
    });
}
