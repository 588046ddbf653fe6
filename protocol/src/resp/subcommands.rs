//! Commands that have commands of their own, such as CLIENT ID.

use super::args::Args;
use super::command::RespCommand;
use super::spec::{Flags, Keys, Spec};

/// A command of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subcommand {
    /// The command that it belongs to.
    pub of: RespCommand,
    /// Its name, in capitals.
    pub name: &'static str,
    /// How many words it has, both names among them; below 0: so many at the least.
    pub arity: i8,
    /// Whether it is for whoever looks after the server.
    pub for_operators: bool,
    /// What it is for, in a few words.
    pub summary: &'static str,
}

/// Why there is no such command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSubcommand {
    /// The command has none of this name.
    Unknown,
    /// It has, which takes another number of words.
    Arity(&'static Subcommand),
}

impl Subcommand {
    /// Whether a request of so many words, both names among them, can be one.
    #[must_use]
    pub fn takes(&self, words: usize) -> bool {
        let arity = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { words >= arity } else { words == arity }
    }

    /// What COMMAND INFO tells of it.
    #[must_use]
    pub const fn flags(&self, of: &Spec) -> Flags {
        if self.for_operators { Flags::ADMIN.and(Flags::NOSCRIPT) } else { of.flags.without(Flags::ADMIN) }
    }

    /// Which of its words are keys.
    #[must_use]
    pub fn keys(&self, of: &Spec) -> Keys {
        const NONE: Keys = Keys { first: 0, last: 0, step: 0 };
        if usize::from(self.arity.unsigned_abs()) > of.keys.first { of.keys } else { NONE }
    }
}

impl Spec {
    /// The commands that it has.
    pub fn subcommands(&self) -> impl Iterator<Item = &'static Subcommand> + Clone + use<> {
        let command = self.command;
        SUBCOMMANDS.iter().filter(move |sub| sub.of == command)
    }

    /// The one of this name, in any letter case.
    #[must_use]
    pub fn subcommand(&self, name: &[u8]) -> Option<&'static Subcommand> {
        self.subcommands().find(|sub| sub.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The one that a request means; `None` where the command has none, or none is named.
    ///
    /// # Errors
    /// There is no such one.
    pub fn subcommand_of(&self, args: &Args) -> Result<Option<&'static Subcommand>, NoSubcommand> {
        let (Some(name), Some(_)) = (args.get(1), self.subcommands().next()) else { return Ok(None) };
        let sub = self.subcommand(name).ok_or(NoSubcommand::Unknown)?;
        if sub.takes(args.len()) { Ok(Some(sub)) } else { Err(NoSubcommand::Arity(sub)) }
    }
}

macro_rules! table {
    ($($of:ident { $($name:literal, $arity:literal, $for_operators:literal, $summary:literal;)+ })+) => {
        /// Every command of a command, by the commands.
        pub const SUBCOMMANDS: &[Subcommand] = &[$($(Subcommand {
            of: RespCommand::$of,
            name: $name,
            arity: $arity,
            for_operators: $for_operators,
            summary: $summary,
        },)+)+];
    };
}

table! {
    Object {
        "ENCODING", 3, false, "how a key's value is kept";
        "FREQ", 3, false, "how often a key is asked for: not counted";
        "IDLETIME", 3, false, "for how long nobody has asked for a key: not counted";
        "REFCOUNT", 3, false, "how many refer to a key's value: one";
        "HELP", 2, false, "these commands";
    }
    Client {
        "GETNAME", 2, false, "what the connection is called";
        "SETNAME", 3, false, "gives the connection a name";
        "SETINFO", 4, false, "says which library the client uses";
        "ID", 2, false, "the connection's number";
        "INFO", 2, false, "what is known of the connection";
        "LIST", -2, true, "what is known of all connections";
        "KILL", -3, true, "ends connections";
        "NO-EVICT", 3, false, "nothing: no connection is ended for the sake of memory";
        "NO-TOUCH", 3, false, "nothing: how often a key is asked for is not counted";
        "REPLY", 3, false, "not there";
        "UNBLOCK", -3, true, "ends the waiting of a connection: none waits";
        "GETREDIR", 2, false, "where what is told of keys goes: nowhere";
        "TRACKING", -3, false, "OFF only: no keys are tracked";
        "TRACKINGINFO", 2, false, "what is told of keys: nothing";
        "CACHING", 3, false, "which keys are tracked: an error, as none are";
        "PAUSE", -3, true, "not there";
        "UNPAUSE", 2, true, "not there";
        "HELP", 2, false, "these commands";
    }
    Command {
        "COUNT", 2, false, "how many commands there are";
        "DOCS", -2, false, "what commands are for";
        "GETKEYS", -3, false, "the keys among the words of a request";
        "INFO", -2, false, "what commands are";
        "LIST", -2, false, "the names of the commands";
        "HELP", 2, false, "these commands";
    }
    Config {
        "GET", -3, false, "settings whose names match";
        "SET", -4, true, "changes the slow log, and takes what is so already; settings are told when the server is started";
        "RESETSTAT", 2, true, "has INFO count anew";
        "REWRITE", 2, true, "not there: the server writes no settings";
        "HELP", 2, false, "these commands";
    }
    Module {
        "LIST", 2, false, "the modules: none";
        "HELP", 2, false, "these commands";
    }
    Acl {
        "WHOAMI", 2, false, "the token that the connection goes by";
        "HELP", 2, false, "these commands";
    }
    Memory {
        "USAGE", -3, false, "how many bytes a key takes";
        "DOCTOR", 2, false, "whether memory is short";
        "STATS", 2, false, "what takes memory";
        "HELP", 2, false, "these commands";
    }
    SlowLog {
        "GET", -2, true, "the newest requests that took long";
        "LEN", 2, true, "how many of them are kept";
        "RESET", 2, true, "forgets them";
        "HELP", 2, false, "these commands";
    }
}

#[cfg(test)]
mod tests {
    use super::super::spec::find;
    use super::*;

    fn named(words: &[&str]) -> Result<Option<&'static str>, NoSubcommand> {
        let args = Args::of(words);
        let sub = find(args.word(0)).unwrap().subcommand_of(&args);
        sub.map(|sub| sub.map(|sub| sub.name))
    }

    #[test]
    fn a_request_means_the_subcommand_that_it_names_with_as_many_words() {
        assert_eq!(named(&["client", "setName", "a"]), Ok(Some("SETNAME")));
        assert_eq!(named(&["command"]), Ok(None));
        assert_eq!(named(&["get", "id"]), Ok(None));
        assert_eq!(named(&["client", "nothing"]), Err(NoSubcommand::Unknown));
        let Err(NoSubcommand::Arity(sub)) = named(&["client", "setname"]) else { panic!("it has a word too few") };
        assert_eq!(sub.name, "SETNAME");
    }

    #[test]
    fn only_what_has_a_key_tells_of_one() {
        let memory = find(b"MEMORY").unwrap();
        let first = |name: &[u8]| memory.subcommand(name).unwrap().keys(memory).first;
        assert_eq!((first(b"usage"), first(b"stats")), (2, 0));
    }
}
