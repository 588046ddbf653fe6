//! One damaged meta in a file with a journal: what `file journal` says of it, and what an older copy of the file is not given.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

mod common;

use boltkv_storage::{Db, FileJournal, JournalKeep, JournalOptions, Options, RawFile};
use common::{assert_check_clean, committed, copy_as_killed, folder_in_memory};
use std::fs;
use std::path::Path;

const PAGE: usize = 4096;

fn options() -> Options {
    // No checkpoint but those that are asked for.
    Options::new().journal(JournalOptions::new().keep(JournalKeep::Bytes(u64::MAX)))
}

fn write(db: &Db, round: u8) {
    for number in 0..40 {
        let key = format!("{:04}", number * 7 % 40 + u32::from(round) * 40);
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(&key, [round; 600])).unwrap();
    }
}

fn write_to_the_file(db: &Db, rounds: impl IntoIterator<Item = u8>) {
    for round in rounds {
        write(db, round);
        db.checkpoint().unwrap();
    }
}

fn clear_meta(file: &Path, page: u64) {
    let mut bytes = fs::read(file).unwrap();
    bytes[usize::try_from(page).unwrap() * PAGE..][..PAGE].fill(0);
    fs::write(file, bytes).unwrap();
}

fn newest_slot(file: &Path) -> u64 {
    RawFile::open(file, None).unwrap().newest_meta().unwrap().txid % 2
}

#[test]
fn what_is_said_to_wait_is_what_an_opening_does_again() {
    let folder = folder_in_memory();
    let (file, killed) = (folder.path().join("app.db"), folder.path().join("killed.db"));
    let db = options().open(&file).unwrap();
    write_to_the_file(&db, 0..3);
    write(&db, 3);
    copy_as_killed(&file, &killed);
    clear_meta(&killed, newest_slot(&killed));
    let said = FileJournal::find(&killed, None).unwrap().unwrap();
    let again = options().open(&killed).unwrap();
    let done = again.stats().journal.unwrap().replayed;
    assert_eq!((said.state().unwrap().records, done), (40, 40));
    assert_eq!(committed(&again), committed(&db));
    assert_check_clean(&again, "with its meta put back");
}

/// The journal knows of newer metas, but the pages of them are not in the copy. Once it is older than one of them, that shows.
#[test]
fn an_older_copy_of_a_file_is_not_given_a_meta_whose_pages_it_has_not() {
    for later in 2..6 {
        let folder = folder_in_memory();
        let (file, killed) = (folder.path().join("app.db"), folder.path().join("killed.db"));
        let db = options().open(&file).unwrap();
        write_to_the_file(&db, 0..2);
        let copy = fs::read(&file).unwrap();
        write_to_the_file(&db, 2..2 + later);
        write(&db, 9);
        copy_as_killed(&file, &killed);
        fs::write(&killed, copy).unwrap();
        clear_meta(&killed, 1 - newest_slot(&killed));
        let again = options().open(&killed).unwrap();
        assert!(again.damaged_meta().is_some_and(|damaged| !damaged.is_known), "{later}");
        assert_check_clean(&again, "from its own state on");
        assert_eq!(committed(&again), committed(&db), "{later}");
    }
}

/// Older by one meta it looks as if the newest were damaged. Its pages do not.
#[test]
fn a_copy_older_by_one_meta_is_left_as_it_is() {
    let folder = folder_in_memory();
    let (file, killed) = (folder.path().join("app.db"), folder.path().join("killed.db"));
    let db = options().open(&file).unwrap();
    write_to_the_file(&db, 0..2);
    let copy = fs::read(&file).unwrap();
    write_to_the_file(&db, 2..3);
    write(&db, 9);
    copy_as_killed(&file, &killed);
    fs::write(&killed, copy).unwrap();
    clear_meta(&killed, 1 - newest_slot(&killed));
    let before = fs::read(&killed).unwrap();
    options().open(&killed).unwrap_err();
    assert!(fs::read(&killed).unwrap() == before, "nothing was written");
}
