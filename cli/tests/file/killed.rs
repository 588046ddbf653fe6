//! What a killed process leaves: a file, and its journal with transactions that only it has.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use boltkv_storage::tools::FileJournal;
use boltkv_storage::{Db, JournalOptions, Options};

use crate::common::{Ran, run_with_input};

/// The file, with one key in it, and the journal, with another one.
pub(crate) struct Killed(pub(crate) tempfile::TempDir);

impl Killed {
    pub(crate) fn new() -> Self {
        Self::after(|db| db.update(|tx| tx.create_bucket("b2")?.create_bucket("in")?.put("deep", "3")).unwrap())
    }

    /// The journal's last transactions are these.
    pub(crate) fn after(last: impl Fn(&Db)) -> Self {
        let (live, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = live.path().join("app.db");
        let db = Options::new().journal(JournalOptions::new().checkpoint_size(256 << 10)).open(&file).unwrap();
        db.update(|tx| tx.create_bucket("b")?.put("old", "1")).unwrap();
        db.checkpoint().unwrap();
        db.update(|tx| tx.bucket_mut("b")?.put("new", "2")).unwrap();
        last(&db);
        // A killed process leaves what a copy of both holds: nothing else outlasts it.
        copy(live.path(), left.path());
        Self(left)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("app.db")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Runs a command line: `FILE`, `OUT`, and so on stand for paths in the folder.
    pub(crate) fn run(&self, line: &str) -> Ran {
        let args = line.split(' ').map(|word| match word {
            "FILE" => self.file().into(),
            "OUT" => self.path("out.db").into(),
            "OTHER" => self.path("other.db").into(),
            word => OsString::from(word),
        });
        run_with_input(args, b"{\"path\":[\"Yg==\"],\"key\":\"bmV3\",\"value\":\"bmV3\"}\n")
    }

    /// The bytes of everything that was left.
    pub(crate) fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let journal = fs::read_dir(self.path("app.db-journal")).unwrap().map(|entry| entry.unwrap().path());
        let mut all: Vec<_> =
            journal.chain([self.file()]).map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        all.sort();
        all
    }

    /// Damages the newest record but one: that it was synced, the newest says.
    pub(crate) fn damage_the_second_record(&self) {
        self.damage_from_the_end(2);
    }

    pub(crate) fn damage_from_the_end(&self, which: usize) {
        let file = FileJournal::find(self.file(), None).unwrap().unwrap();
        let mut records = Vec::new();
        for segment in file.segments() {
            file.entries(segment.number, |entry| -> boltkv_storage::Result<()> {
                records.push((segment.file.clone(), entry.offset(), entry.txid()));
                Ok(())
            })
            .unwrap();
        }
        let (name, offset, _) = &records[records.len() - which];
        let segment = fs::File::options().write(true).open(self.path("app.db-journal").join(name)).unwrap();
        segment.write_all_at(b"damage", offset + 80).unwrap();
    }
}

/// Copies the file and its journal to another folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::copy(from.join("app.db"), to.join("app.db")).unwrap();
    fs::create_dir(to.join("app.db-journal")).unwrap();
    for entry in fs::read_dir(from.join("app.db-journal")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join("app.db-journal").join(entry.file_name())).unwrap();
    }
}
