//! A backup is the snapshot it was taken of, an ordinary file, and byte for byte what Go's bbolt would have written;
//! writers go on meanwhile, and whatever goes wrong leaves no half of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::{assert_check_clean, committed, content};
use boltkv_storage::{Db, Durability, Error, Options};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn put_version(db: &Db, version: u8) {
    db.update(|tx| {
        let mut bucket = tx.create_bucket_if_not_exists("b")?;
        for key in 0..500_u32 {
            bucket.put(key.to_be_bytes(), vec![version; 100 + usize::from(version)])?;
        }
        bucket.create_bucket_if_not_exists("inner")?.put("version", [version])
    })
    .unwrap();
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Takes some bytes, and then no more.
struct Full {
    left: usize,
    largest: usize,
}

impl Write for Full {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.largest = self.largest.max(data.len());
        let left = self.left.checked_sub(data.len()).ok_or(ErrorKind::StorageFull)?;
        self.left = left;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[boltkv_needs::program("go")]
#[test]
fn a_backup_is_byte_for_byte_what_bbolt_writes() {
    let Some(peer) = crate::common::peer::peer() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (kind, page_size) in [("mixed", 1024), ("mixed", 4096), ("inline", 65_536)] {
        let file = folder.path().join(format!("{kind}-{page_size}"));
        let theirs = folder.path().join(format!("{kind}-{page_size}.copy"));
        peer.make(kind, &file, &[format!("--page-size={page_size}")]);
        peer.run(["copy".as_ref(), file.as_os_str(), theirs.as_os_str()]);
        let db = Options::new().read_only(true).open(&file).unwrap();
        let mut ours = Vec::new();
        db.begin().unwrap().write_to(&mut ours).unwrap();
        assert!(ours == fs::read(&theirs).unwrap(), "{kind}, pages of {page_size}");
    }
}

#[test]
fn a_backup_holds_its_snapshot_whatever_is_written_meanwhile() {
    /// Commits between the pieces, so that the pages behind the snapshot are rewritten.
    struct Busy<'a>(&'a Db, fs::File, u8);
    impl Write for Busy<'_> {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            self.2 += 1;
            put_version(self.0, self.2);
            self.1.write(data)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    for db in [Options::new().open_in_memory().unwrap(), Db::open(folder.path().join("db")).unwrap()] {
        for version in 0..5 {
            put_version(&db, version);
        }
        // Large enough for several pieces.
        db.update(|tx| tx.create_bucket("large")?.put("k", vec![1; 5 << 20])).unwrap();
        let tx = db.begin().unwrap();
        let copy = folder.path().join("copy");
        let size = tx.write_to(&mut Busy(&db, fs::File::create(&copy).unwrap(), 10)).unwrap();
        assert_eq!(size, tx.size());
        assert_eq!(size, fs::metadata(&copy).unwrap().len());
        let backup = Db::open(&copy).unwrap();
        assert_eq!(committed(&backup), content(&tx));
        assert_check_clean(&backup, "the backup");
        put_version(&backup, 200);
        assert_check_clean(&backup, "the backup, written further");
        if let Some(peer) = crate::common::peer::peer() {
            drop(backup);
            peer.assert_check_clean(&copy, "the backup");
        }
    }
}

#[test]
fn a_backup_is_of_the_open_file_also_when_another_one_has_taken_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let (file, other) = (folder.path().join("db"), folder.path().join("other"));
    let db = Db::open(&file).unwrap();
    put_version(&db, 1);
    let tx = db.begin().unwrap();
    put_version(&Db::open(&other).unwrap(), 2);
    fs::rename(&other, &file).unwrap();
    let copy = folder.path().join("copy");
    tx.copy_file(&copy, 0o600).unwrap();
    assert_eq!(committed(&Db::open(&copy).unwrap()), content(&tx));
    let mut streamed = Vec::new();
    tx.write_to(&mut streamed).unwrap();
    assert!(streamed == fs::read(&copy).unwrap());
}

#[test]
fn either_meta_page_of_a_backup_is_enough_to_open_it() {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    let folder = tempfile::tempdir().unwrap();
    for version in 0..3 {
        put_version(&db, version);
        let mut backup = Vec::new();
        db.begin().unwrap().write_to(&mut backup).unwrap();
        for meta in 0..2 {
            let mut damaged = backup.clone();
            damaged[meta * 1024 + 30] ^= 1;
            let file = folder.path().join(format!("{version}-{meta}"));
            fs::write(&file, damaged).unwrap();
            let opened = Db::open(&file).unwrap();
            assert_eq!(committed(&opened), committed(&db));
            put_version(&opened, 100);
            assert_check_clean(&opened, "a backup with one meta, written further");
        }
    }
}

#[test]
fn a_new_database_and_one_that_is_not_synced_are_backed_up_too() {
    let folder = tempfile::tempdir().unwrap();
    let db = Options::new().durability(Durability::Never).open(folder.path().join("db")).unwrap();
    for version in 0..4 {
        let copy = folder.path().join(format!("copy {version}"));
        db.begin().unwrap().copy_file(&copy, 0o600).unwrap();
        let backup = Db::open(&copy).unwrap();
        assert_eq!(committed(&backup), committed(&db));
        put_version(&backup, 77);
        assert_check_clean(&backup, "the backup");
        put_version(&db, version);
    }
}

#[test]
fn a_file_that_is_there_is_only_replaced_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let db = Options::new().open_in_memory().unwrap();
    put_version(&db, 1);
    let copy = folder.path().join("copy");
    db.begin().unwrap().copy_file(&copy, 0o640).unwrap();
    let first = fs::read(&copy).unwrap();
    put_version(&db, 2);
    let tx = db.begin().unwrap();
    match tx.copy_file(&copy, 0o600) {
        Err(Error::Io { source, .. }) => assert_eq!(source.kind(), ErrorKind::AlreadyExists),
        other => panic!("{other:?}"),
    }
    assert!(fs::read(&copy).unwrap() == first);
    tx.copy_file_replacing(&copy, 0o600).unwrap();
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(committed(&Db::open(&copy).unwrap()), content(&tx));
    assert_eq!(names_in(folder.path()), ["copy"]);
}

#[test]
fn a_backup_that_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let db = Options::new().open_in_memory().unwrap();
    put_version(&db, 1);
    let tx = db.begin().unwrap();
    assert!(matches!(tx.copy_file(folder.path().join("missing/copy"), 0o600), Err(Error::Io { .. })));
    fs::create_dir(folder.path().join("taken")).unwrap();
    assert!(matches!(tx.copy_file_replacing(folder.path().join("taken"), 0o600), Err(Error::Io { .. })));
    assert_eq!(names_in(folder.path()), ["taken"]);
}

#[test]
fn a_target_that_takes_no_more_is_an_error_at_any_byte() {
    let db = Options::new().page_size(1024).open_in_memory().unwrap();
    put_version(&db, 1);
    let tx = db.begin().unwrap();
    let size = usize::try_from(tx.size()).unwrap();
    for left in [0, 1023, 1024, 2047, 2048, size - 1] {
        match tx.write_to(&mut Full { left, largest: 0 }) {
            Err(Error::Io { source, .. }) => assert_eq!(source.kind(), ErrorKind::StorageFull),
            other => panic!("{left} bytes of {size}: {other:?}"),
        }
    }
    assert_eq!(tx.write_to(&mut Full { left: size, largest: 0 }).unwrap(), tx.size());
}

#[test]
fn a_large_database_goes_out_in_pieces_of_a_mebibyte() {
    let db = Options::new().open_in_memory().unwrap();
    db.update(|tx| tx.create_bucket("b")?.put("k", vec![1; 10 << 20])).unwrap();
    let mut target = Full { left: usize::MAX, largest: 0 };
    db.begin().unwrap().write_to(&mut target).unwrap();
    assert_eq!(target.largest, 1 << 20);
}

#[test]
fn a_backup_is_not_written_over_the_database_itself() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    let (link, other_name) = (folder.path().join("link"), folder.path().join("other"));
    let db = Db::open(&file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    std::fs::hard_link(&file, &other_name).unwrap();
    for path in [&file, &link, &other_name] {
        let refused = db.begin().unwrap().copy_file_replacing(path, 0o600);
        let kind = if let Err(Error::Io { source, .. }) = refused { Some(source.kind()) } else { None };
        assert_eq!(kind, Some(std::io::ErrorKind::AlreadyExists), "{}", path.display());
    }
    db.update(|tx| tx.create_bucket("b").map(drop)).unwrap();
    drop(db);
    assert!(Db::open(&file).unwrap().begin().unwrap().bucket("b").is_ok(), "the file is the one that was written");
}
