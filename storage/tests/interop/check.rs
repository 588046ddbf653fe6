//! Whatever Go's bbolt finds wrong with a damaged file is found here too: opening, reading or the check says so.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::model::Model;
use crate::common::random::Random;
use crate::common::small_file::{PAGE, SmallFile, odd_numbers};
use boltkv_storage::Options;
use std::path::Path;

#[boltkv_needs::program("go")]
#[test]
fn the_small_file_is_clean_there_and_here() {
    let Some(peer) = crate::common::peer::peer() else { return };
    let small = SmallFile::new();
    let file = small.write("sound.db", &small.sound);
    peer.assert_check_clean(&file, "the sound file");
    assert!(!finds_problems(&file));
}

#[boltkv_needs::program("go")]
#[test]
fn a_byte_off_that_bbolt_finds_is_found_here() {
    let small = SmallFile::new();
    // The headers and elements are at the start of a page; behind them are keys and values, of which any are as good.
    let starts = (2..small.pages()).map(|page| page * PAGE);
    let places = starts.flat_map(|start| (start..start + 256).step_by(7));
    let masks = [0x01, 0x80, 0xFF, 0x10].into_iter().cycle();
    what_bbolt_finds_is_found_here(&small, places.zip(masks), |bytes, &(at, mask)| bytes[at] ^= mask);
}

#[boltkv_needs::program("go")]
#[test]
fn a_word_replaced_that_bbolt_finds_is_found_here() {
    let small = SmallFile::new();
    let numbers = odd_numbers(small.pages());
    what_bbolt_finds_is_found_here(&small, 0..400_u64, |bytes, &seed| {
        let mut random = Random::new(seed);
        let width = [2, 4, 8][random.below(3)];
        // Most often in the headers and elements at the start of a page.
        let page = 2 + random.below(small.pages() - 2);
        let within = [16, 128, PAGE][random.below(3)];
        let at = page * PAGE + random.below(within / width) * width;
        let number = numbers[random.below(numbers.len())];
        bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
    });
}

fn what_bbolt_finds_is_found_here<D: std::fmt::Debug>(
    small: &SmallFile,
    damages: impl Iterator<Item = D>,
    damage: impl Fn(&mut [u8], &D),
) {
    let Some(peer) = crate::common::peer::peer() else { return };
    let mut found = 0;
    for what in damages {
        let mut bytes = small.sound.clone();
        damage(&mut bytes, &what);
        let file = small.write("damaged.db", &bytes);
        if peer.finds_problems(&file) == Some(true) {
            found += 1;
            assert!(finds_problems(&file), "found there, not here: {what:?}");
        }
    }
    assert!(found > 20, "bbolt found only {found} problems: the damage is too mild to say anything");
}

/// Whether opening a file, its check or reading it all says that something is wrong.
fn finds_problems(file: &Path) -> bool {
    let Ok(db) = Options::new().read_only(true).open(file) else { return true };
    let clean = db.check().is_ok_and(|problems| problems.is_empty());
    !clean || Model::load(db.begin().unwrap().buckets()).is_err()
}
