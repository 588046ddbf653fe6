//! Surgery as bbolt does it: without a lock, so that a file that is in use can be operated on.

use std::io::Write as _;

use boltkv_storage::tools::{MetaChange, Surgery};

use super::super::format::quoted;
use super::super::surgery::OnCopy;
use super::super::target::Target;
use super::arguments::Given;
use super::look::{existing, open_raw, output};
use crate::bbolt_words;
use crate::failure::{Failure, Outcome};

const ABANDON: &str = "Please consider executing `./bbolt surgery freelist abandon ...`";

/// How bbolt calls an operation while it copies.
fn step(command: &str) -> &str {
    match command {
        "abandom-freelist command" => "freelist abandon",
        "freelist rebuild" | "meta update" => command,
        _ => command.trim_end_matches(" command"),
    }
}

/// Has the copy made, and says what `done` makes of it.
fn operate<T>(
    given: &Given,
    command: &str,
    operation: impl FnOnce(&Surgery) -> boltkv_storage::Result<T>,
    done: impl FnOnce(T) -> Vec<String>,
) -> Outcome {
    let output = output(given);
    if output.as_os_str().is_empty() {
        return Err(Failure::not_done(
            "output database path wasn't given, specify output database file path with --output option",
        ));
    }
    let source = existing(given.file())?;
    if output.symlink_metadata().is_ok() {
        let (step, output) = (step(command), quoted(output.as_os_str().as_encoded_bytes()));
        return Err(Failure::not_done(format!("[{step}] copy file failed: output file {output} already exists")));
    }
    let made = OnCopy::as_bbolt(Target::patient(source), output).make(operation);
    let made = made.map_err(|failure| failure.in_bbolts_words(|words| format!("{command} failed: {words}")))?;
    say(given, &done(made))
}

fn say(given: &Given, lines: &[String]) -> Outcome {
    let target = Target::patient(given.file());
    target.print(|out| Ok(lines.iter().try_for_each(|line| writeln!(out, "{line}"))?))
}

/// A page that can be cleared.
fn page(given: &Given) -> Outcome<u64> {
    match number(given, "pageId") {
        page @ ..2 => Err(Failure::not_done(format!("the pageId must be at least 2, but got {page}"))),
        page => Ok(page),
    }
}

/// A flag that is a page's number. That it is one was looked at.
fn number(given: &Given, flag: &str) -> u64 {
    u64::try_from(given.number(flag, 0)).unwrap_or(u64::MAX)
}

fn with_warning(warn: bool, first: &str, last: String) -> Vec<String> {
    let warning = if warn { vec![format!("WARNING: {first}"), ABANDON.to_owned()] } else { Vec::new() };
    warning.into_iter().chain([last]).collect()
}

const ABANDONED: &str = "The clearing has abandoned some pages that are not yet referenced from free list.";

pub(super) fn clear_page(given: &Given) -> Outcome {
    let page = page(given)?;
    operate(
        given,
        "clear-page command",
        |surgery| surgery.clear_page(page),
        |cleared| with_warning(cleared.freelist_in_doubt, ABANDONED, format!("The page ({page}) was cleared")),
    )
}

pub(super) fn clear_page_elements(given: &Given) -> Outcome {
    let page = page(given)?;
    let (from, to) = (given.number("from-index", 0), given.number("to-index", 0));
    let index = |index| usize::try_from(index).ok();
    let start = index(from).ok_or_else(|| {
        Failure::not_done(format!("clear-page-element command failed: the start index ({from}) is out of range"))
    })?;
    let end = match to {
        -1 => None,
        to => Some(index(to).ok_or_else(|| {
            Failure::not_done(format!("clear-page-element command failed: the end index ({to}) is out of range"))
        })?),
    };
    operate(
        given,
        "clear-page-element command",
        |surgery| surgery.clear_page_elements(page, start, end),
        |cleared| {
            let said = format!("All elements in [{from}, {to}) in page {page} were cleared");
            with_warning(cleared.freelist_in_doubt, ABANDONED, said)
        },
    )
}

pub(super) fn copy_page(given: &Given) -> Outcome {
    let (from, to) = (number(given, "from-page"), number(given, "to-page"));
    if from == to {
        return Err(Failure::not_done(format!("'--from-page' and '--to-page' have the same value: {from}")));
    }
    operate(
        given,
        "copy-page command",
        |surgery| surgery.copy_page(from, to),
        |copied| {
            let said = format!("The page {from} was successfully copied to page {to}");
            with_warning(copied.freelist_in_doubt, "the free list might have changed.", said)
        },
    )
}

pub(super) fn freelist_abandon(given: &Given) -> Outcome {
    operate(given, "abandom-freelist command", Surgery::abandon_freelist, |_| {
        vec![
            "The freelist was abandoned in both meta pages.".into(),
            "It may cause some delay on next startup because bbolt needs to scan the whole db to reconstruct the free \
             list."
                .into(),
        ]
    })
}

pub(super) fn freelist_rebuild(given: &Given) -> Outcome {
    if open_raw(given.file())?.newest_meta().is_some_and(|meta| meta.stores_freelist()) {
        return Err(Failure::not_done(
            "the file already has freelist, please consider to abandon the freelist to forcibly rebuild it",
        ));
    }
    operate(given, "freelist rebuild", Surgery::rebuild_freelist, |_| {
        vec!["The freelist was successfully rebuilt.".into()]
    })
}

pub(super) fn revert_meta_page(given: &Given) -> Outcome {
    operate(given, "revert-meta-page command", Surgery::revert_meta_page, |_| vec!["The meta page is reverted.".into()])
}

pub(super) fn meta_validate(given: &Given) -> Outcome {
    let file = open_raw(given.file())?;
    let said = |page| match file.meta(page).map(|meta| meta.fault()) {
        Some(None) => format!("The meta page {page} is valid!"),
        Some(Some(fault)) => {
            let why = bbolt_words::of(&fault).unwrap_or_else(|| fault.to_string());
            format!("WARNING: The meta page {page} isn't valid: {why}!")
        }
        None => format!("WARNING: The meta page {page} isn't valid: the file ends before it!"),
    };
    say(given, &[said(0), said(1)])
}

pub(super) fn meta_update(given: &Given) -> Outcome {
    let page = number(given, "meta-page");
    if page > 1 {
        return Err(Failure::not_done(format!("invalid meta page id: {page}")));
    }
    let change = change(&given.list("fields"))?;
    operate(
        given,
        "meta update",
        |surgery| surgery.update_meta(page, &change),
        |updated| {
            let other = updated.other_page_size.filter(|_| page == 1);
            let size = updated.meta.page_size;
            let warning = other.map(|other| {
                format!(
                    "WARNING: The page size ({other}) in the first meta page doesn't match the second meta page ({size})"
                )
            });
            let said = if updated.changed {
                format!("The meta page {page} has been updated!")
            } else {
                "Nothing changed!".to_owned()
            };
            warning.into_iter().chain([said]).collect()
        },
    )
}

/// Of a field that is given twice, the last value counts.
fn change(fields: &[String]) -> Outcome<MetaChange> {
    let mut change = MetaChange::default();
    for field in fields {
        let pair = field.split_once(':').filter(|(_, value)| !value.contains(':'));
        let Some((name, value)) = pair else {
            return Err(Failure::not_done(format!("invalid key-value pair: {field}")));
        };
        if !["pageSize", "root", "freelist", "pgid"].contains(&name) {
            return Err(Failure::not_done(format!("field {name:?} isn't allowed to be updated")));
        }
        let number = super::arguments::page(value.as_ref());
        let number = number.map_err(|_| Failure::not_done(format!("invalid value {value:?} for field {name:?}")))?;
        match name {
            "root" => change.root = Some(number),
            "freelist" => change.freelist = Some(number),
            "pgid" => change.high_water_mark = Some(number),
            _ => {
                let size = u32::try_from(number);
                let size =
                    size.map_err(|_| Failure::not_done(format!("invalid value {value:?} for field {name:?}")))?;
                change.page_size = Some(size);
            }
        }
    }
    Ok(change)
}
