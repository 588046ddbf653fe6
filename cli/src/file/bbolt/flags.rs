//! What a flag of a command is.

pub(super) struct Flag {
    pub(super) name: &'static str,
    pub(super) short: Option<char>,
    pub(super) kind: Kind,
    /// As it is shown; empty where it is nothing.
    pub(super) default: &'static str,
    pub(super) about: &'static str,
    pub(super) required: bool,
}

/// What a flag's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Text,
    List,
    Uint,
    Uint32,
    Int,
    Float,
}

impl Flag {
    pub(super) const fn new(name: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Self {
        Self { name, short: None, kind, default, about, required: false }
    }

    pub(super) const fn short(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

pub(super) static HELP: Flag = Flag::new("help", Kind::Switch, "", "").short('h');

/// The flag of this name, of a command that has these.
pub(super) fn named(flags: &'static [Flag], name: &str) -> Option<&'static Flag> {
    flags.iter().chain([&HELP]).find(|flag| flag.name == name)
}

/// The flag of this letter, of a command that has these.
pub(super) fn lettered(flags: &'static [Flag], letter: char) -> Option<&'static Flag> {
    flags.iter().chain([&HELP]).find(|flag| flag.short == Some(letter))
}
