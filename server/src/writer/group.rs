//! A group of requests: one transaction, one commit, an answer for each.

use std::sync::Arc;

use boltkv_protocol::{ErrorReply, Reply};
use boltkv_storage::{Db, Error, TxMut};
use tracing::{error, info};

use super::Job;
use crate::executor::{Effect, apply, refusal};
use crate::stats::Stats;

/// Does group after group.
pub(super) struct Groups {
    db: Db,
    stats: Arc<Stats>,
    /// The last group was not committed.
    failing: bool,
}

impl Groups {
    pub(super) const fn new(db: Db, stats: Arc<Stats>) -> Self {
        Self { db, stats, failing: false }
    }

    /// Does what the jobs ask for, in their order, and answers each.
    pub(super) fn run(&mut self, jobs: Vec<Job>) {
        self.stats.group_taken(jobs.len());
        let committed = commit(&self.db, &jobs);
        self.log(committed.as_ref().err());
        match committed {
            Ok(replies) => {
                for (job, reply) in jobs.into_iter().zip(replies) {
                    job.ticket.answer(reply);
                }
            }
            // Nothing of the group is left, so what one of it was refused with may not hold either.
            Err(error) => {
                let reply = Reply::Error(refusal(error));
                for job in jobs {
                    job.ticket.answer(reply.clone());
                }
            }
        }
    }

    /// Says when commits begin to fail and when they work again, not each time.
    fn log(&mut self, failed: Option<&Error>) {
        match failed {
            Some(error) if !self.failing => error!(%error, "writes fail"),
            None if self.failing => info!("writes work again"),
            _ => {}
        }
        self.failing = failed.is_some();
    }
}

fn commit(db: &Db, jobs: &[Job]) -> Result<Vec<Reply>, Error> {
    let mut tx = db.begin_mut()?;
    let done: Vec<Result<Effect, ErrorReply>> = jobs.iter().map(|job| apply(&mut tx, &job.write)).collect();
    let changed = done.iter().flatten().any(|effect| effect.is_change());
    let txid = if changed { tx.commit()? } else { newest(tx) };
    Ok(done.into_iter().map(|done| done.map_or_else(Reply::Error, |effect| effect.reply(txid))).collect())
}

/// Ends a transaction that has nothing to commit; answers the number of the one before it.
fn newest(tx: TxMut) -> u64 {
    let newest = tx.id() - 1;
    tx.rollback();
    newest
}
