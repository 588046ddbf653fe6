//! `boltkv completion`: what a shell needs to complete a command line.

use std::io::{self, Write as _};

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::failure::{Failure, Outcome};

/// Print what a shell needs to complete commands and options
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv completion bash > /etc/bash_completion.d/boltkv
  boltkv completion zsh > \"${fpath[1]}/_boltkv\"
  boltkv completion fish > ~/.config/fish/completions/boltkv.fish")]
pub(crate) struct Completion {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completion {
    pub(crate) fn run(&self) -> Outcome {
        print(self.shell, crate::Cli::command())
    }
}

/// Prints it for a program, under the name that it has.
pub(crate) fn print(shell: Shell, mut program: clap::Command) -> Outcome {
    let (name, mut script) = (program.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut program, name, &mut script);
    io::stdout().write_all(&script).map_err(|error| Failure::stdout(&error))
}
