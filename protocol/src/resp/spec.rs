//! What a command of the Redis dialect is, as far as it can be told without doing it.

use std::collections::HashMap;
use std::sync::OnceLock;

use fnv::FnvBuildHasher;

use super::args::Args;
use super::command::{Group, Kind, RespCommand};
use super::table::RESP_COMMANDS;

/// What COMMAND INFO tells of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flags(u16);

impl Flags {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// It changes something.
    pub const WRITE: Self = Self(1);
    /// It reads something.
    pub const READONLY: Self = Self(2);
    /// It may take room, and is refused where there is none.
    pub const DENYOOM: Self = Self(4);
    /// It takes hardly any time.
    pub const FAST: Self = Self(8);
    /// It is for whoever looks after the server.
    pub const ADMIN: Self = Self(16);
    /// It is not for scripts.
    pub const NOSCRIPT: Self = Self(32);
    /// It may be said by somebody who has not said who he is.
    pub const NO_AUTH: Self = Self(64);

    const NAMES: [(Self, &str); 7] = [
        (Self::WRITE, "write"),
        (Self::READONLY, "readonly"),
        (Self::DENYOOM, "denyoom"),
        (Self::FAST, "fast"),
        (Self::ADMIN, "admin"),
        (Self::NOSCRIPT, "noscript"),
        (Self::NO_AUTH, "no_auth"),
    ];

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// These but for others.
    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Whether all of the others are among these.
    #[must_use]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

/// Which words of a request are keys: the first of them, the last, and the step from one to the next. All 0: none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Keys {
    /// The first; 0 is the command's name.
    pub first: usize,
    /// The last; below 0 it is counted from the end, -1 is the last word.
    pub last: isize,
    /// How far it is from one to the next.
    pub step: usize,
}

impl Keys {
    /// The numbers of the words that are keys, of a request of `len` words.
    pub fn positions(self, len: usize) -> impl Iterator<Item = usize> + Clone {
        let last = if self.last < 0 { len.checked_add_signed(self.last) } else { usize::try_from(self.last).ok() };
        let end = last.map_or(0, |last| (last + 1).min(len));
        let none = self.first == 0;
        (self.first..end).step_by(self.step.max(1)).take(if none { 0 } else { len })
    }
}

/// A command of the Redis dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Which one it is.
    pub command: RespCommand,
    /// Its name, in capitals.
    pub name: &'static str,
    /// How many words it has, its name among them; below 0: so many at the least.
    pub arity: i8,
    /// What becomes of it.
    pub kind: Kind,
    /// What COMMAND INFO tells of it.
    pub flags: Flags,
    /// Which of its words are keys.
    pub keys: Keys,
    /// What it is about.
    pub group: Group,
    /// The version of Redis that had it first.
    pub since: &'static str,
    /// What it is for, in a few words.
    pub summary: &'static str,
}

impl Spec {
    /// Whether a request of so many words, the name among them, can be one.
    #[must_use]
    pub fn takes(&self, words: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { words >= arity } else { words == arity }
    }

    /// The keys among the words of a request.
    pub fn keys_of<'a>(&self, args: &'a Args) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.keys.positions(args.len()).map(|at| args.word(at))
    }
}

/// The longest name, in bytes.
const LONGEST: usize = 16;

/// The command of this name, in any letter case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Spec> {
    static BY_NAME: OnceLock<HashMap<&'static [u8], &'static Spec, FnvBuildHasher>> = OnceLock::new();
    let by_name = BY_NAME.get_or_init(|| RESP_COMMANDS.iter().map(|spec| (spec.name.as_bytes(), spec)).collect());
    let mut capitals = [0; LONGEST];
    let capitals = capitals.get_mut(..name.len())?;
    capitals.copy_from_slice(name);
    capitals.make_ascii_uppercase();
    by_name.get(&*capitals).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case_and_no_other() {
        for spec in RESP_COMMANDS {
            assert!(spec.name.len() <= LONGEST && spec.arity != 0, "{}", spec.name);
            assert_eq!(find(spec.name.to_lowercase().as_bytes()), Some(spec));
            assert_eq!(RESP_COMMANDS[spec.command as usize], *spec, "rows are in the order of the commands");
        }
        for name in ["", "GE", "GETT", "A-NAME-THAT-IS-TOO-LONG", "get "] {
            assert_eq!(find(name.as_bytes()), None);
        }
    }

    #[test]
    fn keys_are_the_words_that_a_row_says() {
        let keys = |words: &[&str]| {
            let args = Args::of(words);
            let spec = find(args.word(0)).unwrap();
            spec.keys_of(&args).map(|key| String::from_utf8(key.to_vec()).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(keys(&["mset", "a", "1", "b", "2"]), ["a", "b"]);
        assert_eq!(keys(&["del", "a", "b"]), ["a", "b"]);
        assert_eq!(keys(&["bitop", "and", "a", "b", "c"]), ["a", "b", "c"]);
        assert_eq!(keys(&["rename", "a", "b"]), ["a", "b"]);
        assert_eq!(keys(&["ping"]), [""; 0]);
        assert_eq!(keys(&["object", "encoding"]), [""; 0]);
    }
}
