//! A group of requests: one transaction, one commit, an answer for each.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use boltkv_protocol::{ErrorCode, ErrorReply, Reply};
use boltkv_storage::{Db, Error, TxMut};
use tracing::{error, info};

use super::Work;
use super::queue::Job;
use super::reclaim::Reclaim;
use super::trouble::{Line, Trouble};
use crate::commands::{Effect, Expiration, Outcome, ReplyRoom, Timed, WatchedKeys, apply, prefetch, refusal};
use crate::health::Health;
use crate::stats::Stats;

/// So many requests are looked up ahead at a time: what they need of the file stays in the processor's caches until then.
const AHEAD: usize = 32;

/// Does group after group.
pub(super) struct Groups {
    db: Db,
    room: ReplyRoom,
    stats: Arc<Stats>,
    health: Arc<Health>,
    expiry: Expiration,
    /// Who removes what has expired.
    reclaim: Reclaim,
    /// What the log was told of refused writes.
    trouble: Trouble,
    /// The keys that connections watch.
    watched: WatchedKeys,
    /// For this group a checkpoint has brought back all the pages that it can.
    has_made_room: bool,
}

impl Groups {
    pub(super) fn new(db: Db, expiry: Expiration, room: ReplyRoom, stats: Arc<Stats>, health: Arc<Health>) -> Self {
        let reclaim = Reclaim::new(db.clone(), expiry.clock.clone(), Arc::clone(&stats));
        let watched = WatchedKeys::default();
        Self { db, room, stats, health, expiry, reclaim, trouble: Trouble::new(), watched, has_made_room: false }
    }

    fn run_or_halve(&mut self, mut jobs: Vec<Job>) {
        while !jobs.is_empty() {
            jobs = self.run_part(jobs);
        }
    }

    /// The way of a group, or of the part of it that is done in one transaction: applied, made durable, published, answered.
    /// What is left is to be done next.
    fn run_part(&mut self, mut jobs: Vec<Job>) -> Vec<Job> {
        let applied = Applied::of(&self.db, self.expiry.clock.now(), &self.room, &self.watched, &jobs);
        if applied.as_ref().is_ok_and(|applied| applied.earliest.is_some()) {
            self.expiry.note_time();
        }
        let done = applied.and_then(|applied| applied.make_durable(&self.stats));
        match done {
            Ok(durable) => {
                self.reclaim.expect(durable.earliest);
                if let Some(Line::Works(refused)) = self.trouble.done(Instant::now) {
                    info!(refused, "writes work again");
                }
                let outcomes = durable.publish();
                let left = jobs.split_off(outcomes.len().min(jobs.len()));
                answer(jobs, outcomes);
                self.has_made_room = false;
                return left;
            }
            // The file cannot grow, but pages that are free since the last checkpoint wait for the next one.
            Err(Error::NoSpace { .. } | Error::MaxSizeReached { .. }) if self.make_room() => return jobs,
            // Nothing was written. What has no room is not to keep out what would: a deletion makes some.
            Err(Error::NoSpace { .. } | Error::MaxSizeReached { .. }) if jobs.len() > 1 => {
                let others = jobs.split_off(jobs.len() / 2);
                self.run_or_halve(jobs);
                self.run_or_halve(others);
            }
            // Nothing of the group is left, so what one of it was refused with may not hold either.
            Err(error) => {
                if let Some(Line::Refused(refused)) = self.trouble.refused(jobs.len(), Instant::now()) {
                    error!(%error, refused, "writes fail");
                }
                self.notice_end_of_writes();
                let error = refusal(error);
                if error.code == ErrorCode::NoSpace {
                    self.stats.no_room_for(jobs.len());
                }
                let outcome = || Reply::Error(error.clone()).into();
                let outcomes = std::iter::repeat_with(outcome).take(jobs.len()).collect();
                answer(jobs, outcomes);
            }
        }
        Vec::new()
    }

    /// Brings back, once until a part of the group is done, the pages that commits have freed and the file on the disk still
    /// needs. Whether there are any is not asked: a checkpoint that came in between may have brought them back after the
    /// group had begun.
    fn make_room(&mut self) -> bool {
        !std::mem::replace(&mut self.has_made_room, true) && self.db.checkpoint().is_ok()
    }

    /// The engine takes no more writes after one whose outcome is unknown.
    fn notice_end_of_writes(&self) {
        if let Err(Error::Poisoned { reason }) = self.db.begin_mut() {
            self.health.fail(reason);
        }
    }
}

impl Work for Groups {
    /// Does what the jobs ask for, in their order, and answers each.
    fn run(&mut self, jobs: Vec<Job>) -> bool {
        self.stats.group_taken(jobs.len());
        self.has_made_room = false;
        let due = self.reclaim.due();
        self.run_or_halve(jobs);
        self.reclaim.due() != due
    }

    fn idle_for(&mut self) -> Option<Duration> {
        self.reclaim.idle_for()
    }

    fn tidy(&mut self) {
        if !self.reclaim.step_if_due(&self.watched) {
            self.notice_end_of_writes();
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        if thread::panicking() {
            self.health.fail("the writer stopped unexpectedly".into());
        }
    }
}

/// What a group, or the first of its jobs, has changed, in a transaction that nobody else sees yet.
struct Applied {
    tx: TxMut,
    results: Vec<Result<Effect, ErrorReply>>,
    /// The earliest time at which a key is to expire now.
    earliest: Option<u64>,
    /// Keys that had expired, and stood in somebody's way.
    expired: u64,
}

impl Applied {
    /// All of it at one time.
    fn of(db: &Db, now: u64, room: &ReplyRoom, watched: &WatchedKeys, jobs: &[Job]) -> Result<Self, Error> {
        let mut tx = db.begin_mut()?;
        let mut timed = Timed::new(&mut tx, now);
        let mut results = Vec::with_capacity(jobs.len());
        let mut made = 0;
        for (index, job) in jobs.iter().enumerate() {
            if index % AHEAD == 0 {
                prefetch(&timed, jobs[index..].iter().take(AHEAD).map(|job| &job.write));
            }
            let result = apply(&mut timed, &job.write, room, watched)?;
            made += result.as_ref().map_or(0, Effect::made);
            results.push(result);
            // The queue bounds what was sent. What was made of it takes memory until it is committed, and the others would
            // find none.
            if made >= room.max_frame() {
                break;
            }
        }
        let Timed { earliest, expired, .. } = timed;
        Ok(Self { tx, results, earliest, expired })
    }

    /// From here on it survives whatever happens. The engine's commit makes it visible in the same step, with a journal, too.
    fn make_durable(self, stats: &Stats) -> Result<Durable, Error> {
        let Self { tx, results, earliest, expired } = self;
        let changed = results.iter().flatten().any(Effect::is_change);
        if !changed {
            return Ok(Durable { txid: newest(tx), results, earliest });
        }
        let begun = Instant::now();
        let txid = tx.commit()?;
        stats.committed(begun.elapsed());
        stats.expired(expired);
        Ok(Durable { txid, results, earliest })
    }
}

/// What a group has changed, on disk.
struct Durable {
    txid: u64,
    results: Vec<Result<Effect, ErrorReply>>,
    earliest: Option<u64>,
}

impl Durable {
    /// From here on every read sees it, which the engine's commit has seen to already. So it can be answered: whoever has an
    /// answer finds what was written.
    fn publish(self) -> Vec<Outcome> {
        let outcome = |result: Result<Effect, _>| match result {
            Ok(effect) => effect.reply(self.txid),
            Err(error) => Reply::Error(error).into(),
        };
        self.results.into_iter().map(outcome).collect()
    }
}

fn answer(jobs: Vec<Job>, outcomes: Vec<Outcome>) {
    for (job, outcome) in jobs.into_iter().zip(outcomes) {
        job.answer(outcome);
    }
}

/// Ends a transaction that has nothing to commit; answers the number of the one before it.
fn newest(tx: TxMut) -> u64 {
    let newest = tx.id() - 1;
    tx.rollback();
    newest
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::{Cond, Path, Txn, WriteRequest};
    use boltkv_storage::{JournalOptions, Options};
    use bytes::Bytes;

    use super::*;
    use crate::commands::{Asker, Clock, Write};
    use crate::memory::Memory;
    use crate::writer::mailbox::Mailbox;

    fn path() -> Path {
        Path::from_names(["b"]).unwrap()
    }

    fn expiry(db: &Db) -> Expiration {
        Expiration::of(db, Clock::system(), true).unwrap()
    }

    fn groups(db: &Db) -> Groups {
        Groups::new(db.clone(), expiry(db), room(), Arc::new(Stats::new()), Arc::default())
    }

    fn room() -> ReplyRoom {
        ReplyRoom::new(Arc::new(Memory::new(1 << 20)), 1 << 18)
    }

    fn create() -> WriteRequest {
        WriteRequest::CreateBucket(path())
    }

    fn set(key: &'static str, len: usize, cond: Cond) -> WriteRequest {
        WriteRequest::Set { path: path(), key: key.into(), value: Bytes::from(vec![0; len]), cond }
    }

    /// Does these requests as one group; answers the codes of their errors.
    fn run(groups: &mut Groups, requests: Vec<WriteRequest>) -> Vec<Option<ErrorCode>> {
        let answers = Mailbox::default();
        let job = |(id, request)| Job::new(Write::new(request, Asker::default()), answers.ticket(1, id));
        groups.run((0..).zip(requests).map(job).collect());
        let answers = std::iter::from_fn(|| answers.try_next());
        answers
            .map(|(_, outcome)| if let Reply::Error(error) = outcome.reply { Some(error.code) } else { None })
            .collect()
    }

    #[test]
    fn a_group_is_one_transaction_and_one_without_a_change_is_none() {
        let db = Options::new().open_in_memory().unwrap();
        let mut groups = groups(&db);
        let before = db.stats().txid;
        let failed = Some(ErrorCode::ConditionFailed);
        let requests = vec![create(), set("k", 1, Cond::IfAbsent), set("k", 2, Cond::IfAbsent)];
        assert_eq!(run(&mut groups, requests), [None, None, failed]);
        assert_eq!(db.stats().txid, before + 1);
        let requests = vec![set("k", 2, Cond::IfAbsent), WriteRequest::CreateBucketIfMissing(path())];
        assert_eq!(run(&mut groups, requests), [failed, None]);
        assert_eq!(db.stats().txid, before + 1);
    }

    #[test]
    fn the_first_time_of_a_key_is_noted_by_who_commits_it_and_found_by_who_opens_the_database() {
        let db = Options::new().open_in_memory().unwrap();
        let mut groups = groups(&db);
        let expiring = |cond| WriteRequest::SetExpiring {
            path: path(),
            key: "k".into(),
            value: Bytes::new(),
            cond,
            expiry: boltkv_protocol::Expiry::In(1),
        };
        run(&mut groups, vec![create(), set("k", 1, Cond::Always), expiring(Cond::IfAbsent)]);
        assert!(!groups.expiry.any() && !expiry(&db).any());
        assert_eq!(run(&mut groups, vec![expiring(Cond::Always)]), [None]);
        assert!(groups.expiry.any() && expiry(&db).any());
    }

    #[test]
    fn what_finds_no_room_is_refused_and_the_others_of_its_group_are_not() {
        let db = Options::new().max_size(1 << 20).open_in_memory().unwrap();
        let mut groups = groups(&db);
        assert_eq!(run(&mut groups, vec![create()]), [None]);
        let (no_space, failed) = (Some(ErrorCode::NoSpace), Some(ErrorCode::ConditionFailed));
        let large = || set("large", 2 << 20, Cond::Always);
        let requests = vec![set("a", 1, Cond::IfAbsent), large(), set("a", 2, Cond::IfAbsent), large()];
        assert_eq!(run(&mut groups, requests), [None, no_space, failed, no_space]);
        let before = db.stats().txid;
        assert_eq!(run(&mut groups, vec![large()]), [no_space]);
        assert_eq!(db.stats().txid, before, "nothing of it is left");
    }

    #[test]
    fn a_transaction_that_finds_no_room_is_undone_as_one_and_the_others_of_its_group_are_done() {
        let db = Options::new().max_size(1 << 20).open_in_memory().unwrap();
        let mut groups = groups(&db);
        assert_eq!(run(&mut groups, vec![create()]), [None]);
        let txn = |len| {
            let mut txn = Txn::builder();
            txn.request(&set("t", 1, Cond::Always).into()).unwrap();
            txn.request(&set("large", len, Cond::Always).into()).unwrap();
            WriteRequest::Txn(txn.build())
        };
        let mut requests: Vec<_> = (0..99).map(|_| set("k", 1, Cond::Always)).collect();
        requests.insert(50, txn(2 << 20));
        let codes = run(&mut groups, requests);
        assert_eq!((codes[50], codes.iter().flatten().count()), (Some(ErrorCode::NoSpace), 1));
        assert_eq!(run(&mut groups, vec![set("t", 2, Cond::IfPresent)]), [Some(ErrorCode::ConditionFailed)]);
        let before = db.stats().txid;
        let requests = vec![set("k", 2, Cond::Always), txn(1), set("t", 2, Cond::IfPresent), txn(1)];
        assert_eq!(run(&mut groups, requests), [None; 4]);
        assert_eq!(db.stats().txid, before + 1, "all of a group is one transaction");
    }

    #[test]
    fn a_writer_that_panics_says_that_there_will_be_no_more_writes() {
        let health = Arc::new(Health::default());
        let db = Options::new().open_in_memory().unwrap();
        let expiry = expiry(&db);
        let groups = Groups::new(db, expiry, room(), Arc::new(Stats::new()), Arc::clone(&health));
        let ended = thread::spawn(move || {
            let _groups = groups;
            panic!("a defect");
        });
        assert!(ended.join().is_err());
        assert!(health.failure().is_some());
    }

    #[test]
    fn what_a_group_frees_has_room_for_what_comes_after_it() {
        let db = Options::new().max_size(1 << 20).open_in_memory().unwrap();
        let mut groups = groups(&db);
        let full = |key| set(key, 600_000, Cond::Always);
        assert_eq!(run(&mut groups, vec![create(), full("a")]), [None, None]);
        assert_eq!(run(&mut groups, vec![full("b")]), [Some(ErrorCode::NoSpace)]);
        let delete = WriteRequest::DeleteBucket(path());
        assert_eq!(run(&mut groups, vec![delete, create(), full("b")]), [None, None, None]);
    }

    #[test]
    fn what_a_group_frees_has_room_for_what_comes_after_it_while_a_journal_waits() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new().max_size(1 << 20).journal(JournalOptions::new());
        let db = options.open(folder.path().join("a.db")).unwrap();
        let mut groups = groups(&db);
        let full = |key| set(key, 600_000, Cond::Always);
        assert_eq!(run(&mut groups, vec![create(), full("a")]), [None, None]);
        let other = || vec![WriteRequest::DeleteBucket(path()), create(), full("b")];
        assert_eq!(run(&mut groups, other()), [None; 3], "after one checkpoint");
        assert_eq!(run(&mut groups, other()), [None; 3], "after another");
    }
}
