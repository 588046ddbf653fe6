//! What shells need to complete command lines, and what was meant by a command that there is not.

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command as Clap};
use clap_complete::Shell;

use super::commands::{COMMANDS, Command};
use super::flags::{Flag, Kind};
use crate::completion;
use crate::failure::Outcome;

/// Words that differ by so many letters may be meant for each other, as for bbolt's command.
const MOST_LETTERS: usize = 2;

/// Prints it.
pub(super) fn print(shell: Shell) -> Outcome {
    completion::print(shell, in_claps_words(&COMMANDS[0]))
}

/// A command with all that are in it.
fn in_claps_words(command: &'static Command) -> Clap {
    let inner = COMMANDS.iter().filter(|other| other.is_directly_in(command)).map(in_claps_words);
    Clap::new(command.name()).about(command.about).args(command.flags.iter().map(argument)).subcommands(inner)
}

fn argument(flag: &'static Flag) -> Arg {
    let action = if flag.kind == Kind::Switch { ArgAction::SetTrue } else { ArgAction::Set };
    Arg::new(flag.name).long(flag.name).short(Resettable::from(flag.short)).help(flag.about).action(action)
}

/// The commands that `word` may have been meant to be.
pub(super) fn like(word: &str) -> Vec<&'static str> {
    let word = word.to_lowercase();
    let is_like = |name: &&str| name.starts_with(&word) || strsim::levenshtein(&word, name) <= MOST_LETTERS;
    let names = COMMANDS.iter().filter(|command| command.is_directly_in(&COMMANDS[0])).map(Command::name);
    names.filter(is_like).collect()
}
