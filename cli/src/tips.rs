//! What is said of a command line that cannot be used: clap's words, with the way on for what hands type that know another
//! program, and the usage as the help prints it. clap's own counts what the environment sets as typed.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use crate::shell::quoted_for_shell;

/// What other programs call a command, and how to go on from it.
const COMMANDS: [(&[&str], &str); 28] = [
    (&["rm", "remove", "unset"], "`boltkv delete KEY` removes a key, `boltkv bucket delete PATH` a bucket"),
    (
        &["ls", "list", "keys", "range", "iterate"],
        "`boltkv scan` prints the entries of a bucket, with --keys-only the keys, `boltkv bucket list` the buckets",
    ),
    (&["count", "dbsize", "size"], "`boltkv scan --count` counts the entries of a bucket"),
    (&["exists", "has"], "`boltkv get KEY` ends with exit code 1 where there is no such key"),
    (&["mkbucket", "create"], "`boltkv bucket create PATH` makes a bucket"),
    (&["version"], "`boltkv --version` prints the version"),
    (&["snapshot", "save", "bgsave"], "`boltkv backup FILE` backs up the file of a running server"),
    (&["defrag"], "`boltkv shrink` makes the file of a running server smaller"),
    (&["mget"], "`boltkv get KEY…` takes several keys"),
    (&["mset", "multi", "exec"], "`boltkv txn` does several requests as one transaction"),
    (
        &["hset", "hget", "hgetall", "hdel", "hkeys", "hlen", "hincrby"],
        "a hash is a bucket: `boltkv bucket create default/HASH`, then `set`, `get`, `scan` with --bucket default/HASH",
    ),
    (&["flushall", "flushdb"], "`boltkv delete-range --all` removes the keys of a bucket"),
    (&["setex", "psetex", "lease"], "`boltkv set KEY VALUE --ttl 10s` puts what is gone after a time"),
    (
        &["info", "endpoint"],
        "`boltkv stats` prints the server's figures, `boltkv health` says whether it does its work",
    ),
    (&["decr", "decrby", "incrby"], "`boltkv incr KEY -1` takes away, `boltkv incr KEY 5` adds"),
    (&["select", "use"], "`--bucket PATH` says which bucket, with every command; of Redis' databases 0 is `default`"),
    (&["auth", "user", "role", "acl"], "`boltkv token` makes, lists and revokes tokens, by which clients are let in"),
    (
        &["rename", "move"],
        "`boltkv bucket move` renames a bucket; of a key, `boltkv txn` sets the new and deletes the old one",
    ),
    (&["stop", "shutdown", "quit"], "a server ends in peace by SIGTERM, or Ctrl-C where it runs"),
    (&["server", "start", "run"], "`boltkv serve --db FILE` serves a file"),
    (&["monitor", "subscribe"], "`boltkv watch` prints what is committed, as it comes"),
    (
        &["compaction", "vacuum", "bgrewriteaof"],
        "`boltkv shrink` makes the file of a running server smaller, `boltkv file compact` writes a file anew",
    ),
    (&["open"], "`boltkv serve --db FILE` serves a file, `boltkv file tree FILE` shows what is in it"),
    (
        &["stat"],
        "`boltkv stats` prints the server's figures, `boltkv bucket stat PATH` a bucket's, `boltkv file stats FILE` a file's",
    ),
    (
        &["getset", "getdel", "getex", "append", "strlen", "type"],
        "clients of Redis do this, redis-cli for one, on the same port; here are `get`, `set`, `delete` and `txn`",
    ),
    (
        &["lock"],
        "`boltkv set KEY VALUE --if-absent --ttl 30s` takes a lock, `boltkv delete KEY --if-equals VALUE` gives it back",
    ),
    (
        &["member", "elect", "alarm"],
        "there is none: one server serves a file, and `boltkv health` says whether it does its work",
    ),
    (&["cli", "shell", "repl"], "each command does one thing; redis-cli and netcat talk to a server, too"),
];

/// What other programs would do with a file.
const OF_FILES: [(&[&str], &str); 4] = [
    (
        &["ls", "list", "scan", "range", "iterate"],
        "`boltkv file buckets FILE` prints the buckets, `boltkv file keys FILE BUCKET` keys, `boltkv file export FILE` everything",
    ),
    (
        &["set", "put", "incr", "delete", "del", "rm", "remove", "bucket", "create", "mkbucket"],
        "a file is written by who serves it: `boltkv serve --db FILE`, then `boltkv set` and the like; `boltkv file import FILE` \
         puts the lines of an export into it",
    ),
    (&["count", "size"], "`boltkv file stats FILE` counts keys, pages and bytes"),
    (&["shrink", "defrag", "vacuum"], "`boltkv file compact` writes what is in a file into a smaller one"),
];

/// What other programs call an option, the option of ours that has to be there, and how to go on from it.
const OPTIONS: [(&[&str], &str, &str); 10] = [
    (
        &["-p", "-u", "--host", "--hostname", "--port", "--server", "--url", "--endpoint", "--endpoints"],
        "addr",
        "--addr HOST:PORT, or BOLTKV_ADDR, says where the server is",
    ),
    (&["-p", "--host", "--port", "--bind", "--addr", "--address"], "listen", "--listen HOST:PORT says where to listen"),
    (&["-f", "--file", "--path", "--dir", "--data-dir", "--database"], "db", "--db FILE names the file to serve"),
    (
        &["--prefix"],
        "addr",
        "`boltkv scan PREFIX` prints what starts so, `boltkv delete-range --prefix PREFIX` removes it",
    ),
    (&["--print-value-only"], "keys", "the value alone is what is printed"),
    (&["--nx"], "absent", "--if-absent sets only a key that is not there"),
    (&["--xx"], "present", "--if-present sets only a key that is there"),
    (&["--ex", "--px", "--lease"], "ttl", "--ttl 10s says after which time a key is gone"),
    (
        &["--requirepass", "--password", "--auth"],
        "tokens",
        "--tokens FILE says who may: `boltkv token create NAME --right admin --tokens FILE` puts the first one in",
    ),
    (&["-v"], "version", "`boltkv --version` prints the version"),
];

/// The error of a command line, without the program's name, with what helps.
pub(crate) fn with_tips(mut error: Error, program: &mut Command, args: &[OsString]) -> Error {
    program.build();
    let asked = asked(program, args);
    if error.get(ContextKind::Usage).is_some() {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(asked.clone().render_usage()));
    }
    leave_out_what_removes(&mut error);
    let tips = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            word(&error, ContextKind::InvalidSubcommand).map(|word| of_command(program, asked, &word))
        }
        ErrorKind::UnknownArgument => {
            // clap takes whatever begins with a dash for a value that was meant.
            error.remove(ContextKind::Suggested);
            let word = word(&error, ContextKind::InvalidArg);
            if word.as_ref().is_some_and(|word| is_known(program, word)) {
                error.remove(ContextKind::SuggestedArg);
            }
            word.map(|word| {
                let tips =
                    before_the_command(program, args, &word).map_or_else(|| of_argument(asked, &word), |tip| vec![tip]);
                if tips.is_empty() { meant_as_value(asked, &word, args).into_iter().collect() } else { tips }
            })
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

/// For a name that begins with a dash, such as a file's: several letters after a single one are no option.
fn meant_as_value(asked: &Command, word: &str, args: &[OsString]) -> Option<String> {
    let typed: Vec<_> = args.iter().filter_map(|arg| arg.to_str()).collect();
    let is_meant = |arg: &&str| arg.starts_with(word) && arg.len() > 2 && !arg.starts_with("--");
    let at = typed.iter().position(|arg| is_meant(arg) && arg.starts_with('-'))?;
    let (before, name) = (typed.get(at.checked_sub(1)?)?, typed.get(at)?);
    if name[1..].starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let name = quoted_for_shell(name);
    Some(if option(asked, before).is_some_and(takes_value) {
        format!("a value that begins with a dash stands behind `=`: {before}={name}")
    } else {
        format!("what begins with a dash and is no option comes after `--`: -- {name}")
    })
}

/// For an option that stands where the command should.
fn before_the_command(program: &Command, args: &[OsString], word: &str) -> Option<String> {
    let at = args.iter().position(|arg| program.find_subcommand(arg).is_some()).filter(|at| *at > 0)?;
    let command = asked(program, args.get(at..)?);
    let name = name_of(word);
    let value = if takes_value(option(command, name)?) { " …" } else { "" };
    Some(format!("{name} goes behind the command: {} {name}{value}", command.get_bin_name()?))
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
    let known = OPTIONS.iter().find(|(words, ours, _)| words.contains(&name) && takes(ours));
    known.map(|(.., tip)| (*tip).to_owned()).into_iter().collect()
}
