//! The binary called by bbolt's name, beside bbolt's own command.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Ran;
use super::files::{Files, small_files};

/// The binary under bbolt's name.
pub struct Linked(pub PathBuf);

impl Linked {
    pub fn new(folder: &Path) -> Self {
        let (bin, link) = (folder.join("bin"), folder.join("bin/bbolt"));
        fs::create_dir_all(bin).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_boltkv"), &link).unwrap();
        Self(link)
    }

    pub fn run(&self, args: &[OsString]) -> Ran {
        Command::new(&self.0).args(args).stdin(Stdio::null()).output().unwrap().into()
    }
}

/// Both commands, and files to run them on.
pub struct Both {
    pub files: Files,
    pub linked: Linked,
}

/// `None`, said on standard error, where there is no Go.
pub fn both() -> Option<Both> {
    let files = small_files()?;
    let linked = Linked::new(files.folder.path());
    Some(Both { files, linked })
}

impl Both {
    /// Both must print the same to the byte, end with the same code, and call a failure by the same words.
    #[track_caller]
    pub fn same(&self, args: &[OsString]) -> Ran {
        let (theirs, ours) = (self.files.bbolt.run(args), self.linked.run(args));
        Self::compare(args, &theirs, &ours);
        ours
    }

    #[track_caller]
    pub fn compare(args: &[OsString], theirs: &Ran, ours: &Ran) {
        let error = |ran: &Ran| ran.stderr.lines().next().unwrap_or_default().to_owned();
        assert_eq!((ours.code, error(ours)), (theirs.code, error(theirs)), "{args:?}");
        let shown = |ran: &Ran| ran.text().chars().take(2000).collect::<String>();
        assert!(ours.stdout == theirs.stdout, "{args:?}:\n{}\nbut bbolt:\n{}", shown(ours), shown(theirs));
    }

    pub fn file(&self, name: &str) -> OsString {
        self.files.path(name).into()
    }
}
