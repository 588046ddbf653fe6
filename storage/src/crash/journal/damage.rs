//! What was synced and is damaged, and calls that fail.

use super::super::platters::{Left, Platters};
use super::super::random::Random;
use super::{Contained, Content, Place, SECTOR, Setup, Worker, look, start};
use crate::Error;
use crate::disk::sim::{Fault, Platter};
use crate::journal::{JournalKeep, JournalLimits};

/// A folder with records in several segments, all of them synced but for the last one, which says so.
fn synced_scene(seed: u64) -> (Setup, Left, Contained, Content) {
    let mut random = Random::new(seed);
    let limits = JournalLimits { keep: JournalKeep::Bytes(60_000), ..Setup::random(&mut random).limits };
    let setup = Setup { limits, synced: 1 };
    let (left, mut contained) = start();
    let place = Place::new(&left, seed);
    let mut worker = Worker::open(setup, &mut random, &place, &mut contained);
    for step in 0..20 {
        worker.append().expect("nothing fails");
        if step == 9 {
            worker.checkpoint().expect("nothing fails");
        }
    }
    worker.all_durable();
    worker.setup.synced = usize::MAX;
    worker.append().expect("nothing fails");
    worker.note();
    let (happened, content) = (worker.happened, worker.states[worker.durable].clone());
    let mut platters = Platters::new(left.0, left.1);
    for (event, _) in happened {
        platters.happens(event);
    }
    platters.names.sync();
    let names = platters.names.after_each_crash().pop().expect("there is one outcome");
    (setup, (names, platters.files.iter().map(Platter::newest).collect()), contained, content)
}

#[test]
fn what_was_synced_and_is_damaged_is_refused_and_never_taken_for_the_end() {
    let (mut refused, mut whole) = (0, 0);
    for seed in 1..=6 {
        let (_, left, contained, promised) = synced_scene(seed);
        let mut random = Random::new(seed);
        for file in 1..left.1.len() {
            for sector in 0..left.1[file].len() / SECTOR {
                let mut damaged = left.clone();
                let bytes = &mut damaged.1[file][sector * SECTOR..][..SECTOR];
                match random.below(3) {
                    0 => bytes.fill(0),
                    1 => bytes.copy_from_slice(&random.bytes(SECTOR)),
                    _ => bytes[random.below(80)] ^= 1 << random.below(8),
                }
                match Place::new(&damaged, seed).content(&contained) {
                    Ok((found, _)) => {
                        let is_all = found.starts_with(&promised);
                        assert!(is_all, "seed {seed}, sector {sector} of file {file}: it was shortened");
                        whole += 1;
                    }
                    Err(
                        Error::JournalDamaged { .. }
                        | Error::JournalDisjoint { .. }
                        | Error::JournalDoesNotFit { .. }
                        | Error::JournalVersion { .. },
                    ) => refused += 1,
                    Err(other) => panic!("seed {seed}, sector {sector} of file {file}: {other}"),
                }
            }
        }
    }
    assert!(refused > 300 && whole > 500, "{refused} refused, {whole} whole");
}

#[test]
fn whatever_call_fails_nothing_more_is_written_and_what_was_synced_is_there() {
    let faults = [Fault::Broken, Fault::BrokenHalfWay, Fault::Full, Fault::FullHalfWay];
    let mut failures = 0;
    for (call, fault) in (0..120).flat_map(|call| faults.map(|fault| (call, fault))) {
        let mut random = Random::new(call);
        let setup = Setup { synced: 2, ..Setup::random(&mut random) };
        let (left, mut contained) = start();
        let place = Place::new(&left, call);
        let mut worker = Worker::open(setup, &mut random, &place, &mut contained);
        place.trap.arm(call, fault);
        let mut failed = false;
        for step in 0..30 {
            let writes_no_more = worker.journal.is_usable().is_err();
            let done = if step % 7 == 6 { worker.checkpoint() } else { worker.append() };
            worker.note();
            assert!(!(writes_no_more && done.is_ok()), "it was written on after a failure");
            failed |= done.is_err();
        }
        failures += usize::from(failed);
        place.trap.disarm();
        let allowed = worker.states[worker.durable..].to_vec();
        let happened = worker.happened;
        drop(worker.journal);
        let mut platters = Platters::new(left.0.clone(), left.1.clone());
        for (event, _) in happened {
            platters.happens(event);
        }
        for file in 0..platters.files.len() {
            for crash in platters.crashes(file, &mut random) {
                look(&crash, setup, &contained, &allowed, &mut random)
                    .unwrap_or_else(|wrong| panic!("call {call}, {fault:?}, {setup:?}: {wrong}"));
            }
        }
    }
    assert!(failures > 200, "only {failures} runs failed");
}
