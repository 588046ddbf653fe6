//! The file of a server's tokens: a line for each, as `authorized_keys` has one for each key.
//!
//! `NAME SHA256 RIGHTS [EXPIRES]`, separated by blanks; RIGHTS by commas, `-` for none; `#` begins a comment. A blank or a comma
//! in a bucket's name is written `\x20`, `\x2c`. The tokens themselves are not in it. Instead of the SHA-256 of one there may be
//! `cert:` and a name that a client's certificate is for.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use boltkv_server::{Grant, Proof, Right};
use tempfile::NamedTempFile;

use crate::failure::{Failure, Outcome};
use crate::moment;
use crate::permission::folder_of;

/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;
/// The longest name, in bytes.
const LONGEST_NAME: usize = 64;
/// What stands before a certificate's name.
const CERTIFICATE: &str = "cert:";

/// The tokens in a file, and the file as it is.
pub(crate) struct TokensFile {
    path: PathBuf,
    text: String,
    pub(crate) grants: Vec<Grant>,
    /// Its folder, locked: whoever changes a file of tokens in it waits until this one is done.
    lock: Option<File>,
}

impl TokensFile {
    /// Reads a file that is there.
    ///
    /// # Errors
    /// It cannot be read (exit code 3), or a line of it cannot be used (2).
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let unreadable =
            |error: &io::Error| Failure::unreachable(format!("{}: could not read: {error}", path.display()));
        // To open one would wait until somebody writes to it, and to read it again would find nothing.
        if fs::metadata(path).is_ok_and(|it| it.file_type().is_fifo()) {
            return Err(Failure::usage(format!("{}: is a pipe, which cannot be read again", path.display())));
        }
        let mut text = String::new();
        let file = File::open(path).map_err(|error| unreadable(&error))?;
        let len = file.take(LONGEST + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
        if len as u64 > LONGEST {
            return Err(Failure::usage(format!("{}: longer than a file of tokens may be: 1MiB", path.display())));
        }
        let grants =
            parse(&text).map_err(|(line, what)| Failure::usage(format!("{}:{line}: {what}", path.display())))?;
        Ok(Self { path: path.to_owned(), text, grants, lock: None })
    }

    /// Reads a file to change it, while nobody else does; one that is not there has no tokens.
    pub(crate) fn read_to_change(path: &Path) -> Outcome<Self> {
        // Where a link leads, or the link would be replaced, and who reads the file itself would not see the change.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = folder_of(path);
        let locked = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
        let locked = locked
            .map_err(|error| Failure::unreachable(format!("{}: could not lock its folder: {error}", path.display())))?;
        let read = if path.try_exists().is_ok_and(|is_there| !is_there) {
            Self { path: path.to_owned(), text: String::new(), grants: Vec::new(), lock: None }
        } else {
            Self::read(path)?
        };
        Ok(Self { lock: Some(locked), ..read })
    }

    /// Adds one at the end.
    pub(crate) fn add(&mut self, grant: &Grant) -> Outcome {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(&line(grant));
        self.write()
    }

    /// Removes the one of this name.
    pub(crate) fn remove(&mut self, name: &str) -> Outcome {
        let is_it = |line: &&str| words(line).next() == Some(name);
        self.text = self.text.split_inclusive('\n').filter(|line| !is_it(line)).collect();
        self.write()
    }

    /// The file is the old one or the new one, whatever happens.
    fn write(&self) -> Outcome {
        let failed = |error: io::Error| Failure::not_done(format!("{}: could not write: {error}", self.path.display()));
        debug_assert!(self.lock.is_some(), "what was read without the lock may be old");
        let folder = folder_of(&self.path);
        let mut new = NamedTempFile::new_in(folder).map_err(failed)?;
        new.write_all(self.text.as_bytes()).map_err(failed)?;
        if let Ok(old) = fs::metadata(&self.path) {
            keep_owner(new.as_file(), &old)
                .map_err(|why| Failure::not_done(format!("{}: {why}", self.path.display())))?;
            new.as_file().set_permissions(old.permissions()).map_err(failed)?;
        }
        new.as_file().sync_all().map_err(failed)?;
        new.persist(&self.path).map_err(|error| failed(error.error))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }
}

/// The new file is whose the old one is: a server with a user of its own that could not read it would go on letting in whoever
/// was revoked.
fn keep_owner(new: &File, old: &Metadata) -> Result<(), String> {
    let is = new.metadata().map_err(|error| error.to_string())?;
    if (is.uid(), is.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(new, Some(old.uid()), Some(old.gid())).map_err(|error| {
        let (user, group) = (old.uid(), old.gid());
        format!(
            "belongs to user {user} and group {group}, and must go on to: {error}; change it as that user, or as root"
        )
    })
}

/// The words of a line, without its comment.
fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split('#').next().unwrap_or_default().split_whitespace()
}

/// All tokens of a file; an error with the number of its line.
fn parse(text: &str) -> Result<Vec<Grant>, (usize, String)> {
    let (mut grants, mut names, mut proofs) = (Vec::new(), HashSet::new(), HashSet::new());
    for (number, line) in (1..).zip(text.lines()) {
        let words: Vec<_> = words(line).collect();
        if words.is_empty() {
            continue;
        }
        let grant: Grant = parse_line(&words).map_err(|what| (number, what))?;
        if !names.insert(grant.name.clone()) {
            return Err((number, format!("there is a token {} above", grant.name)));
        }
        if !proofs.insert(grant.proof.clone()) {
            return Err((number, format!("{} is the same token or certificate as one above", grant.name)));
        }
        grants.push(grant);
    }
    Ok(grants)
}

fn parse_line(words: &[&str]) -> Result<Grant, String> {
    let (name, proof, rights, expires) = match *words {
        [name, proof, rights] => (name, proof, rights, None),
        [name, proof, rights, expires] => (name, proof, rights, Some(expires)),
        _ => return Err("not NAME SHA256 RIGHTS [EXPIRES]".to_owned()),
    };
    check_name(name)?;
    let expires =
        expires.map(|text| moment::parse(text).map_err(|why| format!("{text} is no time: {why}"))).transpose()?;
    Ok(Grant {
        name: name.to_owned(),
        proof: parse_proof(proof)?,
        rights: parse_rights(rights)?,
        expires: expires.map(|ms| UNIX_EPOCH + Duration::from_millis(ms)),
    })
}

/// Whether a token may be called so.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_usual) {
        return Err(format!("{name:?} is no name: letters, digits and -_.@, at most {LONGEST_NAME} of them"));
    }
    Ok(())
}

fn parse_proof(text: &str) -> Result<Proof, String> {
    match text.strip_prefix(CERTIFICATE) {
        Some(name) => certificate(name).map(Proof::Certificate),
        None => parse_digest(text)
            .map(Proof::Token)
            .ok_or_else(|| "the second word is no SHA-256, which has 64 hexadecimal digits".to_owned()),
    }
}

/// A name that a certificate is for, as the server compares it: of a host in small letters, or a URI.
pub(crate) fn certificate(name: &str) -> Result<String, String> {
    let is_usual = |byte: u8| byte.is_ascii_graphic() && !b"#*".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_usual) {
        return Err(format!("{name:?} is no name that a certificate is for, such as ada.example.org"));
    }
    Ok(if name.contains(':') { name.to_owned() } else { name.to_ascii_lowercase() })
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    // A number may have a sign, a digest not.
    if text.len() != 2 * digest.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(digest)
}

fn parse_rights(text: &str) -> Result<Vec<Right>, String> {
    if text == "-" {
        return Ok(Vec::new());
    }
    text.split(',').map(|right| right.parse().map_err(|why| format!("{right}: {why}"))).collect()
}

fn line(grant: &Grant) -> String {
    let mut line = format!("{} ", grant.name);
    match &grant.proof {
        // Writing into a string cannot fail.
        Proof::Token(sha256) => sha256.iter().for_each(|byte| {
            let _ = write!(line, "{byte:02x}");
        }),
        Proof::Certificate(name) => line.extend([CERTIFICATE, name]),
    }
    let _ = write!(line, " {}", rights(&grant.rights));
    if let Some(expires) = grant.expires {
        let _ = write!(line, " {}", moment::shown(moment::millis(expires)));
    }
    line.push('\n');
    line
}

/// Rights as the file has them.
pub(crate) fn rights(rights: &[Right]) -> String {
    if rights.is_empty() {
        return "-".to_owned();
    }
    let of = |right: &Right| {
        let text = right.to_string();
        let mut quoted = String::with_capacity(text.len());
        for character in text.chars() {
            match character {
                ',' | '#' => {
                    let _ = write!(quoted, "\\x{:02x}", u32::from(character));
                }
                _ if character.is_whitespace() => {
                    let mut bytes = [0; 4];
                    for byte in character.encode_utf8(&mut bytes).bytes() {
                        let _ = write!(quoted, "\\x{byte:02x}");
                    }
                }
                _ => quoted.push(character),
            }
        }
        quoted
    };
    rights.iter().map(of).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(name: &str, of: &[&str]) -> Grant {
        Grant {
            name: name.into(),
            proof: Proof::Token(Grant::digest(name.as_bytes())),
            rights: of.iter().map(|right| right.parse().unwrap()).collect(),
            expires: None,
        }
    }

    #[test]
    fn what_is_written_is_read_back_whatever_the_buckets_are_called() {
        let expires = Some(UNIX_EPOCH + Duration::from_millis(1_767_225_599_999));
        let all = [
            grant("nobody", &[]),
            grant("ada@example.org", &["read", "write:users/eu"]),
            Grant { expires, ..grant("odd", &[r"admin:a\/b/c,d e#f", r"read:\xff\\"]) },
            Grant { proof: Proof::Certificate("spiffe://a/Web".into()), ..grant("web", &["read"]) },
            Grant { expires, proof: Proof::Certificate("ada.example".into()), ..grant("ada", &[]) },
        ];
        let text: String = all.iter().map(line).collect();
        assert_eq!(parse(&text).unwrap(), all, "{text}");
        assert_eq!(text.lines().count(), 5);
        assert_eq!(parse(&text.replace("cert:ada.example", "cert:Ada.Example")).unwrap(), all);
        let commented = text.replace('\n', "  # why\n\n# more\n");
        assert_eq!(parse(&commented).unwrap(), all);
    }

    #[test]
    fn a_line_that_cannot_be_used_is_told_by_its_number() {
        let good = line(&grant("a", &["read"]));
        let digest = good.split(' ').nth(1).unwrap();
        for (bad, why) in [
            ("b".to_owned(), "not NAME"),
            (format!("b {digest} read 2027-01-01T00:00:00Z more"), "not NAME"),
            (format!("b/c {digest} read"), "no name"),
            (format!("b {} read", &digest[1..]), "no SHA-256"),
            (format!("b {} read", digest.replace(|_| true, "é")), "no SHA-256"),
            (format!("b +{} read", &digest[1..]), "no SHA-256"),
            ("b cert: read".to_owned(), "no name that a certificate"),
            ("b cert:*.example read".to_owned(), "no name that a certificate"),
            (format!("b {digest} reads"), "begins with read"),
            (format!("b {digest} read:a//b"), "empty"),
            (format!("b {digest} read tomorrow"), "no time"),
            (format!("a {} read", "0".repeat(64)), "above"),
            (format!("b {digest} read"), "same token"),
        ] {
            let (line, what) = parse(&format!("{good}\n{bad}\n")).unwrap_err();
            assert_eq!(line, 3, "{bad}");
            assert!(what.contains(why), "{bad}: {what}");
        }
    }
}
