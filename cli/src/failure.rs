//! What a command ends with when it is not done: one line for people, one number for scripts.
//!
//! Nothing here prints an error's `Debug` form, and nothing else in the crate decides on an exit code.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use boltkv_client::{ErrorCode, TxnPart};
use boltkv_protocol::MAX_FRAME_LIMIT;
use boltkv_storage::Error;

use crate::bbolt_words;
use crate::permission::who_asked;
use crate::remote_tls::hint;
use crate::shell::quoted_for_shell;

/// What every command ends with.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The exit codes other than 0, as the help tells them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Not found, a check that failed, or a request that was refused.
    NotDone = 1,
    /// The command line, or what it handed over, cannot be used.
    Usage = 2,
    /// The server could not be reached or did not answer, or the file could not be opened. Nothing was written.
    Unreachable = 3,
    /// A write was sent and its answer never came, or could not be printed, or the disk failed under it: it may have been
    /// done or not.
    OutcomeUnknown = 4,
    /// A condition of a transaction does not hold: nothing was done, and reading again may help.
    ConditionFailed = 5,
}

/// Why a command is not done.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Whoever read standard output has gone, as `head` does when it has enough: that is nobody's mistake.
    OutputClosed,
    /// A signal of this number has ended the command early, and all that there is to say was said.
    Signal(i32),
    /// Anything that is to be said.
    Said {
        /// For scripts.
        exit: Exit,
        /// For people.
        message: String,
        /// The same in the words of bbolt's command, where it has other ones.
        bbolt: Option<String>,
    },
    /// What was handed over cannot be used, for several reasons, a line each.
    Mistakes(Vec<String>),
}

impl Failure {
    pub(crate) fn not_done(message: impl Into<String>) -> Self {
        Self::said(Exit::NotDone, message)
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::said(Exit::Usage, message)
    }

    pub(crate) fn unreachable(message: impl Into<String>) -> Self {
        Self::said(Exit::Unreachable, message)
    }

    fn said(exit: Exit, message: impl Into<String>) -> Self {
        Self::Said { exit, message: message.into(), bbolt: None }
    }

    /// The same, and what bbolt's command says there; `words` gets what it would say by now.
    pub(crate) fn in_bbolts_words(self, words: impl FnOnce(&str) -> String) -> Self {
        match self {
            Self::Said { exit, message, bbolt } => {
                let bbolt = Some(words(bbolt.as_deref().unwrap_or(&message)));
                Self::Said { exit, message, bbolt }
            }
            other => other,
        }
    }

    /// The same message, after this.
    pub(crate) fn prefixed(self, what: &str) -> Self {
        match self {
            Self::Said { exit, message, bbolt } => Self::Said { exit, message: format!("{what}: {message}"), bbolt },
            other => other,
        }
    }

    /// The same message, before this.
    pub(crate) fn followed_by(self, what: &str) -> Self {
        match self {
            Self::Said { exit, message, bbolt } => Self::Said { exit, message: format!("{message}{what}"), bbolt },
            other => other,
        }
    }

    /// The same, without the server's count of a transaction's parts, where the line that a part stands on is named.
    pub(crate) fn without_count(self, part: TxnPart) -> Self {
        let counted = match part {
            TxnPart::Condition(at) => format!("condition {at} of the transaction: "),
            TxnPart::Request(at) => format!("request {at} of the transaction: "),
        };
        match self {
            Self::Said { exit, message, bbolt } => {
                Self::Said { exit, message: message.replacen(&counted, "", 1), bbolt }
            }
            other => other,
        }
    }

    fn about(exit: Exit, file: &Path, error: &Error) -> Self {
        Self::Said { exit, message: about(file, error), bbolt: bbolt_words::of(error) }
    }

    /// A file that could not be opened as a database.
    pub(crate) fn open(file: &Path, error: &Error) -> Self {
        Self::about(Exit::Unreachable, file, error)
    }

    /// A database that was opened, and then could not be read or written.
    pub(crate) fn storage(file: &Path, error: &Error) -> Self {
        Self::about(Exit::NotDone, file, error)
    }

    /// A write that failed. The same as any other failure, but where the disk failed under it: then nobody knows.
    pub(crate) fn write(error: boltkv_client::Error) -> Self {
        let is_unknown = error.is_outcome_unknown();
        let failure = Self::from(error);
        if is_unknown { failure.ending_with(Exit::OutcomeUnknown) } else { failure }
    }

    /// The same, with the exit code of a transaction's condition that does not hold.
    pub(crate) fn of_a_condition(self) -> Self {
        self.ending_with(Exit::ConditionFailed)
    }

    fn ending_with(self, exit: Exit) -> Self {
        match self {
            Self::Said { message, bbolt, .. } => Self::Said { exit, message, bbolt },
            other => other,
        }
    }

    /// Standard output that could not be written.
    pub(crate) fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::not_done(format!("could not write standard output: {error}"))
    }

    /// As [`Self::stdout`], of what came of a write that was done.
    pub(crate) fn result(error: &io::Error) -> Self {
        Self::stdout(error)
            .prefixed("it was done, and what came of it is not printed")
            .ending_with(Exit::OutcomeUnknown)
    }

    /// The same, with the exit code of a check that failed.
    pub(crate) fn into_not_done(self) -> Self {
        match self {
            Self::Said { message, .. } => Self::not_done(message),
            other => other,
        }
    }

    /// What there is to say, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        match self {
            Self::OutputClosed | Self::Signal(_) => Vec::new(),
            Self::Said { message, .. } => vec![one_line(message)],
            Self::Mistakes(said) => said.iter().map(|message| one_line(message)).collect(),
        }
    }

    /// Says on standard error what there is to say.
    pub(crate) fn report(&self) -> ExitCode {
        for line in self.lines() {
            // If standard error is closed too, the exit code has to do.
            let _ = writeln!(io::stderr(), "boltkv: {line}");
        }
        match self {
            Self::OutputClosed => ExitCode::SUCCESS,
            Self::Signal(number) => ExitCode::from(u8::try_from(128 + number).unwrap_or(u8::MAX)),
            Self::Said { exit, .. } => ExitCode::from(*exit as u8),
            Self::Mistakes(_) => ExitCode::from(Exit::Usage as u8),
        }
    }
}

/// Says on standard error what is no failure.
pub(crate) fn note(what: &str) {
    // If standard error is closed, what is done is the same.
    let _ = writeln!(io::stderr(), "boltkv: {}", one_line(what));
}

/// What was printed, of a command that has a verdict besides: it holds, also where nobody reads on.
pub(crate) fn before_a_verdict(printed: Outcome) -> Outcome {
    match printed {
        Err(Failure::OutputClosed) => Ok(()),
        printed => printed,
    }
}

impl From<boltkv_client::Error> for Failure {
    fn from(error: boltkv_client::Error) -> Self {
        use boltkv_client::{Error, Loss};
        let exit = match &error {
            Error::OutcomeUnknown(_) => Exit::OutcomeUnknown,
            Error::ConnectionLost(_) | Error::Timeout(_) | Error::Protocol(_) => Exit::Unreachable,
            _ if error.is_unreachable() => Exit::Unreachable,
            _ => Exit::NotDone,
        };
        let is_late = matches!(&error, Error::Timeout(_) | Error::OutcomeUnknown(Loss::Timeout(_)));
        let over_the_frame = match &error {
            // A longer one than any server takes is another matter.
            Error::Unsendable(error) => error.field == "frame" && error.limit < MAX_FRAME_LIMIT,
            Error::Server(reply) => reply.code == ErrorCode::FrameTooLarge || reply.value_size().is_some(),
            _ => false,
        };
        let hint = match error.code() {
            _ if over_the_frame => "; the server's option --max-frame sets the limit",
            Some(ErrorCode::Unauthenticated) => way_in(&error.to_string()),
            Some(ErrorCode::BucketNotFound) => {
                "; `boltkv bucket create PATH` makes one, `boltkv bucket list` shows them"
            }
            _ if is_late => "; --timeout has it wait for longer",
            _ if matches!(&error, Error::NoAnswer { .. }) => "; is it a boltkv server?",
            _ => hint(&error),
        };
        Self::said(exit, format!("{error}{hint}"))
    }
}

/// What lets in who was not let in, by what he was told.
pub(crate) fn way_in(told: &str) -> &'static str {
    if told.contains("encrypted (TLS)") {
        "; --tls-ca FILE, or --tls, has it encrypted"
    } else {
        "; --token-file FILE, BOLTKV_TOKEN_FILE or BOLTKV_TOKEN says who you are"
    }
}

/// What it says, for a log.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutputClosed => f.write_str("nobody reads the output"),
            Self::Signal(number) => write!(f, "ended by signal {number}"),
            Self::Said { message, .. } => f.write_str(&one_line(message)),
            Self::Mistakes(mistakes) => f.write_str(&one_line(&mistakes.join("; "))),
        }
    }
}

/// A message with nothing in it that would end the line or steer a terminal: names of files and messages of servers come
/// from anywhere.
pub(crate) fn one_line(message: &str) -> String {
    let mut line = String::with_capacity(message.len());
    for character in message.chars() {
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

/// The engine's message with the file's name, where it does not name it itself.
fn about(file: &Path, error: &Error) -> String {
    match error {
        Error::Io { source, path, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            let path = path.as_deref().unwrap_or(file);
            format!("{error}{}", who_asked(path, if path == file { "the file" } else { "it" }))
        }
        Error::Io { source, path: Some(path), .. } if source.kind() == io::ErrorKind::NotFound => {
            match path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
                Some(folder) => format!("{error}; its folder {} is not there", folder.display()),
                None => error.to_string(),
            }
        }
        Error::BucketNotFound { name, .. } if name.contains(&b'/') => {
            let within = "the buckets of a file are named one by one: `users eu` for `users/eu`";
            format!("{}: {error}; {within}", file.display())
        }
        Error::NotABoltFile => format!("{}: {}", file.display(), of_no_bolt_file(file, error)),
        Error::JournalIo { source, path, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            format!("{error}{}", who_asked(path, "it"))
        }
        Error::JournalGap { .. } => {
            format!("{error}; `serve --journal-keep` keeps a journal beyond the next checkpoint, from then on")
        }
        Error::Io { .. } | Error::JournalIo { .. } | Error::LockTimeout { .. } => error.to_string(),
        Error::JournalWaits { folder, .. } => {
            format!("{}: {error}: `{}` does", file.display(), journal_command("--apply ", file, Some(folder)))
        }
        Error::JournalWithoutFile { .. } => {
            format!("{}: {error}: bring the file back, or move the journal aside", file.display())
        }
        Error::JournalMissing { .. } => {
            format!("{}: {error} (`{}` tells more)", file.display(), journal_command("", file, None))
        }
        Error::MetaLost { folder, .. }
        | Error::JournalDoesNotFit { folder, .. }
        | Error::FileOlderThanJournal { folder, .. } => {
            format!("{}: {error} (`{}` tells more)", file.display(), journal_command("", file, Some(folder)))
        }
        Error::JournalDamaged { file: segment, .. }
        | Error::JournalDisjoint { file: segment, .. }
        | Error::JournalVersion { file: segment, .. } => {
            format!("{}: {error} (`{}` tells more)", file.display(), journal_command("", file, segment.parent()))
        }
        _ => format!("{}: {error}", file.display()),
    }
}

/// Why a file is no bolt file, with what else it is, or the way on where it was one.
fn of_no_bolt_file(file: &Path, error: &Error) -> String {
    if let Some(other) = begins_as(file) {
        return format!("not a bolt file: {other}");
    }
    let repair = format!("boltkv file repair --output NEW {}", quoted_for_shell(file));
    format!("{error}; if it was one, `{repair}` looks for what is left")
}

/// What else a file is that has nothing of bolt's, where its first bytes tell.
pub(crate) fn begins_as(file: &Path) -> Option<String> {
    let mut first = Vec::new();
    File::open(file).and_then(|file| file.take(16).read_to_end(&mut first)).ok()?;
    let of = |program| format!("{program} has made it: `{program} -dc {} > NEW` unpacks it", quoted_for_shell(file));
    match &*first {
        [0x1f, 0x8b, ..] => Some(of("gzip")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(of("zstd")),
        b"SQLite format 3\0" => Some("it is a database of SQLite".to_owned()),
        _ => None,
    }
}

/// How it is told where the journal is, if that is not the usual place.
fn folder_flag(file: &Path, folder: &Path) -> String {
    let usual = file.canonicalize().map(|real| journal_beside(&real));
    if usual
        .and_then(fs::canonicalize)
        .ok()
        .is_some_and(|usual| folder.canonicalize().is_ok_and(|folder| usual == folder))
    {
        return String::new();
    }
    format!("--folder {} ", quoted_for_shell(folder))
}

/// What the journal of a file of that name is called, unless it is told otherwise.
pub(crate) fn journal_beside(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// The command that is about the journal of a file, as it is typed; in that folder, where one is known.
pub(crate) fn journal_command(flag: &str, file: &Path, folder: Option<&Path>) -> String {
    let folder = folder.map(|folder| folder_flag(file, folder)).unwrap_or_default();
    format!("boltkv file journal {flag}{folder}{}", quoted_for_shell(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_on_one_line_and_does_not_steer_the_terminal() {
        assert_eq!(one_line("größe\n\u{1b}[31m…"), "größe\\n\\u{1b}[31m…");
    }
}
