//! All commands that bbolt has, as data.

use std::ffi::OsString;

use clap_complete::Shell;

use super::arguments::{Count, Given};
use super::flags::{Flag, Kind};
use super::{look, surgery, write};
use crate::failure::Outcome;

/// A command, or a group of commands.
pub(super) struct Command {
    /// The words that call it; none for the program itself.
    pub(super) words: &'static [&'static str],
    /// How it is called, with its arguments.
    pub(super) usage: &'static str,
    /// What it is for; the first line stands in lists.
    pub(super) about: &'static str,
    pub(super) args: Count,
    /// In the order of their names.
    pub(super) flags: &'static [Flag],
    pub(super) run: Run,
}

#[derive(Clone, Copy)]
pub(super) enum Run {
    Runs(fn(&Given) -> Outcome),
    /// Prints what a shell needs to complete command lines.
    Completes(Shell),
    Group,
}

impl Command {
    pub(super) fn is_root(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn name(&self) -> &'static str {
        self.words.last().copied().unwrap_or("bbolt")
    }

    pub(super) fn is_directly_in(&self, group: &Self) -> bool {
        self.words.split_last().is_some_and(|(_, above)| above == group.words)
    }
}

/// The command that the first words name, and what stands behind them.
pub(super) fn find(args: &[OsString]) -> (&'static Command, &[OsString]) {
    let called = |command: &&Command| {
        let words = command.words;
        args.len() >= words.len() && words.iter().zip(args).all(|(word, arg)| arg == word)
    };
    let longest = COMMANDS.iter().filter(called).max_by_key(|command| command.words.len());
    let command = longest.unwrap_or(&COMMANDS[0]);
    (command, &args[command.words.len()..])
}

const FORMATS: &str = "How it is printed: auto|ascii-encoded|hex|bytes|redacted";
const OUTPUT: Flag = Flag::new("output", Kind::Text, "", "The changed copy, a new file").required();
const PAGE: Flag = Flag::new("pageId", Kind::Uint, "", "The page").required();

const fn group(words: &'static [&'static str], about: &'static str) -> Command {
    Command { words, usage: "", about, args: Count::Any, flags: &[], run: Run::Group }
}

const fn on_copy(
    words: &'static [&'static str],
    usage: &'static str,
    about: &'static str,
    flags: &'static [Flag],
    run: fn(&Given) -> Outcome,
) -> Command {
    Command { words, usage, about, args: Count::Exactly(1), flags, run: Run::Runs(run) }
}

const fn completion(words: &'static [&'static str], about: &'static str, shell: Shell) -> Command {
    const FLAGS: &[Flag] = &[Flag::new("no-descriptions", Kind::Switch, "", "Has no effect")];
    Command { words, usage: "", about, args: Count::Exactly(0), flags: FLAGS, run: Run::Completes(shell) }
}

pub(super) static COMMANDS: &[Command] = &[
    group(&[], "Looks into bolt files, as bbolt's command does; this one is boltkv, called by that name"),
    Command {
        words: &["bench"],
        usage: "bench",
        about: "measure how fast this machine writes and reads a bolt file",
        args: Count::Any,
        flags: &[
            Flag::new("batch-size", Kind::Int, "", "Values a transaction writes; 0: all"),
            Flag::new("blockprofile", Kind::Text, "", "Not to be had: profiles are those of Go's runtime"),
            Flag::new("count", Kind::Int, "1000", "Values that are written"),
            Flag::new("cpuprofile", Kind::Text, "", "As blockprofile"),
            Flag::new("fill-percent", Kind::Float, "0.5", "How full pages are left that are split"),
            Flag::new("gobench-output", Kind::Switch, "", "Print as Go's benchmarks do"),
            Flag::new("initial-mmap-size", Kind::Int, "", "Bytes of the file that are mapped from the start"),
            Flag::new("key-size", Kind::Int, "8", "Bytes of a key"),
            Flag::new("memprofile", Kind::Text, "", "As blockprofile"),
            Flag::new("no-sync", Kind::Switch, "", "Do not sync each transaction"),
            Flag::new("page-size", Kind::Int, "4096", "Bytes of a page"),
            Flag::new("path", Kind::Text, "", "The file, a new one"),
            Flag::new("profile-mode", Kind::Text, "rw", "Has no effect"),
            Flag::new("read-mode", Kind::Text, "seq", "seq or rnd"),
            Flag::new("value-size", Kind::Int, "32", "Bytes of a value"),
            Flag::new("work", Kind::Switch, "", "Keep the file"),
            Flag::new("write-mode", Kind::Text, "seq", "seq, rnd, seq-nest or rnd-nest"),
        ],
        run: Run::Runs(write::bench),
    },
    Command {
        words: &["buckets"],
        usage: "buckets <bbolt-file>",
        about: "print the names of the buckets at the top",
        args: Count::Exactly(1),
        flags: &[],
        run: Run::Runs(look::buckets),
    },
    Command {
        words: &["check"],
        usage: "check <bbolt-file>",
        about: "look for damage: every page must be used once, or free once",
        args: Count::Exactly(1),
        flags: &[Flag::new("from-page", Kind::Uint, "", "Only this page and what it leads to")],
        run: Run::Runs(look::check),
    },
    Command {
        words: &["compact"],
        usage: "compact [options] -o <dst-bbolt-file> <src-bbolt-file>",
        about: "write everything into another file, without free pages and with full ones",
        args: Count::AtLeast(1),
        flags: &[
            Flag::new("no-sync", Kind::Switch, "", "Has no effect: the file is synced once, at its end"),
            Flag::new("output", Kind::Text, "", "The other file: a new one, or a database that lacks these buckets")
                .short('o')
                .required(),
            Flag::new("tx-max-size", Kind::Int, "65536", "Bytes of keys and values a transaction; 0: all"),
        ],
        run: Run::Runs(write::compact),
    },
    group(&["completion"], "print what a shell needs to complete command lines"),
    completion(&["completion", "bash"], "for bash", Shell::Bash),
    completion(&["completion", "fish"], "for fish", Shell::Fish),
    completion(&["completion", "powershell"], "for PowerShell", Shell::PowerShell),
    completion(&["completion", "zsh"], "for zsh", Shell::Zsh),
    Command {
        words: &["dump"],
        usage: "dump <bbolt-file> pageid [pageid...]",
        about: "print pages in hexadecimal",
        args: Count::AtLeast(2),
        flags: &[],
        run: Run::Runs(look::dump),
    },
    Command {
        words: &["get"],
        usage: "get PATH [BUCKET..] KEY",
        about: "print the value of a key",
        args: Count::AtLeast(3),
        flags: &[
            Flag::new("format", Kind::Text, "auto", FORMATS),
            Flag::new("parse-format", Kind::Text, "ascii-encoded", "How the key is given: ascii-encoded|hex"),
        ],
        run: Run::Runs(look::get),
    },
    Command {
        words: &["info"],
        usage: "info <bbolt-file>",
        about: "print the size of the file's pages",
        args: Count::Exactly(1),
        flags: &[],
        run: Run::Runs(look::info),
    },
    Command {
        words: &["inspect"],
        usage: "inspect <bbolt-file>",
        about: "print the tree of the buckets as JSON",
        args: Count::Exactly(1),
        flags: &[],
        run: Run::Runs(look::inspect),
    },
    Command {
        words: &["keys"],
        usage: "keys <bbolt-file> <buckets>",
        about: "print the keys of a bucket, which is named from the top down",
        args: Count::AtLeast(2),
        flags: &[Flag::new("format", Kind::Text, "auto", FORMATS).short('f')],
        run: Run::Runs(look::keys),
    },
    Command {
        words: &["page"],
        usage: "page <bbolt-file> [pageid...]",
        about: "print pages for people to read",
        args: Count::AtLeast(1),
        flags: &[
            Flag::new("all", Kind::Switch, "", "All pages"),
            Flag::new("format-value", Kind::Text, "auto", FORMATS),
        ],
        run: Run::Runs(look::page),
    },
    Command {
        words: &["page-item"],
        usage: "page-item [options] <bbolt-file> pageid itemid",
        about: "print key and value of one element of a leaf",
        args: Count::Exactly(3),
        flags: &[
            Flag::new("format", Kind::Text, "auto", FORMATS),
            Flag::new("key-only", Kind::Switch, "", "Print only the key"),
            Flag::new("value-only", Kind::Switch, "", "Print only the value"),
        ],
        run: Run::Runs(look::page_item),
    },
    Command {
        words: &["pages"],
        usage: "pages <bbolt-file>",
        about: "print a table of all pages: type, elements, pages that they run on over",
        args: Count::Exactly(1),
        flags: &[],
        run: Run::Runs(look::pages),
    },
    Command {
        words: &["stats"],
        usage: "stats <bbolt-file>",
        about: "count pages, bytes and keys; with a second argument, of the buckets whose names start so",
        args: Count::Between(1, 2),
        flags: &[],
        run: Run::Runs(look::stats),
    },
    group(&["surgery"], "change single pages of a damaged file, on a copy of it"),
    on_copy(
        &["surgery", "clear-page"],
        "surgery clear-page <bbolt-file>",
        "take all elements out of a branch or a leaf",
        &[OUTPUT, PAGE],
        surgery::clear_page,
    ),
    on_copy(
        &["surgery", "clear-page-elements"],
        "surgery clear-page-elements <bbolt-file>",
        "take elements out of a branch or a leaf",
        &[
            Flag::new("from-index", Kind::Int, "", "The first of them, from 0").required(),
            OUTPUT,
            PAGE,
            Flag::new("to-index", Kind::Int, "", "The one behind the last of them; -1: the page's end").required(),
        ],
        surgery::clear_page_elements,
    ),
    on_copy(
        &["surgery", "copy-page"],
        "surgery copy-page <bbolt-file>",
        "copy a page over another one",
        &[
            Flag::new("from-page", Kind::Uint, "", "The page to be copied").required(),
            OUTPUT,
            Flag::new("to-page", Kind::Uint, "", "The page to be written over").required(),
        ],
        surgery::copy_page,
    ),
    group(&["surgery", "freelist"], "give up the stored freelist, or store one that was found anew"),
    on_copy(
        &["surgery", "freelist", "abandon"],
        "surgery freelist abandon <bbolt-file>",
        "take the freelist out of both meta pages",
        &[OUTPUT],
        surgery::freelist_abandon,
    ),
    on_copy(
        &["surgery", "freelist", "rebuild"],
        "surgery freelist rebuild <bbolt-file>",
        "find the free pages of a file that stores none, and store them",
        &[OUTPUT],
        surgery::freelist_rebuild,
    ),
    group(&["surgery", "meta"], "look at the two meta pages, or set their fields"),
    on_copy(
        &["surgery", "meta", "update"],
        "surgery meta update <bbolt-file>",
        "set fields of a meta page",
        &[
            Flag::new("fields", Kind::List, "", "FIELD:VALUE,… of pageSize, root, freelist and pgid"),
            Flag::new("meta-page", Kind::Uint32, "", "The meta page: 0 or 1"),
            OUTPUT,
        ],
        surgery::meta_update,
    ),
    on_copy(
        &["surgery", "meta", "validate"],
        "surgery meta validate <bbolt-file>",
        "say whether the meta pages are valid",
        &[],
        surgery::meta_validate,
    ),
    on_copy(
        &["surgery", "revert-meta-page"],
        "surgery revert-meta-page <bbolt-file>",
        "go back by one transaction",
        &[OUTPUT],
        surgery::revert_meta_page,
    ),
    Command {
        words: &["version"],
        usage: "version",
        about: "print whose commands these are, and what runs them",
        args: Count::Any,
        flags: &[],
        run: Run::Runs(look::version),
    },
];
