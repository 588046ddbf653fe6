//! From a line to what it asks for. The shape of every command comes from the table in [`command`](crate::command); this file
//! only says what its words mean.

use std::num::NonZeroU64;
use std::ops::Bound;
use std::str::FromStr;

use bytes::Bytes;

use super::answer::Answer;
use super::reads::Reads;
use super::word::{self, WordError, Words};
use crate::command::{self, Command, TextForm, Verb};
use crate::{
    Cond, ErrorCode, ErrorReply, ExpireCond, ExpireTo, Expiry, KeyRange, LowBound, OperatorRequest, Path, PathError,
    ReadRequest, Scan, ScanMode, ScanOptions, StreamRequest, Token, TxnCondition, WriteRequest,
};

/// What a line asks for, by what becomes of it: a session that takes lines handles every one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextCommand {
    /// One read.
    Read {
        /// What to execute.
        request: ReadRequest,
        /// How to print its reply.
        answer: Answer,
    },
    /// Several reads, whose replies are printed one after the other.
    ReadEach {
        /// What to execute, in this order.
        reads: Reads,
        /// How to print each reply.
        answer: Answer,
    },
    /// A write.
    Write {
        /// What to execute.
        request: WriteRequest,
        /// How to print its reply.
        answer: Answer,
    },
    /// A scan, or a count.
    Stream {
        /// What to execute.
        request: StreamRequest,
        /// How to print its reply, entry by entry.
        answer: Answer,
    },
    /// From now on this is the connection's bucket, if it is there.
    Use(Path),
    /// The lines that follow are a transaction.
    Multi,
    /// A condition of the transaction.
    Condition(TxnCondition),
    /// The transaction is to be done.
    Exec,
    /// The transaction is to be forgotten.
    Discard,
    /// This is who is asking.
    Auth(Token),
    /// What concerns the server and all its connections.
    Operator {
        /// What to do.
        request: OperatorRequest,
        /// How to print its reply.
        answer: Answer,
    },
    /// The figures of the server.
    Stats,
    /// Print the commands.
    Help,
    /// Close the connection.
    Quit,
}

/// Reads a line, without its end. `current` is the connection's bucket. `None` for a line of blanks, which has no answer.
///
/// # Errors
/// `MALFORMED` for a line that breaks the rules of words or of its command; `UNSUPPORTED` for a command that this version does
/// not have.
pub fn parse(line: &Bytes, current: &Path) -> Result<Option<TextCommand>, ErrorReply> {
    let mut words = Words::new(line.clone());
    let Some(first) = words.next()? else {
        return Ok(None);
    };
    let (command, form) = find(&first, &mut words)?;
    if form.verb.ends_in_value() {
        return ending_in_value(form.verb, words, current, command).map(Some);
    }
    if form.verb == Verb::MultiGet {
        let reads = Reads::new(words, current.clone())?.ok_or_else(|| usage(command))?;
        return Ok(Some(TextCommand::ReadEach { reads, answer: Answer::Value }));
    }
    // One more than there may be tells that there are too many.
    let arguments = words.take(form.max.saturating_add(1))?;
    if !(form.min..=form.max).contains(&arguments.len()) {
        return Err(usage(command));
    }
    interpret(form.verb, arguments, current, command).map(Some)
}

/// The command that a line starts with; takes its second word off the line where the name has two.
fn find(first: &[u8], words: &mut Words) -> Result<(&'static Command, TextForm), ErrorReply> {
    if let Some(found) = command::find_text(first, None) {
        return Ok(found);
    }
    let choices: Vec<_> = command::second_words(first).collect();
    if choices.is_empty() {
        let message = format!("unknown command {}; HELP lists them all", word::for_message(first));
        return Err(ErrorReply::new(ErrorCode::Unsupported, message));
    }
    let second = words.next()?;
    second.and_then(|second| command::find_text(first, Some(&second))).ok_or_else(|| {
        let name = String::from_utf8_lossy(first).to_uppercase();
        malformed(format!("{name} is followed by one of {}", choices.join(", ")))
    })
}

/// SET and its like take their value as the line has it, so their words are not cut as everyone's.
fn ending_in_value(verb: Verb, mut words: Words, current: &Path, command: &Command) -> Result<TextCommand, ErrorReply> {
    let path = current.clone();
    let too_short = || usage(command);
    let key = words.next()?.ok_or_else(too_short)?;
    let lasts = match verb {
        Verb::SetExpiring => Some(seconds(&words.next()?.ok_or_else(too_short)?)?),
        _ => None,
    };
    let cond = match verb {
        Verb::SetIfAbsent => Cond::IfAbsent,
        Verb::SetIfPresent => Cond::IfPresent,
        Verb::CompareAndSet => Cond::IfEquals(words.next()?.ok_or_else(too_short)?),
        _ => Cond::Always,
    };
    let value = words.rest_as_value()?.ok_or_else(too_short)?;
    if verb == Verb::IfEquals {
        return Ok(TextCommand::Condition(TxnCondition { path, key, cond: Cond::IfEquals(value) }));
    }
    Ok(if verb == Verb::CompareAndDelete {
        let request = WriteRequest::Delete { path, key, cond: Cond::IfEquals(value) };
        TextCommand::Write { request, answer: Answer::Deleted }
    } else {
        let request = match lasts {
            Some(ms) => WriteRequest::SetExpiring { path, key, value, cond, expiry: Expiry::In(ms) },
            None => WriteRequest::Set { path, key, value, cond },
        };
        TextCommand::Write { request, answer: Answer::Done }
    })
}

/// What a command with this many arguments asks for.
fn interpret(verb: Verb, arguments: Vec<Bytes>, current: &Path, command: &Command) -> Result<TextCommand, ErrorReply> {
    let path = current.clone();
    let mut arguments = arguments.into_iter();
    let first = arguments.next();
    let read = |request, answer| TextCommand::Read { request, answer };
    let write = |request, answer| TextCommand::Write { request, answer };
    let stream = |request, answer| TextCommand::Stream { request, answer };
    Ok(match (verb, first) {
        (Verb::Get, Some(key)) => read(ReadRequest::Get { path, key }, Answer::Value),
        (Verb::Exists, Some(key)) => read(ReadRequest::Get { path, key }, Answer::Exists),
        (Verb::Delete, Some(key)) => write(WriteRequest::Delete { path, key, cond: Cond::Always }, Answer::Deleted),
        (Verb::DeleteRange, Some(low)) => {
            let words = std::iter::once(low).chain(arguments).collect();
            write(delete_range(words, path, command)?, Answer::DeletedRange)
        }
        (verb @ (Verb::Increment | Verb::Decrement), Some(key)) => {
            let delta = delta(verb, arguments.next())?;
            write(WriteRequest::Increment { path, key, delta }, Answer::Number)
        }
        (verb, Some(key)) if verb.is_about_time() => about_time(verb, path, key, arguments.next())?,
        (Verb::BucketNext, Some(path)) => write(WriteRequest::NextSequence(Path::parse(&path)?), Answer::Number),
        (Verb::BucketSequence, Some(path)) => {
            let path = Path::parse(&path)?;
            match arguments.next() {
                None => read(ReadRequest::Sequence(path), Answer::Number),
                Some(n) => write(WriteRequest::SetSequence { path, sequence: parse_number(&n)? }, Answer::Done),
            }
        }
        (Verb::BucketMove, Some(path)) => {
            let to = arguments.next().ok_or_else(|| usage(command))?;
            write(WriteRequest::MoveBucket { path: Path::parse(&path)?, to: Path::parse(&to)? }, Answer::Done)
        }
        (Verb::BucketCreate, Some(path)) => {
            write(WriteRequest::CreateBucketIfMissing(Path::parse(&path)?), Answer::Done)
        }
        (Verb::BucketDelete, Some(path)) => write(WriteRequest::DeleteBucket(Path::parse(&path)?), Answer::Done),
        (Verb::BucketUse, Some(path)) => TextCommand::Use(Path::parse(&path)?),
        (Verb::BucketList, path) => {
            let path = path.map_or(Ok(Path::ROOT), |path| Path::parse(&path))?;
            let scan = Scan { path, ..Scan::default() };
            stream(StreamRequest::ListBuckets(scan), Answer::Names)
        }
        (Verb::BucketStat, Some(path)) => stream(StreamRequest::BucketStat(Path::parse(&path)?), Answer::Figures),
        (Verb::Scan, first) => {
            let words = first.into_iter().chain(arguments).collect();
            stream(StreamRequest::Scan(scan(words, path, command)?), Answer::Entries)
        }
        (Verb::Count, prefix) => stream(StreamRequest::Scan(count(path, prefix)), Answer::Count),
        (Verb::IfAbsent, Some(key)) => TextCommand::Condition(TxnCondition { path, key, cond: Cond::IfAbsent }),
        (Verb::IfPresent, Some(key)) => TextCommand::Condition(TxnCondition { path, key, cond: Cond::IfPresent }),
        (Verb::ClientKill, Some(id)) => {
            operator(OperatorRequest::KillClient { client: parse_number(&id)? }, Answer::Done)
        }
        (Verb::SlowlogGet, most) => slow_log(most.as_deref())?,
        (Verb::Auth, Some(token)) => TextCommand::Auth(token.into()),
        (Verb::Ping, None) => read(ReadRequest::Ping(Bytes::new()), Answer::Pong),
        (verb, None) => bare(verb).ok_or_else(|| usage(command))?,
        _ => return Err(usage(command)),
    })
}

/// What a command that is a word of its own asks for.
const fn bare(verb: Verb) -> Option<TextCommand> {
    Some(match verb {
        Verb::Multi => TextCommand::Multi,
        Verb::Exec => TextCommand::Exec,
        Verb::Discard => TextCommand::Discard,
        Verb::ClientList => operator(OperatorRequest::ListClients { after: 0 }, Answer::Rows),
        Verb::SlowlogReset => operator(OperatorRequest::ResetSlowLog, Answer::Done),
        Verb::Stats => TextCommand::Stats,
        Verb::Help => TextCommand::Help,
        Verb::Quit => TextCommand::Quit,
        _ => return None,
    })
}

const fn operator(request: OperatorRequest, answer: Answer) -> TextCommand {
    TextCommand::Operator { request, answer }
}

/// `[n]`
fn slow_log(most: Option<&[u8]>) -> Result<TextCommand, ErrorReply> {
    let most = most.map_or(Ok(0), parse_number)?;
    Ok(operator(OperatorRequest::SlowLog { most, before: 0 }, Answer::Rows))
}

/// `low high [LIMIT n]`
fn delete_range(mut words: Vec<Bytes>, path: Path, command: &Command) -> Result<WriteRequest, ErrorReply> {
    let limit = take_limit(&mut words, 4, command)?;
    let [low, high] = <[Bytes; 2]>::try_from(words).map_err(|_| usage(command))?;
    let low = if low.is_empty() { LowBound::Unbounded } else { LowBound::Included(low) };
    let high = if high.is_empty() { Bound::Unbounded } else { Bound::Excluded(high) };
    Ok(WriteRequest::DeleteRange { path, range: KeyRange { low, high }, limit })
}

/// `[prefix] [LIMIT n]`
fn scan(mut words: Vec<Bytes>, path: Path, command: &Command) -> Result<Scan, ErrorReply> {
    let limit = take_limit(&mut words, 2, command)?;
    let options = ScanOptions { limit, ..ScanOptions::default() };
    Ok(Scan { path, range: range(words.pop()), options })
}

/// `[prefix]`
fn count(path: Path, prefix: Option<Bytes>) -> Scan {
    let options = ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() };
    Scan { path, range: range(prefix), options }
}

/// What INCR or DECR adds: 1 where no number is given.
fn delta(verb: Verb, number: Option<Bytes>) -> Result<i64, ErrorReply> {
    let by: i64 = number.map_or(Ok(1), |number| parse_number(&number))?;
    let delta = if verb == Verb::Decrement { by.checked_neg() } else { Some(by) };
    delta.ok_or_else(|| malformed(format!("{by} cannot be taken away in 64 bits")))
}

/// When a key expires: what it is, or is to be.
fn about_time(verb: Verb, path: Path, key: Bytes, number: Option<Bytes>) -> Result<TextCommand, ErrorReply> {
    let answer = match verb {
        Verb::TimeLeft => Answer::Seconds,
        Verb::TimeLeftMillis => Answer::Millis,
        _ => {
            let request = WriteRequest::Expire { path, key, to: expire_to(verb, number)?, cond: ExpireCond::Always };
            return Ok(TextCommand::Write { request, answer: Answer::ExpirySet });
        }
    };
    Ok(TextCommand::Read { request: ReadRequest::ExpiryTime { path, key }, answer })
}

/// What EXPIRE and its like have a key's time be. A number below zero is past, as zero is.
fn expire_to(verb: Verb, number: Option<Bytes>) -> Result<ExpireTo, ErrorReply> {
    let Some(number) = number else { return Ok(ExpireTo::Never) };
    let number: i64 = parse_number(&number)?;
    let number = u64::try_from(number).unwrap_or(0);
    let ms = if verb == Verb::Expire { number.saturating_mul(1_000) } else { number };
    Ok(ExpireTo::In(ms))
}

/// How many milliseconds SETEX has a key last: no key is set that is gone at once.
fn seconds(number: &[u8]) -> Result<u64, ErrorReply> {
    match parse_number::<u64>(number)? {
        0 => Err(malformed("SETEX takes a number of 1 second or more, not 0".to_owned())),
        seconds => Ok(seconds.saturating_mul(1_000)),
    }
}

/// Takes `LIMIT n` off the end of a line of `with` words or more.
fn take_limit(words: &mut Vec<Bytes>, with: usize, command: &Command) -> Result<Option<NonZeroU64>, ErrorReply> {
    let [before @ .., name, number] = words.as_slice() else { return Ok(None) };
    if before.len() + 2 < with {
        return Ok(None);
    }
    if !name.eq_ignore_ascii_case(b"LIMIT") {
        return Err(usage(command));
    }
    let limit = parse_limit(number)?;
    words.truncate(before.len());
    Ok(Some(limit))
}

fn parse_number<T: FromStr>(number: &[u8]) -> Result<T, ErrorReply> {
    let parsed = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    parsed.ok_or_else(|| malformed(format!("{} is no whole number of 64 bits", word::for_message(number))))
}

fn parse_limit(number: &[u8]) -> Result<NonZeroU64, ErrorReply> {
    std::str::from_utf8(number)
        .ok()
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| malformed(format!("LIMIT takes a number of 1 or more, not {}", word::for_message(number))))
}

fn range(prefix: Option<Bytes>) -> KeyRange {
    prefix.filter(|prefix| !prefix.is_empty()).map_or(KeyRange::ALL, KeyRange::prefix)
}

fn usage(command: &Command) -> ErrorReply {
    malformed(format!("usage: {}", command.usage().unwrap_or_default()))
}

fn malformed(message: String) -> ErrorReply {
    ErrorReply::new(ErrorCode::Malformed, message)
}

impl From<WordError> for ErrorReply {
    fn from(error: WordError) -> Self {
        malformed(error.to_string())
    }
}

impl From<PathError> for ErrorReply {
    fn from(error: PathError) -> Self {
        malformed(error.to_string())
    }
}
