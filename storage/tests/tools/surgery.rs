//! Surgery writes what was asked for into a copy, refuses what cannot be done before it writes anything, and never
//! touches the source. That its copies are those of bbolt's surgery, byte for byte, the command line's tests show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use crate::common::assert_check_clean;
use crate::common::random::Random;
use crate::common::small_file::{CHECKSUM, PAGE, SmallFile, TXID, odd_numbers};
use boltkv_storage::tools::{MetaChange, RawFile, Surgery};
use boltkv_storage::{Db, Error, Fill, FreelistStored, Options, PageType, Problem, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A folder with a source, and a name beside it for the copy.
struct Table {
    folder: tempfile::TempDir,
    source: PathBuf,
    output: PathBuf,
}

impl Table {
    fn new(make: impl FnOnce(&Db)) -> Self {
        Self::with(Options::new(), make)
    }

    fn with(options: Options, make: impl FnOnce(&Db)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (source, output) = (folder.path().join("source.db"), folder.path().join("output.db"));
        make(&options.page_size(1024).open(&source).unwrap());
        Self { folder, source, output }
    }

    /// With 400 entries in a bucket `b`: a branch and some leaves.
    fn filled() -> Self {
        Self::new(|db| fill(db, 400, 40))
    }

    fn surgery(&self) -> Surgery {
        Surgery::new(&self.source, &self.output)
    }

    /// Runs an operation that must leave the source as it is and the copy alone beside it.
    #[track_caller]
    fn done<T>(&self, operation: impl FnOnce(&Surgery) -> Result<T>) -> T {
        let before = fs::read(&self.source).unwrap();
        let done = operation(&self.surgery()).unwrap();
        assert!(fs::read(&self.source).unwrap() == before, "the source was changed");
        assert_eq!(self.names(), ["output.db", "source.db"]);
        done
    }

    /// Runs an operation that must fail, and leave nothing behind.
    #[track_caller]
    fn refused<T: std::fmt::Debug>(&self, operation: impl FnOnce(&Surgery) -> Result<T>) -> Error {
        let before = fs::read(&self.source).unwrap();
        let error = operation(&self.surgery()).unwrap_err();
        assert!(fs::read(&self.source).unwrap() == before, "the source was changed");
        assert_eq!(self.names(), ["source.db"]);
        error
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The pages of that type, with at least so many elements.
    fn pages(&self, page_type: PageType, count: u16) -> Vec<u64> {
        let file = RawFile::open(&self.source, None).unwrap();
        let of_type = |id: &u64| {
            let header = file.header(*id).unwrap();
            header.id == *id && header.page_type() == page_type && header.count >= count
        };
        (2..file.end()).filter(of_type).collect()
    }

    /// The first of them.
    fn page(&self, page_type: PageType, count: u16) -> u64 {
        self.pages(page_type, count)[0]
    }

    /// The leaves of bucket `b`, in the order of their keys.
    fn leaves(&self) -> Vec<u64> {
        let mut leaves = self.pages(PageType::Leaf, 10);
        leaves.sort_by_key(|leaf| self.first_key(*leaf));
        leaves
    }

    fn first_key(&self, leaf: u64) -> Vec<u8> {
        let file = RawFile::open(&self.source, None).unwrap();
        file.page(leaf).unwrap().leaf_element(0).unwrap().key.into_owned()
    }
}

fn fill(db: &Db, entries: u32, value: usize) {
    db.update(|tx| {
        let mut bucket = tx.create_bucket_if_not_exists("b")?;
        (0..entries).try_for_each(|number| bucket.put(number.to_be_bytes(), vec![7; value]))
    })
    .unwrap();
}

/// Exclusive or'ed into a byte of the file.
fn flip(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 0x40;
    fs::write(file, bytes).unwrap();
}

fn keys(file: &Path) -> u64 {
    let db = Options::new().read_only(true).open(file).unwrap();
    db.begin().unwrap().bucket("b").unwrap().count().unwrap()
}

fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Surgery { .. })
}

#[test]
fn reverting_takes_back_the_last_transaction() {
    let table = Table::new(|db| {
        fill(db, 100, 10);
        fill(db, 200, 10);
    });
    let reverted = table.done(Surgery::revert_meta_page);
    assert_eq!((reverted.page, reverted.txid, reverted.lost), (1, 2, Some(3)));
    assert_eq!((keys(&table.source), keys(&table.output)), (200, 100));
    assert_check_clean(&Db::open(&table.output).unwrap(), "the reverted file");
    // Who knows the permissions of a source may not get more by its copy.
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode(&table.output), mode(&table.source));
}

#[test]
fn a_damaged_meta_is_replaced_by_the_other_whatever_its_number() {
    for (page, txid) in [(0, 3), (1, 2)] {
        let table = Table::new(|db| {
            fill(db, 100, 10);
            fill(db, 200, 10);
        });
        flip(&table.source, page * PAGE + TXID);
        let reverted = table.done(Surgery::revert_meta_page);
        assert_eq!((reverted.page, reverted.txid, reverted.lost), (page as u64, txid, None));
        assert_eq!(keys(&table.output), keys(&table.source));
        let file = RawFile::open(&table.output, None).unwrap();
        assert!((0..2).all(|page| file.meta(page).unwrap().fault().is_none()));
    }
}

#[test]
fn without_a_sound_meta_there_is_nothing_to_go_back_to() {
    let table = Table::filled();
    flip(&table.source, CHECKSUM);
    flip(&table.source, PAGE + CHECKSUM);
    assert!(is_refusal(&table.refused(Surgery::revert_meta_page)));
    assert!(is_refusal(&table.refused(Surgery::abandon_freelist)));
    assert!(is_refusal(&table.refused(Surgery::rebuild_freelist)));
    // A meta can be made good again, by who knows what belongs into it.
    let updated = table.done(|surgery| surgery.update_meta(0, &MetaChange::default()));
    assert!(updated.changed && updated.meta.fault().is_none());
    Db::open(&table.output).unwrap();
}

#[test]
fn a_meta_of_which_nothing_is_left_can_be_written_anew() {
    let table = Table::filled();
    let file = RawFile::open(&table.source, None).unwrap();
    let lost = file.newest_meta().unwrap();
    let mut bytes = fs::read(&table.source).unwrap();
    bytes[..2 * PAGE].fill(0);
    fs::write(&table.source, bytes).unwrap();
    let change = MetaChange {
        page_size: Some(1024),
        root: Some(lost.root),
        freelist: Some(lost.freelist),
        high_water_mark: Some(lost.high_water_mark),
    };
    assert!(matches!(table.refused(|surgery| surgery.update_meta(0, &change)), Error::NotABoltFile));
    table.done(|surgery| surgery.clone().page_size(1024).update_meta(0, &change));
    assert_eq!(keys(&table.output), 400);
    let wrong = MetaChange { page_size: Some(1000), ..change };
    fs::remove_file(&table.output).unwrap();
    let error = table.refused(|surgery| surgery.clone().page_size(1024).update_meta(0, &wrong));
    assert!(matches!(error, Error::InvalidPageSize { found: 1000 }), "{error}");
}

#[test]
fn a_page_is_copied_with_all_that_it_runs_on_over() {
    let table = Table::new(|db| {
        fill(db, 100, 10);
        db.update(|tx| tx.bucket_mut("b")?.put("large", [9; 5000])).unwrap();
    });
    let file = RawFile::open(&table.source, None).unwrap();
    let large = (2..file.end()).find(|&id| file.header(id).is_ok_and(|it| it.id == id && it.overflow > 3)).unwrap();
    let len = u64::from(file.header(large).unwrap().overflow) + 1;
    let copied = table.done(|surgery| surgery.copy_page(large, 2));
    assert_eq!((copied.pages, copied.freelist_in_doubt), (len, true));
    let (before, after) = (fs::read(&table.source).unwrap(), fs::read(&table.output).unwrap());
    let pages = |bytes: &[u8], id: u64| {
        bytes[usize::try_from(id).unwrap() * PAGE..][..usize::try_from(len).unwrap() * PAGE].to_vec()
    };
    assert_eq!(pages(&after, 2)[..8], 2_u64.to_le_bytes());
    assert_eq!(pages(&after, 2)[8..], pages(&before, large)[8..]);
}

#[test]
fn pages_that_are_not_there_are_not_copied_and_not_cleared() {
    let table = Table::filled();
    let pages = fs::metadata(&table.source).unwrap().len() / PAGE as u64;
    for page in [pages, pages + 1, u64::MAX / PAGE as u64, u64::MAX] {
        for error in [
            table.refused(|surgery| surgery.copy_page(page, 2)),
            table.refused(|surgery| surgery.copy_page(2, page)),
            table.refused(|surgery| surgery.clear_page(page)),
        ] {
            assert!(matches!(error, Error::Corrupt { page: named, .. } if named == page), "{error}");
        }
    }
    assert!(is_refusal(&table.refused(|surgery| surgery.copy_page(3, 3))));
    assert!(is_refusal(&table.refused(|surgery| surgery.update_meta(2, &MetaChange::default()))));
    for page in [0, 1, table.page(PageType::Freelist, 0)] {
        assert!(is_refusal(&table.refused(|surgery| surgery.clear_page(page))), "page {page}");
    }
}

#[test]
fn elements_are_taken_out_and_the_others_stay() {
    let table = Table::filled();
    let leaf = table.page(PageType::Leaf, 10);
    let elements = |file: &Path| -> Vec<Vec<u8>> {
        let file = RawFile::open(file, None).unwrap();
        let page = file.page(leaf).unwrap();
        (0..page.header().count).map(|index| page.leaf_element(index).unwrap().key.into_owned()).collect()
    };
    let before = elements(&table.source);
    for (from, to) in [(0, Some(3)), (4, Some(8)), (5, None), (0, None), (before.len() - 1, Some(before.len()))] {
        let cleared = table.done(|surgery| surgery.clear_page_elements(leaf, from, to));
        let mut expected = before.clone();
        expected.drain(from..to.unwrap_or(before.len()));
        assert_eq!(elements(&table.output), expected, "from {from} to {to:?}");
        assert_eq!(usize::from(cleared.left), expected.len());
        assert_eq!(usize::from(cleared.elements), before.len() - expected.len());
        assert!(!cleared.freelist_in_doubt && !cleared.is_branch);
        if cleared.left > 0 {
            // As bbolt's, it leaves the branch above as it is, whatever that calls the page.
            let problems = Db::open(&table.output).unwrap().check().unwrap();
            let is_named = |problem: &Problem| problem.what.contains("by which its parent names the page");
            assert_eq!(problems.len(), usize::from(from == 0), "{problems:?}");
            assert!(problems.iter().all(is_named), "{problems:?}");
        }
        fs::remove_file(&table.output).unwrap();
    }
    for (from, to) in [(3, Some(3)), (5, Some(3)), (0, Some(before.len() + 1)), (before.len(), None)] {
        assert!(is_refusal(&table.refused(|surgery| surgery.clear_page_elements(leaf, from, to))), "{from} {to:?}");
    }
}

#[test]
fn a_branch_can_be_cleared_and_the_freelist_is_in_doubt_then() {
    let table = Table::filled();
    let branch = table.page(PageType::Branch, 5);
    let cleared = table.done(|surgery| surgery.clear_page_elements(branch, 1, Some(3)));
    assert!(cleared.is_branch && cleared.freelist_in_doubt);
    // All that is wrong with it is that pages are lost; a freelist that is found anew makes up for that.
    let problems = Db::open(&table.output).unwrap().check().unwrap();
    assert!(!problems.is_empty() && problems.iter().all(|problem| problem.what.contains("neither")), "{problems:?}");
    let abandoned = table.folder.path().join("abandoned.db");
    assert_eq!(Surgery::new(&table.output, &abandoned).abandon_freelist().unwrap().metas, [true, true]);
    assert_check_clean(&Db::open(&abandoned).unwrap(), "the file without the lost pages");
}

/// bbolt takes the keys and values of a page whose last elements are cleared for closer together than they are, and here
/// cuts the page by one: what is left then lies outside of it.
#[test]
fn a_page_that_is_cut_keeps_all_that_its_elements_reach() {
    const LARGE: usize = 1980;
    let table = Table::new(|db| {
        db.update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            // By bbolt's rule all stand in one leaf.
            bucket.set_fill(Fill::Percent(0.5));
            for (key, len) in [("a", 1), ("b", LARGE), ("c", 1), ("d", 1)] {
                bucket.put(key, vec![7; len])?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    });
    let file = RawFile::open(&table.source, None).unwrap();
    let page = (2..file.end()).find(|&id| file.header(id).is_ok_and(|it| it.id == id && it.overflow > 0)).unwrap();
    // Header, four elements, the first two keys and values: they reach into the third page. With two elements they need
    // not.
    let end = 16 + 4 * 16 + 2 + 1 + LARGE;
    assert!(end > 2 * PAGE && end - 2 * 16 <= 2 * PAGE, "{end}");
    table.done(|surgery| surgery.clear_page_elements(page, 2, None));
    let db = Options::new().read_only(true).open(&table.output).unwrap();
    let tx = db.begin().unwrap();
    assert_eq!(tx.bucket("b").unwrap().get("b").unwrap(), Some(&[7; LARGE][..]));
    assert_eq!(tx.bucket("b").unwrap().count().unwrap(), 2);
}

#[test]
fn a_damaged_meta_stays_damaged_when_the_freelist_is_abandoned() {
    let table = Table::filled();
    flip(&table.source, PAGE + TXID);
    assert_eq!(table.done(Surgery::abandon_freelist).metas, [true, false]);
    let file = RawFile::open(&table.output, None).unwrap();
    assert!(file.meta(1).unwrap().fault().is_some());
    assert!(!file.newest_meta().unwrap().stores_freelist());
    assert_eq!(keys(&table.output), 400);
}

#[test]
fn a_freelist_is_rebuilt_where_there_is_none() {
    let table = Table::with(Options::new().freelist(FreelistStored::Never), |db| {
        fill(db, 400, 40);
        db.update(|tx| tx.delete_bucket("b")).unwrap();
        fill(db, 10, 40);
    });
    let rebuilt = table.done(Surgery::rebuild_freelist);
    let db = Options::new().read_only(true).pre_load_freelist(true).open(&table.output).unwrap();
    assert!(rebuilt.free_pages > 10);
    assert_eq!(db.stats().free_pages, Some(rebuilt.free_pages));
    assert_check_clean(&db, "the file with its freelist rebuilt");
    drop(db);

    let stored = Table::filled();
    assert!(is_refusal(&stored.refused(Surgery::rebuild_freelist)));
}

#[test]
fn a_file_that_is_there_is_not_replaced() {
    let table = Table::filled();
    fs::write(&table.output, "precious").unwrap();
    for output in [&table.output, &table.source] {
        let error = Surgery::new(&table.source, output).revert_meta_page().unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists));
    }
    assert_eq!(fs::read(&table.output).unwrap(), b"precious");
}

#[test]
fn a_source_that_is_being_written_is_waited_for_and_then_given_up() {
    let table = Table::filled();
    // As another process would hold it.
    let held = fs::File::open(&table.source).unwrap();
    held.lock().unwrap();
    let error = table.refused(|surgery| surgery.clone().timeout(Duration::from_millis(20)).revert_meta_page());
    assert!(matches!(error, Error::LockTimeout { .. }), "{error}");
}

#[test]
fn no_damage_makes_an_operation_panic_or_leave_half_a_copy() {
    let small = SmallFile::new();
    let numbers = odd_numbers(small.pages());
    let (mut done, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let mut bytes = small.sound.clone();
        for _ in 0..=random.below(3) {
            let page = random.below(small.pages());
            let at = page * PAGE + random.below(16) * 8;
            bytes[at..at + 8].copy_from_slice(&numbers[random.below(numbers.len())].to_le_bytes());
        }
        let source = small.write("source.db", &bytes);
        let output = small.folder.path().join("output.db");
        let surgery = Surgery::new(&source, &output);
        let page = random.below(small.pages()) as u64;
        let results = [
            surgery.revert_meta_page().map(drop),
            surgery.copy_page(page, 2 + seed % 8).map(drop),
            surgery.clear_page(page).map(drop),
            surgery.clear_page_elements(page, 1, Some(3)).map(drop),
            surgery.abandon_freelist().map(drop),
            surgery.rebuild_freelist().map(drop),
            surgery.update_meta(page % 2, &MetaChange { root: Some(page), ..MetaChange::default() }).map(drop),
        ];
        // The first that succeeds makes a copy of the source's size; the others may not replace it.
        if results.iter().any(Result::is_ok) {
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
            assert_eq!(fs::metadata(&output).unwrap().len(), bytes.len() as u64);
            fs::remove_file(&output).unwrap();
            done += 1;
        } else {
            refused += 1;
        }
        assert!(fs::read(&source).unwrap() == bytes, "the source was changed");
        assert_eq!(fs::read_dir(small.folder.path()).unwrap().count(), 2);
    }
    assert!(done > 100, "{done} done, {refused} refused: that says little");
}

#[test]
fn a_leaf_that_was_emptied_can_be_moved_and_changed_and_taken_back() {
    let table = Table::filled();
    let entries = keys(&table.source);
    let leaves = table.leaves();
    for cleared in [leaves[0], leaves[1], leaves[leaves.len() - 1]] {
        let before = table.done(|surgery| surgery.clear_page(cleared));
        let left = entries - u64::from(before.elements);
        let first = table.first_key(cleared);
        let reopened = || Db::open(&table.output).unwrap();

        // A change in that leaf which is taken back leaves it empty, and taken apart.
        let db = reopened();
        let mut tx = db.begin_mut().unwrap();
        let savepoint = tx.savepoint();
        tx.bucket_mut("b").unwrap().put(&first, "back").unwrap();
        tx.rollback_to(&savepoint).unwrap();
        tx.commit().unwrap();
        assert_check_clean(&db, "after what was taken back");
        drop(db);
        assert_eq!(keys(&table.output), left);

        fs::remove_file(&table.output).unwrap();
        table.done(|surgery| surgery.clear_page(cleared));
        let db = reopened();
        // Room below, so that all leaves are moved.
        db.update(|tx| tx.create_bucket("large")?.put("k", vec![1; 200_000])).unwrap();
        fill(&db, 1, 41);
        db.update(|tx| tx.delete_bucket("large")).unwrap();
        db.shrink().unwrap();
        assert_check_clean(&db, "after the shrinking");
        db.update(|tx| tx.bucket_mut("b")?.put(&first, "again")).unwrap();
        assert_check_clean(&db, "after another put");
        drop(db);
        fs::remove_file(&table.output).unwrap();
    }
}

#[test]
fn a_leaf_whose_elements_overlap_is_not_written_out_as_if_they_did_not() {
    let table = Table::filled();
    let leaf = usize::try_from(table.leaves()[1]).unwrap();
    let mut bytes = fs::read(&table.source).unwrap();
    let count = usize::from(u16::from_le_bytes(bytes[leaf * PAGE + 10..][..2].try_into().unwrap()));
    let key = |bytes: &[u8], element: usize| {
        let word = |at: usize| u32::from_le_bytes(bytes[element + at..][..4].try_into().unwrap()) as usize;
        (element + word(4), word(8))
    };
    // Each value reaches to the end of the page.
    for element in (0..count).map(|index| leaf * PAGE + 16 + 16 * index) {
        let (start, len) = key(&bytes, element);
        let value = u32::try_from((leaf + 1) * PAGE - start - len).unwrap();
        bytes[element + 12..][..4].copy_from_slice(&value.to_le_bytes());
    }
    let (start, len) = key(&bytes, leaf * PAGE + 16);
    let first = bytes[start..start + len].to_vec();
    fs::write(&table.source, &bytes).unwrap();
    let db = Db::open(&table.source).unwrap();
    let put = db.update(|tx| tx.bucket_mut("b")?.put(&first, "new"));
    assert!(matches!(put, Err(Error::Corrupt { page, .. }) if page == leaf as u64), "{put:?}");
}
