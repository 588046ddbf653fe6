//! This engine and Go's bbolt can take turns writing one file: each finds what the other left, and leaves it sound.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::generator::Generator;
use crate::common::model::Model;
use crate::common::setup::Setup;
use crate::common::{assert_check_clean, assert_same_dump, committed};

const TURNS: u64 = 20;

#[boltkv_needs::program("go")]
#[test]
fn twenty_turns_with_the_freelist_always_stored() {
    take_turns(1, Setup::default(), |_| true);
}

#[boltkv_needs::program("go")]
#[test]
fn twenty_turns_on_small_pages_with_this_engines_own_fill() {
    let setup = Setup { page_size: 1024, fill: None, ..Setup::default() };
    take_turns(2, setup, |_| true);
}

#[boltkv_needs::program("go")]
#[test]
fn twenty_turns_with_the_freelist_stored_by_one_side_or_the_other_or_none() {
    take_turns(3, Setup::with_page_size(1024), |turn| turn / 2 % 2 == 0);
    take_turns(4, Setup::default(), |turn| turn % 2 == 0);
    take_turns(5, Setup::default(), |turn| turn % 2 == 1);
}

/// Even turns are this engine's, odd ones bbolt's.
fn take_turns(seed: u64, setup: Setup, freelist_stored: impl Fn(u64) -> bool) {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.db");
    let mut generator = Generator::new(seed, Model::default()).with_drops_first();
    for turn in 0..TURNS {
        let what = format!("seed {seed}, turn {turn}");
        let setup = Setup { freelist_stored: freelist_stored(turn), ..setup };
        let trace = generator.trace(4, 60);
        if turn % 2 == 0 {
            trace.replay(&file, &setup).unwrap();
        } else {
            peer.replay(&trace, &file, &setup);
        }

        let expected = generator.model.dump();
        peer.assert_check_clean(&file, &what);
        assert_same_dump(&peer.dump(&file), &expected, &what);
        let db = setup.options().read_only(true).open(&file).unwrap();
        assert_check_clean(&db, &what);
        assert_same_dump(&committed(&db).dump(), &expected, &what);
    }
}
