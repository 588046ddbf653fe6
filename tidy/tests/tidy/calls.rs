//! Calls that are not made where they do harm, with what to use instead. What is harmful everywhere is in `clippy.toml`.

use std::path::{Path, PathBuf};

use boltkv_tidy::modules::{self, Use};
use boltkv_tidy::{files, source};

use crate::nothing;

/// A call that is not made.
struct Ban {
    /// How the call is written.
    call: &'static str,
    /// Paths that begin with one of these are looked at.
    within: &'static [&'static str],
    /// What is wrong with it, and what to use instead.
    instead: &'static str,
    /// Files that may, and why; a file that does so no more goes from the list.
    but: &'static [(&'static str, &'static str)],
}

/// Every crate that people run or build upon.
const PRODUCT: &[&str] = &["storage/", "protocol/", "client/", "server/", "cli/"];

const BANS: &[Ban] = &[
    Ban {
        call: "println!(",
        within: PRODUCT,
        instead: "it panics when standard output is closed: `writeln!` to a writer that is handed in, errors given back",
        but: &[],
    },
    Ban { call: "print!(", within: PRODUCT, instead: "as `println!`", but: &[] },
    Ban {
        call: "eprint",
        within: &["storage/", "protocol/", "client/", "server/"],
        instead: "a library does not talk to people: return an error, or `tracing`",
        but: &[],
    },
    Ban {
        call: "thread::sleep(",
        within: PRODUCT,
        instead: "in async code `tokio::time::sleep`; elsewhere wait for what happens, `recv_timeout` or `wait_timeout`",
        but: &[("storage/src/disk/folder.rs", "the lock of another process tells nobody when it goes")],
    },
    Ban {
        call: "thread::spawn(",
        within: PRODUCT,
        instead: "it panics when no thread can be started: `thread::Builder::spawn`, the error given back",
        but: &[("cli/src/file/progress.rs", "a line of progress, before anything is done")],
    },
    Ban {
        call: "mpsc::channel()",
        within: PRODUCT,
        instead: "what has no bound takes what memory there is: `sync_channel`, or say here what bounds it",
        but: &[
            ("cli/src/file/progress.rs", "one message: the end"),
            ("server/src/writer/queue.rs", "whoever sends holds a permit for its requests and bytes"),
            ("storage/src/store/syncer.rs", "a word a commit at most, and the thread takes them as they come"),
        ],
    },
    Ban {
        call: "unbounded_channel()",
        within: PRODUCT,
        instead: "what has no bound takes what memory there is: `channel`, or say here what bounds it",
        but: &[("client/src/connection/mod.rs", "pieces of streams, bounded by the credit that was given")],
    },
    Ban {
        call: "Instant::now()",
        within: &["protocol/", "storage/src/format", "storage/src/freelist"],
        instead: "codecs and formats know no time: take it as an argument",
        but: &[],
    },
    Ban {
        call: "std::fs::",
        within: &["protocol/", "client/", "server/"],
        instead: "files are the engine's and the command line's",
        but: &[("server/src/sockets.rs", "a socket that a server listens on has a name in the file system")],
    },
    Ban {
        call: "tokio::",
        within: &["storage/", "protocol/"],
        instead: "the engine and the codecs have no runtime: `server` and `client` have",
        but: &[],
    },
    Ban {
        call: "std::net::",
        within: &["storage/", "protocol/"],
        instead: "the engine and the codecs have no network: `server` and `client` have",
        but: &[],
    },
    Ban {
        call: "unsafe ",
        within: PRODUCT,
        instead: "unsafe code stays in one module, where it can be looked at as a whole",
        but: &[("storage/src/disk/map.rs", "the module")],
    },
];

#[test]
fn calls_that_do_harm_are_not_made() {
    let product: Vec<_> = modules::reached().into_iter().filter(|(_, used)| *used == Use::Product).collect();
    let product: Vec<_> = product
        .into_iter()
        .map(|(path, _)| {
            let code = source::code(&files::read(&path));
            (path, source::without_tests(&code).to_owned())
        })
        .collect();
    let found: Vec<_> = BANS.iter().flat_map(|ban| broken(ban, &product)).collect();
    nothing(&found, "calls that are not made here");
}

/// Where a ban is not kept, and exceptions from it that nobody needs.
fn broken(ban: &Ban, product: &[(PathBuf, String)]) -> Vec<String> {
    let mut found = Vec::new();
    let calls = |code: &str| code.match_indices(ban.call).any(|(at, _)| begins_word(&code[..at]));
    for (path, code) in product.iter().filter(|(path, _)| ban.within.iter().any(|start| starts(path, start))) {
        let excepted = ban.but.iter().any(|(file, _)| path == Path::new(file));
        for (number, line) in (1..).zip(code.lines()).filter(|(_, line)| !excepted && calls(line)) {
            found.push(format!("{}:{number}: {}: {}", path.display(), line.trim(), ban.instead));
        }
    }
    for (file, _) in ban.but {
        let needed = product.iter().any(|(path, code)| path == Path::new(file) && calls(code));
        if !needed {
            found.push(format!("{file} does not use `{}` any more: take it out of the exceptions", ban.call));
        }
    }
    found
}

fn starts(path: &Path, start: &str) -> bool {
    path.to_str().is_some_and(|path| path.starts_with(start))
}

/// Whether a name begins after this text: not the rest of a longer one.
fn begins_word(before: &str) -> bool {
    before.bytes().last().is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_')
}
