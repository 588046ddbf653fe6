//! What the tests of the surgery commands share: files to operate on, and the comparison with what bbolt's makes of them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use boltkv_storage::tools::RawFile;
use boltkv_storage::{Db, Error, Fill, FreelistStored, Options, PageType};
use tempfile::TempDir;

use super::peer::{Bbolt, bbolt};
use super::{Ran, run};

/// A folder with a source, and room for copies.
pub struct Table {
    pub folder: TempDir,
    pub source: PathBuf,
    pub output: PathBuf,
}

impl Table {
    /// A bucket `data` with some hundred entries in leaves below a branch, a value of several pages, and free pages.
    pub fn new() -> Self {
        Self::with(FreelistStored::Always)
    }

    pub fn with(stored: FreelistStored) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (source, output) = (folder.path().join("source.db"), folder.path().join("output.db"));
        let db = Options::new().page_size(4096).freelist(stored).open(&source).unwrap();
        for tx in 0..10 {
            db.update(|it| {
                let mut bucket = it.create_bucket_if_not_exists("data")?;
                (0..200).try_for_each(|key| bucket.put(format!("{:05}", tx * 10_000 + key), [7; 30]))
            })
            .unwrap_or_else(|error: Error| panic!("{error}"));
        }
        db.update(|tx| {
            let mut bucket = tx.bucket_mut("data")?;
            // As bbolt does it: the large value shares a page with those before it.
            bucket.set_fill(Fill::Percent(0.5));
            bucket.put("large", vec![9; 10_000])
        })
        .unwrap();
        Self { folder, source, output }
    }

    /// `boltkv file surgery …` on the source.
    pub fn run(&self, operation: &[&str], flags: &[&str]) -> Ran {
        run(self.line(operation, flags, &self.output))
    }

    fn line(&self, operation: &[&str], flags: &[&str], output: &Path) -> Vec<OsString> {
        let mut line: Vec<OsString> = ["file", "surgery"].iter().chain(operation).map(OsString::from).collect();
        line.extend([self.source.clone().into(), "--output".into(), output.into()]);
        line.extend(flags.iter().map(OsString::from));
        line
    }

    /// An operation must make the same copy, byte for byte, as bbolt's; returns what ours says. `None` where there is no
    /// Go.
    #[track_caller]
    pub fn same(&self, operation: &[&str], flags: &[&str]) -> Option<String> {
        let bbolt = bbolt()?;
        let before = fs::read(&self.source).unwrap();
        let said = self.run(operation, flags).done_text();
        let theirs = self.by_bbolt(&bbolt, operation, flags);
        assert!(fs::read(&self.output).unwrap() == theirs, "{operation:?} {flags:?}: the copies differ");
        assert!(fs::read(&self.source).unwrap() == before, "{operation:?} changed its source");
        fs::remove_file(&self.output).unwrap();
        assert_eq!(fs::read_dir(self.folder.path()).unwrap().count(), 1, "something was left");
        Some(said)
    }

    /// The copy that bbolt makes.
    #[track_caller]
    pub fn by_bbolt(&self, bbolt: &Bbolt, operation: &[&str], flags: &[&str]) -> Vec<u8> {
        let output = self.folder.path().join("theirs.db");
        let ran = bbolt.run(&self.line(operation, flags, &output)[1..]);
        assert_eq!(ran.code, Some(0), "bbolt {operation:?} {flags:?}: {}", ran.stderr);
        let copy = fs::read(&output).unwrap();
        fs::remove_file(output).unwrap();
        copy
    }

    /// An operation must fail with this code, and leave nothing; returns what it says.
    #[track_caller]
    pub fn fails(&self, code: i32, operation: &[&str], flags: &[&str]) -> String {
        let before = fs::read(&self.source).unwrap();
        let ran = self.run(operation, flags);
        assert_eq!((ran.code, ran.stdout.len()), (Some(code), 0), "{}", ran.stderr);
        assert!(fs::read(&self.source).unwrap() == before, "{operation:?} changed its source");
        assert_eq!(fs::read_dir(self.folder.path()).unwrap().count(), 1, "something was left");
        ran.stderr
    }

    /// A page in use, of that type and with that many elements at least.
    pub fn page(&self, page_type: PageType, count: u16) -> (String, u16) {
        let file = RawFile::open(&self.source, None).unwrap();
        let mut headers = (2..file.end()).rev().map(|id| (id, file.header(id).unwrap()));
        let of_type = |(id, header): &(u64, boltkv_storage::tools::RawHeader)| {
            header.id == *id && header.page_type() == page_type && header.count >= count
        };
        let (id, header) = headers.find(of_type).unwrap();
        (id.to_string(), header.count)
    }

    /// The page of the value that runs on over several.
    pub fn long_page(&self) -> (String, u16) {
        let file = RawFile::open(&self.source, None).unwrap();
        let long = |id: &u64| file.header(*id).is_ok_and(|header| header.id == *id && header.overflow > 0);
        let id = (2..file.end()).find(long).unwrap();
        (id.to_string(), file.header(id).unwrap().count)
    }
}

/// Entries of the bucket `data`.
pub fn entries(file: &Path) -> u64 {
    Db::open(file).unwrap().begin().unwrap().bucket("data").unwrap().count().unwrap()
}
