//! What the journal of a broken file records beyond it: done again in the new file, record by record, as far as the records
//! are whole and find what they are about. What is not done is told. The journal is only read; the broken file's lock keeps
//! others from writing it.

use std::path::Path;
use std::sync::Arc;

use super::{RepairEvent, RepairedJournal};
use crate::disk::{JournalFolder, OsJournalFolder, journal_path};
use crate::format::Meta;
use crate::handles::Db;
use crate::journal::{DamagedPage, MetaBytes, Waiting, refuse_missing, scan};
use crate::tree::{Recorded, Refused, Replay};
use crate::{Error, Result};

/// How many refused records are told one by one.
const MOST_TOLD: u64 = 1000;

/// Does again in `target`, which holds what was found of the transaction of `meta`, what the journal of `broken` records
/// beyond that. `None` where there is no journal, or nothing in it.
pub(super) fn apply(
    broken: &Path,
    meta: Option<&Meta>,
    target: &Db,
    on_event: &mut dyn FnMut(RepairEvent<'_>),
) -> Result<Option<RepairedJournal>> {
    let newest = meta.map_or(0, |meta| meta.txid);
    let mut applying = Applying { target, on_event, done: RepairedJournal { applied: 0, newest, lost: 0 } };
    match waiting(broken, meta) {
        Ok(None) => return Ok(None),
        Err(what) => applying.lost(&what),
        Ok(Some((waiting, damage))) => {
            applying.all(&waiting)?;
            match (damage, waiting.torn_at()) {
                (Some(damage), _) => applying.lost(&format!("all after transaction {}: {damage}", waiting.last())),
                (None, Some((file, offset))) => (applying.on_event)(RepairEvent::JournalTorn { file: &file, offset }),
                (None, None) => {}
            }
        }
    }
    Ok(Some(applying.done))
}

/// Buckets and values in the result, those in the bucket for orphans not among them.
pub(super) fn count(target: &Db, orphans: Option<&str>) -> Result<(u64, u64)> {
    let (tx, mut counts) = (target.begin()?, (0, 0));
    for found in tx.buckets() {
        let (name, bucket) = found?;
        if orphans.is_some_and(|orphans| orphans.as_bytes() == name) {
            continue;
        }
        for inside in bucket.structure() {
            counts = (counts.0 + 1, counts.1 + inside?.values);
        }
    }
    Ok(counts)
}

/// The meta that stood on that page of a file whose only whole one is `left`, if its journal has it.
pub(super) fn known_meta(broken: &Path, left: &Meta, page: &DamagedPage) -> Option<Meta> {
    // Whatever is wrong with the journal is told where it is applied.
    let folder = OsJournalFolder::look(&journal_path(broken).ok()?).ok()??;
    let folder: Arc<dyn JournalFolder> = Arc::new(folder);
    let log = scan(&folder).ok()?;
    log.check().ok()?;
    log.meta_on(page, left).ok()?
}

/// What waits, and where it ends before its end; or why nothing of it can be had.
fn waiting(broken: &Path, meta: Option<&Meta>) -> Result<Option<(Waiting, Option<Error>)>, String> {
    let told = |error: Error| format!("all of it: {error}");
    let path = journal_path(broken).map_err(Error::io("look for the journal of", Some(broken))).map_err(told)?;
    let missing = || meta.map_or(Ok(()), |meta| refuse_missing(meta, &path)).map(|()| None).map_err(told);
    let Some(folder) = OsJournalFolder::look(&path).map_err(told)? else { return missing() };
    let folder: Arc<dyn JournalFolder> = Arc::new(folder);
    let log = scan(&folder).map_err(told)?;
    // A header that is damaged may be that of the only segment in use.
    log.check().map_err(told)?;
    if log.is_empty() {
        return missing();
    }
    let Some(meta) = meta else {
        return Err("all of it: nothing tells which of its transactions follow the root that was taken".into());
    };
    let found = log.after_up_to_damage(&MetaBytes::of(meta)).map_err(told)?;
    if !found.0.knows_file() {
        missing()?;
    }
    Ok(Some(found))
}

struct Applying<'a> {
    target: &'a Db,
    on_event: &'a mut dyn FnMut(RepairEvent<'_>),
    done: RepairedJournal,
}

impl Applying<'_> {
    fn lost(&mut self, what: &str) {
        self.done.lost += 1;
        if self.done.lost <= MOST_TOLD {
            (self.on_event)(RepairEvent::JournalLost { what });
        }
    }

    /// Many in one transaction; where one of them is refused, each in one of its own.
    fn all(&mut self, waiting: &Waiting) -> Result<()> {
        for batch in waiting.batches() {
            if self.make(&batch.records)?.is_err() {
                for record in &batch.records {
                    if let Err(what) = self.make(std::slice::from_ref(record))? {
                        self.lost(&what);
                    }
                }
            }
            if let Some(error) = batch.unreadable {
                self.lost(&error.to_string());
            }
        }
        Ok(())
    }

    /// All of these, or none, and why.
    fn make(&mut self, records: &[Recorded]) -> Result<Result<(), String>> {
        let Some(newest) = records.last().map(|record| record.txid) else { return Ok(Ok(())) };
        let mut tx = self.target.begin_mut()?;
        match Replay::make_all(&mut tx.work, records) {
            Ok(()) => {}
            Err(Refused::Record { txid, what, .. }) => return Ok(Err(format!("transaction {txid}: {what}"))),
            Err(Refused::Damaged(error)) => return Err(error),
        }
        tx.commit()?;
        self.done.applied += records.len() as u64;
        self.done.newest = newest;
        Ok(Ok(()))
    }
}
