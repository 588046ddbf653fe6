//! Pages read as they lie in a file: what a sound one holds, what a damaged one still tells, and that no number in it leads
//! outside.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

use std::path::Path;
use std::time::Duration;

use crate::common::small_file::{CHECKSUM, MAGIC, PAGE, PAGE_SIZE, SmallFile, VERSION, odd_numbers};
use boltkv_storage::tools::RawFile;
use boltkv_storage::{Db, Error, Fill, Options, PageType, Pgid};

const PAGE_U32: u32 = 1024;

fn raw(file: &Path) -> RawFile {
    RawFile::open(file, None).unwrap()
}

/// Everything that a page has, read; errors are as good as data.
fn read_page(file: &RawFile, id: Pgid) -> Result<(), Error> {
    let page = file.page(id)?;
    for index in 0..page.header().count {
        let _ = page.leaf_element(index).map(|element| element.bucket());
        let _ = page.branch_element(index);
    }
    if let Ok((_, ids)) = page.freelist() {
        ids.for_each(drop);
    }
    let _ = page.meta();
    Ok(())
}

#[test]
fn pages_say_what_a_transaction_says() {
    let small = SmallFile::new();
    let path = small.write("sound.db", &small.sound);
    let db = Options::new().read_only(true).open(&path).unwrap();
    let tx = db.begin().unwrap();
    let file = raw(&path);
    let meta = file.newest_meta().unwrap();
    assert_eq!((meta.txid, meta.page_size, file.page_size()), (tx.id(), PAGE_U32, PAGE_U32));
    assert_eq!((meta.fault().is_none(), meta.checksum), (true, meta.computed_checksum()));
    assert_eq!((file.end(), file.len()), (meta.high_water_mark, small.sound.len() as u64));
    for info in tx.page_infos().unwrap().map(Result::unwrap).filter(|info| info.page_type != PageType::Free) {
        let header = file.header(info.id).unwrap();
        assert_eq!((header.id, header.page_type()), (info.id, info.page_type));
        assert_eq!((header.count, header.overflow), (info.count, info.overflow));
        assert_eq!(file.page(info.id).unwrap().len(), (u64::from(info.overflow) + 1) * u64::from(PAGE_U32));
    }
    let (count, ids) = file.page(meta.freelist).unwrap().freelist().map(|(n, ids)| (n, ids.collect())).unwrap();
    let ids: Vec<Pgid> = Result::<_, Error>::unwrap(ids);
    assert_eq!(ids.len() as u64, count);
    let free = tx.page_infos().unwrap().map(Result::unwrap).filter(|info| info.page_type == PageType::Free);
    assert_eq!(ids, free.map(|info| info.id).collect::<Vec<_>>());
}

#[test]
fn elements_are_those_of_the_bucket() {
    let small = SmallFile::new();
    let path = small.write("sound.db", &small.sound);
    let file = raw(&path);
    let root = file.page(file.newest_meta().unwrap().root).unwrap();
    let inline = root.leaf_element(0).unwrap();
    assert_eq!((&*inline.key, inline.flags, inline.bucket()), (&b"inline"[..], 1, Some((0, 0))));
    let tree = root.leaf_element(1).unwrap();
    let (root_of_tree, sequence) = tree.bucket().unwrap();
    assert_eq!((&*tree.key, sequence), (&b"tree"[..], 7));
    let branch = file.page(root_of_tree).unwrap();
    let mut keys = Vec::new();
    for index in 0..branch.header().count {
        let child = branch.branch_element(index).unwrap();
        let leaf = file.page(child.child).unwrap();
        assert_eq!(leaf.leaf_element(0).unwrap().key, child.key);
        keys.extend((0..leaf.header().count).map(|index| leaf.leaf_element(index).unwrap().key.into_owned()));
    }
    let db = Options::new().read_only(true).open(&path).unwrap();
    let tx = db.begin().unwrap();
    let bucket = tx.bucket("tree").unwrap();
    assert_eq!(keys, bucket.iter().map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>());
}

#[test]
fn a_value_beyond_what_is_read_at_once_is_read_where_it_lies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.db");
    let value: Vec<u8> = (0..5_000_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    Db::open(&path)
        .and_then(|db| {
            db.update(|tx| {
                let mut bucket = tx.create_bucket("b")?;
                // By bbolt's rule both stand in one leaf.
                bucket.set_fill(Fill::Percent(0.5));
                bucket.put("a", &value)?;
                bucket.put("z", "behind it")
            })
        })
        .unwrap();
    let file = raw(&path);
    let (root, _) = file.page(file.newest_meta().unwrap().root).unwrap().leaf_element(0).unwrap().bucket().unwrap();
    let page = file.page(root).unwrap();
    assert!(page.leaf_element(0).unwrap().value == value);
    assert_eq!(&*page.leaf_element(1).unwrap().value, b"behind it");
}

#[test]
fn a_freelist_longer_than_its_count_can_say_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("free.db");
    let db = Options::new().page_size(1024).open(&path).unwrap();
    db.update(|tx| {
        let mut bucket = tx.create_bucket("b")?;
        (0..70_u8).try_for_each(|key| bucket.put([key], vec![0; 1024 * 1000]))
    })
    .and_then(|()| db.update(|tx| tx.delete_bucket("b")))
    .unwrap();
    drop(db);
    let file = raw(&path);
    let page = file.page(file.newest_meta().unwrap().freelist).unwrap();
    let (count, ids) = page.freelist().unwrap();
    assert!(count > 0xFFFF && page.header().count == 0xFFFF, "{count}");
    let ids: Vec<Pgid> = ids.collect::<Result<_, _>>().unwrap();
    assert_eq!(ids.len() as u64, count);
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn the_page_size_is_found_in_what_is_left_of_the_metas() {
    let small = SmallFile::new();
    let spoilt = |spoil: &[usize]| {
        let mut bytes = small.sound.clone();
        for &at in spoil {
            bytes[at] ^= 0xff;
        }
        small.write("spoilt.db", &bytes)
    };
    let newer = small.newer_meta();
    let path = spoilt(&[newer * PAGE + CHECKSUM]);
    let file = raw(&path);
    assert_eq!((file.page_size(), file.newest_meta().unwrap().txid % 2), (PAGE_U32, 1 - newer as u64));
    assert!(matches!(file.meta(newer as u64).unwrap().fault(), Some(Error::ChecksumMismatch)));

    for both in [[CHECKSUM, PAGE + CHECKSUM], [MAGIC, PAGE + VERSION], [PAGE_SIZE, PAGE + CHECKSUM]] {
        let path = spoilt(&both);
        let file = raw(&path);
        assert_eq!((file.page_size(), file.newest_meta()), (PAGE_U32, None));
        assert_eq!(file.end(), file.pages());
        assert_eq!(file.page(3).unwrap().header().id, 3);
    }

    let path = spoilt(&[MAGIC, PAGE + MAGIC]);
    assert!(matches!(RawFile::open(&path, None), Err(Error::NotABoltFile)));
    assert_eq!(RawFile::open(&path, Some(PAGE_U32)).unwrap().page(3).unwrap().header().id, 3);
    assert!(matches!(RawFile::open(&path, Some(1000)), Err(Error::InvalidPageSize { found: 1000 })));
}

#[test]
fn a_file_that_is_cut_is_read_up_to_its_last_whole_page() {
    let small = SmallFile::new();
    for len in (0..PAGE * 3).step_by(100) {
        let path = small.write("cut.db", &small.sound[..len]);
        let Ok(file) = RawFile::open(&path, Some(PAGE_U32)) else { panic!("{len}") };
        assert_eq!(file.pages(), (len / PAGE) as u64);
        for id in 0..4 {
            assert_eq!(read_page(&file, id).is_ok(), id < file.pages(), "page {id} of {len} bytes");
        }
    }
    assert!(raw(&small.write("sound.db", &small.sound)).page(u64::MAX).is_err());
}

/// Each word of each page in turn becomes each of the numbers that break things.
#[test]
fn no_number_in_a_page_leads_outside_of_it() {
    let small = SmallFile::new();
    let mut refused = 0;
    for at in (0..small.pages() * PAGE).step_by(8).filter(|at| at % PAGE < 64) {
        for number in odd_numbers(small.pages()) {
            let mut bytes = small.sound.clone();
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            let Ok(file) = RawFile::open(small.write("odd.db", &bytes), Some(PAGE_U32)) else { continue };
            refused += usize::from(read_page(&file, (at / PAGE) as u64).is_err());
        }
    }
    assert!(refused > 100, "{refused}");
}

#[test]
fn a_lock_is_taken_only_when_it_is_asked_for() {
    let small = SmallFile::new();
    let path = small.write("locked.db", &small.sound);
    let writer = Db::open(&path).unwrap();
    let file = raw(&path);
    assert_eq!(file.header(3).unwrap().id, 3);
    assert!(matches!(file.lock(Duration::ZERO), Err(Error::AlreadyOpen { .. })));
    drop(writer);
    file.lock(Duration::ZERO).unwrap();
    let refused = Options::new().timeout(Duration::ZERO).open(&path);
    assert!(matches!(refused, Err(Error::AlreadyOpen { .. })));
    drop(file);
    Options::new().timeout(Duration::ZERO).open(&path).unwrap();
}

#[test]
fn what_is_no_regular_file_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path(), Path::new("/dev/zero"), &folder.path().join("missing")] {
        assert!(matches!(RawFile::open(path, Some(4096)), Err(Error::Io { .. })), "{}", path.display());
    }
}
