//! `boltkv file journal`: what lies in the journal beside a file, and whether it fits; bringing the file up to date.

mod lines;

pub(super) use lines::torn;

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use boltkv_storage::tools::{FileJournal, JournalEntry, JournalEntryKind, RawFile};
use boltkv_storage::{Error, JournalEffect, JournalKeep, JournalOptions, Options};
use clap::Args;
use lines::{Effect, Entry, Line, at, counted, head, kind, print_segment, print_state, transactions};

use super::format::Format;
use super::holder;
use super::output::{Out, Printed, json_line};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome, before_a_verdict, journal_command};

/// Look at the journal of a file, bring the file up to date with it, or give it up
///
/// A file that is kept with a journal lacks the newest transactions after a crash: they are in the folder NAME-journal beside
/// it, and are done again when the server that keeps it is started. This command says
/// what is there and what would be done. With --apply it does that, as a clean end of the server would have: afterwards the
/// file holds everything, and is an ordinary one for everybody.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file journal app.db
  boltkv file journal app.db --effects          # each change that each transaction made
  boltkv file journal --apply app.db
  boltkv file journal --discard app.db          # one that does not fit: the file as it is becomes the newest state

Exit code 0: the file holds everything, or will when the journal is applied; 1: the journal is damaged, does not fit the file, or is \
missing though the file needs it; 2: the command line cannot be used; 3: a file could not be opened. A journal that was kept elsewhere, with serve --journal DIR, is \
not known of unless --folder names it.

With --json each line is an object with one field: \"journal\", and then \"segment\", \"entry\" and \"effect\" as far as they are \
asked for; keys and values are in base64, times in milliseconds since 1970.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Journal {
    #[command(flatten)]
    target: Target,
    /// Where the journal lies [default: NAME-journal beside the file]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Print each record, link and close
    #[arg(long)]
    records: bool,
    /// Print also what each record has changed
    #[arg(long)]
    effects: bool,
    /// How keys and values are printed
    #[arg(long, short, value_enum, default_value = "auto", conflicts_with = "json")]
    format: Format,
    /// Do what the journal records and the file lacks, and leave an ordinary file
    #[arg(long, conflicts_with_all = ["records", "effects", "discard"])]
    apply: bool,
    /// Give up what the journal records and the file lacks: it is lost
    #[arg(long, conflicts_with_all = ["records", "effects"])]
    discard: bool,
    /// With --discard: also a journal that fits, whose transactions --apply would do
    #[arg(long, requires = "discard")]
    force: bool,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

impl Journal {
    pub(crate) fn run(&self) -> Outcome {
        let path = self.target.path();
        if self.apply || self.discard {
            self.wait_until_free()?;
        }
        let found = FileJournal::find(path, self.folder.as_deref()).map_err(|error| Failure::open(path, &error))?;
        let Some(journal) = found else { return self.nothing() };
        if self.apply || self.discard {
            return self.settle(&journal);
        }
        let in_use = self.is_in_use()?;
        if in_use.is_some() && matches!(journal.state(), Err(Error::JournalMissing { .. })) {
            // Who has the file open keeps it elsewhere.
            return self.nothing();
        }
        before_a_verdict(self.print(&journal, in_use.as_deref()))?;
        if let (Err(error), None) = (journal.file_txid(), &in_use)
            && (matches!(error, Error::NotABoltFile) || journal.segments().next().is_none())
        {
            return Err(Failure::open(path, error));
        }
        let wrong = journal.state().err().filter(|_| in_use.is_none());
        wrong.map_or(Ok(()), |error| {
            let (look, discard) = (self.command("--effects "), self.command("--discard "));
            let give_up = format!(
                "`{look}` shows what is recorded; with copies of file and folder kept, `{discard}` goes on with the file as it is"
            );
            // What it is, was said.
            let (what, way_on) = match error {
                Error::MetaLost { .. } => {
                    ("its metas are lost", "`boltkv file repair` salvages what can be reached".to_owned())
                }
                Error::JournalDamaged { .. } | Error::JournalDisjoint { .. } => {
                    let repair = format!("`boltkv file repair --output NEW {}`", path.display());
                    let makes = "makes a file of all that can be read, of the journal, too";
                    let is_damaged = matches!(error, Error::JournalDamaged { .. });
                    let what = if is_damaged { "its journal is damaged" } else { "its journal does not lead on" };
                    (what, format!("{repair} {makes}; {give_up}"))
                }
                Error::FileOlderThanJournal { .. } => {
                    let restore = "`boltkv restore --backup FILE --journal DIR NEW` makes a file of this one and a kept journal";
                    ("its journal does not fit", format!("{restore}; {give_up}"))
                }
                Error::JournalMissing { .. } => {
                    let discard = self.command("--discard ");
                    let way_on = format!(
                        "name its folder by --folder DIR; `{discard}` goes on with the file as it is, without what only that has"
                    );
                    ("its journal is not there", way_on)
                }
                _ => ("its journal does not fit", give_up),
            };
            Err(Failure::not_done(format!("{}: {what}; {way_on}", path.display())))
        })
    }

    /// The command that is about the same journal, as it is typed.
    fn command(&self, flag: &str) -> String {
        journal_command(flag, self.target.path(), self.folder.as_deref())
    }

    /// There is no folder.
    fn nothing(&self) -> Outcome {
        let path = self.target.path();
        // A file that is not there either is another matter.
        drop(RawFile::open(path, None).map_err(|error| Failure::open(path, &error))?);
        if let Some(folder) = &self.folder {
            let what = format!("{}: it is not there, or no folder", folder.display());
            return Err(Failure::unreachable(what));
        }
        self.target.print(|out| {
            if self.json {
                json_line(&Line::Nothing { file: path.display().to_string() }, out)?;
            } else {
                writeln!(
                    out,
                    "{}: no journal beside it; if it was kept elsewhere, name its folder with --folder",
                    path.display()
                )?;
            }
            Ok(())
        })
    }

    /// Who has the file open for writing, if anybody has.
    fn is_in_use(&self) -> Outcome<Option<String>> {
        let path = self.target.path();
        // What is wrong with the file, its journal's state tells.
        let Ok(file) = RawFile::open(path, None) else { return Ok(None) };
        match file.lock(Duration::ZERO) {
            Ok(()) => Ok(None),
            Err(Error::LockTimeout { .. }) => Ok(Some(holder::named(path))),
            Err(error) => Err(Failure::open(path, &error)),
        }
    }

    /// Waits for who has the file open: until then his journal is not one that was left.
    fn wait_until_free(&self) -> Outcome {
        // What is wrong with the file, its journal's state tells.
        let Ok(file) = RawFile::open(self.target.path(), None) else { return Ok(()) };
        file.lock(self.target.timeout()).map_err(|error| self.target.not_opened(&error, None))
    }

    /// Brings the file up to date, or goes on with it as it is.
    fn settle(&self, journal: &FileJournal) -> Outcome {
        let path = self.target.path();
        // What is kept of the past stays: how long, is not decided here.
        let mut options = JournalOptions::new().keep(JournalKeep::Bytes(u64::MAX)).discard(self.discard);
        if let Some(folder) = &self.folder {
            options = options.folder(folder);
        }
        let waited = journal.state().ok();
        if let Some(state) = waited.filter(|state| self.discard && !self.force && state.records > 0) {
            let (file, waits, apply) = (path.display(), transactions(state.records), self.command("--apply "));
            let what = format!("{file}: its journal fits, with {waits} that the file lacks: `{apply}` does them");
            return Err(Failure::not_done(format!("{what}; `{}` gives them up", self.command("--discard --force "))));
        }
        let recorded = if self.discard && waited.is_none() { self.recorded(journal)? } else { 0 };
        let progress = Progress::doing(if self.discard { "discarding" } else { "applying" });
        let db = self.target.open_with(Options::new().create(false).journal(options))?;
        let (txid, damaged) = (db.stats().txid, db.damaged_meta());
        db.close().map_err(|error| Failure::storage(path, &error))?;
        drop(progress);
        let file = path.display();
        self.target.print(|out| {
            if self.json {
                let after = FileJournal::find(path, self.folder.as_deref())?;
                return after.map_or(Ok(()), |journal| Ok(json_line(&Line::Journal(head(&journal, false)), out)?));
            }
            if let Some(damaged) = damaged {
                let put_back = if damaged.is_known { "; it was put back: check the disk" } else { "" };
                writeln!(out, "{file}: {damaged}{put_back}")?;
            }
            match waited {
                Some(state) if self.discard && state.records > 0 => {
                    let lost = transactions(state.records);
                    writeln!(out, "{file}: as transaction {} left it; {lost} of its journal given up", state.contains)?;
                }
                None if self.discard && matches!(journal.state(), Err(Error::JournalMissing { .. })) => {
                    writeln!(out, "{file}: goes on as it is, without the journal that it had")?;
                }
                None if self.discard => {
                    let lost = transactions(recorded);
                    writeln!(
                        out,
                        "{file}: goes on as it is; its journal is given up, with {lost} that can be read in it"
                    )?;
                }
                Some(state) if state.records > 0 => {
                    let applied = transactions(state.records);
                    writeln!(out, "{file}: {applied} applied, up to {}; the file holds everything", state.newest)?;
                }
                _ => writeln!(out, "{file}: it held everything already, up to transaction {txid}")?,
            }
            if let Some((file, offset)) = waited.and_then(|state| state.torn.as_ref()) {
                writeln!(out, "{}", torn(file, *offset))?;
            }
            Ok(())
        })
    }

    /// How many transactions can be read in a journal.
    fn recorded(&self, journal: &FileJournal) -> Outcome<u64> {
        let mut segments = journal.segments();
        let sum = segments.try_fold(0, |sum, segment| Ok(sum + counted(journal, &segment)?.records));
        sum.map_err(|error: Error| Failure::storage(self.target.path(), &error))
    }

    fn print(&self, journal: &FileJournal, in_use: Option<&str>) -> Outcome {
        self.target.print(|out| {
            self.print_head(journal, in_use, out)?;
            for segment in journal.segments() {
                let segment = counted(journal, &segment)?;
                if self.json {
                    json_line(&Line::Segment(segment), out)?;
                } else {
                    print_segment(&segment, out)?;
                }
            }
            if self.records || self.effects {
                for segment in journal.segments().filter(|segment| segment.is_reached) {
                    journal.entries(segment.number, |entry| self.print_entry(entry, out))?;
                }
            }
            Ok(())
        })
    }

    fn print_head(&self, journal: &FileJournal, in_use: Option<&str>, out: &mut Out) -> Printed {
        let head = head(journal, in_use.is_some());
        if self.json {
            return Ok(json_line(&Line::Journal(head), out)?);
        }
        writeln!(out, "Journal: {}", head.folder)?;
        if let Some(holders) = in_use {
            writeln!(out, "In Use: the file is open{holders}; what follows may change")?;
        }
        match journal.state() {
            Ok(state) if journal.segments().next().is_none() => {
                writeln!(out, "State: nothing is recorded; the file is at transaction {}", state.contains)?;
            }
            Ok(state) => print_state(state, out)?,
            Err(error) => writeln!(out, "State: {error}")?,
        }
        if head.spares > 0 {
            let files = if head.spares == 1 { "file" } else { "files" };
            writeln!(out, "Spare: {} {files}, {} bytes", head.spares, head.spare_bytes)?;
        }
        if journal.segments().next().is_some() && !self.json {
            writeln!(out, "SEGMENT  BEGUN                     RECORDS  LINKS  TRANSACTIONS       BYTES      STATE")?;
        }
        Ok(())
    }

    fn print_entry(&self, entry: JournalEntry<'_>, out: &mut Out) -> Printed {
        let (segment, offset, kind, txid) = (entry.segment(), entry.offset(), kind(entry.kind()), entry.txid());
        let (time, bytes, whole) = (entry.time_ms(), entry.len(), entry.is_whole());
        self.print_entry_line(Entry { segment, offset, kind, txid, time, bytes, whole }, out)?;
        if !self.effects || entry.kind() != JournalEntryKind::Record {
            return Ok(());
        }
        entry.effects(|effect| {
            if self.json {
                return Ok(json_line(&Line::Effect(Effect::new(effect)), out)?);
            }
            self.print_effect(effect, out)
        })
    }

    fn print_entry_line(&self, line: Entry, out: &mut Out) -> Printed {
        if self.json {
            return Ok(json_line(&Line::Entry(line), out)?);
        }
        let Entry { segment, offset, kind, txid, time, bytes, whole } = line;
        let state = if whole { "" } else { ", not whole, or behind one that is not" };
        writeln!(out, "{kind} {txid} at {}, {bytes} bytes, byte {offset} of segment {segment}{state}", at(time))?;
        Ok(())
    }

    /// One line, as `diff` prints them.
    fn print_effect(&self, effect: &JournalEffect<'_>, out: &mut Out) -> Printed {
        let line = Effect::new(effect);
        write!(out, "  {}", line.what)?;
        if !line.path.is_empty() {
            out.write_all(b" ")?;
            self.format.write_path(line.path.iter().map(|name| name.0), out)?;
        }
        if let Some(key) = line.key {
            out.write_all(b" ")?;
            self.format.write(key.0, out)?;
        }
        if let Some(last) = line.last {
            out.write_all(b" to ")?;
            self.format.write(last.0, out)?;
        }
        if let Some(to) = line.to {
            out.write_all(b" to ")?;
            self.format.write_path(to.iter().map(|name| name.0), out)?;
        }
        if let Some(value) = line.value {
            out.write_all(b" = ")?;
            self.format.write(value.0, out)?;
        }
        if let Some(sequence) = line.sequence {
            write!(out, " = {sequence}")?;
        }
        out.write_all(b"\n")?;
        Ok(())
    }
}
