//! What is said of a command line that cannot be used: clap's words, with the way on for what hands type that know another
//! program, and the usage as the help prints it. clap's own counts what the environment sets as typed.
//!
//! `words` has what other programs say.

mod words;

use std::env;
use std::error::Error as _;
use std::ffi::OsString;
use std::iter;
use std::num::ParseIntError;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use self::words::{COMMANDS, OF_FILES, OPTIONS, PHRASES};
use crate::arguments::{BELOW_ZERO, why_no_value};
use crate::shell::quoted_for_shell;

/// The error of a command line, without the program's name, with what helps.
pub(crate) fn with_tips(mut error: Error, program: &mut Command, args: &[OsString]) -> Error {
    program.build();
    let asked = asked(program, args);
    match error.kind() {
        ErrorKind::DisplayHelp => return of_host(program, asked, args).unwrap_or(error),
        ErrorKind::ValueValidation => return of_value(error, asked, args),
        ErrorKind::UnknownArgument => {
            let word = word(&error, ContextKind::InvalidArg);
            if let Some(of_value_itself) = word.and_then(|word| of_negative(program, asked, &word, args)) {
                return of_value(of_value_itself, asked, args);
            }
        }
        _ => {}
    }
    if error.get(ContextKind::Usage).is_some() {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(asked.clone().render_usage()));
    }
    leave_out_what_removes(&mut error);
    let tips = match error.kind() {
        ErrorKind::InvalidSubcommand => word(&error, ContextKind::InvalidSubcommand)
            .map(|word| of_phrase(args).map_or_else(|| of_command(program, asked, &word), |tip| vec![tip])),
        ErrorKind::UnknownArgument => {
            // clap takes whatever begins with a dash for a value that was meant.
            error.remove(ContextKind::Suggested);
            let word = word(&error, ContextKind::InvalidArg);
            if word.as_ref().is_some_and(|word| is_known(program, word)) {
                error.remove(ContextKind::SuggestedArg);
            }
            word.map(|word| of_unknown(program, asked, &word, args))
        }
        ErrorKind::MissingRequiredArgument if asked.get_name() == "restore" => {
            let alone = "a backup alone needs no restore: stop the server, move file and journal aside, and copy it to the file's place";
            Some(vec![alone.to_owned()])
        }
        _ => None,
    };
    if let Some(tips) = tips.filter(|tips| !tips.is_empty()) {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        let tips = tips.into_iter().map(StyledStr::from).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

/// For who knows -h as the option that names a host: what it says of this program is the help.
fn of_host(program: &Command, asked: &Command, args: &[OsString]) -> Option<Error> {
    let at = args.iter().position(|arg| arg == "-h")?;
    let host = args.get(at + 1)?.to_str().filter(|host| !host.starts_with('-'))?;
    let asks_a_server = asked.get_name() == program.get_name() || option(asked, "--addr").is_some();
    if !asks_a_server || asked.find_subcommand(host).is_some() {
        return None;
    }
    let mut error = Error::new(ErrorKind::UnknownArgument).with_cmd(asked);
    let tip = "--addr HOST:PORT, or BOLTKV_ADDR, says where the server is; -h, with nothing behind it, prints the help";
    error.insert(ContextKind::InvalidArg, ContextValue::String(format!("-h {host}")));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error.insert(ContextKind::Usage, ContextValue::StyledStr(asked.clone().render_usage()));
    Some(error)
}

/// For a number below zero, which clap takes for an option: what is said of it as the value that it is meant to be.
fn of_negative(program: &Command, asked: &Command, word: &str, args: &[OsString]) -> Option<Error> {
    if !is_negative_number(word) {
        return None;
    }
    let at = args.iter().position(|arg| arg.to_str().is_some_and(|arg| arg.starts_with(word)))?;
    let (before, value, behind) = (args.get(..at)?, args.get(at)?, args.get(at + 1..)?);
    let meant = match before.split_last() {
        Some((name, before)) if name.to_str().and_then(|name| option(asked, name)).is_some_and(takes_value) => {
            let joined = [name.as_os_str(), "=".as_ref(), value].into_iter().collect();
            [before, &[joined], behind].concat()
        }
        _ => [before, &["--".into(), value.clone()], behind].concat(),
    };
    let name = OsString::from(program.get_name());
    let error = program.clone().try_get_matches_from(iter::once(name).chain(meant)).err()?;
    (error.kind() == ErrorKind::ValueValidation).then_some(error)
}

fn is_negative_number(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|number| number.starts_with(|first: char| first.is_ascii_digit()))
}

/// For a value that cannot be used: where it comes from, and what of a number is wrong.
fn of_value(mut error: Error, asked: &Command, args: &[OsString]) -> Error {
    let named = |kind| word(&error, kind);
    let (Some(argument), Some(value)) = (named(ContextKind::InvalidArg), named(ContextKind::InvalidValue)) else {
        return error;
    };
    let place = variable_of(asked, &argument, &value, args).unwrap_or(argument);
    if let Some(source) = error.source().filter(|source| source.is::<ParseIntError>()) {
        let is_negative = value.parse().is_ok_and(|number: i64| number < 0);
        let why = if is_negative { BELOW_ZERO.to_owned() } else { why_no_value(source) };
        let said = format!("invalid value '{value}' for '{place}': {why}");
        return Error::raw(ErrorKind::ValueValidation, format!("{said}\n\nFor more information, try '--help'.\n"));
    }
    error.insert(ContextKind::InvalidArg, ContextValue::String(place));
    error
}

/// The variable that has given an argument its value.
fn variable_of(asked: &Command, argument: &str, value: &str, args: &[OsString]) -> Option<String> {
    let argument = asked.get_arguments().find(|known| known.to_string() == argument)?;
    let name = argument.get_env()?.to_str()?;
    let mut typed = args.iter().filter_map(|arg| option(asked, name_of(arg.to_str()?)));
    let is_from_it = env::var_os(name).is_some_and(|set| set == value);
    (is_from_it && typed.all(|other| other.get_id() != argument.get_id())).then(|| name.to_owned())
}

/// For an argument that is not known.
fn of_unknown(program: &Command, asked: &Command, word: &str, args: &[OsString]) -> Vec<String> {
    let phrase = of_phrase(args).filter(|_| !word.starts_with('-'));
    let mut tips = phrase.map_or_else(|| before_the_command(program, asked, args, word), |tip| vec![tip]);
    if tips.is_empty() {
        tips = of_argument(asked, word);
    }
    if tips.is_empty() {
        tips.extend(meant_as_value(asked, word, args));
    }
    tips
}

/// For the first words of a line.
fn of_phrase(args: &[OsString]) -> Option<String> {
    let words: Vec<_> = args.iter().take(2).filter_map(|arg| arg.to_str()).map(str::to_lowercase).collect();
    called(&PHRASES, &words.join(" ")).next()
}

/// For a name that begins with a dash, such as a file's: several letters after a single one are no option, nor need be those
/// after two where any bytes are a value. A number is not meant where it is not taken.
fn meant_as_value(asked: &Command, word: &str, args: &[OsString]) -> Option<String> {
    let typed: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let is_number = is_negative_number(word);
    let is_value =
        |positional: &Arg| positional.get_value_names().is_some_and(|names| names.iter().any(|name| name == "VALUE"));
    let may_be_any = asked.get_positionals().any(is_value);
    let is_meant =
        |arg: &&str| arg.starts_with(word) && (is_number || arg.len() > 2) && (may_be_any || !arg.starts_with("--"));
    let at = typed.iter().position(|arg| is_meant(arg) && arg.starts_with('-'))?;
    let (before, name) = (typed.get(at.checked_sub(1)?)?, typed.get(at)?);
    let is_its_value = option(asked, before).is_some_and(takes_value);
    if is_number && !is_its_value {
        return None;
    }
    let name = quoted_for_shell(name);
    Some(if is_its_value {
        format!("a value that begins with a dash stands behind `=`: {before}={name}")
    } else {
        format!("what begins with a dash and is no option comes after `--`: -- {name}")
    })
}

/// For an option that stands where the command should.
fn before_the_command(program: &Command, asked: &Command, args: &[OsString], word: &str) -> Vec<String> {
    let (command, name) = (meant(program, args), name_of(word));
    match (option(command, name), command.get_bin_name()) {
        _ if std::ptr::eq(command, asked) => Vec::new(),
        (Some(option), Some(typed)) => {
            let value = if takes_value(option) { " …" } else { "" };
            vec![format!("{name} goes behind the command: {typed} {name}{value}")]
        }
        _ => of_argument(command, word),
    }
}

/// As [`asked`], also past options, and what may be their values.
fn meant<'a>(program: &'a Command, args: &[OsString]) -> &'a Command {
    let (mut command, mut is_behind_option) = (program, false);
    for arg in args {
        let is_option = arg.as_encoded_bytes().starts_with(b"-");
        match command.find_subcommand(arg) {
            Some(inner) => command = inner,
            None if is_option || is_behind_option => {}
            None => break,
        }
        is_behind_option = is_option;
    }
    command
}

/// The option of this name.
fn option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|argument| {
        argument.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long))
            || argument.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
    })
}

fn takes_value(option: &Arg) -> bool {
    option.get_action().takes_values()
}

/// Whether a command has an option of this name: then it is no misspelt other one.
fn is_known(command: &Command, word: &str) -> bool {
    option(command, name_of(word)).is_some() || command.get_subcommands().any(|inner| is_known(inner, word))
}

/// An option without the value that may stand behind it.
fn name_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(name, _)| name)
}

/// Nobody is led to what removes something because his word has some of its letters.
fn leave_out_what_removes(error: &mut Error) {
    let Some(ContextValue::Strings(similar)) = error.get(ContextKind::SuggestedSubcommand) else { return };
    if word(error, ContextKind::InvalidSubcommand).is_some_and(|word| word.starts_with("del")) {
        return;
    }
    let left: Vec<_> = similar.iter().filter(|word| !word.starts_with("del")).cloned().collect();
    error.remove(ContextKind::SuggestedSubcommand);
    if !left.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(left));
    }
}

/// The command that the line is about, as far as its words name one.
fn asked<'a>(program: &'a Command, args: &[OsString]) -> &'a Command {
    let mut command = program;
    for arg in args {
        match command.find_subcommand(arg) {
            Some(inner) => command = inner,
            None => break,
        }
    }
    command
}

fn word(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(word) => Some(word.clone()),
        _ => None,
    }
}

/// For a word that is no command of `asked`.
fn of_command(program: &Command, asked: &Command, word: &str) -> Vec<String> {
    let lower = word.to_lowercase();
    let mut tips = Vec::new();
    if lower != word && asked.find_subcommand(&lower).is_some() {
        tips.push(format!("commands are written in small letters: {lower}"));
    }
    if asked.get_name() == program.get_name() {
        tips.extend(called(&COMMANDS, &lower));
        if tips.is_empty() || matches!(&*lower, "keys" | "stats" | "info") {
            let of_files = program.find_subcommand("file").and_then(|file| file.find_subcommand(&lower));
            tips.extend(of_files.map(|file| format!("`{}` does this with a file", typed(file))));
        }
    } else if asked.get_name() == "file" {
        tips.extend(called(&OF_FILES, &lower));
    }
    tips
}

/// How a command is typed, as short as it can be.
fn typed(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string().replace("[OPTIONS] ", "");
    usage.trim_start_matches("Usage: ").replace(['<', '>'], "")
}

/// What helps who knows it by this word.
fn called(tips: &[(&[&str], &str)], word: &str) -> impl Iterator<Item = String> {
    tips.iter().filter(move |(words, _)| words.contains(&word)).map(|(_, tip)| (*tip).to_owned())
}

/// For a word that is no argument of `asked`.
fn of_argument(asked: &Command, word: &str) -> Vec<String> {
    let name = name_of(word);
    let takes = |id: &str| asked.get_arguments().any(|argument| argument.get_id() == id);
    if !name.starts_with('-') {
        let tip = match (asked.get_name(), &*name.to_lowercase()) {
            ("serve", _) => "--db FILE names the file to serve; one with blanks in its name is put in quotes",
            ("set", "ex" | "px") => "--ttl 10s says after which time the key is gone",
            ("set", "nx") => "--if-absent sets only a key that is not there",
            ("set", "xx") => "--if-present sets only a key that is there",
            ("set", _) => "a value with blanks in it is one argument: put it in quotes",
            _ if takes("output") => "--output FILE says where to write",
            _ if takes("input") => "--input FILE says what to read",
            _ => return Vec::new(),
        };
        return vec![tip.to_owned()];
    }
    let usage = typed(asked);
    if matches!(name, "--db" | "--file" | "--path" | "-f")
        && usage.starts_with("boltkv file ")
        && usage.contains(" FILE")
    {
        return vec![format!("the file stands without an option: {usage}")];
    }
    if matches!(name, "-b" | "--bucket") {
        return of_bucket(asked).into_iter().collect();
    }
    let known = OPTIONS.iter().find(|(words, ours, _)| words.contains(&name) && takes(ours));
    known.map(|(.., tip)| (*tip).to_owned()).into_iter().collect()
}

/// For who names a bucket by an option that is not there.
fn of_bucket(asked: &Command) -> Option<String> {
    let usage = typed(asked);
    if usage.contains(" PATH") || usage.contains(" BUCKET") {
        return Some(format!("the bucket stands without an option: {usage}"));
    }
    let is_export = asked.get_name() == "export";
    is_export.then(|| "a file is written with all its buckets; `boltkv export` takes --bucket, of a server".into())
}
