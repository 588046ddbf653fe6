//! A journal's folder that the server may not write: it does not start, says where and why, and leaves the file as it is.
//!
//! Permissions mean nothing to root, who runs these tests in a container. There the server is started by `setpriv` as root
//! without any capability, to whom they mean what they mean to everybody else: files and folders are still its own, so that
//! nothing has to be given to another user, who might not reach the test's folder or the binary.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::server::Server;
use crate::common::{Ran, boltkv, journal_of};

/// The folder of a database, of which what is taken is given back when it is dropped, so that it can be removed.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn db(&self) -> PathBuf {
        self.0.path().join("a.db")
    }

    fn journal(&self) -> PathBuf {
        journal_of(&self.db())
    }

    /// A server to which permissions mean something.
    fn serve(&self) -> Command {
        let args = args!["serve", "--listen", "127.0.0.1:0", "--db", self.db()];
        if self.0.path().metadata().unwrap().uid() != 0 {
            return boltkv(args);
        }
        let ours = boltkv(args);
        let mut command = Command::new("setpriv");
        command.args(["--inh-caps=-all", "--bounding-set=-all"]).arg(ours.get_program()).args(ours.get_args());
        for (name, _) in ours.get_envs() {
            command.env_remove(name);
        }
        command
    }

    /// What a server says that does not start; the file is as it was.
    #[track_caller]
    fn refused(&self, more: &[OsString], named: &Path) -> String {
        let before = fs::read(self.db()).unwrap();
        let said = Ran::from(self.serve().args(more).output().unwrap()).failed(3);
        assert!(fs::read(self.db()).unwrap() == before, "the file was changed: {said}");
        assert!(said.contains(named.to_str().unwrap()) && said.contains("Permission denied"), "{said}");
        said
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for folder in [self.0.path().to_owned(), self.journal()] {
            if folder.is_dir() {
                allow(&folder, 0o700);
            }
        }
    }
}

fn allow(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// What may be done to a folder, and what cannot be done there then.
const FORBIDDEN: [(u32, &str); 3] = [
    (0o500, "could not write in the journal's folder"),
    (0o600, "could not write in the journal's folder"),
    (0o000, "could not open the journal's folder"),
];

// Promises: ops-journal-place.
#[test]
#[boltkv_needs::program("setpriv")]
fn a_folder_that_may_not_be_written_is_named_with_what_to_do_where_no_records_wait() {
    let place = Place::new();
    let server = Server::start(&place.db());
    assert_eq!(server.text("SET k v\n"), "OK\n");
    server.stop().done();
    let [elsewhere, aside] = ["elsewhere", "aside"].map(|name| place.0.path().join(name));
    for (mode, failed) in FORBIDDEN {
        allow(&place.journal(), mode);
        // Elsewhere, or without one, the server looks into it, too: to say so would lead nowhere.
        for more in
            [args!["--journal=on"], args!["--journal=off"], [format!("--journal={}", elsewhere.display()).into()]]
        {
            let said = place.refused(&more, &place.journal());
            assert!(said.contains(failed) && said.contains("let this process write in it"), "{more:?}: {said}");
            assert!(said.contains("or move it aside") && !said.contains("--journal off"), "{more:?}: {said}");
        }
        fs::rename(place.journal(), &aside).unwrap();
        let server = Server::spawn(&mut place.serve());
        assert_eq!(server.text("GET k\nSET k v\n"), "v\nOK\n");
        assert_eq!(server.stop().code, Some(0));
        allow(&aside, 0o700);
        fs::remove_dir_all(&aside).unwrap();
    }

    // Nor can one be made where nothing may be; and then it may be elsewhere.
    fs::remove_dir_all(place.journal()).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    allow(place.0.path(), 0o500);
    let said = place.refused(&args!["--journal=on"], &place.journal());
    assert!(said.contains("could not make the journal's folder"), "{said}");
    assert!(said.contains("--journal DIR") && said.contains("--journal off"), "{said}");
    for way in [args!["--journal", "off"], args!["--journal", &elsewhere]] {
        let server = Server::spawn(place.serve().args(way));
        assert_eq!(server.text("GET k\nSET k v\n"), "v\nOK\n");
        assert_eq!(server.stop().code, Some(0));
    }
    // That one may not be written either.
    allow(&elsewhere, 0o500);
    let said = place.refused(&args!["--journal", &elsewhere], &elsewhere);
    assert!(said.contains("could not write in") && said.contains("--journal DIR keeps it elsewhere"), "{said}");
    allow(&elsewhere, 0o700);
    assert!(!place.journal().exists());
}

// Promises: ops-journal-killed, ops-journal-place.
#[test]
#[boltkv_needs::program("setpriv")]
fn where_records_wait_in_it_it_is_neither_left_out_nor_begun_elsewhere() {
    let place = Place::new();
    Server::start(&place.db()).stop().done();
    let server = Server::start(&place.db());
    assert_eq!(server.text("SET k acknowledged\n"), "OK\n");
    server.kill();
    let needed = |said: &str| {
        assert!(said.contains("the journal has what the file lacks"), "{said}");
        assert!(said.contains("mend what is said, and start again"), "{said}");
        assert!(!said.contains("--journal off") && !said.contains("--discard-journal"), "{said}");
    };
    for (mode, failed) in FORBIDDEN {
        allow(&place.journal(), mode);
        let said = place.refused(&[], &place.journal());
        assert!(said.contains(failed), "{said}");
        needed(&said);
    }
    allow(&place.journal(), 0o700);

    // The folder may be written, and what is in it not.
    let segments: Vec<_> = fs::read_dir(place.journal()).unwrap().map(|segment| segment.unwrap().path()).collect();
    for segment in &segments {
        allow(segment, 0o400);
    }
    let said = place.refused(&[], &place.journal());
    assert!(said.contains("could not open") && said.contains("/segment-"), "{said}");
    needed(&said);
    for segment in &segments {
        allow(segment, 0o600);
    }

    // It was mended, and everything is there.
    let server = Server::spawn(&mut place.serve());
    assert!(server.ready.contains("1 transaction done again"), "{}", server.ready);
    assert_eq!(server.text("GET k\n"), "acknowledged\n");
    assert_eq!(server.stop().code, Some(0));
}

#[test]
#[boltkv_needs::program("setpriv")]
fn a_file_that_may_be_read_and_not_written_is_served_by_read_only_and_that_is_said() {
    let place = Place::new();
    let server = Server::start(&place.db());
    assert_eq!(server.text("SET k v\n"), "OK\n");
    server.stop().done();
    allow(&place.db(), 0o444);
    let said = place.refused(&[], &place.db());
    assert!(said.contains("and the file is of user") && said.ends_with("; --read-only serves it as it is\n"), "{said}");
    let server = Server::spawn(place.serve().arg("--read-only"));
    assert_eq!(server.text("GET k\n"), "v\n");
    assert_eq!(server.stop().code, Some(0));
    // What may not be read either is not served so.
    allow(&place.db(), 0o000);
    for more in [&args![][..], &args!["--read-only"]] {
        let said = Ran::from(place.serve().args(more).output().unwrap()).failed(3);
        assert!(said.contains("Permission denied") && !said.contains("--read-only"), "{said}");
    }
}

/// Holds for whoever runs it, root with all that root may included.
#[test]
fn a_file_in_the_folders_place_is_no_folder_where_records_wait_elsewhere() {
    let place = Place::new();
    let server = Server::start(&place.db());
    assert_eq!(server.text("SET k acknowledged\n"), "OK\n");
    server.kill();
    let aside = place.0.path().join("aside");
    fs::rename(place.journal(), &aside).unwrap();
    fs::write(place.journal(), "no folder").unwrap();
    let before = fs::read(place.db()).unwrap();
    let said = Ran::from(place.serve().output().unwrap()).failed(3);
    assert!(
        said.contains("could not open the journal's folder ") && said.contains("a.db-journal: Not a dir"),
        "{said}"
    );
    assert!(said.contains("the journal has what the file lacks") && !said.contains("--journal off"), "{said}");
    assert!(fs::read(place.db()).unwrap() == before, "the file was changed: {said}");
    fs::remove_file(place.journal()).unwrap();
    fs::rename(&aside, place.journal()).unwrap();
    assert_eq!(Server::start(&place.db()).text("GET k\n"), "acknowledged\n");
}
