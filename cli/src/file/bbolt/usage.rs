//! The help of a command, laid out as bbolt's.

use std::fmt::Write as _;

use super::commands::{COMMANDS, Command, Run};
use super::flags::{Flag, HELP, Kind};

/// What a command is for, and how it is used.
pub(super) fn help(command: &Command) -> String {
    format!("{}\n\n{}", command.about, of(command))
}

/// How a command is used.
pub(super) fn of(command: &Command) -> String {
    let mut text = String::from("Usage:\n");
    let name = ["bbolt"].iter().chain(command.words).copied().collect::<Vec<_>>().join(" ");
    let inner = COMMANDS.iter().filter(|other| other.is_directly_in(command)).collect::<Vec<_>>();
    // Writing to memory does not fail.
    let _ = match command.run {
        Run::Runs(_) => writeln!(text, "  bbolt {} [flags]", command.usage),
        Run::Completes(_) => writeln!(text, "  {name} [flags]"),
        Run::Group => writeln!(text, "  {name} [command]\n\nAvailable Commands:"),
    };
    let width = inner.iter().map(|inner| inner.name().len()).max().unwrap_or(0).max(11);
    for inner in &inner {
        let about = inner.about.lines().next().unwrap_or_default();
        let _ = writeln!(text, "  {:width$} {about}", inner.name());
    }
    text.push_str("\nFlags:\n");
    flags(command, &mut text);
    if matches!(command.run, Run::Group) {
        let _ = write!(text, "\nUse \"{name} [command] --help\" for more information about a command.\n");
    }
    text
}

fn flags(command: &Command, text: &mut String) {
    let about_help = format!("help for {}", command.name());
    let version = Flag::new("version", Kind::Switch, "", "version for bbolt").short('v');
    let mut flags: Vec<(&Flag, &str)> = command.flags.iter().map(|flag| (flag, flag.about)).collect();
    flags.push((&HELP, &about_help));
    if command.is_root() {
        flags.push((&version, version.about));
    }
    flags.sort_by_key(|(flag, _)| flag.name);
    let heads: Vec<String> = flags.iter().map(|(flag, _)| head(flag)).collect();
    let width = heads.iter().map(String::len).max().unwrap_or(0) + 3;
    for (head, (flag, about)) in heads.iter().zip(flags) {
        let default = match flag.kind {
            _ if flag.default.is_empty() => String::new(),
            Kind::Text => format!(" (default \"{}\")", flag.default),
            _ => format!(" (default {})", flag.default),
        };
        let line = format!("{head:width$}{about}{default}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn head(flag: &Flag) -> String {
    let short = flag.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let kind = match flag.kind {
        Kind::Switch => "",
        Kind::Text => " string",
        Kind::List => " strings",
        Kind::Uint => " uint",
        Kind::Uint32 => " uint32",
        Kind::Int => " int",
        Kind::Float => " float",
    };
    format!("  {short}--{}{kind}", flag.name)
}
