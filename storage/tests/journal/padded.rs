//! Files of a journal that somebody has made longer: a copy that is padded, a tool that appends. Nothing is lost by that.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::{assert_check_clean, committed, copy_as_killed, folder_in_memory};
use boltkv_storage::tools::FileJournal;
use boltkv_storage::{Db, JournalKeep, JournalOptions, Options};
use std::fs;
use std::path::Path;

fn options() -> Options {
    let journal = JournalOptions::new().checkpoint_size(JournalOptions::LEAST_CHECKPOINT_SIZE * 64);
    Options::new().journal(journal.keep(JournalKeep::Bytes(u64::MAX)))
}

/// Records of all sizes: many in a segment, some in two, and one that fills several.
fn write(db: &Db) {
    for (number, len) in [100, 5000, 400_000, 60_000, 100, 700_000, 200_000, 4000].into_iter().enumerate() {
        let value = vec![u8::try_from(number).unwrap(); len];
        db.update(|tx| tx.create_bucket_if_not_exists("b")?.put(number.to_string(), &value)).unwrap();
    }
}

/// Appends so many bytes to every segment: zeros, or what stands at its beginning, which may be less.
fn pad(journal: &Path, len: usize, with_itself: bool) {
    for segment in fs::read_dir(journal).unwrap() {
        let path = segment.unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        let more = if with_itself { bytes[..len.min(bytes.len())].to_vec() } else { vec![0; len] };
        bytes.extend(more);
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn segments_that_were_made_longer_lose_no_record() {
    for (len, with_itself) in [(1, false), (4096, false), (65_536, false), (4096, true), (65_536, true)] {
        let folder = folder_in_memory();
        let (file, killed) = (folder.path().join("app.db"), folder.path().join("killed.db"));
        let db = options().open(&file).unwrap();
        write(&db);
        copy_as_killed(&file, &killed);
        let journal = folder.path().join("killed.db-journal");
        assert!(FileJournal::find(&killed, None).unwrap().unwrap().segments().count() > 3);
        pad(&journal, len, with_itself);
        let found = FileJournal::find(&killed, None).unwrap().unwrap();
        assert_eq!(found.state().unwrap().records, 8, "{len} bytes, {with_itself}");
        let again = options().open(&killed).unwrap();
        assert_eq!(committed(&again), committed(&db), "{len} bytes, {with_itself}");
        // And again, with what was padded among what is kept and used again.
        write(&again);
        let twice = folder.path().join("twice.db");
        copy_as_killed(&killed, &twice);
        pad(&folder.path().join("twice.db-journal"), len, with_itself);
        let third = options().open(&twice).unwrap();
        assert_eq!(committed(&third), committed(&again), "{len} bytes, {with_itself}: the second time");
        assert_check_clean(&third, "after journals that were padded");
    }
}
