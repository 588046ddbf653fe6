//! A journal that holds what the file does not: a database that is opened says so itself; who reads or copies the file as
//! it lies has to be told.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Once;

use boltkv_storage::Error;
use boltkv_storage::tools::FileJournal;

use super::holder;
use crate::failure::{Failure, Outcome, journal_beside, journal_command, one_line};

/// Says on standard error, once, that a journal waits; `what` is concerned.
pub(super) fn warn_of_journal(file: &Path, what: &str) {
    if let Some(why) = waits(file) {
        warn(file, &why, what);
    }
}

fn warn(file: &Path, why: &str, what: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let line = format!("warning: {}: {why}; {what}", file.display());
        // If standard error is closed, nobody can be told.
        let _ = writeln!(io::stderr(), "{}", one_line(&line));
    });
}

/// As [`warn_of_journal`], of a file that somebody may have open: a journal that is being written is not looked into. What
/// comes back is to be said behind "not found", for whoever reads that alone; empty where the file is all there is.
pub(super) fn note_of_journal(file: &Path) -> String {
    if holder::named(file).is_empty() {
        let Some(why) = waits(file) else { return String::new() };
        warn(file, &why, "what is shown lies in the file");
        return format!("; its journal may hold it: {why}");
    }
    let Some(place) = journal_in_use(file) else { return String::new() };
    let line = format!(
        "note: {} has a journal {place}, which may hold newer transactions: whoever has it open knows them, and a server \
         tells them (`boltkv scan`)",
        file.display()
    );
    // If standard error is closed, nobody can be told.
    let _ = writeln!(io::stderr(), "{}", one_line(&line));
    "; its journal may hold it: whoever has the file open knows, and a server tells it (`boltkv get`)".to_owned()
}

/// Where the journal is of a file that somebody has open, if it has one.
fn journal_in_use(file: &Path) -> Option<String> {
    let folder = journal_beside(&file.canonicalize().ok()?);
    if folder.is_dir() {
        return Some(format!("in {}", folder.display()));
    }
    // Of one that is kept elsewhere the file itself says that there is one, and not where.
    let found = FileJournal::find(file, None);
    matches!(found, Err(Error::JournalMissing { .. })).then(|| "that is not beside it".to_owned())
}

/// Refuses a file whose journal waits; `otherwise` goes on all the same.
pub(super) fn refuse_journal(file: &Path, otherwise: &str) -> Outcome {
    match waits(file) {
        Some(why) => Err(Failure::unreachable(format!("{}: {why}; {otherwise}", file.display()))),
        None => Ok(()),
    }
}

/// What is to be said of the journal of a file; nothing where the file is all there is.
fn waits(file: &Path) -> Option<String> {
    // A file that is no database is told by whoever reads it.
    let journal = match FileJournal::find(file, None) {
        Ok(journal) => journal?,
        Err(error) => return Some(of_error(file, &error)),
    };
    let folder = journal.folder().display();
    let tells = matches!(journal.state(), Err(Error::JournalDamaged { .. } | Error::JournalMissing { .. }));
    if journal.is_contained() || journal.segments().next().is_none() && !tells {
        return None;
    }
    if let Err(error) = journal.file_txid() {
        let tells = journal_command("", file, None);
        return Some(format!("it has a journal in {folder}, of which nothing can be told ({error}): see `{tells}`"));
    }
    Some(match journal.state() {
        Ok(state) => {
            let (contains, newest, apply) = (state.contains, state.newest, journal_command("--apply ", file, None));
            format!(
                "the file holds transactions up to {contains}, and its journal in {folder} up to {newest}: `{apply}` \
                 brings it up to date"
            )
        }
        Err(error) => of_error(file, error),
    })
}

fn of_error(file: &Path, error: &Error) -> String {
    format!("{error} (`{}` tells more)", journal_command("", file, None))
}
