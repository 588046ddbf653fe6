//! A repair finds everything that undamaged pages lead to, in damaged copies of files that Go's bbolt made; it names what
//! it does not find, makes nothing up, and writes a sound file. What must be found is told by `crate::common::salvage`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::model::{BucketPath, Model};
use crate::common::peer::{Peer, peer};
use crate::common::random::Random;
use crate::common::salvage::{Sound, lookup, values};
use crate::common::small_file::{HIGH_WATER_MARK, PAGE, SmallFile, odd_numbers, reseal};
use crate::common::{assert_check_clean, content_of_file};
use boltkv_storage::tools::{RepairEvent, RepairOptions, RepairPlace, RepairRoot, Repaired};
use boltkv_storage::{Db, Error, Options};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What a repair came to.
struct Outcome {
    repaired: Repaired,
    content: Model,
    lost: Vec<Place>,
    doubtful: Vec<Place>,
    file: PathBuf,
}

/// A [`RepairPlace`] that was lost.
#[derive(Debug)]
struct Place {
    page: u64,
    path: BucketPath,
    from: Option<Vec<u8>>,
    up_to: Option<Vec<u8>>,
    what: String,
}

impl Place {
    fn new(place: &RepairPlace<'_>) -> Self {
        Self {
            page: place.page,
            path: place.path.iter().map(|name| name.to_vec()).collect(),
            from: place.from.map(<[u8]>::to_vec),
            up_to: place.up_to.map(<[u8]>::to_vec),
            what: place.what.to_owned(),
        }
    }

    /// Whether it speaks of an entry, or of a bucket around it.
    fn covers(&self, path: &[Vec<u8>], key: &[u8]) -> bool {
        let Some(below) = path.strip_prefix(self.path.as_slice()) else { return false };
        let key = below.first().map_or(key, Vec::as_slice);
        let is_one = self.from.is_some() && self.from == self.up_to;
        self.from.as_deref().is_none_or(|from| key >= from)
            && self.up_to.as_deref().is_none_or(|up_to| key < up_to || (is_one && key == up_to))
    }
}

fn repair(broken: &Path) -> Outcome {
    repair_with(&RepairOptions::new(), broken)
}

/// Repairs a file, which must be left as it was, and looks at the result.
fn repair_with(options: &RepairOptions, broken: &Path) -> Outcome {
    let before = crate::common::file_hash(broken);
    let file = broken.with_extension("repaired");
    let _ = fs::remove_file(&file);
    let (mut lost, mut doubtful) = (Vec::new(), Vec::new());
    let repaired = options.repair(broken, &file, |event| match event {
        RepairEvent::Lost(place) => lost.push(Place::new(&place)),
        RepairEvent::Doubtful(place) => doubtful.push(Place::new(&place)),
        _ => {}
    });
    let repaired = repaired.unwrap();
    assert_eq!(repaired.doubtful, doubtful.len() as u64);
    assert_eq!(crate::common::file_hash(broken), before, "the broken file was changed");
    assert_eq!(repaired.lost, lost.len() as u64);
    assert_check_clean(&Options::new().read_only(true).open(&file).unwrap(), "the result");
    Outcome { content: content_of_file(&file), repaired, lost, doubtful, file }
}

/// Fails unless all is there that undamaged pages lead to, what is missing is named, and nothing was made up.
fn assert_salvaged(sound: &Sound, bytes: &[u8], outcome: &Outcome, what: &str) {
    let damaged = sound.damaged_pages(bytes);
    for piece in sound.untouched(&damaged) {
        let found = lookup(&outcome.content, &piece.path, &piece.key);
        let (path, key) = (&piece.path, &piece.key);
        assert_eq!(found.as_ref(), Some(&piece.content), "{what}: {path:x?} {key:x?} of pages {:?}", piece.pages);
    }
    for piece in sound.pieces.iter().filter(|piece| !piece.has_another_key(bytes, &damaged)) {
        if lookup(&outcome.content, &piece.path, &piece.key).is_none() {
            let named = outcome.lost.iter().chain(&outcome.doubtful).any(|place| place.covers(&piece.path, &piece.key));
            assert!(named, "{what}: {:x?} {:x?} is missing and not named: {:?}", piece.path, piece.key, outcome.lost);
        }
    }
    for ((path, key), value) in values(&outcome.content) {
        let was_there = sound.ever.contains(&(key.clone(), value)) || sound.may_be_new(bytes, &damaged, &path, &key);
        assert!(was_there, "{what}: {path:x?} {key:x?} was never there");
    }
}

/// A file that Go made, in a folder of its own.
struct Made {
    folder: tempfile::TempDir,
    sound: Sound,
}

impl Made {
    fn new(peer: &Peer, kind: &str, page_size: usize) -> Self {
        let folder = crate::common::folder_in_memory();
        let file = folder.path().join("made.db");
        peer.make(kind, &file, &[format!("--page-size={page_size}")]);
        let bytes = fs::read(&file).unwrap();
        Self { folder, sound: Sound::new(bytes, page_size) }
    }

    fn write(&self, bytes: &[u8]) -> PathBuf {
        let file = self.folder.path().join("broken.db");
        fs::write(&file, bytes).unwrap();
        file
    }

    /// Damages a copy, repairs it, and looks whether all went well, with bbolt too.
    fn damage(&self, peer: &Peer, what: &str, damage: impl FnOnce(&mut Vec<u8>)) -> Outcome {
        let mut bytes = self.sound.bytes.clone();
        damage(&mut bytes);
        let outcome = repair(&self.write(&bytes));
        assert_salvaged(&self.sound, &bytes, &outcome, what);
        peer.assert_check_clean(&outcome.file, what);
        outcome
    }

    fn used(&self) -> Vec<u64> {
        self.sound.used().into_iter().collect()
    }

    fn place(&self, page: u64) -> std::ops::Range<usize> {
        let at = usize::try_from(page).unwrap() * self.sound.page_size;
        at..at + self.sound.page_size
    }
}

const KINDS: [&str; 6] = ["inline", "nested", "overflow", "empty-values", "sequences", "mixed"];

#[boltkv_needs::program("go")]
#[test]
fn a_sound_file_comes_out_whole() {
    let Some(peer) = peer() else { return };
    for kind in KINDS {
        let made = Made::new(peer, kind, 4096);
        let outcome = made.damage(peer, kind, |_| {});
        assert_eq!((outcome.repaired.lost, outcome.repaired.doubtful), (0, 0), "{kind}");
        assert_eq!(outcome.repaired.orphans.pages, 0, "{kind}");
        assert_eq!(outcome.content, content_of_file(&made.folder.path().join("made.db")), "{kind}");
        assert_eq!(peer.dump(&outcome.file), peer.dump(&made.folder.path().join("made.db")), "{kind}");
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_zeroed_page_costs_what_is_below_it() {
    let Some(peer) = peer() else { return };
    for (kind, step) in [("nested", 1), ("sequences", 29), ("mixed", 499)] {
        let made = Made::new(peer, kind, 1024);
        for &page in made.used().iter().step_by(step) {
            let what = format!("{kind}, page {page}");
            let outcome = made.damage(peer, &what, |bytes| bytes[made.place(page)].fill(0));
            let begins_here = made.sound.number(made.place(page).start, 8) == page;
            assert!(outcome.repaired.lost > 0 || !begins_here, "{what}");
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn swapped_pages_are_not_taken_for_each_other() {
    let Some(peer) = peer() else { return };
    let made = Made::new(peer, "mixed", 1024);
    let (used, mut random) = (made.used(), Random::new(1));
    for _ in 0..12 {
        let (one, two) = (used[random.below(used.len())], used[random.below(used.len())]);
        made.damage(peer, &format!("pages {one} and {two}"), |bytes| {
            let first = bytes[made.place(one)].to_vec();
            bytes.copy_within(made.place(two), made.place(one).start);
            bytes[made.place(two)].copy_from_slice(&first);
        });
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_damaged_piece_of_a_key_of_many_pages_is_the_key_that_is_found() {
    let Some(peer) = peer() else { return };
    let made = Made::new(peer, "overflow", 4096);
    let longest = made.sound.pieces.iter().max_by_key(|piece| piece.key.len()).unwrap();
    let mut changed = longest.key.clone();
    changed[10_000] = b'x';
    let outcome = made.damage(peer, "one byte of the key", |bytes| bytes[longest.key_place.start + 10_000] = b'x');
    assert_eq!(lookup(&outcome.content, &longest.path, &changed).as_ref(), Some(&longest.content));
    assert_eq!(lookup(&outcome.content, &longest.path, &longest.key), None);
}

#[boltkv_needs::program("go")]
#[test]
fn of_a_file_that_is_cut_all_is_found_that_lies_before_the_cut() {
    let Some(peer) = peer() else { return };
    let made = Made::new(peer, "mixed", 4096);
    let mark = usize::try_from(made.sound.mark()).unwrap();
    for eighth in 1..8 {
        let len = mark * 4096 * eighth / 8 + eighth * 100;
        made.damage(peer, &format!("cut after {len} bytes"), |bytes| bytes.truncate(len));
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_leaf_with_damaged_elements_keeps_the_others() {
    let Some(peer) = peer() else { return };
    let made = Made::new(peer, "sequences", 4096);
    let leaf = made.used().into_iter().find(|&page| {
        let at = made.place(page).start;
        made.sound.number(at + 8, 2) == 2 && made.sound.number(at + 10, 2) > 40
    });
    let at = made.place(leaf.unwrap()).start;
    let all = made.sound.pieces.len();
    // An element that points anywhere costs itself, and those beside it that its place would speak for.
    let outcome = made.damage(peer, "element 10", |bytes| bytes[at + 16 + 10 * 16 + 4..][..4].fill(0x7F));
    let left = values(&outcome.content).len() + outcome.content.bucket_paths().len();
    assert_eq!((left, outcome.lost.len()), (all - 3, 1), "{:?}", outcome.lost);
    assert_eq!(outcome.lost[0].page, leaf.unwrap());
    assert!(outcome.lost[0].what.starts_with("elements 9 to 11 are not to be believed: "), "{:?}", outcome.lost);
    // A wrong number of elements costs nothing: the first one's place tells the right one.
    for count in [1_u16, 5, 0, 0x7FFF] {
        let outcome =
            made.damage(peer, "the count", |bytes| bytes[at + 10..at + 12].copy_from_slice(&count.to_le_bytes()));
        if count < 0x7FFF {
            assert_eq!(outcome.lost.len(), 0, "{count} elements: {:?}", outcome.lost);
        }
    }
    // A key that is too high costs one entry, not all behind it.
    let outcome = made.damage(peer, "a key", |bytes| {
        let element = at + 16 + 20 * 16;
        let pos = u32::from_le_bytes(bytes[element + 4..element + 8].try_into().unwrap()) as usize;
        bytes[element + pos] = 0x7F;
    });
    let left = values(&outcome.content).len() + outcome.content.bucket_paths().len();
    assert_eq!(left, all - 1, "{:?}", outcome.lost);
}

#[boltkv_needs::program("go")]
#[test]
fn with_one_meta_damaged_the_other_ones_tree_is_taken() {
    let Some(peer) = peer() else { return };
    let made = Made::new(peer, "mixed", 4096);
    for slot in [0, 1] {
        let mut bytes = made.sound.bytes.clone();
        bytes[slot * 4096 + 30] ^= 0x10;
        let broken = made.write(&bytes);
        let outcome = repair(&broken);
        assert_eq!(outcome.repaired.lost, 0, "meta {slot}: {:?}", outcome.lost);
        assert_eq!(outcome.content, content_of_file(&broken), "meta {slot}");
    }
}

#[boltkv_needs::program("go")]
#[test]
fn with_both_metas_damaged_the_root_that_one_of_them_names_is_found() {
    let Some(peer) = peer() else { return };
    let made = Made::new(peer, "mixed", 4096);
    let outcome = made.damage(peer, "a flip in each meta", |bytes| {
        bytes[72] ^= 1;
        bytes[4096 + 73] ^= 1;
    });
    assert!(matches!(outcome.repaired.root, RepairRoot::Found { candidates } if candidates > 0));
    assert_eq!(outcome.repaired.root_page, Some(made.sound.root()));
    assert_eq!(outcome.lost.len(), 1, "only that it is not known which changes are missing");
}

#[boltkv_needs::program("go")]
#[test]
fn with_both_metas_gone_the_page_that_leads_to_most_is_the_root_and_another_can_be_given() {
    let Some(peer) = peer() else { return };
    for page_size in [1024, 4096] {
        for kind in KINDS {
            let made = Made::new(peer, kind, page_size);
            let mut bytes = made.sound.bytes.clone();
            bytes[..2 * page_size].fill(0);
            let broken = made.write(&bytes);
            let guessed = repair(&broken);
            assert_eq!(guessed.repaired.page_size as usize, page_size, "{kind}");
            assert!(!values(&guessed.content).is_empty(), "{kind}");
            for ((_, key), value) in values(&guessed.content) {
                assert!(made.sound.ever.contains(&(key, value)), "{kind}");
            }
            let given = repair_with(&RepairOptions::new().root_page(made.sound.root()), &broken);
            assert_eq!((given.repaired.root, given.lost.len()), (RepairRoot::Given, 0), "{kind}");
            assert_salvaged(&made.sound, &made.sound.bytes, &given, kind);
            peer.assert_check_clean(&given.file, kind);
        }
    }
}

#[test]
fn a_page_size_that_is_given_is_believed() {
    let small = SmallFile::new();
    let broken = small.write("broken.db", &small.sound);
    assert_eq!(repair_with(&RepairOptions::new().page_size(1024), &broken).content, small.content);
    let refused = RepairOptions::new().page_size(1000).repair(&broken, small.folder.path().join("new"), |_| {});
    assert!(matches!(refused, Err(Error::InvalidPageSize { found: 1000 })), "{refused:?}");
    // At another size hardly a page stands in its place: that is no error, but all is lost.
    let outcome = repair_with(&RepairOptions::new().page_size(2048), &broken);
    assert_eq!(values(&outcome.content).len(), 0);
    assert_ne!(outcome.repaired.lost, 0);
}

#[test]
fn a_damaged_root_of_the_newest_transaction_falls_back_to_the_one_before() {
    let small = SmallFile::new();
    let sound = Sound::new(small.sound.clone(), PAGE);
    let at = usize::try_from(sound.root()).unwrap() * PAGE;
    let mut bytes = small.sound.clone();
    bytes[at..at + PAGE].fill(0);
    let outcome = repair(&small.write("broken.db", &bytes));
    assert!(outcome.lost[0].what.contains("what follows is transaction"), "{:?}", outcome.lost);
    assert_eq!(outcome.lost.len(), 1);
    assert!(values(&outcome.content).len() > values(&small.content).len(), "the last transaction had only deleted");
    // Asked for by its slot, it is taken without a word.
    let older = u8::try_from(1 - sound.newest_meta()).unwrap();
    let asked = repair_with(&RepairOptions::new().meta(older), &small.write("sound.db", &small.sound));
    assert_eq!((asked.lost.len(), asked.content), (0, outcome.content));
}

#[test]
fn what_the_other_meta_would_lose_is_told_where_something_is_lost() {
    let small = SmallFile::new();
    let sound = Sound::new(small.sound.clone(), PAGE);
    let root = sound.root();
    // A leaf that only the newest transaction has: the highest page that leads to a value.
    let newest_only = sound.used().into_iter().filter(|&page| page != root).find(|&page| {
        let mut bytes = small.sound.clone();
        bytes[usize::try_from(page).unwrap() * PAGE..][..PAGE].fill(0);
        let outcome = repair(&small.write("broken.db", &bytes));
        outcome.repaired.lost > 0 && outcome.repaired.alternative.is_some_and(|other| other.lost == 0)
    });
    assert!(newest_only.is_some(), "the last transaction has written pages of its own");
}

#[test]
fn every_bit_of_the_structure_may_be_wrong() {
    let small = SmallFile::new();
    let sound = Sound::new(small.sound.clone(), PAGE);
    for page in sound.used() {
        let start = usize::try_from(page).unwrap() * PAGE;
        let (kind, count) = (sound.number(start + 8, 2), usize::try_from(sound.number(start + 10, 2)).unwrap());
        if sound.number(start, 8) != page {
            continue; // Another page runs on over it.
        }
        for at in 0..16 + 16 * count {
            // Whether an entry is a bucket is one bit by itself: nothing else would tell that it is wrong.
            // And the last entry ends somewhere in the rest of the page: there is none behind it to tell where.
            let is_unchecked = kind == 2 && at >= 16 && (at % 16 < 4 || (at / 16 == count && at % 16 >= 8));
            for bit in (0..8).step_by(if at < 16 { 1 } else { 5 }).filter(|_| !is_unchecked) {
                let mut bytes = small.sound.clone();
                bytes[start + at] ^= 1 << bit;
                let outcome = repair(&small.write("broken.db", &bytes));
                assert_salvaged(&sound, &bytes, &outcome, &format!("page {page}, byte {at}, bit {bit}"));
            }
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn every_bit_of_an_inline_bucket_may_be_wrong() {
    let Some(peer) = peer() else { return };
    let made = Made::new(peer, "inline", 1024);
    let sound = &made.sound;
    assert!(sound.inline_pages.len() > 10);
    for &start in sound.inline_pages.iter().step_by(3) {
        let count = usize::try_from(sound.number(start + 10, 2)).unwrap();
        for at in 0..16 + 16 * count {
            let is_unchecked = at >= 16 && (at % 16 < 4 || (at / 16 == count && at % 16 >= 8));
            for bit in [0, 3, 7].into_iter().filter(|_| !is_unchecked) {
                let mut bytes = sound.bytes.clone();
                bytes[start + at] ^= 1 << bit;
                let outcome = repair(&made.write(&bytes));
                assert_salvaged(sound, &bytes, &outcome, &format!("inline page at {start}, byte {at}, bit {bit}"));
            }
        }
    }
}

#[boltkv_needs::program("go")]
#[test]
fn whatever_happens_to_some_pages_the_others_are_salvaged() {
    let Some(peer) = peer() else { return };
    let small = SmallFile::new();
    let sound = Sound::new(small.sound.clone(), PAGE);
    let numbers = odd_numbers(small.pages());
    for seed in 0..700 {
        let mut random = Random::new(seed);
        let mut bytes = small.sound.clone();
        for _ in 0..=random.below(3) {
            let page = 2 + random.below(small.pages() - 2);
            let place = page * PAGE..(page + 1) * PAGE;
            match random.below(5) {
                0 => bytes[place].fill([0, 0xFF][random.below(2)]),
                1 => bytes[place].copy_from_slice(&random.bytes(PAGE)),
                2 => {
                    let from = (2 + random.below(small.pages() - 2)) * PAGE;
                    bytes.copy_within(from..from + PAGE, place.start);
                }
                3 => bytes[page * PAGE + 8 * random.below(16)..][..8]
                    .copy_from_slice(&numbers[random.below(numbers.len())].to_le_bytes()),
                _ => bytes[page * PAGE + random.below(PAGE)] ^= 1 << random.below(8),
            }
        }
        let broken = small.write("broken.db", &bytes);
        let outcome = repair(&broken);
        let damaged = sound.damaged_pages(&bytes);
        for piece in sound.untouched(&damaged).filter(|_| damaged.is_disjoint(&BTreeSet::from([0, 1]))) {
            let found = lookup(&outcome.content, &piece.path, &piece.key);
            assert_eq!(found.as_ref(), Some(&piece.content), "seed {seed}: {:x?} {:x?}", piece.path, piece.key);
        }
        if seed % 50 == 0 {
            peer.assert_check_clean(&outcome.file, &format!("seed {seed}"));
        }
    }
}

#[test]
fn noise_is_no_bolt_file_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (noise, result) = (folder.path().join("noise"), folder.path().join("result"));
    for len in [0, 1, 100, 1024, 5000, 100_000] {
        fs::write(&noise, Random::new(9).bytes(len)).unwrap();
        let repaired = RepairOptions::new().repair(&noise, &result, |_| {});
        match len {
            0 => assert!(matches!(repaired, Err(Error::EmptyFile)), "{repaired:?}"),
            _ => assert!(matches!(repaired, Err(Error::NotABoltFile)), "{len}: {repaired:?}"),
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{len}");
    }
}

#[test]
fn a_file_that_is_there_is_not_written_over() {
    let small = SmallFile::new();
    let broken = small.write("broken.db", &small.sound);
    let result = small.write("result.db", b"kept");
    for target in [&result, &broken] {
        let before = fs::read(target).unwrap();
        let repaired = RepairOptions::new().repair(&broken, target, |_| {});
        assert!(
            matches!(&repaired, Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists),
            "{repaired:?}"
        );
        assert_eq!(fs::read(target).unwrap(), before);
    }
}

#[test]
fn buckets_nested_a_thousand_deep_are_salvaged() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("deep.db");
    let db = Options::new().page_size(1024).open(&broken).unwrap();
    let path = crate::common::nest_a_thousand_deep(&db);
    drop(db);
    let result = folder.path().join("result.db");
    let repaired = RepairOptions::new().repair(&broken, &result, |_| {}).unwrap();
    assert_eq!((repaired.lost, repaired.buckets, repaired.values), (0, 1001, 1));
    let db = Db::open(&result).unwrap();
    assert_eq!(db.begin().unwrap().bucket_path(&path).unwrap().get("k").unwrap(), Some(&b"v"[..]));
}

#[test]
fn metas_that_say_anything_of_the_pages_there_are_bring_nothing_down() {
    let small = SmallFile::new();
    for mark in odd_numbers(small.pages()) {
        let mut bytes = small.sound.clone();
        for meta in [0, 1] {
            let meta = &mut bytes[meta * PAGE..][..PAGE];
            meta[HIGH_WATER_MARK..][..8].copy_from_slice(&mark.to_le_bytes());
            reseal(meta);
        }
        let broken = small.write("broken.db", &bytes);
        let result = small.folder.path().join("result");
        if RepairOptions::new().repair(&broken, &result, |_| {}).is_ok() {
            assert_eq!(Db::open(&result).unwrap().check().unwrap(), [], "{mark}");
            fs::remove_file(&result).unwrap();
        }
    }
}
