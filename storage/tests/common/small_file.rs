//! A small file to do damage to, and where its parts are.

use super::model::Model;
use super::setup::Setup;
use super::trace::{Change, Trace};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

/// Its page size, in bytes.
pub const PAGE: usize = 1024;

/// Where a meta's fields are in its page: magic number, version, page size, high-water mark, txid, checksum.
pub const MAGIC: usize = 16;
pub const VERSION: usize = 20;
pub const PAGE_SIZE: usize = 24;
pub const HIGH_WATER_MARK: usize = 56;
pub const TXID: usize = 64;
pub const CHECKSUM: usize = 72;

/// A sound file of some twenty pages with everything in it: branches and leaves, nested and inline buckets, a value of
/// several pages, free pages.
pub struct SmallFile {
    pub folder: tempfile::TempDir,
    pub sound: Vec<u8>,
    pub content: Model,
}

impl SmallFile {
    pub fn new() -> Self {
        let folder = super::folder_in_memory();
        let file = folder.path().join("small.db");
        let setup = Setup::with_page_size(1024);
        let trace = Self::trace();
        trace.replay(&file, &setup).unwrap();
        let mut content = Model::default();
        trace.replay_on_model(&mut content);
        let sound = fs::read(&file).unwrap();
        let small = Self { folder, sound, content };
        assert!((12..=32).contains(&small.pages()), "{} pages", small.pages());
        small
    }

    fn trace() -> Trace {
        let path = |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut trace = Trace::default();
        trace.commit([
            Change::Create(path(&["inline"])),
            Change::Put(path(&["inline"]), b"key".to_vec(), b"value".to_vec()),
            Change::Create(path(&["tree"])),
            Change::Create(path(&["tree", "k50 inner"])),
            Change::Create(path(&["tree", "k70 inline"])),
            Change::Sequence(path(&["tree"]), 7),
        ]);
        trace.commit((0..45_u8).map(|n| Change::Put(path(&["tree"]), format!("k{n:02}").into_bytes(), vec![n; 30])));
        trace.commit((0..12_u8).map(|n| Change::Put(path(&["tree", "k50 inner"]), vec![n, n], vec![n; 25])));
        trace.commit([Change::Put(path(&["tree"]), b"large".to_vec(), vec![1; 2 * PAGE])]);
        trace.commit((0..45_u8).step_by(4).map(|n| Change::Delete(path(&["tree"]), format!("k{n:02}").into_bytes())));
        trace
    }

    /// Pages in use: the newer meta's high-water mark.
    pub fn pages(&self) -> usize {
        usize::try_from(self.field(self.newer_meta(), HIGH_WATER_MARK)).unwrap()
    }

    pub fn newer_meta(&self) -> usize {
        usize::from(self.field(1, TXID) > self.field(0, TXID))
    }

    pub fn field(&self, meta: usize, field: usize) -> u64 {
        let at = meta * PAGE + field;
        u64::from_le_bytes(self.sound[at..at + 8].try_into().unwrap())
    }

    /// A file in the folder with the given bytes. Written over in place: emptied first, a file is flushed to the disk by
    /// some file systems, and there are tens of thousands of these.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(&path).unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(bytes.len() as u64).unwrap();
        path
    }
}

/// Makes a meta page's checksum right again.
pub fn reseal(meta: &mut [u8]) {
    let checksum = super::hash(&meta[MAGIC..CHECKSUM]);
    meta[CHECKSUM..CHECKSUM + 8].copy_from_slice(&checksum.to_le_bytes());
}

/// Numbers that break things: the ends of every width, and the file's own page ids.
pub fn odd_numbers(pages: usize) -> Vec<u64> {
    let mut numbers: Vec<u64> = (0..=pages as u64 + 1).collect();
    for bits in [8, 15, 16, 31, 32, 52, 62, 63] {
        numbers.extend([(1 << bits) - 1, 1 << bits]);
    }
    numbers.extend([u64::MAX - 1, u64::MAX, 0xFFFF_0000_0000, 0x0001_0001_0001_0001]);
    numbers
}
