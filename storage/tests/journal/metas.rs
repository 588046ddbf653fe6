//! One damaged meta in a file with a journal: what `file journal` says of it, and what an older copy of the file is not given.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{assert_check_clean, committed, copy_as_killed, folder_in_memory};
use boltkv_storage::tools::{FileJournal, RawFile, RepairEvent, RepairOptions, RepairRoot};
use boltkv_storage::{Db, Error, JournalKeep, JournalOptions, Options};
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

/// What a close leaves is the file as it was closed. An older copy in its place was put there by somebody, who may want it or
/// not: it is not rolled forward.
#[test]
fn a_copy_from_before_a_clean_close_is_refused_until_the_journal_is_given_up() {
    let folder = folder_in_memory();
    let (file, backup) = (folder.path().join("app.db"), folder.path().join("backup.db"));
    let db = options().open(&file).unwrap();
    write_to_the_file(&db, 0..1);
    let held = committed(&db);
    db.close().unwrap();
    fs::copy(&file, &backup).unwrap();
    // What was closed and is opened again, also without a commit, is no older copy.
    for round in 1..3 {
        let db = options().open(&file).unwrap();
        assert_eq!(db.stats().journal.unwrap().replayed, 0);
        write(&db, round);
        db.close().unwrap();
        options().open(&file).unwrap().close().unwrap();
    }
    // Nor is one that was killed after that, with records behind the close.
    let killed = folder.path().join("killed.db");
    let db = options().open(&file).unwrap();
    write(&db, 3);
    copy_as_killed(&file, &killed);
    assert_eq!(options().open(&killed).unwrap().stats().journal.unwrap().replayed, 40);
    db.close().unwrap();
    fs::copy(&backup, &file).unwrap();
    let found = FileJournal::find(&file, None).unwrap().unwrap();
    assert!(matches!(found.state(), Err(Error::FileOlderThanJournal { .. })), "{found:?}");
    for refused in [options().open(&file), Db::open(&file), Options::new().read_only(true).open(&file)] {
        let Err(error @ Error::FileOlderThanJournal { .. }) = refused else { panic!("{refused:?}") };
        assert!(error.can_discard_journal() && error.is_of_journal(), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), fs::read(&backup).unwrap(), "nothing was written");
    let kept = Options::new().journal(JournalOptions::new().discard(true)).open(&file).unwrap();
    assert_eq!(committed(&kept), held);
    assert_check_clean(&kept, "as the backup was");
}

/// The same where another program has changed the file in between: the journal begins anew with it then, and is not damaged
/// because an older copy does not lead there.
#[test]
fn a_copy_from_before_another_program_wrote_is_an_older_copy_too() {
    let folder = folder_in_memory();
    let [file, copy, journal, aside] =
        ["app.db", "copy.db", "app.db-journal", "aside"].map(|name| folder.path().join(name));
    let db = options().open(&file).unwrap();
    write_to_the_file(&db, 0..2);
    db.close().unwrap();
    fs::copy(&file, &copy).unwrap();
    fs::rename(&journal, &aside).unwrap();
    let db = Db::open(&file).unwrap();
    write(&db, 2);
    db.close().unwrap();
    fs::rename(&aside, &journal).unwrap();
    let db = options().open(&file).unwrap();
    write(&db, 3);
    db.close().unwrap();
    fs::copy(&copy, &file).unwrap();
    let refused = options().open(&file);
    assert!(matches!(refused, Err(Error::FileOlderThanJournal { .. })), "{refused:?}");
    assert_eq!(fs::read(&file).unwrap(), fs::read(&copy).unwrap(), "nothing was written");
}

/// Segments behind one that is gone, or whose header is damaged, lead to no older copy of the file: what they have is not passed
/// over in silence for that.
#[test]
fn a_gap_in_the_journal_of_an_older_copy_is_told_and_nothing_of_it_is_thrown_away() {
    let keep = JournalOptions::new().keep(JournalKeep::Bytes(u64::MAX)).checkpoint_size(64 << 10);
    let options = || Options::new().journal(keep.clone());
    for is_closed in [false, true] {
        let folder = folder_in_memory();
        let (file, killed) = (folder.path().join("app.db"), folder.path().join("killed.db"));
        let db = options().open(&file).unwrap();
        write_to_the_file(&db, 0..2);
        let copy = fs::read(&file).unwrap();
        (2..20).for_each(|round| write(&db, round));
        let newest = committed(&db);
        if is_closed {
            db.close().unwrap();
        }
        copy_as_killed(&file, &killed);
        let journal = folder.path().join("killed.db-journal");
        let listed = FileJournal::find(&killed, None).unwrap().unwrap();
        let last = listed.segments().max_by_key(|segment| segment.number).map(|last| journal.join(last.file));
        let mut segments: Vec<_> = fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().path()).collect();
        segments.sort();
        let contents: Vec<_> = segments.iter().map(|segment| fs::read(segment).unwrap()).collect();
        let restore = || {
            fs::write(&killed, &copy).unwrap();
            segments.iter().zip(&contents).for_each(|(segment, content)| fs::write(segment, content).unwrap());
        };
        let mut told = 0;
        for (segment, content) in segments.iter().zip(&contents) {
            for is_removed in [false, true] {
                restore();
                if is_removed {
                    fs::remove_file(segment).unwrap();
                } else {
                    let mut damaged = content.clone();
                    damaged[0] ^= 1;
                    fs::write(segment, damaged).unwrap();
                }
                let what = format!("closed: {is_closed}, removed: {is_removed}, {}", segment.display());
                match options().open(&killed) {
                    // Of the newest one nothing is known elsewhere.
                    Ok(_) if Some(segment) == last.as_ref() => {}
                    Ok(db) => assert!(!is_closed && committed(&db) == newest, "{what}: it was not needed"),
                    Err(error) => {
                        assert!(error.is_of_journal(), "{what}: {error}");
                        told += u32::from(matches!(error, Error::JournalDamaged { .. }));
                        let left = segments.iter().filter(|segment| segment.exists()).count();
                        assert_eq!(left, segments.len() - usize::from(is_removed), "{what}");
                        assert!(fs::read(&killed).unwrap() == copy, "{what}: nothing was written");
                    }
                }
            }
        }
        assert!(segments.len() > 5 && told > 6, "{} segments, {told} told", segments.len());
    }
}

/// All new files are alike: their metas do not tell whose journal it is.
#[test]
fn a_file_that_was_never_written_to_does_not_take_the_journal_of_one_that_was() {
    for closes in [false, true] {
        let folder = folder_in_memory();
        let [first, second, shared] = ["first.db", "second.db", "shared"].map(|name| folder.path().join(name));
        let in_shared = || Options::new().journal(JournalOptions::new().folder(&shared));
        Db::open(&second).unwrap().close().unwrap();
        let new = fs::read(&second).unwrap();
        let db = in_shared().open(&first).unwrap();
        write_to_the_file(&db, 0..2);
        write(&db, 2);
        let held = committed(&db);
        if closes {
            db.close().unwrap();
        } else {
            drop(db);
        }
        let refused = in_shared().open(&second);
        assert!(
            matches!(refused, Err(Error::FileOlderThanJournal { .. } | Error::JournalDoesNotFit { .. })),
            "{refused:?}"
        );
        assert_eq!(fs::read(&second).unwrap(), new);
        assert_eq!(committed(&in_shared().open(&first).unwrap()), held);
    }
}

/// How a meta's page is damaged.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Damage {
    Checksum,
    Root,
    Zeros,
}

fn damage_newest_meta(file: &Path, damage: Damage) {
    let page = newest_slot(file);
    let mut bytes = fs::read(file).unwrap();
    let meta = &mut bytes[usize::try_from(page).unwrap() * PAGE..][..PAGE];
    match damage {
        Damage::Checksum => meta[72..76].fill(0xee),
        Damage::Root => meta[32..40].fill(0xee),
        Damage::Zeros => meta.fill(0),
    }
    fs::write(file, bytes).unwrap();
}

/// A killed process' file whose journal names only the newest meta: what is before it was let go.
fn left_with_one_meta_named(folder: &Path) -> (Db, std::path::PathBuf) {
    let [file, left, killed] = ["app.db", "left.db", "killed.db"].map(|name| folder.join(name));
    let db = options().open(&file).unwrap();
    write_to_the_file(&db, 0..3);
    copy_as_killed(&file, &left);
    let db = options().open(&left).unwrap();
    write(&db, 3);
    copy_as_killed(&left, &killed);
    let segments: Vec<_> = FileJournal::find(&killed, None).unwrap().unwrap().segments().collect();
    let newest = segments.last().unwrap().epoch;
    for old in segments.iter().filter(|segment| segment.epoch != newest) {
        fs::remove_file(folder.join("killed.db-journal").join(&old.file)).unwrap();
    }
    (db, killed)
}

#[test]
fn the_meta_of_a_clean_close_is_put_back_and_without_its_journal_that_it_is_damaged_is_told() {
    for has_journal in [true, false] {
        let folder = folder_in_memory();
        let file = folder.path().join("app.db");
        let db = options().open(&file).unwrap();
        write_to_the_file(&db, 0..3);
        write(&db, 3);
        let newest = committed(&db);
        db.close().unwrap();
        damage_newest_meta(&file, Damage::Zeros);
        if !has_journal {
            fs::remove_dir_all(folder.path().join("app.db-journal")).unwrap();
        }
        let db = options().open(&file).unwrap();
        assert_eq!(db.damaged_meta().unwrap().is_known, has_journal);
        assert_eq!(committed(&db) == newest, has_journal);
        assert_check_clean(&db, "by the meta that is left, or put back");
    }
}

#[test]
fn a_meta_whose_forerunner_is_no_longer_named_is_put_back_if_its_page_shows_it_and_else_the_older_one_is_not_taken() {
    for damage in [Damage::Checksum, Damage::Root, Damage::Zeros] {
        let folder = folder_in_memory();
        let (db, killed) = left_with_one_meta_named(folder.path());
        damage_newest_meta(&killed, damage);
        let before = fs::read(&killed).unwrap();
        let said = FileJournal::find(&killed, None).unwrap().unwrap();
        if damage != Damage::Zeros {
            assert_eq!(said.state().unwrap().records, 40, "{damage:?}");
            let again = options().open(&killed).unwrap();
            assert!(again.damaged_meta().unwrap().is_known, "{damage:?}");
            assert_eq!(committed(&again), committed(&db), "{damage:?}");
            assert_check_clean(&again, "with its meta put back");
            continue;
        }
        assert!(matches!(said.state(), Err(Error::MetaLost { .. })), "{said:?}");
        let discards = Options::new().journal(JournalOptions::new().discard(true));
        let read_only = Options::new().read_only(true);
        for refused in [options(), discards, read_only, Options::new()].map(|options| options.open(&killed)) {
            let Err(error @ Error::MetaLost { .. }) = refused else { panic!("{refused:?}") };
            assert!(error.is_of_journal() && !error.can_discard_journal(), "{error}");
        }
        assert!(fs::read(&killed).unwrap() == before, "nothing was written");
        // Who knows that the file is what is wanted takes the journal away.
        fs::rename(folder.path().join("killed.db-journal"), folder.path().join("aside")).unwrap();
        let alone = Db::open(&killed);
        assert!(!matches!(alone, Err(Error::MetaLost { .. })), "{alone:?}");
    }
}

#[test]
fn a_journal_that_is_given_up_gives_the_file_its_damaged_meta_first() {
    for damage in [Damage::Checksum, Damage::Zeros] {
        let folder = folder_in_memory();
        let (file, killed) = (folder.path().join("app.db"), folder.path().join("killed.db"));
        let db = options().open(&file).unwrap();
        write_to_the_file(&db, 0..3);
        let held = committed(&db);
        write(&db, 3);
        copy_as_killed(&file, &killed);
        damage_newest_meta(&killed, damage);
        let kept = Options::new().journal(JournalOptions::new().discard(true)).open(&killed).unwrap();
        assert!(kept.damaged_meta().unwrap().is_known, "{damage:?}");
        assert_eq!(committed(&kept), held, "{damage:?}: the records are given up, and not the file's own state");
        assert_check_clean(&kept, "without its journal");
    }
}

#[test]
fn a_repair_begins_with_the_damaged_meta_that_the_journal_has() {
    let folder = folder_in_memory();
    let (file, killed) = (folder.path().join("app.db"), folder.path().join("killed.db"));
    let db = options().open(&file).unwrap();
    write_to_the_file(&db, 0..3);
    write(&db, 3);
    copy_as_killed(&file, &killed);
    let newest = RawFile::open(&killed, None).unwrap().newest_meta().unwrap().txid;
    damage_newest_meta(&killed, Damage::Zeros);
    let result = folder.path().join("repaired.db");
    let repaired = RepairOptions::new().repair(&killed, &result, |event| {
        assert!(matches!(event, RepairEvent::Read { .. }), "{event:?}");
    });
    let repaired = repaired.unwrap();
    assert_eq!(repaired.root, RepairRoot::JournalMeta { txid: newest });
    assert_eq!((repaired.lost, repaired.doubtful, repaired.journal.unwrap().applied), (0, 0, 40));
    assert_eq!(committed(&Db::open(&result).unwrap()), committed(&db));
}
