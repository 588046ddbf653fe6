//! Journals that a driver has grown and that are cut, flipped, spliced and swapped then, some of them with the right
//! checksums; and folders of segments that are made up. What comes is a database or an error, never a panic or a hang. What
//! only a disk could have done is never taken for another state than one that was committed, and what the journal shows to
//! have been synced is never left out.
#![no_main]

#[path = "journal/blocks.rs"]
mod blocks;
#[path = "../../storage/tests/common/cursor_steps.rs"]
mod cursor_steps;
#[allow(dead_code, reason = "shared with the integration tests, which use all of it")]
#[path = "../../storage/tests/common/edit.rs"]
mod edit;
#[allow(dead_code, reason = "shared with the integration tests, which use all of it")]
#[path = "../../storage/tests/common/model.rs"]
mod model;

use std::collections::BTreeMap;

use arbitrary::Arbitrary;
use blocks::{BLOCK, Made, MetaOf, Number};
use boltkv_storage::{Db, Durability, Error, JournalKeep, JournalOptions, Options, SegmentBytes};
use boltkv_storage::tools::FileJournal;
use edit::{Edit, Parts};
use libfuzzer_sys::fuzz_target;
use model::Model;

/// Steps and changes of one case at the most; more only take longer.
const MOST_STEPS: usize = 40;
const MOST_CHANGES: usize = 6;

#[derive(Debug, Arbitrary)]
enum Case {
    /// A journal that was grown, and what a disk, or somebody who moves files, does to it.
    Damaged(Growth, Vec<Damage>),
    /// The same, with numbers in it changed by somebody who puts the checksums right.
    Changed(Growth, Vec<Change>),
    /// Segments that nobody has written.
    Made(Vec<Made>),
}

#[derive(Debug, Arbitrary)]
struct Growth {
    keeps: bool,
    long_segments: bool,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Step {
    Commit(Written),
    CommitUnsynced(Written),
    Sync,
    Checkpoint,
    Kill,
    Close,
    /// A copy is made, of which parts come back later.
    Copy,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
struct Written {
    kind: u8,
    place: u8,
    to: u8,
    key: u8,
    word: u16,
}

impl Written {
    fn edit(self) -> Edit {
        let path = |place: u8| {
            let names = [place & 3, (place >> 2) & 3];
            names[..1 + usize::from(place >> 7)].iter().map(|&name| vec![b'a' + name]).collect::<Vec<_>>()
        };
        // One in many takes several segments.
        let len = if self.word % 64 == 0 { self.word / 4 } else { self.word % 300 };
        let (path, to, key, other_key) = (path(self.place), path(self.to), vec![self.key], vec![self.key ^ self.to]);
        let value = vec![self.word.to_le_bytes()[0]; len.into()];
        Edit::of_kind(self.kind.into(), Parts { path, to, key, other_key, value, number: self.word.into() })
    }
}

/// What happens to files. Segments are meant by where their names stand in the folder, blocks by their place in it.
#[derive(Debug, Clone, Copy, Arbitrary)]
enum Damage {
    Flip(u8, u8, u16, u8),
    Zero(u8, u8),
    CopyBlock([u8; 2], [u8; 2]),
    SwapBlocks(u8, [u8; 2]),
    Cut(u8, u16),
    Remove(u8),
    SwapFiles(u8, u8),
    Spliced(u8, u8),
    OldFile(u8),
}

#[derive(Debug, Clone, Copy, Arbitrary)]
struct Change {
    segment: u8,
    block: u8,
    /// Which of the numbers of a header, or of an entry's.
    field: u8,
    to: Number,
}

fuzz_target!(|case: Case| {
    match case {
        Case::Damaged(growth, damage) => {
            let grown = Grown::from(&growth);
            let (mut file, mut segments) = (grown.file.clone(), grown.segments.clone());
            for damage in damage.iter().take(MOST_CHANGES) {
                damage.happen(&grown, &mut file, &mut segments);
            }
            let is_moved = |damage: &Damage| matches!(damage, Damage::Cut(..) | Damage::Spliced(..));
            let is_lost =
                |damage: &Damage| is_moved(damage) || matches!(damage, Damage::Remove(_) | Damage::OldFile(_));
            let least = if damage.is_empty() {
                grown.states.len() - 1
            } else if damage.iter().take(MOST_CHANGES).any(is_lost) {
                0
            } else {
                grown.least(&segments)
            };
            if let Some(found) = look(&grown.options, &file, &segments, true) {
                assert!(grown.states[least..].contains(&found), "state {least} or a later one is promised");
            } else {
                assert!(!damage.is_empty(), "what was grown does not open");
            }
        }
        Case::Changed(growth, changes) => {
            let grown = Grown::from(&growth);
            let mut segments = grown.segments.clone();
            for change in changes.iter().take(MOST_CHANGES) {
                if let Some(block) = block_of(&mut segments, change.segment, change.block) {
                    blocks::change(block, change.field, change.to.value());
                }
            }
            look(&grown.options, &grown.file, &segments, false);
        }
        Case::Made(made) => {
            let options = options(false, false);
            let db = options.open_bytes_with_journal(&new_file(), &SegmentBytes::new()).expect("a new file opens");
            let file = db.bytes().expect("memory can be read");
            let segments = made.iter().take(MOST_CHANGES).enumerate();
            let segments = segments.map(|(at, made)| (format!("segment-{at}"), made.bytes(MetaOf(&file)))).collect();
            look(&options, &file, &segments, false);
        }
    }
});

fn options(keeps: bool, long_segments: bool) -> Options {
    let size = if long_segments { 512 << 10 } else { 64 << 10 };
    let keep = if keeps { JournalKeep::Bytes(1 << 20) } else { JournalKeep::UntilCheckpoint };
    Options::new().page_size(1024).journal(JournalOptions::new().checkpoint_size(size).keep(keep))
}

fn new_file() -> Vec<u8> {
    let db = Options::new().page_size(1024).open_in_memory().expect("a new database opens");
    db.bytes().expect("memory can be read")
}

/// Opens what is there, uses it, and opens it again as it is after a kill: what was found; `None` for an error. A journal
/// that says what none says may be refused then, but not pass for something else.
fn look(options: &Options, file: &[u8], segments: &SegmentBytes, is_true: bool) -> Option<Model> {
    let listed = list(file, segments);
    let opened = options.open_bytes_with_journal(file, segments);
    assert!(listed.is_none_or(|fits| fits || opened.is_err()), "the list says that the journal does not fit");
    let db = opened.ok()?;
    let found = content(&db);
    let changed = db.update(|tx| tx.create_bucket_if_not_exists("one more")?.put("k", "v"));
    assert!(changed.is_ok() || !is_true, "what opens can be written");
    let (file, segments) = left(&db);
    let then = content(&db);
    match options.open_bytes_with_journal(&file, &segments) {
        Ok(again) => assert!(content(&again) == then, "after a kill it holds something else"),
        Err(error) => assert!(!is_true, "what was written does not open again: {error}"),
    }
    Some(found)
}

fn content(db: &Db) -> Model {
    let problems = db.check().expect("it can be checked");
    assert!(problems.is_empty(), "{}", problems[0]);
    let tx = db.begin().expect("it begins");
    Model::load(tx.buckets()).expect("a sound file is read")
}

/// What a kill leaves.
fn left(db: &Db) -> (Vec<u8>, SegmentBytes) {
    (db.bytes().expect("memory can be read"), db.journal_bytes().expect("memory can be read"))
}

/// Looks at all that is there; whether it fits the file, where that could be said.
fn list(file: &[u8], segments: &SegmentBytes) -> Option<bool> {
    let journal = FileJournal::of_bytes(file, segments).ok()?;
    for segment in journal.segments() {
        // What one entry's effects are does not matter to the next.
        let _ = journal.entries(segment.number, |entry| entry.effects(|_| Ok::<_, Error>(())).or(Ok::<_, Error>(())));
    }
    Some(journal.state().is_ok())
}

fn block_of(segments: &mut SegmentBytes, segment: u8, block: u8) -> Option<&mut [u8]> {
    let len = segments.len().max(1);
    let bytes = segments.values_mut().nth(usize::from(segment) % len)?;
    let count = bytes.len() / BLOCK;
    bytes.chunks_exact_mut(BLOCK).nth(usize::from(block) % count.max(1))
}

/// What a driver has left, and all that was committed on the way.
struct Grown {
    options: Options,
    file: Vec<u8>,
    segments: SegmentBytes,
    copies: Vec<(Vec<u8>, SegmentBytes)>,
    states: Vec<Model>,
    /// Which of the states a transaction has made.
    made: BTreeMap<u64, usize>,
}

impl Grown {
    fn from(growth: &Growth) -> Self {
        let options = options(growth.keeps, growth.long_segments);
        let mut db = options.open_bytes_with_journal(&new_file(), &SegmentBytes::new()).expect("a new file opens");
        let (mut copies, mut states, mut made) = (Vec::new(), vec![Model::default()], BTreeMap::new());
        for step in growth.steps.iter().take(MOST_STEPS) {
            match *step {
                Step::Commit(written) | Step::CommitUnsynced(written) => {
                    let mut tx = db.begin_mut().expect("nobody else writes");
                    let mut model = states[states.len() - 1].clone();
                    let edit = written.edit();
                    if edit.apply(&mut tx).is_err() {
                        continue;
                    }
                    edit.apply_to_model(&mut model).expect("the engine has done it");
                    let is_synced = matches!(step, Step::Commit(_));
                    let durability = if is_synced { Durability::Always } else { Durability::Never };
                    tx.commit_with(durability).expect("there is room");
                    made.insert(db.begin().expect("it begins").id(), states.len());
                    states.push(model);
                }
                Step::Sync => {
                    db.sync().expect("memory can be synced");
                }
                Step::Checkpoint => {
                    db.checkpoint().expect("memory can be synced");
                }
                Step::Kill | Step::Close => {
                    if matches!(step, Step::Close) {
                        db.clone().close().expect("it can be synced");
                    }
                    let (file, segments) = left(&db);
                    db = options.open_bytes_with_journal(&file, &segments).expect("what a kill leaves opens");
                    assert!(content(&db) == states[states.len() - 1], "a kill has lost something");
                }
                Step::Copy => copies.push(left(&db)),
            }
        }
        let (file, segments) = left(&db);
        Self { options, file, segments, copies, states, made }
    }

    /// The newest state that what is left of the journal shows to have been synced.
    fn least(&self, now: &SegmentBytes) -> usize {
        let mut synced = (0, 0);
        let mut records = Vec::new();
        // Names say nothing: a segment is still there if a file has its header.
        for (name, bytes) in &self.segments {
            let Some(header) = blocks::header(bytes) else { continue };
            let is_same = |other: &&Vec<u8>| other.get(..BLOCK) == bytes.get(..BLOCK);
            let left = now.get(name).filter(is_same).or_else(|| now.values().find(is_same));
            for entry in blocks::entries(bytes, &header) {
                if entry.is_record
                    && let Some(end) = entry.end
                {
                    records.push(((header.number, end), entry.txid));
                }
                let block = entry.offset..entry.offset + BLOCK;
                if left.is_some_and(|left| left.get(block.clone()) == bytes.get(block)) {
                    synced = synced.max(entry.synced);
                }
            }
            if left.is_some() {
                synced = synced.max(header.synced);
            }
        }
        let shown = records.iter().filter(|(end, _)| *end <= synced).map(|(_, txid)| txid).max();
        shown.and_then(|txid| self.made.get(txid)).copied().unwrap_or(0)
    }
}

impl Damage {
    fn happen(self, grown: &Grown, file: &mut Vec<u8>, segments: &mut SegmentBytes) {
        let name = |of: &SegmentBytes, which: u8| of.keys().nth(usize::from(which) % of.len().max(1)).cloned();
        match self {
            Self::Flip(segment, block, at, mask) => {
                if let Some(block) = block_of(segments, segment, block) {
                    block[usize::from(at) % BLOCK] ^= mask;
                }
            }
            Self::Zero(segment, block) => {
                block_of(segments, segment, block).into_iter().for_each(|block| block.fill(0))
            }
            Self::CopyBlock([segment, block], [to, there]) => {
                let copied = block_of(segments, segment, block).map(|block| block.to_vec());
                if let (Some(copied), Some(there)) = (copied, block_of(segments, to, there)) {
                    there.copy_from_slice(&copied);
                }
            }
            Self::SwapBlocks(segment, [one, other]) => {
                let Some(first) = block_of(segments, segment, one).map(|block| block.to_vec()) else { return };
                let second = block_of(segments, segment, other).map(|block| block.to_vec()).unwrap_or_default();
                for (block, bytes) in [(one, second), (other, first)] {
                    block_of(segments, segment, block).into_iter().for_each(|block| block.copy_from_slice(&bytes));
                }
            }
            Self::Cut(segment, len) => {
                let name = name(segments, segment).unwrap_or_default();
                segments
                    .entry(name)
                    .and_modify(|bytes| bytes.truncate(bytes.len() - usize::from(len) % (bytes.len() + 1)));
            }
            Self::Remove(segment) => {
                name(segments, segment).and_then(|name| segments.remove(&name));
            }
            Self::SwapFiles(one, other) => {
                let (Some(one), Some(other)) = (name(segments, one), name(segments, other)) else { return };
                let (first, second) = (segments[&one].clone(), segments[&other].clone());
                segments.extend([(one, second), (other, first)]);
            }
            Self::Spliced(copy, segment) => {
                let Some((_, old)) = grown.copies.get(usize::from(copy) % grown.copies.len().max(1)) else { return };
                let Some(name) = name(old, segment) else { return };
                segments.insert(name.clone(), old[&name].clone());
            }
            Self::OldFile(copy) => {
                if let Some((old, _)) = grown.copies.get(usize::from(copy) % grown.copies.len().max(1)) {
                    file.clone_from(old);
                }
            }
        }
    }
}
