//! A backup and the journal of its file make the state of every transaction that followed it: through checkpoints, segments
//! that are used again, kills and clean closes; and whatever does not belong together is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::model::Model;
use crate::common::random::Random;
use crate::common::{assert_check_clean, committed, copy_as_killed, followed};
use boltkv_storage::tools::{FileJournal, Restore, RestoreMoment, RestoreTo, Restored};
use boltkv_storage::{Db, Durability, Error, JournalKeep, JournalOptions, Options, Result, TxId};

/// A file and its journal, and where a kill and a restore put theirs.
struct Place {
    folder: tempfile::TempDir,
    lives: usize,
    restores: usize,
}

impl Place {
    fn new() -> Self {
        Self { folder: crate::common::folder_in_memory(), lives: 0, restores: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path(&format!("{}.db", self.lives))
    }

    fn journal(&self) -> PathBuf {
        self.path(&format!("{}.db-journal", self.lives))
    }

    /// What a kill leaves now is the file from here on.
    fn kill(&mut self) {
        let old = self.file();
        self.lives += 1;
        copy_as_killed(&old, &self.file());
    }

    fn restored(&mut self, backup: &Path, to: RestoreTo) -> Result<(Restored, Model)> {
        self.restores += 1;
        let new = self.path(&format!("restored-{}.db", self.restores));
        let restored = Restore::find(backup, self.journal())?.to_file(to, &new, 0o600, &mut |_, _| ())?;
        let db = Db::open(&new).unwrap();
        let found = db.begin().unwrap().id();
        assert!((restored.txid..=restored.txid + 1).contains(&found), "{found} after {restored:?}");
        let state = committed(&db);
        drop(db);
        fs::remove_file(&new).unwrap();
        Ok((restored, state))
    }
}

fn kept() -> JournalOptions {
    JournalOptions::new().checkpoint_size(JournalOptions::LEAST_CHECKPOINT_SIZE).keep(JournalKeep::Bytes(1 << 30))
}

fn options() -> Options {
    Options::new().journal(kept())
}

fn put(db: &Db, key: &str) -> TxId {
    db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(key, key)).unwrap();
    db.begin().unwrap().id()
}

fn backup(db: &Db, to: &Path) -> TxId {
    let tx = db.begin_checkpointed().unwrap();
    tx.copy_file(to, 0o600).unwrap();
    tx.id()
}

/// A transaction of one or a few edits of any kind, and the state that it left.
fn change(db: &Db, random: &mut Random) -> (TxId, Model) {
    let txid = followed::change(db, random);
    (txid, committed(db))
}

/// Backups on the way, some read-only looks at older ones, checkpoints, kills, and clean closes.
#[test]
fn each_of_a_thousand_states_is_restored() {
    let (mut place, mut random) = (Place::new(), Random::new(15));
    let mut db = options().open(place.file()).unwrap();
    let mut states = BTreeMap::new();
    let mut backups = BTreeMap::new();
    for number in 0..1000 {
        if number % 90 == 0 {
            let path = place.path(&format!("backup-{number}.db"));
            backups.insert(backup(&db, &path), path);
        }
        let (txid, state) = change(&db, &mut random);
        states.insert(txid, state);
        match random.below(60) {
            0 => drop(db.checkpoint().unwrap()),
            1 => {
                place.kill();
                drop(db);
                db = options().open(place.file()).unwrap();
            }
            2 => {
                db.close().unwrap();
                db = options().open(place.file()).unwrap();
            }
            _ => {}
        }
    }
    assert_eq!(states.len(), 1000);
    assert!(place.lives > 3, "some were killed");
    for (&txid, state) in &states {
        // From the last backup before it; of some from any.
        let skipped = if random.once_in(10) { random.below(backups.len()) } else { 0 };
        let mut before = backups.range(..txid).rev();
        let (_, path) = before.clone().nth(skipped).or(before.next_back()).unwrap();
        let (restored, found) = place.restored(path, RestoreTo::Transaction(txid)).unwrap();
        assert!(found == *state, "transaction {txid}: {restored:?}");
        assert_eq!(restored.txid, txid);
    }
    // The database went on all the time.
    assert_check_clean(&db, "at last");
    assert_eq!(committed(&db), states[states.keys().last().unwrap()]);
}

#[test]
fn a_time_is_the_state_before_the_first_later_transaction() {
    let mut place = Place::new();
    let db = options().open(place.file()).unwrap();
    put(&db, "first");
    let path = place.path("backup.db");
    let of_backup = backup(&db, &path);
    let mut moments: Vec<RestoreMoment> = Vec::new();
    for number in 0..5 {
        std::thread::sleep(std::time::Duration::from_millis(3));
        put(&db, &format!("{number}"));
    }
    let found = Restore::find(&path, place.journal()).unwrap();
    let collect = |moment| {
        moments.push(moment);
        Ok::<_, Error>(())
    };
    found.moments(collect).unwrap();
    assert_eq!(moments.len() as u64, found.transactions());
    assert_eq!((moments.len(), found.backup_txid()), (5, of_backup));
    for (index, moment) in moments.iter().enumerate() {
        for time in [moment.time_ms, moment.time_ms + 1] {
            let (restored, _) = place.restored(&path, RestoreTo::Time(time)).unwrap();
            let next = moments.get(index + 1);
            assert_eq!((restored.txid, restored.time_ms), (moment.txid, Some(moment.time_ms)));
            assert_eq!(restored.next_time_ms, next.map(|next| next.time_ms));
        }
    }
    let (restored, _) = place.restored(&path, RestoreTo::Time(moments[0].time_ms - 1)).unwrap();
    assert_eq!((restored.txid, restored.time_ms, restored.transactions), (of_backup, None, 0));
    let (restored, _) = place.restored(&path, RestoreTo::Newest).unwrap();
    assert_eq!(restored.txid, moments[4].txid);
    for out in [RestoreTo::Time(0), RestoreTo::Transaction(of_backup - 1), RestoreTo::Transaction(u64::MAX)] {
        assert!(matches!(place.restored(&path, out), Err(Error::RestoreOutOfReach { .. })), "{out:?}");
    }
}

/// What a crash takes back has numbers that are given out again: only a state that the journal names is gone on from.
#[test]
fn a_backup_of_what_a_crash_took_back_is_refused() {
    let mut place = Place::new();
    let options = options().durability(Durability::Never);
    let db = options.open(place.file()).unwrap();
    put(&db, "kept");
    db.sync().unwrap();
    place.kill();
    let lost = put(&db, "lost");
    let (unsynced, checkpointed) = (place.path("unsynced.db"), place.path("checkpointed.db"));
    db.begin().unwrap().copy_file(&unsynced, 0o600).unwrap();
    backup(&db, &checkpointed);
    drop(db);
    let db = options.open(place.file()).unwrap();
    let fitting = place.path("fitting.db");
    backup(&db, &fitting);
    while put(&db, "another").max(lost + 3) > db.begin().unwrap().id() {}
    for path in [unsynced, checkpointed] {
        let refused = place.restored(&path, RestoreTo::Newest);
        assert!(matches!(refused, Err(Error::JournalDoesNotFit { .. })), "{refused:?}");
    }
    let (_, state) = place.restored(&fitting, RestoreTo::Newest).unwrap();
    assert_eq!(state, committed(&db));
}

#[test]
fn another_files_journal_is_refused_and_so_is_one_that_does_not_go_back_far_enough() {
    let mut place = Place::new();
    let other = place.path("other.db");
    let db = options().open(&other).unwrap();
    (0..20).for_each(|_| _ = put(&db, "x"));
    let foreign = place.path("foreign.db");
    backup(&db, &foreign);
    let only_checkpoints =
        Options::new().journal(JournalOptions::new().checkpoint_size(JournalOptions::LEAST_CHECKPOINT_SIZE));
    let db = only_checkpoints.open(place.file()).unwrap();
    let early = place.path("early.db");
    let wanted = backup(&db, &early);
    (0..100).for_each(|_| _ = put(&db, "y"));
    match place.restored(&early, RestoreTo::Newest) {
        Err(Error::JournalGap { wanted: found, oldest, .. }) => assert!(found == wanted && oldest > wanted),
        other => panic!("{other:?}"),
    }
    backup(&db, &place.path("late.db"));
    let refused = place.restored(&foreign, RestoreTo::Newest);
    let is_refused = matches!(refused, Err(Error::JournalDoesNotFit { .. } | Error::JournalGap { .. }));
    assert!(is_refused, "{refused:?}");
    fs::create_dir(place.path("empty")).unwrap();
    assert!(matches!(Restore::find(&early, place.path("empty")), Err(Error::JournalDoesNotFit { .. })));
    assert!(matches!(Restore::find(&early, place.path("nowhere")), Err(Error::JournalIo { .. })));
}

/// After a clean close others may change the file: its journal goes on, and knows nothing of that.
#[test]
fn what_was_changed_without_the_journal_is_not_passed_over() {
    let mut place = Place::new();
    let db = options().open(place.file()).unwrap();
    let path = place.path("backup.db");
    backup(&db, &path);
    let recorded = put(&db, "recorded");
    db.close().unwrap();
    let db = Db::open(place.file()).unwrap();
    put(&db, "unrecorded");
    db.close().unwrap();
    let db = options().open(place.file()).unwrap();
    let later = place.path("later.db");
    backup(&db, &later);
    put(&db, "recorded again");
    for to in [RestoreTo::Newest, RestoreTo::Time(u64::MAX), RestoreTo::Transaction(recorded + 3)] {
        let refused = place.restored(&path, to);
        assert!(matches!(refused, Err(Error::JournalDisjoint { .. })), "{to:?}: {refused:?}");
    }
    let (restored, _) = place.restored(&path, RestoreTo::Transaction(recorded)).unwrap();
    assert_eq!(restored.txid, recorded);
    let (_, state) = place.restored(&later, RestoreTo::Newest).unwrap();
    assert_eq!(state, committed(&db));
}

#[test]
fn nothing_is_replaced_and_no_other_journal_adopted() {
    let place = Place::new();
    let db = options().open(place.file()).unwrap();
    let path = place.path("backup.db");
    backup(&db, &path);
    put(&db, "a");
    let to = |new: &Path| Restore::find(&path, place.journal())?.to_file(RestoreTo::Newest, new, 0o600, &mut |_, _| ());
    let there = place.path("there.db");
    fs::write(&there, "something").unwrap();
    match to(&there) {
        Err(Error::Io { source, .. }) => assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read(&there).unwrap(), b"something");
    let orphan = place.path("orphan.db");
    copy_as_killed(&place.file(), &orphan);
    fs::remove_file(&orphan).unwrap();
    assert!(matches!(to(&orphan), Err(Error::JournalWithoutFile { .. })));
    assert!(!orphan.exists());
    // What was restored is an ordinary file, which a new journal can be kept for.
    let new = place.path("new.db");
    to(&new).unwrap();
    let again = options().open(&new).unwrap();
    put(&again, "b");
    assert_ne!(committed(&again), committed(&db));
}

/// The damage is told, and what lies before it is had all the same.
#[test]
fn damage_is_in_the_way_of_what_lies_behind_it_only() {
    let mut place = Place::new();
    let db = options().open(place.file()).unwrap();
    let path = place.path("backup.db");
    backup(&db, &path);
    let numbers: Vec<TxId> = (0..8).map(|number| put(&db, &format!("key {number}"))).collect();
    db.close().unwrap();
    // A byte of the fifth one's key.
    let mut damaged = 0;
    for segment in fs::read_dir(place.journal()).unwrap() {
        let segment = segment.unwrap().path();
        let mut bytes = fs::read(&segment).unwrap();
        let found = bytes.windows(5).position(|window| window == b"key 4");
        if let Some(at) = found {
            bytes[at] ^= 1;
            fs::write(&segment, bytes).unwrap();
            damaged += 1;
        }
    }
    assert_eq!(damaged, 1);
    assert!(matches!(Restore::find(&path, place.journal()).unwrap().damage(), Some(Error::JournalDamaged { .. })));
    for (number, &txid) in numbers.iter().enumerate() {
        let restored = place.restored(&path, RestoreTo::Transaction(txid));
        assert_eq!(restored.is_ok(), number < 4, "{number}: {restored:?}");
    }
    for to in [RestoreTo::Newest, RestoreTo::Time(u64::MAX)] {
        assert!(matches!(place.restored(&path, to), Err(Error::JournalDamaged { .. })), "{to:?}");
    }
}

/// A checkpoint may take a number of its own, so that the first record of the next opening does not follow the last one
/// before by number.
#[test]
fn an_older_copy_of_the_file_is_restored_beyond_an_opening_and_not_brought_up_to_date_by_one() {
    let place = Place::new();
    for more in 0..2 {
        let (file, copy) = (place.path(&format!("{more}.db")), place.path(&format!("{more}.copy")));
        let db = options().open(&file).unwrap();
        put(&db, "old");
        db.checkpoint().unwrap();
        fs::copy(&file, &copy).unwrap();
        (0..=more).for_each(|number| _ = put(&db, &format!("{number}")));
        db.close().unwrap();
        let db = options().open(&file).unwrap();
        put(&db, "new");
        let newest = committed(&db);
        db.close().unwrap();
        let (journal, restored) = (place.path(&format!("{more}.db-journal")), place.path(&format!("{more}.restored")));
        let found = Restore::find(&copy, &journal).unwrap();
        found.to_file(RestoreTo::Newest, &restored, 0o600, &mut |_, _| ()).unwrap();
        assert_eq!(committed(&Db::open(&restored).unwrap()), newest);
        // In the place of the file it would undo what was there when that was closed, or be undone: nobody has said which.
        fs::copy(&copy, &file).unwrap();
        let refused = options().open(&file);
        assert!(matches!(refused, Err(Error::FileOlderThanJournal { file: 3, .. })), "{refused:?}");
    }
}

/// Of a copy that was made while the journal was written, a segment in the middle may be missing.
#[test]
fn a_hole_in_a_copied_journal_is_told() {
    let mut place = Place::new();
    let db = options().open(place.file()).unwrap();
    let path = place.path("backup.db");
    let of_backup = backup(&db, &path);
    (0..60).for_each(|number| _ = put(&db, &format!("{number}")));
    let mut segments: Vec<_> =
        FileJournal::find(place.file(), None).unwrap().unwrap().segments().map(|it| (it.number, it.file)).collect();
    segments.sort();
    assert!(segments.len() > 3, "{segments:?}");
    drop(db);
    fs::remove_file(place.journal().join(&segments[2].1)).unwrap();
    let found = Restore::find(&path, place.journal()).unwrap();
    assert!(found.damage().unwrap().to_string().contains("segment 3"), "{:?}", found.damage());
    assert!(found.transactions() > 0);
    assert!(matches!(place.restored(&path, RestoreTo::Newest), Err(Error::JournalDamaged { .. })));
    assert!(place.restored(&path, RestoreTo::Transaction(of_backup + 1)).is_ok());
}
