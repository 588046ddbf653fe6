//! What each step of a checkpoint is for: a power cut at every moment of work with a journal, as if one of the steps had not
//! been there, or had come too late. That it is noticed shows that the tests of power cuts would notice it, too.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use super::explore::Explorer;
use super::ground::{Files, Ground};
use super::model::Model;
use super::random::Random;
use super::setup::Setup;
use super::workload::{Done, Worker};
use crate::disk::sim::{Event, FileOp, Trap};
use crate::journal::MetaBytes;
use crate::{Durability, FreelistStored, JournalKeep};

const PAGE_SIZE: u32 = 1024;
/// Transactions between two crashes.
const TRANSACTIONS: usize = 16;
const SEEDS: u64 = 3;
/// Where an entry of the journal has its payload, and a page that is a meta has the meta.
const LINKED: usize = 72;
const META: usize = 16;
const META_LEN: usize = size_of::<MetaBytes>();

/// Where a checkpoint is in a log.
pub(super) struct Checkpoint {
    /// The sync of the pages, before the link.
    pub(super) pages_synced: usize,
    link: usize,
    /// The first of the syncs of the journal, which go up to the meta.
    link_synced: usize,
    meta: usize,
}

/// The page of a meta that an event writes.
fn meta_of(event: &Event) -> Option<&[u8]> {
    match event {
        Event::File(0, FileOp::Write { offset, data }) if *offset < 2 * PAGE_SIZE as usize => Some(data),
        _ => None,
    }
}

/// Whether an event writes the link to what the page of a meta says.
fn is_link_to(meta: &[u8], event: &Event) -> bool {
    let link = match event {
        Event::File(1.., FileOp::Write { data, .. }) => data.get(LINKED..LINKED + META_LEN),
        _ => None,
    };
    link == Some(&meta[META..META + META_LEN])
}

/// The checkpoints in a log. That each meta has its link before it is the first thing that this shows.
pub(super) fn checkpoints(log: &[Event]) -> Vec<Checkpoint> {
    let metas = log.iter().enumerate().filter_map(|(at, event)| Some((at, meta_of(event)?)));
    let checkpoint = |(meta, page): (usize, &[u8])| {
        let syncs = log[..meta].iter().rev().take_while(|event| matches!(event, Event::SyncFile(1..)));
        let link = log[..meta].iter().rposition(|event| is_link_to(page, event)).expect("a meta has a link before it");
        let pages = log[..link].iter().rposition(|event| matches!(event, Event::SyncFile(0)));
        let link_synced = meta - syncs.count();
        assert!(link < link_synced && link_synced < meta, "a link is synced before its meta");
        Checkpoint { pages_synced: pages.expect("pages are synced before the link"), link, link_synced, meta }
    };
    metas.map(checkpoint).collect()
}

/// Explores random work whose log was changed at each checkpoint; how many seeds show that, and not before a meta is written.
fn seen(change: impl Fn(&mut Vec<Event>, &Checkpoint)) -> u64 {
    let is_seen = |seed| {
        let mut random = Random::new(seed);
        let setup = Setup {
            page_size: PAGE_SIZE,
            freelist: FreelistStored::Always,
            durability: Durability::Always,
            journal: Some(8 << 10),
            keep: JournalKeep::UntilCheckpoint,
            memory: [0, 4 << 10][random.below(2)],
        };
        let start = Files::new_database(&setup);
        let ground = Ground::new(&start, &Trap::default());
        let Done { states, positions, .. } =
            Worker::new(setup, &mut random, ground.clone(), Model::default()).run(TRANSACTIONS);
        let mut log = ground.log().take();
        let checkpoints = checkpoints(&log);
        assert!(checkpoints.len() > 3, "seed {seed}: {} checkpoints", checkpoints.len());
        checkpoints.iter().rev().for_each(|checkpoint| change(&mut log, checkpoint));
        let explored = Explorer::new(setup, &states, &positions, Vec::new(), &mut random).explore(&start, &log);
        let Err(what) = explored else { return false };
        let mut metas = (0..log.len()).filter(|&at| meta_of(&log[at]).is_some());
        let is_at_a_meta = metas.any(|at| what.starts_with(&format!("after event {at} of")));
        assert!(is_at_a_meta, "seed {seed}: something else is wrong: {what}");
        true
    };
    (1..=SEEDS).filter(|&seed| is_seen(seed)).count() as u64
}

#[test]
fn the_simulation_shows_what_each_step_of_a_checkpoint_is_for() {
    assert_eq!(seen(|_, _| {}), 0, "as it is, nothing is wrong");
    let lost_link = seen(|log, checkpoint| drop(log.remove(checkpoint.link)));
    assert_eq!(lost_link, SEEDS, "a meta came without its link");
    let late_link = seen(|log, checkpoint| log[checkpoint.link_synced..=checkpoint.meta].rotate_right(1));
    assert_eq!(late_link, SEEDS, "a meta came through before its link");
    let unsynced_pages = seen(|log, checkpoint| drop(log.remove(checkpoint.pages_synced)));
    assert_eq!(unsynced_pages, SEEDS, "a meta came through before its pages");
}
