//! `boltkv restore`: the state of any transaction since a backup, from that backup and the journal of its file.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use boltkv_storage::Error;
use boltkv_storage::tools::{Restore as Found, RestoreMoment, RestoreTo, Restored};
use clap::Args;
use serde::Serialize;

use super::holder;
use super::interrupt::Interrupt;
use super::output::{Out, Printed, json_line, print};
use super::progress::Progress;
use super::target::must_be_free;
use crate::failure::{Failure, Outcome};
use crate::moment;

/// Bring back the state of any transaction since a backup
///
/// A backup and the journal that its server has kept since (`serve --journal-keep`) give what every transaction left. The
/// journal is only read, also while a server writes it; DIR may also be a folder to which its files were copied. NEW has its
/// name only once every page was checked and all of it is on the disk. The backup has to be of the same file, made with
/// `boltkv backup`, or a copy of the file after a clean stop.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv restore --backup app.backup.db --journal app.db-journal restored.db
  boltkv restore --backup app.backup.db --journal app.db-journal \\
      --to 2026-11-22T14:03:00Z restored.db
  boltkv restore --backup app.backup.db --journal app.db-journal --to 48213 restored.db
  boltkv restore --backup app.backup.db --journal app.db-journal --list   # what there is")]
pub(crate) struct Restore {
    /// The backup to begin with
    #[arg(long, value_name = "FILE")]
    backup: PathBuf,
    /// The journal of the file that was backed up
    #[arg(long, value_name = "DIR")]
    journal: PathBuf,
    /// Which state: a transaction's number; or a time such as 2026-11-22T14:03:00Z, or in milliseconds since 1970 such as
    /// 1795354980000ms: all that was written up to then [default: the newest]
    #[arg(long, value_name = "TXID|TIME", conflicts_with = "list")]
    to: Option<To>,
    /// Print the transactions whose states can be restored, and write nothing. What each did, `boltkv file journal --effects`
    /// shows
    #[arg(long, conflicts_with = "new")]
    list: bool,
    /// Print JSON objects
    #[arg(long)]
    json: bool,
    /// Where to write. A file that is there is not replaced
    #[arg(value_name = "NEW", required_unless_present = "list")]
    new: Option<PathBuf>,
}

/// Which state was asked for.
#[derive(Debug, Clone, Copy)]
struct To(RestoreTo);

impl FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| "the number is larger than 2^64 - 1".to_owned());
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match text.strip_suffix("ms") {
            _ if is_number(text) => number(text).map(RestoreTo::Transaction),
            Some(ms) if is_number(ms) => number(ms).map(RestoreTo::Time),
            _ => moment::parse(text)
                .map(RestoreTo::Time)
                .map_err(|why| format!("neither a transaction's number nor a time: {why}")),
        }
        .map(Self)
    }
}

/// A line of JSON of what can be restored.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Listed {
    Backup { txid: u64, transactions: u64, damage: Option<String> },
    Transaction { txid: u64, time: u64 },
}

/// What was written, in the shape of its JSON.
#[derive(Serialize)]
struct Done {
    file: String,
    txid: u64,
    time: Option<u64>,
    transactions: u64,
    next_time: Option<u64>,
    bytes: u64,
}

impl Restore {
    pub(crate) fn run(&self) -> Outcome {
        let Some(new) = &self.new else { return self.list(&self.find()?) };
        must_be_free(new)?;
        let _interrupt = Interrupt::writing(new)?;
        let found = self.find()?;
        let to = self.to.map_or(RestoreTo::Newest, |To(to)| to);
        self.refuse_before_the_backup(&found, to)?;
        let looked_at = self.backup.metadata();
        let metadata = looked_at.map_err(|error| Failure::not_done(format!("{}: {error}", self.backup.display())))?;
        let restored = {
            let mut bar = None;
            let mut reached = |done, all| bar.get_or_insert_with(|| Progress::of_bytes(all)).reach(done);
            found.to_file(to, new, metadata.permissions().mode() & 0o777, &mut reached)
        };
        self.tell(new, to, &restored.map_err(|error| self.failed(new, &error))?)
    }

    /// Reads backup and journal.
    fn find(&self) -> Outcome<Found> {
        let _progress = Progress::doing("reading the journal");
        Found::find(&self.backup, &self.journal).map_err(|error| match error {
            Error::JournalDoesNotFit { .. } => Failure::storage(&self.backup, &error).followed_by(
                ". A backup that a restore can begin with is made by `boltkv backup` from the server whose journal this is",
            ),
            // What cannot be read of the journal stops it as what cannot be read of the backup does.
            error if error.is_of_journal() && !matches!(error, Error::JournalIo { .. } | Error::JournalWaits { .. }) => {
                Failure::storage(&self.backup, &error)
            }
            Error::LockTimeout { .. } => {
                let holders = holder::named(&self.backup);
                Failure::unreachable(format!("{error}{holders}; of a file that is served `boltkv backup` makes one"))
            }
            error => Failure::open(&self.backup, &error),
        })
    }

    fn refuse_before_the_backup(&self, found: &Found, to: RestoreTo) -> Outcome {
        match to {
            RestoreTo::Time(time_ms) if time_ms < found.earliest_time_ms() => {
                let (asked, earliest) = (moment::shown(time_ms), moment::shown(found.earliest_time_ms()));
                let backup = self.backup.display();
                Err(Failure::not_done(format!(
                    "{backup}: it may be newer than {asked}: it has what was written up to {earliest}; begin with an older one"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The last transaction whose state can be restored, as far as backup and journal can be read once more.
    fn last(&self) -> Option<RestoreMoment> {
        let mut last = None;
        let read = self.find().ok()?.moments(|moment| {
            last = Some(moment);
            Ok::<_, Error>(())
        });
        read.ok().and(last)
    }

    fn failed(&self, new: &Path, error: &Error) -> Failure {
        match error {
            Error::JournalDamaged { .. } | Error::JournalDisjoint { .. } => {
                let failure = Failure::storage(&self.backup, error);
                let Some(RestoreMoment { txid, time_ms, .. }) = self.last() else { return failure };
                failure.followed_by(&format!(
                    "; `--to {txid}`, of {}, is the last state before that",
                    moment::shown(time_ms)
                ))
            }
            Error::Io { .. } | Error::NoSpace { .. } | Error::JournalWithoutFile { .. } => Failure::storage(new, error),
            _ => Failure::storage(&self.backup, error),
        }
    }

    fn list(&self, found: &Found) -> Outcome {
        print(&self.backup, |out| self.print_list(found, out))
    }

    fn print_list(&self, found: &Found, out: &mut Out) -> Printed {
        let (txid, transactions) = (found.backup_txid(), found.transactions());
        let damage = found.damage().map(ToString::to_string);
        if self.json {
            json_line(&Listed::Backup { txid, transactions, damage }, out)?;
        } else {
            let backup = self.backup.display();
            writeln!(out, "{backup}: transaction {txid}; {transactions} more in {}", self.journal.display())?;
            if let Some(damage) = damage {
                writeln!(out, "What follows them cannot be restored: {damage}")?;
            }
        }
        found.moments(|RestoreMoment { txid, time_ms, .. }| -> Printed {
            if self.json {
                return Ok(json_line(&Listed::Transaction { txid, time: time_ms }, out)?);
            }
            Ok(writeln!(out, "{txid:<12} {}", moment::shown(time_ms))?)
        })
    }

    fn tell(&self, new: &Path, to: RestoreTo, restored: &Restored) -> Outcome {
        let &Restored { txid, time_ms, transactions, next_time_ms, bytes, .. } = restored;
        print(new, |out| {
            let file = new.display().to_string();
            if self.json {
                let (time, next_time) = (time_ms, next_time_ms);
                return Ok(json_line(&Done { file, txid, time, transactions, next_time, bytes }, out)?);
            }
            let when = time_ms.map_or_else(|| "the backup's".to_owned(), |time| format!("of {}", moment::shown(time)));
            write!(out, "{file}: as transaction {txid}, {when}, left it, {transactions} after the backup, checked")?;
            match (to, next_time_ms) {
                (RestoreTo::Time(_), None) => writeln!(out, "; the journal has nothing later")?,
                (_, Some(next)) => writeln!(out, "; the next one is of {}", moment::shown(next))?,
                (_, None) => writeln!(out)?,
            }
            Ok(())
        })
    }
}
