//! Files of every sort for the tests of the commands on files, and the comparison with what bbolt's own command prints.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use boltkv_storage::{Db, Error, Options};
use tempfile::TempDir;

use super::peer::{Bbolt, Peer, bbolt, peer};
use super::{run, run_with_input};
use crate::args;

/// A folder of files, made by Go's bbolt and by this engine.
pub struct Files {
    pub folder: TempDir,
    /// bbolt's command, to compare with.
    pub bbolt: Bbolt,
}

/// Some of everything; `None`, said on standard error, where there is no Go.
pub fn files() -> Option<Files> {
    let files = small_files()?;
    for kind in GO_MADE.iter().filter(|kind| !SMALL.contains(kind)) {
        peer()?.make(kind, &files.path(kind));
    }
    Some(files)
}

/// Those of [`SMALL`]; otherwise as [`files`].
pub fn small_files() -> Option<Files> {
    let (peer, bbolt) = (peer()?, bbolt()?);
    let files = Files { folder: tempfile::tempdir().unwrap(), bbolt };
    for kind in GO_MADE.iter().filter(|kind| SMALL.contains(kind)) {
        peer.make(kind, &files.path(kind));
    }
    drop(Db::open(files.path("empty")).unwrap());
    drop(Options::new().page_size(16_384).open(files.path("empty of 16 KiB")).unwrap());
    make_odd(&files.path("odd")).unwrap();
    Some(files)
}

/// A file that Go's bbolt made, and one that holds the same because its export was imported.
pub fn made_by_both(peer: &Peer, folder: &Path) -> (PathBuf, PathBuf) {
    let (theirs, ours) = (folder.join("theirs.db"), folder.join("ours.db"));
    peer.make_mixed(&theirs);
    let lines = run(args!["file", "export", &theirs]).done();
    run_with_input(args!["file", "import", &ours], &lines).done();
    (theirs, ours)
}

/// Kinds of files that the Go program makes.
const GO_MADE: [&str; 5] = ["inline", "nested", "overflow", "mixed", "many-free"];
/// Those that are not made in no time are not among them.
pub const SMALL: [&str; 6] = ["inline", "nested", "overflow", "empty", "empty of 16 KiB", "odd"];
/// All files of the folder.
pub const ALL: [&str; 8] = ["inline", "nested", "overflow", "mixed", "many-free", "empty", "empty of 16 KiB", "odd"];

impl Files {
    /// The file of that name.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a command prints about a file must be what bbolt's prints, byte for byte; returns it.
    #[track_caller]
    pub fn same(&self, name: &str, command: &str, args: &[OsString]) -> Vec<u8> {
        let file = self.path(name);
        let line: Vec<OsString> = [command.into(), file.into()].into_iter().chain(args.to_vec()).collect();
        let theirs = self.bbolt.run(&line);
        assert_eq!(theirs.code, Some(0), "bbolt {command} {name} {args:?}: {}", theirs.stderr);
        let ours = run(std::iter::once(&OsString::from("file")).chain(&line)).done();
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).chars().take(2000).collect::<String>();
        assert!(
            ours == theirs.stdout,
            "{command} {name} {args:?}:\n{}\nbut bbolt:\n{}",
            shown(&ours),
            shown(&theirs.stdout)
        );
        ours
    }
}

/// Keys, values and names with every byte and with characters of every sort in them.
fn make_odd(file: &Path) -> Result<(), Error> {
    const TEXTS: [&str; 12] = [
        "plain",
        "two words",
        "größe",
        "日本",
        "e\u{301}",
        "😀",
        "a\u{a0}b",
        "\u{200b}",
        "tab\t",
        "\"quoted\" \\",
        "\u{fffd}",
        "\u{e0001}",
    ];
    Db::open(file)?.update(|tx| {
        let mut bytes = tx.create_bucket("bytes")?;
        (0..=255_u8).try_for_each(|byte| bytes.put([byte], [byte, byte.wrapping_add(1)]))?;
        let mut texts = tx.create_bucket("texts")?;
        TEXTS.iter().try_for_each(|text| texts.put(text, text))?;
        texts.put("cut", b"caf\xc3")?;
        texts.put("nothing", "")?;
        let mut outer = tx.create_bucket("größe")?;
        outer.create_bucket([0, 255])?.put("k", "v")
    })
}

/// A file with one bucket at the top, and so many nested in it, each in the one before.
pub fn make_deep(file: &Path, levels: usize) {
    let name = |level: usize| if level.is_multiple_of(2) { "even" } else { "odd" };
    let db = Options::new().page_size(1024).open(file).unwrap();
    db.update(|tx| {
        tx.create_bucket(name(0))?;
        // From the innermost out: a way in from the top would be longer each time.
        (1..levels).try_for_each(|level| {
            tx.create_bucket(name(level))?;
            tx.move_bucket(name(level - 1), &[], &[name(level)])
        })
    })
    .unwrap();
}
