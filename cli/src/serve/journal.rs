//! When a write is answered, and the journal that makes this quick, as settings.

use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use boltkv_server::{Config, Server};
use boltkv_storage::tools::{FileJournal, RawFile};
use boltkv_storage::{Durability, Error, JournalKeep, JournalOptions};
use clap::Args;

use super::settings::Wrong;
use super::timeouts::never_if_zero;
use crate::arguments::{MOST_TIME, Size, milliseconds, seconds};
use crate::failure::journal_beside;

/// The least that makes sense between two checkpoints.
const LEAST_SIZE: Size = Size(JournalOptions::LEAST_CHECKPOINT_SIZE);

/// The least and the most memory for what is new that make sense for a server.
const SENSIBLE_MEMORY: RangeInclusive<usize> = 1 << 20..=JournalOptions::MOST_MEMORY;

/// The option's default.
const CHECKPOINT_INTERVAL: &str = "60s";

/// What takes longer to do again is told with the time that it took.
const LONG: Duration = Duration::from_secs(1);

/// When a write is answered, and what is kept beside the file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Durability")]
pub(super) struct JournalArgs {
    /// When a write is answered: `always`, once it is on the disk; `interval=TIME`, before, and it is there at most so much
    /// later (interval=100ms); `never`, before, and it is there when the system likes. With a journal a killed process
    /// loses nothing in any of them, a power cut the newest writes in the last two
    #[arg(long, value_name = "WHEN", default_value = "always", value_parser = durability)]
    durability: Durability,
    /// Whether writes are recorded in a journal, which takes one sync for each group of them: `on`, in the folder
    /// `FILE-journal` beside the file; `off`; or the folder to keep it in. Ended as told, the server leaves everything in
    /// the file
    #[arg(long, value_name = "WHERE", default_value = "on", value_parser = place)]
    journal: Place,
    /// Bring the file up to date before so many bytes of journal are full, from half on: bounds what the journal
    /// takes on the disk (about twice as much), and the time that it takes to open the file after a crash; at least 64KiB.
    /// Default: 192MiB, or twice `--journal-memory` where that is more
    #[arg(long, value_name = "SIZE")]
    journal_size: Option<Size>,
    /// Memory for what is new, until it is written to the file, beside `--memory`: 1MiB to 128MiB, and twice as much while
    /// long readers still see what was in it; 0: none. Default: 32MiB, or a sixteenth of a file of 768MiB or more, up to
    /// 128MiB and a quarter of `--memory`
    #[arg(long, value_name = "SIZE")]
    journal_memory: Option<Size>,
    /// The longest that a write is in the journal alone: the file is brought up to date so often, however little is written;
    /// 0: only after `--journal-size`
    #[arg(long, value_name = "TIME", default_value = CHECKPOINT_INTERVAL, value_parser = seconds)]
    checkpoint_interval: Duration,
    /// Keep what is in the file already in the journal, too: so many bytes (10GiB) or for so long (7d). Unless told
    /// otherwise it is written over
    #[arg(long, value_name = "SIZE|TIME", value_parser = keep)]
    journal_keep: Option<JournalKeep>,
    /// Where the journal does not fit the file, or is damaged, begin a new one and serve the file as it is: writes that
    /// only the journal has are lost. One that fits is applied all the same
    #[arg(long)]
    discard_journal: bool,
}

/// Where the journal is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Off,
    Beside,
    In(PathBuf),
}

impl JournalArgs {
    pub(super) fn apply(&self, config: &mut Config, wrong: &mut Vec<Wrong>) {
        config.durability = self.durability;
        config.discard_journal = self.discard_journal;
        if let Some(size) = self.journal_size.filter(|size| size.0 < LEAST_SIZE.0) {
            wrong.push(Wrong::new("journal-size", format!("is {size}, but must be {LEAST_SIZE} at least")));
        }
        let mut journal = JournalOptions::new();
        if let Some(Size(bytes)) = self.journal_size {
            journal = journal.checkpoint_size(bytes);
        }
        let journal = journal.checkpoint_every(never_if_zero(self.checkpoint_interval));
        let journal = journal.keep(self.journal_keep.unwrap_or_default());
        let journal = match self.journal_memory.map(|Size(bytes)| usize::try_from(bytes)) {
            None => journal,
            Some(Ok(bytes)) if bytes == 0 || SENSIBLE_MEMORY.contains(&bytes) => journal.memory(bytes),
            Some(_) => {
                let [least, most] = [*SENSIBLE_MEMORY.start(), *SENSIBLE_MEMORY.end()].map(Size::of);
                let found = self.journal_memory.unwrap_or(Size(0));
                let why = format!("is {found}, but must be 0 or lie between {least} and {most}");
                wrong.push(Wrong::new("journal-memory", why));
                journal
            }
        };
        config.journal = match &self.journal {
            Place::Off => None,
            Place::Beside => Some(journal),
            Place::In(folder) => Some(journal.folder(folder)),
        };
        if config.journal.is_none() {
            let is_usual = seconds(CHECKPOINT_INTERVAL).is_ok_and(|usual| usual == self.checkpoint_interval);
            let asked = [
                ("discard-journal", self.discard_journal),
                ("journal-memory", self.journal_memory.is_some_and(|Size(bytes)| bytes > 0)),
                ("journal-size", self.journal_size.is_some()),
                ("journal-keep", self.journal_keep.is_some()),
                ("checkpoint-interval", !is_usual && !self.checkpoint_interval.is_zero()),
            ];
            for (option, _) in asked.into_iter().filter(|(_, is_asked)| *is_asked) {
                wrong.push(Wrong::new(option, "needs a journal, and --journal is off"));
            }
        }
    }

    /// Whether the journal records what the file lacks, as far as that can be told.
    fn is_needed(&self, file: &Path) -> bool {
        let folder = match &self.journal {
            Place::In(folder) => Some(folder.as_path()),
            Place::Beside | Place::Off => None,
        };
        let is_left_open = || RawFile::open(file, None).ok()?.newest_meta().map(|meta| meta.is_left_open());
        match FileJournal::find(file, folder) {
            Ok(Some(journal)) if journal.segments().next().is_some() => !journal.is_contained(),
            // What it has cannot be told, but the file says that it has something.
            _ => is_left_open().unwrap_or(false),
        }
    }

    /// What can be done about a journal that keeps `file` from being served. One that is needed is not to be done without.
    /// `FILE` in it stands for the file's name.
    pub(super) fn advice(&self, error: &Error, file: &Path, is_read_only: bool) -> &'static str {
        let is_off = matches!(self.journal, Place::Off);
        match error {
            Error::JournalWithoutFile { .. } if is_off => "",
            Error::JournalMissing { .. } if is_off => {
                "; name the folder that it was kept in by --journal DIR; to serve the file as it is, without what only that has: \
                 `boltkv file journal --discard FILE`"
            }
            Error::JournalMissing { .. } => {
                "; name the folder that it was kept in by --journal DIR; --discard-journal serves the file as it is, without \
                 what only that has"
            }
            _ if is_off && error.can_discard_journal() => {
                "; to serve the file as it is, without what only the journal has, give it up: `boltkv file journal --discard \
                 FILE` (a copy of its folder keeps what it has)"
            }
            Error::JournalIo { path, source, .. } => of_io(source, path, file, self.is_needed(file)),
            Error::JournalWaits { .. } if is_read_only => "; serve it once without --read-only, which applies it",
            Error::JournalWaits { .. } => ", or serve it once with that journal, which applies it",
            Error::JournalWithoutFile { .. } => ", or let --discard-journal begin anew",
            Error::NoSpace { .. } => {
                "; what only the journal has is to be written to the file: make room on its disk, and start again"
            }
            Error::MetaLost { .. } => {
                "; `boltkv file repair` salvages what can be reached; a file that was put back from a backup is served once its \
                 journal's folder is moved aside"
            }
            Error::JournalInUse { .. } => "; a journal belongs to one file",
            Error::FileOlderThanJournal { .. } => {
                "; to keep it, let --discard-journal begin anew (a copy of the journal's folder keeps what it has); to have what \
                 came after it, \
                 `boltkv restore --backup FILE --journal DIR NEW` makes a file of it and a kept journal"
            }
            Error::JournalDamaged { .. } | Error::JournalDisjoint { .. } => {
                "; `boltkv file repair FILE --output NEW` makes a file of all that can be read, of the journal, too; \
                 --discard-journal serves the file as it is, without what only the journal has"
            }
            Error::JournalDoesNotFit { .. } => {
                "; if it is another file's, name the right folder by --journal, or move this one aside; --discard-journal serves \
                 the file as it is, and writes over what only this journal has"
            }
            _ if error.can_discard_journal() => {
                "; --discard-journal serves the file as it is, without what only the journal has"
            }
            _ => "",
        }
    }

    /// What is promised, as the line that says that the server is ready tells it.
    pub(super) fn promise(&self, file: &Path, server: &Server) -> String {
        let durability = Shown(self.durability);
        let Some(folder) = server.journal() else { return format!("durability {durability}, no journal") };
        let journal = as_asked(file, folder);
        let replayed = replayed(server.replayed(), server.replay_time());
        format!("durability {durability}, journal {}{replayed}", journal.display())
    }
}

/// What was done again from the journal, if anything was; and how long that took, if that is worth a word.
fn replayed(transactions: u64, time: Duration) -> String {
    let what = match transactions {
        0 => return String::new(),
        1 => "1 transaction".to_owned(),
        many => format!("{many} transactions"),
    };
    let took = if time > LONG { format!(" in {:.1} s", time.as_secs_f64()) } else { String::new() };
    format!(", {what} done again from it{took}")
}

/// What can be done where a folder or segment of a journal, at `path`, cannot be used.
fn of_io(error: &io::Error, path: &Path, file: &Path, is_needed: bool) -> &'static str {
    match error.kind() {
        io::ErrorKind::InvalidInput if is_needed => {
            "; the journal has what the file lacks, so that it cannot be left out or begun elsewhere: name its folder by \
             --journal DIR"
        }
        _ if is_needed => {
            "; the journal has what the file lacks, so that it cannot be left out or begun elsewhere: make room where it \
             lies, or mend what is said, and start again"
        }
        io::ErrorKind::FileTooLarge => {
            "; raise what a file of this process may have (ulimit -f, LimitFSIZE=): 32 KiB are the least for a journal"
        }
        io::ErrorKind::StorageFull => {
            "; make room there, and start again: nothing is lost. Where there is no journal yet, one with \
             --journal-size 1MiB takes less, --journal DIR keeps it elsewhere, --journal off does without"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem if is_in_usual_place(path, file) => {
            "; the folder in the usual place is opened whatever --journal says, for what it may hold: let this process \
             write in it, or move it aside: the file says that it does not need it"
        }
        _ => "; --journal DIR keeps it elsewhere, --journal off does without",
    }
}

/// Whether a path is the folder that the journal of `file` usually has, or in it, and that folder is there.
fn is_in_usual_place(path: &Path, file: &Path) -> bool {
    let usual = file.canonicalize().map(|file| journal_beside(&file));
    usual.is_ok_and(|usual| usual.is_dir() && path.starts_with(usual))
}

/// The journal's folder by the name that goes with the file's, where it has that.
fn as_asked(file: &Path, folder: &Path) -> PathBuf {
    let beside = journal_beside(file);
    if beside.canonicalize().is_ok_and(|beside| beside == folder) { beside } else { folder.into() }
}

/// As it is written on the command line.
struct Shown(Durability);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Durability::Interval { every, .. } => write!(f, "interval={every:?}"),
            Durability::Never => f.write_str("never"),
            _ => f.write_str("always"),
        }
    }
}

fn durability(text: &str) -> Result<Durability, String> {
    match (text, text.strip_prefix("interval=")) {
        ("always", _) => Ok(Durability::Always),
        ("never", _) => Ok(Durability::Never),
        ("interval", _) => Err("say how long a write may wait for its sync, as in interval=100ms".to_owned()),
        (_, Some(every)) => match milliseconds(every)? {
            Duration::ZERO => Err("an interval of 0 is `always`".to_owned()),
            every => Ok(Durability::Interval { every, commits: u64::MAX }),
        },
        _ => Err("`always`, `interval=TIME` and `never` are known".to_owned()),
    }
}

/// A word that seems to say whether there is to be a journal is no folder's name, unless it is written as one: `./no`.
fn place(text: &str) -> Result<Place, &'static str> {
    match text {
        "" => Err("`on`, `off` or a folder"),
        "on" => Ok(Place::Beside),
        "off" => Ok(Place::Off),
        word if SWITCHES.iter().any(|switch| word.eq_ignore_ascii_case(switch)) => {
            Err("`on`, `off` or a folder: one of that name is written with a ./ before it")
        }
        folder => Ok(Place::In(folder.into())),
    }
}

const SWITCHES: [&str; 11] = ["on", "off", "of", "true", "false", "yes", "no", "none", "always", "never", "0"];

/// A time where it reads as one: `m` are minutes, `M` and `MiB` a size.
fn keep(text: &str) -> Result<JournalKeep, String> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let size = || text.parse::<Size>().map(|Size(bytes)| JournalKeep::Bytes(bytes));
    match seconds(text) {
        _ if is_number => Err("say of what: a size such as 10GiB, or a time such as 7d".to_owned()),
        Ok(time) => Ok(JournalKeep::Time(time)),
        Err(_) => size().map_err(|_| {
            let days = MOST_TIME.as_secs() / (24 * 60 * 60);
            format!("not a size such as 10GiB, nor a time such as 7d, up to {days}d")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_durability_is_read_and_shown_alike() {
        for text in ["always", "never", "interval=100ms", "interval=2s"] {
            assert_eq!(Shown(durability(text).unwrap()).to_string(), text);
        }
        assert_eq!(durability("interval=100"), durability("interval=100ms"), "a number alone is milliseconds");
        for text in ["interval", "interval=", "interval=0", "sometimes", ""] {
            assert!(durability(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_journal_is_kept_for_a_size_or_a_time_and_never_for_a_mere_number() {
        for (text, kept) in [
            ("10GiB", JournalKeep::Bytes(10 << 30)),
            ("10M", JournalKeep::Bytes(10 << 20)),
            ("10m", JournalKeep::Time(Duration::from_secs(600))),
            ("7d", JournalKeep::Time(Duration::from_secs(7 * 86_400))),
        ] {
            assert_eq!(keep(text), Ok(kept), "{text}");
        }
        for text in ["", "7", "1.5", "week", "400d", "-1d"] {
            assert!(keep(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_done_again_is_told_and_the_time_where_it_was_long() {
        assert_eq!(replayed(0, Duration::from_secs(9)), "");
        assert_eq!(replayed(1, Duration::from_millis(900)), ", 1 transaction done again from it");
        assert_eq!(replayed(17, Duration::from_millis(2_340)), ", 17 transactions done again from it in 2.3 s");
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        journal: JournalArgs,
    }

    #[test]
    fn what_is_advised_can_be_done() {
        let advice = |error: &Error, line: &[&str]| {
            let Line { journal } = clap::Parser::parse_from(line);
            journal.advice(error, Path::new("no/such/file"), false)
        };
        let misfit = Error::FileOlderThanJournal { folder: "app.db-journal".into(), file: 2, held: 3 };
        assert!(advice(&misfit, &["serve"]).contains("--discard-journal"));
        let off = advice(&misfit, &["serve", "--journal=off"]);
        assert!(off.contains("boltkv file journal --discard") && !off.contains("--discard-journal"), "{off}");
        let (path, source) = ("app.db-journal".into(), io::ErrorKind::StorageFull.into());
        let full = Error::JournalIo { op: "write the journal in", path, source };
        assert!(advice(&full, &["serve"]).contains("--journal off"));
    }

    #[test]
    fn a_folder_is_any_other_word() {
        assert_eq!(place("on"), Ok(Place::Beside));
        assert_eq!(place("off"), Ok(Place::Off));
        assert_eq!(place("./on"), Ok(Place::In("./on".into())));
        assert!(place("").is_err());
    }
}
