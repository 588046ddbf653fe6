//! Commands that only read.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use boltkv_storage::tools::RawFile;
use bytes::Bytes;
use clap::ValueEnum as _;

use super::super::format::quoted;
use super::super::format::{Format, ParseFormat};
use super::super::target::{RawTarget, Target};
use super::super::{
    buckets, check as checks, dump as dumps, get as gets, inspect as inspects, keys as lists, page as prints,
    page_item as items, pages as tables, stats as counts,
};
use super::arguments::{Given, page as page_number};
use crate::bbolt_words::{self, reason};
use crate::failure::{Failure, Outcome, before_a_verdict};

/// bbolt's version whose commands these are.
const BBOLT: &str = "1.5.0";

/// A file, which must be there.
pub(super) fn existing(path: &Path) -> Outcome<&Path> {
    let shown = || quoted(path.as_os_str().as_encoded_bytes());
    match path.metadata() {
        Ok(_) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Failure::not_done(format!("source database file {} doesn't exist", shown())))
        }
        Err(error) => Err(Failure::not_done(format!(
            "failed to open source database file {}: stat {}: {}",
            shown(),
            path.display(),
            reason(&error)
        ))),
    }
}

fn target(given: &Given) -> Outcome<Target> {
    existing(given.file()).map(Target::patient)
}

fn raw(given: &Given) -> Outcome<RawTarget> {
    existing(given.file()).map(RawTarget::new)
}

fn format(given: &Given, flag: &str) -> Outcome<Format> {
    let name = given.text(flag, "auto");
    Format::from_str(&name, false).map_err(|_| Failure::not_done(format!("formatBytes: unsupported format: {name}")))
}

fn page_numbers(given: &Given) -> Outcome<Vec<u64>> {
    // An empty argument is none: scripts hand over what is in a variable.
    let given = given.args().iter().skip(1).filter(|argument| !argument.is_empty());
    given.map(|argument| page_number(argument).map_err(Failure::not_done)).collect()
}

pub(super) fn info(given: &Given) -> Outcome {
    let target = target(given)?;
    let db = target.open_to_read(None)?;
    target.print(|out| Ok(writeln!(out, "Page Size: {}", db.page_size())?))
}

pub(super) fn buckets(given: &Given) -> Outcome {
    buckets::Buckets { target: target(given)?, format: Some(Format::Bytes), json: false }.run()
}

pub(super) fn keys(given: &Given) -> Outcome {
    let format = format(given, "format");
    lists::Keys { target: target(given)?, bucket: given.names(), format: format?, json: false }.run()
}

pub(super) fn get(given: &Given) -> Outcome {
    if given.file().as_os_str().is_empty() {
        return Err(Failure::not_done("path required"));
    }
    let parse_format = given.text("parse-format", "ascii-encoded");
    let parse_format = ParseFormat::from_str(&parse_format, false)
        .map_err(|_| Failure::not_done(format!("parseBytes: unsupported format: {parse_format}")))?;
    let names = given.names();
    if names.last().is_some_and(Bytes::is_empty) {
        return Err(Failure::not_done("key is required: key required"));
    }
    if let (ParseFormat::Hex, Some(key)) = (parse_format, names.last()) {
        bbolt_words::hex_fault(key).map_or(Ok(()), |fault| Err(Failure::not_done(fault)))?;
    }
    let target = target(given)?;
    gets::Get { target, names, parse_format, format: format(given, "format")?, json: false }.run()
}

pub(super) fn stats(given: &Given) -> Outcome {
    let prefix = given.names().into_iter().next();
    counts::Stats { target: target(given)?, prefix, prefix_flag: None, json: false }.run()
}

pub(super) fn inspect(given: &Given) -> Outcome {
    inspects::Inspect { target: target(given)?, json: false }.run()
}

pub(super) fn pages(given: &Given) -> Outcome {
    let target = target(given)?;
    // Pages of a file that does not open are not listed by bbolt.
    drop(target.open_to_read(None)?);
    tables::Pages { target, json: false }.run()
}

pub(super) fn page(given: &Given) -> Outcome {
    let (all, pages) = (given.is("all"), page_numbers(given)?);
    match (all, pages.is_empty()) {
        (true, false) => return Err(Failure::not_done("invalid args: either use '--all' or 'pageid...'")),
        (false, true) => return Err(Failure::not_done("page id required")),
        _ => {}
    }
    let (target, format_value) = (raw(given)?, format(given, "format-value")?);
    prints::Page { target, pages, all, format_value, json: false, as_bbolt: true }.run()
}

pub(super) fn page_item(given: &Given) -> Outcome {
    let [_, page, index] = given.args() else { return Err(Failure::not_done("page id required")) };
    let (page, index) = (page_number(page).map_err(Failure::not_done)?, page_number(index).map_err(Failure::not_done)?);
    let (key_only, value_only) = (given.is("key-only"), given.is("value-only"));
    if key_only && value_only {
        return Err(Failure::not_done("the --key-only or --value-only flag may be set, but not both"));
    }
    let (target, format) = (raw(given)?, format(given, "format")?);
    let file = target.open()?;
    within(&file, page)?;
    let header = file.page(page).map(|page| page.header());
    let header = header.map_err(|error| Failure::storage(target.path(), &error))?;
    let wrong = match u16::try_from(index) {
        Ok(index) if index < header.count => match header.page_type().to_string() {
            leaf if leaf == "leaf" => {
                return items::PageItem { target, page, index, key_only, value_only, format, json: false }.run();
            }
            other => format!("expected page type of 'leaf', but got '{other}'"),
        },
        _ => format!("expected item index less than {}, but got {index}", header.count),
    };
    Err(Failure::not_done(format!("leafPageElement: {wrong}")))
}

pub(super) fn dump(given: &Given) -> Outcome {
    let pages = page_numbers(given)?;
    if pages.is_empty() {
        return Err(Failure::not_done("page id required"));
    }
    let target = raw(given)?;
    let file = target.open()?;
    let beyond = pages.iter().position(|&page| within(&file, page).is_err());
    // Those before it are printed.
    let printed = pages.get(..beyond.unwrap_or(pages.len())).unwrap_or_default().to_vec();
    dumps::Dump { target, pages: printed, json: false }.run()?;
    beyond.and_then(|index| pages.get(index)).map_or(Ok(()), |&page| within(&file, page))
}

/// A page that the file has.
fn within(file: &RawFile, page: u64) -> Outcome {
    if page < file.pages() { Ok(()) } else { Err(Failure::not_done("EOF")) }
}

pub(super) fn check(given: &Given) -> Outcome {
    let target = target(given)?;
    let db = target.open_to_read(None)?;
    if let Some(damaged) = db.damaged_meta() {
        // bbolt passes it over; here at least people hear of it. If standard error is closed, nobody does.
        let _ = writeln!(io::stderr(), "warning: {damaged}");
    }
    let (from, pages) = (given.number("from-page", 0), db.stats().pages);
    let problems = match u64::try_from(from) {
        Ok(page @ 1..) if page < 2 || page >= pages => vec![format!("page ID ({page}) out of range [2, {pages})")],
        page => {
            let check = checks::Check { target: Target::patient(given.file()), from_page: page.ok(), json: false };
            check.problems(&db)?.iter().map(bbolt_words::of_problem).collect()
        }
    };
    before_a_verdict(target.print(|out| {
        problems.iter().try_for_each(|problem| writeln!(out, "{problem}"))?;
        Ok(match problems.len() {
            0 => writeln!(out, "OK"),
            count => writeln!(out, "{count} errors found"),
        }?)
    }))?;
    if problems.is_empty() { Ok(()) } else { Err(Failure::not_done("invalid value")) }
}

pub(super) fn version(_: &Given) -> Outcome {
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let mut out = io::stdout().lock();
    let written = writeln!(
        out,
        "bbolt Version: {BBOLT}\nGo Version: none (boltkv {})\nGo OS/Arch: {}/{arch}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS
    );
    written.map_err(|error| Failure::stdout(&error))
}

/// The page size as `surgery` prints it, of a file that need not open.
pub(super) fn open_raw(path: &Path) -> Outcome<RawFile> {
    RawTarget::new(existing(path)?).open()
}

/// Where a command writes: a flag's value.
pub(super) fn output(given: &Given) -> PathBuf {
    given.flag("output").map(PathBuf::from).unwrap_or_default()
}
