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
    static SAID: Once = Once::new();
    if let Some(why) = waits(file) {
        SAID.call_once(|| {
            let line = format!("warning: {}: {why}; {what}", file.display());
            // If standard error is closed, nobody can be told.
            let _ = writeln!(io::stderr(), "{}", one_line(&line));
        });
    }
}

/// As [`warn_of_journal`], of a file that somebody may have open: a journal that is being written is not looked into.
pub(super) fn note_of_journal(file: &Path) {
    if holder::named(file).is_empty() {
        return warn_of_journal(file, "what is shown lies in the file");
    }
    let Ok(real) = file.canonicalize() else { return };
    let folder = journal_beside(&real);
    if folder.is_dir() {
        let (file, folder) = (file.display(), folder.display());
        let line = format!(
            "note: {file} has a journal in {folder}, which may hold newer transactions: whoever has it open knows them, and a \
             server tells them (`boltkv scan`)"
        );
        // If standard error is closed, nobody can be told.
        let _ = writeln!(io::stderr(), "{}", one_line(&line));
    }
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
