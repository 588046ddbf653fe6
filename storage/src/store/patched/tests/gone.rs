//! Leaves to which nothing leads: those of buckets that were deleted or moved are left, others are missed.

use super::*;
use crate::Bucket;

/// Has each of the first two children of the bucket's root stand where the other one did; done twice it is as before.
fn exchange_children(folder: &tempfile::TempDir, root: u64) {
    let file = File::options().read(true).write(true).open(folder.path().join("a.db")).unwrap();
    // Behind the page's header, and an element's place and length of its key.
    let [one, other] = [16 + 8, 32 + 8].map(|at| root * 1024 + at);
    let read = |at| {
        let mut child = [0; 8];
        file.read_exact_at(&mut child, at).unwrap();
        child
    };
    let (first, second) = (read(one), read(other));
    file.write_all_at(&second, one).unwrap();
    file.write_all_at(&first, other).unwrap();
}

fn root_of(db: &Db, bucket: &str) -> u64 {
    db.view(|tx| Ok(tx.bucket(bucket)?.root_page().unwrap())).unwrap()
}

/// Some leaves of the bucket have patches, a deleted bucket's pages are still to be found, or are found if that `is_over`.
fn patched(folder: &tempfile::TempDir, is_over: bool) -> Db {
    let options = with_memory(1 << 20).freelist(FreelistStored::Never);
    let db = database(folder, &options, &["bucket", "large", "other"], if is_over { 200 } else { 2000 });
    put(&db, "large", 7, 1);
    db.update(|tx| tx.delete_bucket("large")).unwrap();
    // Each finds one.
    (0..if is_over { 100 } else { 1 }).for_each(|_| put(&db, "bucket", 199, 2));
    assert_eq!(db.0.shared.writer.with(|writer| writer.detached.is_empty()), is_over);
    (0..6).for_each(|leaf| put(&db, "bucket", 3 + 9 * leaf, 1));
    db
}

/// Once the damage is mended, all that was acknowledged is there.
fn assert_whole(folder: &tempfile::TempDir, what: &str) {
    let db = with_memory(1 << 20).freelist(FreelistStored::Never).open(folder.path().join("a.db")).unwrap();
    assert!((0..6).all(|leaf| values(&db, "bucket")[3 + 9 * leaf] == 1), "{what}");
    assert_eq!(db.check().unwrap(), [], "{what}");
}

#[test]
#[cfg_attr(miri, ignore = "the map of a file")]
fn a_leaf_to_which_nothing_leads_was_not_taken_away_by_that() {
    let checkpoints: [fn(&Db) -> Result<()>; 4] = [
        |db| db.checkpoint().map(drop),
        |db| db.0.shared.writer.with(|writer| commit(&db.0.shared, writer, |work| work.take_patched_apart(None))),
        |db| {
            let shared = &db.0.shared;
            let is_made = shared.checkpoint_beside(&shared.turn_to_write())?;
            assert!(!is_made);
            db.checkpoint().map(drop)
        },
        |db| db.update(|tx| tx.move_bucket::<&str>("bucket", &[], &["other"])),
    ];
    for (number, checkpoint) in checkpoints.iter().enumerate() {
        for is_over in [true, false] {
            let what = format!("{number}, {is_over}");
            let folder = tempfile::tempdir().unwrap();
            let db = patched(&folder, is_over);
            let root = root_of(&db, "bucket");
            exchange_children(&folder, root);
            assert!(matches!(checkpoint(&db), Err(Error::Corrupt { .. })), "{what}");
            assert!(matches!(db.close(), Err(Error::Corrupt { .. })), "{what}");
            exchange_children(&folder, root);
            assert_whole(&folder, &what);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "the map of a file")]
fn nor_while_a_pass_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let db = patched(&folder, true);
    let shared = &db.0.shared;
    let turn = shared.turn_to_write();
    let mut beside = crate::store::beside::Beside::begin(shared, &turn).unwrap().unwrap();
    // The newest state gets a root page of its own, and only that one is damaged.
    db.update(|tx| tx.bucket_mut("bucket")?.put(500_u32.to_be_bytes(), [9; 900])).unwrap();
    let root = root_of(&db, "bucket");
    exchange_children(&folder, root);
    let mut written = Ok(true);
    while matches!(written, Ok(true)) {
        written = beside.write_next();
    }
    assert!(matches!(written, Err(crate::store::beside::End::Failed(Error::Corrupt { .. }))));
    drop(beside);
    drop(turn);
    assert!(matches!(db.close(), Err(Error::Corrupt { .. })));
    exchange_children(&folder, root);
    assert_whole(&folder, "mended");
}

#[test]
#[cfg_attr(miri, ignore = "the map of a file")]
fn another_leaf_with_entries_of_the_same_sizes_is_not_taken_for_a_patched_one() {
    for leaves in [1, 6] {
        let folder = tempfile::tempdir().unwrap();
        let db = database(&folder, &with_memory(1 << 20), &["bucket"], 200);
        (0..leaves).for_each(|leaf| put(&db, "bucket", 3 + 9 * leaf, 1));
        let (table, _) = to_be_written(&db.0.shared);
        let (patched, _) = table.all().min().unwrap();
        let file = File::options().read(true).write(true).open(folder.path().join("a.db")).unwrap();
        let page_at = |id: u64| {
            let mut page = [0; 1024];
            file.read_exact_at(&mut page, id * 1024).unwrap();
            page
        };
        let before = page_at(patched);
        let is_alike = |page: &[u8; 1024]| page[8..16] == before[8..16] && page[16..] != before[16..];
        let mut other = (2..200).map(page_at).find(is_alike).unwrap();
        other[..8].copy_from_slice(&patched.to_le_bytes());
        file.write_all_at(&other, patched * 1024).unwrap();
        assert!(matches!(db.checkpoint(), Err(Error::Corrupt { .. })), "{leaves}");
        assert!(matches!(db.close(), Err(Error::Corrupt { .. })), "{leaves}");
        file.write_all_at(&before, patched * 1024).unwrap();
        let db = with_memory(1 << 20).open(folder.path().join("a.db")).unwrap();
        assert!((0..leaves as usize).all(|leaf| values(&db, "bucket")[3 + 9 * leaf] == 1), "{leaves}");
    }
}

/// Memory says by names whose leaves it has something of, and all of this is one transaction, also where it was several that
/// are done again.
#[test]
fn what_was_moved_away_is_not_missed_where_another_bucket_has_its_name() {
    type Change = fn(&mut crate::TxMut) -> Result<()>;
    const TOP: &[&str] = &[];
    let changes: [&[Change]; 3] = [
        &[
            |tx| tx.move_bucket_as("bucket", TOP, TOP, "1"),
            |tx| tx.create_bucket("bucket").map(drop),
            |tx| tx.move_bucket_as("bucket", TOP, TOP, "2"),
        ],
        &[
            |tx| tx.move_bucket_as("bucket", TOP, TOP, "1"),
            |tx| tx.move_bucket_as("other", TOP, TOP, "bucket"),
            |tx| tx.move_bucket_as("1", TOP, TOP, "other"),
            |tx| tx.move_bucket_as("bucket", TOP, TOP, "1"),
            |tx| tx.move_bucket_as("other", TOP, TOP, "bucket"),
        ],
        &[
            |tx| tx.move_bucket("bucket", TOP, &["other"]),
            |tx| tx.bucket_mut("other")?.bucket_mut("bucket")?.put(30_u32.to_be_bytes(), [3; 40]),
            |tx| tx.move_bucket("bucket", &["other"], TOP),
            |tx| tx.delete_bucket("bucket"),
        ],
    ];
    let read = |db: &Db| -> Vec<(Vec<u8>, Vec<Vec<u8>>)> {
        let entries = |bucket: Bucket<'_>| bucket.iter().map(|entry| entry.unwrap().1.unwrap().to_vec()).collect();
        db.view(|tx| {
            let all = tx.buckets().map(|found| found.map(|(name, bucket)| (name.to_vec(), entries(bucket))));
            all.collect()
        })
        .unwrap()
    };
    for (number, changes) in changes.iter().enumerate() {
        for together in [true, false] {
            let what = format!("{number}, {together}");
            let folder = tempfile::tempdir().unwrap();
            let db = database(&folder, &with_memory(1 << 20), &["bucket", "other"], 200);
            (0..6).for_each(|leaf| put(&db, "bucket", 3 + 9 * leaf, 1));
            (0..6).for_each(|leaf| put(&db, "other", 3 + 9 * leaf, 2));
            if together {
                db.update(|tx| changes.iter().try_for_each(|change| change(tx))).expect(&what);
            } else {
                changes.iter().try_for_each(|change| db.update(change)).expect(&what);
            }
            let now = read(&db);
            let killed = tempfile::tempdir().unwrap();
            std::fs::create_dir(killed.path().join("a.db-journal")).unwrap();
            std::fs::copy(folder.path().join("a.db"), killed.path().join("a.db")).unwrap();
            for segment in std::fs::read_dir(folder.path().join("a.db-journal")).unwrap() {
                let segment = segment.unwrap();
                let to = killed.path().join("a.db-journal").join(segment.file_name());
                std::fs::copy(segment.path(), to).unwrap();
            }
            let again = with_memory(1 << 20).open(killed.path().join("a.db")).expect(&what);
            assert!(read(&again) == now, "{what}");
            db.checkpoint().expect(&what);
            assert!(read(&db) == now, "{what}");
            assert_eq!((db.check().unwrap(), again.check().unwrap()), (vec![], vec![]), "{what}");
        }
    }
}
