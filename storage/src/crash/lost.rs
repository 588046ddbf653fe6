//! A journal that is removed while it is used, at its worst moment: nothing finds room in it any more, not even a link.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::journal::MetaBytes;
use crate::{Db, JournalOptions, Options};

#[test]
fn the_file_gets_everything_where_a_lost_journal_has_no_room_for_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.db");
    let db = Options::new().journal(JournalOptions::new()).open(&file).unwrap();
    db.update(|tx| tx.create_bucket("b").map(drop)).unwrap();
    let shared = &db.0.shared;
    std::fs::remove_dir_all(shared.journal().unwrap()).unwrap();
    shared.writer.with(|writer| {
        let (meta, journal) = (shared.readers.current().meta, writer.journal.as_mut().unwrap());
        while journal.reserve(None).is_ok() {
            journal.link(meta.txid, &MetaBytes::of(&meta), 0).unwrap();
        }
    });
    let error = db.checkpoint().unwrap_err().to_string();
    assert!(error.contains("the file has everything"), "{error}");
    drop(db);
    assert!(Db::open(&file).unwrap().begin().unwrap().bucket("b").is_ok());
}
