//! Called by the name `bbolt`, the binary takes that command's arguments, prints its words and ends with its codes, so
//! that scripts go on that were written for it.
//!
//! What a command does is in `boltkv file …`, as always; here is only how bbolt asks for it and how it says what came of
//! it. Nothing here is quietly lost that bbolt would lose: where it spoils a file, this refuses (`docs/file-tools.md`).
//!
//! - `flags`: what a flag is; `arguments`: reading a command line; `look`, `write`, `surgery`: what the commands do
//! - `commands`: all of them, as data, on top of these; `usage`: the help, and `completion`: what shells need of them

mod arguments;
mod commands;
mod completion;
mod flags;
mod look;
mod surgery;
mod usage;
mod write;

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use arguments::Given;
use commands::{Command, Run};

use crate::failure::{Failure, one_line};

/// Whether this is the name by which bbolt's command is called.
pub(crate) fn is_called(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "bbolt")
}

/// What a command line comes to when it is not run to a good end.
enum Stop {
    /// Something to be printed instead.
    Help(String),
    /// The command line cannot be used, or the command has failed.
    Failed(&'static Command, String),
    /// There is no such command.
    Unknown(String),
    /// Whoever read standard output has gone.
    OutputClosed,
}

/// Runs a command line, without the program's name.
pub(crate) fn run(args: &[OsString]) -> ExitCode {
    let (said, code) = match find_and_run(args) {
        Ok(()) | Err(Stop::OutputClosed) => return ExitCode::SUCCESS,
        Err(Stop::Help(text)) => return print(&text),
        // Usage comes with every error, as in bbolt.
        Err(Stop::Failed(command, error)) => (format!("Error: {}\n{}\n", one_line(&error), usage::of(command)), 1),
        Err(Stop::Unknown(word)) => {
            let meant = match completion::like(&word)[..] {
                [] => String::new(),
                ref like => format!("\nDid you mean this?\n\t{}\n\n", like.join("\n\t")),
            };
            let word = super::format::quoted(word.as_bytes());
            (format!("Error: unknown command {word} for \"bbolt\"\n{meant}Run 'bbolt --help' for usage.\n"), 1)
        }
    };
    // If standard error is closed too, the exit code has to do.
    let _ = io::stderr().write_all(said.as_bytes());
    ExitCode::from(code)
}

fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => Failure::stdout(&error).report(),
    }
}

fn find_and_run(args: &[OsString]) -> Result<(), Stop> {
    let (command, rest) = commands::find(args);
    if command.is_root()
        && let Some(stop) = at_the_top(command, rest)
    {
        return Err(stop);
    }
    let failed = |error| Stop::Failed(command, error);
    let given = Given::read(command.flags, rest).map_err(failed)?;
    if given.is("help") || matches!(command.run, Run::Group) {
        return Err(Stop::Help(usage::help(command)));
    }
    command.args.fit(given.args().len()).map_err(failed)?;
    given.has_required(command.flags).map_err(failed)?;
    let done = match command.run {
        Run::Runs(run) => run(&given),
        Run::Completes(shell) => completion::print(shell),
        Run::Group => Ok(()),
    };
    done.map_err(|failure| match failure {
        // No command of bbolt's ends early in peace.
        Failure::OutputClosed | Failure::Signal(_) => Stop::OutputClosed,
        Failure::Said { message, bbolt, .. } => failed(bbolt.unwrap_or(message)),
        Failure::Mistakes(said) => failed(said.join("; ")),
    })
}

/// What the program itself is asked, and not a command of it.
fn at_the_top(root: &'static Command, rest: &[OsString]) -> Option<Stop> {
    let word = rest.first()?.to_string_lossy();
    Some(match &*word {
        "-v" | "--version" => Stop::Help("bbolt version dev\n".into()),
        "help" => {
            let (about, left) = commands::find(&rest[1..]);
            match left.first() {
                Some(topic) if about.is_root() => {
                    let topic = one_line(&topic.to_string_lossy());
                    Stop::Help(format!("Unknown help topic [`{topic}`]\n{}", usage::of(root)))
                }
                _ => Stop::Help(usage::help(about)),
            }
        }
        flag if flag.starts_with('-') => return None,
        unknown => Stop::Unknown(unknown.to_owned()),
    })
}
