//! From a meta that the file once had to the records that follow it: what the restoring of a backup needs.
//!
//! An opening asks what the file's newest meta lacks; here the meta may be any that is named among what is kept. It has to be
//! named: after a clean close a file may be taken as it is, a backup may not.

use super::log::{Chain, Log, Segment, damaged};
use super::{MetaBytes, Waiting};
use crate::base::TxId;
use crate::{Error, Result};

/// Up to where records are wanted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    End,
    /// This transaction, which is among them.
    Txid(TxId),
    /// The first that was written later than this, in milliseconds since 1970.
    Time(u64),
}

/// The first records of those that wait.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stretch {
    pub(crate) records: u64,
    /// Bytes of their effects.
    pub(crate) bytes: u64,
    /// The last of them, and when it was written.
    pub(crate) last: Option<(TxId, u64)>,
    /// When the one behind them was written.
    pub(crate) next_time_ms: Option<u64>,
}

impl Log {
    /// What is recorded beyond `meta`, wherever in the journal it is named; up to where that is damaged, and why.
    ///
    /// # Errors
    /// [`Error::JournalGap`] where what follows the meta is not kept any more; [`Error::JournalDoesNotFit`] where nothing
    /// names it; a segment could not be read.
    pub(crate) fn since(self, meta: &MetaBytes) -> Result<(Waiting, Option<Error>)> {
        let (folder, mut found) = (self.folder.clone(), Vec::new());
        let mut chain = Chain::new(folder.clone(), self.segments.clone());
        let (mut oldest, mut unreached) = (None, None);
        while let Some(first) = chain.path.first() {
            let follows = first.header.follows;
            let has_all = |segment: &Segment| segment.header.follows <= meta.txid();
            match chain.locate(meta)? {
                Some(located) if chain.path[..=located.segment].iter().any(has_all) => {
                    let (waiting, damage) = Self { segments: chain.path, ..self }.after_up_to_damage(meta)?;
                    return Ok((waiting, damage.or(unreached)));
                }
                Some(_) => return Err(Error::JournalGap { folder, wanted: meta.txid(), oldest: follows }),
                None => chain.add_newest_metas(&mut found)?,
            }
            oldest = Some(oldest.unwrap_or(follows).min(follows));
            let Some(missing) = chain.missing else { break };
            let what = format!("segment {missing}, which it follows, is not there");
            unreached = unreached.or(Some(damaged(folder.join(first.file.name()), 0, what)));
            // What cannot be reached from here may be named there; what lies behind the hole is out of reach then.
            chain = Chain::new(folder.clone(), chain.others);
        }
        match oldest {
            Some(oldest) if meta.txid() < oldest => Err(Error::JournalGap { folder, wanted: meta.txid(), oldest }),
            _ => Err(Error::JournalDoesNotFit { folder, file: meta.txid(), found }),
        }
    }
}

impl Waiting {
    /// The first records, up to there. Only their headers are read.
    ///
    /// # Errors
    /// A segment could not be read, or has changed since it was looked at.
    pub(crate) fn stretch(&self, until: Until) -> Result<Stretch> {
        let mut stretch = Stretch::default();
        for record in self.iter() {
            let record = record?;
            let is_wanted = match until {
                Until::End => true,
                Until::Txid(last) => record.txid <= last,
                // A clock that went back does not bring back what came after.
                Until::Time(time_ms) => record.time_ms <= time_ms,
            };
            if !is_wanted {
                stretch.next_time_ms = Some(record.time_ms);
                break;
            }
            stretch.records += 1;
            stretch.bytes += record.effects.left();
            stretch.last = Some((record.txid, record.time_ms));
        }
        Ok(stretch)
    }
}
