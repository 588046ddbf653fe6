//! The lines that `boltkv file journal` prints, for people and as JSON.

use std::io::Write as _;
use std::path::Path;

use boltkv_storage::tools::{FileJournal, JournalEntryKind, JournalSegment, JournalState};
use boltkv_storage::{Error, JournalChange, JournalEffect};
use serde::Serialize;

use super::super::output::{Base64, Out, Printed};
pub(super) use crate::moment::shown as at;

/// A line of JSON.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Line<'a> {
    /// There is no journal.
    Nothing {
        file: String,
    },
    Journal(Head),
    Segment(Segment),
    Entry(Entry),
    Effect(Effect<'a>),
}

#[derive(Serialize)]
pub(super) struct Head {
    pub(super) folder: String,
    /// Another process has the file open.
    pub(super) in_use: bool,
    pub(super) fits: bool,
    /// Why it does not.
    pub(super) why: Option<String>,
    /// The newest transaction in the file.
    pub(super) contains: Option<u64>,
    /// The newest transaction in the journal.
    pub(super) newest: Option<u64>,
    /// Records that the file lacks.
    pub(super) records: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) closed: Option<bool>,
    pub(super) torn: Option<Place>,
    pub(super) spares: usize,
    pub(super) spare_bytes: u64,
}

#[derive(Serialize)]
pub(super) struct Place {
    pub(super) file: String,
    pub(super) offset: u64,
}

#[derive(Serialize)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) file: String,
    pub(super) generation: String,
    pub(super) epoch: String,
    pub(super) time: u64,
    pub(super) bytes: u64,
    pub(super) follows: u64,
    pub(super) contains: u64,
    /// Others lead to it.
    pub(super) reached: bool,
    /// The file lacks records of it; `None` where that cannot be told, for the journal does not fit, or is damaged.
    pub(super) needed: Option<bool>,
    pub(super) records: u64,
    pub(super) links: u64,
    pub(super) closes: u64,
    /// Entries that are not whole, and those behind such in the segment: these are not read.
    pub(super) broken: u64,
    pub(super) first: Option<u64>,
    pub(super) last: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct Entry {
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) kind: &'static str,
    pub(super) txid: u64,
    pub(super) time: u64,
    pub(super) bytes: u64,
    pub(super) whole: bool,
}

#[derive(Serialize)]
pub(super) struct Effect<'a> {
    pub(super) path: Vec<Base64<'a>>,
    pub(super) what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<Base64<'a>>,
    /// The new path of a bucket that was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<Vec<Base64<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sequence: Option<u64>,
}

pub(super) fn print_state(state: &JournalState, out: &mut Out) -> Printed {
    let JournalState { contains, newest, records, bytes, closed, changed_since, torn, .. } = state;
    match (records, closed, changed_since) {
        (0, _, Some(before)) => writeln!(
            out,
            "State: the file is as transaction {contains} left it: since the journal was closed, with {before}, another \
             program has written to it, or it is another file"
        )?,
        (0, true, None) => {
            writeln!(out, "State: the file holds everything, up to transaction {contains}, and was closed")?;
        }
        (0, false, None) => writeln!(out, "State: the file holds everything, up to transaction {contains}")?,
        _ => {
            let waits = transactions(*records);
            writeln!(
                out,
                "State: the file holds transactions up to {contains}; {waits} up to {newest} ({bytes} bytes) wait"
            )?;
        }
    }
    if let Some((file, offset)) = torn {
        writeln!(out, "{}", self::torn(file, *offset))?;
    }
    Ok(())
}

/// Where the journal ends with something that is not whole.
pub(in crate::file) fn torn(file: &Path, offset: u64) -> String {
    format!(
        "Torn: {}, byte {offset}: what was written there is not whole, and nothing shows that it was synced: a crash cut it \
         off, or it is the newest, and damaged; it is passed over",
        file.display()
    )
}

pub(super) fn print_segment(segment: &Segment, out: &mut Out) -> Printed {
    let Segment { number, time, records, links, bytes, reached, needed, broken, .. } = segment;
    let numbers = match (segment.first, segment.last) {
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => "none".into(),
    };
    let state = match (reached, needed) {
        (false, _) => "passed over",
        (true, Some(true)) => "needed",
        (true, Some(false)) => "kept",
        (true, None) => "not known",
    };
    write!(out, "{number:<8} {:<25} {records:<8} {links:<6} {numbers:<18} {bytes:<10} {state}", at(*time))?;
    if *broken > 0 {
        write!(out, ", {broken} not whole, or behind one that is not")?;
    }
    out.write_all(b"\n")?;
    Ok(())
}

pub(super) fn head(journal: &FileJournal, in_use: bool) -> Head {
    let (spares, spare_bytes) = journal.spares();
    let state = journal.state();
    let known = state.as_ref().ok();
    Head {
        folder: journal.folder().display().to_string(),
        in_use,
        fits: known.is_some(),
        why: state.as_ref().err().map(ToString::to_string),
        contains: journal.file_txid().ok(),
        newest: known.map(|state| state.newest),
        records: known.map(|state| state.records),
        bytes: known.map(|state| state.bytes),
        closed: known.map(|state| state.closed),
        torn: known
            .and_then(|state| state.torn.as_ref())
            .map(|(file, offset)| Place { file: file.display().to_string(), offset: *offset }),
        spares,
        spare_bytes,
    }
}

/// A segment with what is in it.
pub(super) fn counted(journal: &FileJournal, segment: &JournalSegment) -> Result<Segment, Error> {
    let &JournalSegment { number, generation, epoch, time_ms, len, follows, contains, is_reached, .. } = segment;
    let (generation, epoch) = (format!("{generation:016x}"), format!("{epoch:016x}"));
    let mut counted = Segment {
        number,
        file: segment.file.clone(),
        generation,
        epoch,
        time: time_ms,
        bytes: len,
        follows,
        contains,
        reached: is_reached,
        needed: Some(false),
        records: 0,
        links: 0,
        closes: 0,
        broken: 0,
        first: None,
        last: None,
    };
    if !is_reached {
        return Ok(counted);
    }
    journal.entries(number, |entry| -> Result<(), Error> {
        if !entry.is_whole() {
            counted.broken += 1;
            return Ok(());
        }
        match entry.kind() {
            JournalEntryKind::Record => {
                counted.records += 1;
                counted.first.get_or_insert(entry.txid());
                counted.last = Some(entry.txid());
            }
            JournalEntryKind::Link => counted.links += 1,
            JournalEntryKind::Close => counted.closes += 1,
        }
        Ok(())
    })?;
    let is_beyond = |contains: u64| counted.last.is_some_and(|last| last > contains);
    counted.needed = journal.state().ok().map(|state| state.records > 0 && is_beyond(state.contains));
    Ok(counted)
}

impl<'a> Effect<'a> {
    pub(super) fn new(effect: &JournalEffect<'a>) -> Self {
        let path = effect.path.iter().map(|name| Base64(name)).collect();
        let mut line = Self { path, what: "", key: None, value: None, last: None, to: None, sequence: None };
        let (what, key) = match effect.change {
            JournalChange::Put { key, value } => {
                line.value = Some(Base64(value));
                ("put", Some(key))
            }
            JournalChange::Deleted { key } => ("delete", Some(key)),
            JournalChange::RangeDeleted { first, last } => {
                line.last = Some(Base64(last));
                ("delete-range", Some(first))
            }
            JournalChange::BucketCreated { name } => ("create-bucket", Some(name)),
            JournalChange::BucketDeleted { name } => ("delete-bucket", Some(name)),
            JournalChange::BucketMoved { name, to } => {
                line.to = Some(to.iter().map(|name| Base64(name)).collect());
                ("move-bucket", Some(name))
            }
            JournalChange::Sequence { sequence } => {
                line.sequence = Some(sequence);
                ("set-sequence", None)
            }
            _ => ("other", None),
        };
        line.what = what;
        line.key = key.map(Base64);
        line
    }
}

pub(super) fn kind(kind: JournalEntryKind) -> &'static str {
    match kind {
        JournalEntryKind::Record => "record",
        JournalEntryKind::Link => "link",
        JournalEntryKind::Close => "close",
    }
}

pub(super) fn transactions(count: u64) -> String {
    if count == 1 { "1 transaction".into() } else { format!("{count} transactions") }
}
