//! What a database tells of its journal.

use std::time::Duration;

use boltkv_storage::{Durability, JournalOptions, Options};

#[test]
fn the_figures_tell_every_sync_and_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let journal = JournalOptions::new().checkpoint_size(256 << 10);
    let options = Options::new().journal(journal).durability(Durability::Never);
    let db = options.open(folder.path().join("app.db")).unwrap();
    db.update(|tx| tx.create_bucket("b")?.put("a", "1")).unwrap();
    let before = db.stats().commits.syncs;
    db.sync().unwrap();
    assert_eq!(db.stats().commits.syncs, before + 1, "one that is no commit's");
    let journal = db.stats().journal.unwrap();
    assert_eq!(journal.checkpoint_size, 256 << 10);
    let files = || std::fs::read_dir(folder.path().join("app.db-journal")).unwrap().count() as u64;
    // One may be about to be made, by a thread.
    let told = (0..10_000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        files() == journal.segments
    });
    assert!(told, "{} files, told are {}", files(), journal.segments);
}
