//! A step of a shrinking: a transaction that moves some of what lies too high.
//!
//! A place in a bucket is rewritten with all that leads to it, in the buckets around it, too. So that buckets that are
//! nested deeply cost no more than as many beside each other, a step remembers which of them it has opened, and goes up only
//! as far as it has not been yet.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::{Nested, Place};
use crate::format::{Between, Pgid};
use crate::handles::TxMut;
use crate::pages::{MAX_DEPTH, Run, Spans};
use crate::tree::{BucketId, ROOT_BUCKET, View, too_deep};
use crate::{Error, Result};

pub(super) struct Step {
    tx: TxMut,
    /// Where the high-water mark is to come to lie.
    target: Pgid,
    /// What is free, and not meant for a place yet.
    spare: Spans,
    /// The buckets that were opened; `None` for one that could not be.
    opened: HashMap<*const Nested, Option<BucketId>>,
    /// Buckets for whose surroundings there are no lower runs.
    stuck: HashSet<BucketId>,
}

impl Step {
    pub(super) fn new(tx: TxMut, target: Pgid) -> Self {
        let spare = tx.free_spans().cloned().unwrap_or_default();
        Self { tx, target, spare, opened: HashMap::new(), stuck: HashSet::new() }
    }

    /// Rewrites the pages of some places, as far as there are lower runs for all that it takes; returns how many.
    pub(super) fn move_down(mut self, places: &[Place]) -> Result<u64> {
        let mut moved = 0;
        for place in places {
            let Some(bucket) = self.open(place.bucket.as_ref())? else { continue };
            let high = self.take_lower_runs(bucket, &place.key)?;
            if high > 0 {
                self.tx.work.rewrite(bucket, &place.key)?;
                moved += high;
            }
        }
        if moved > 0 {
            self.tx.commit()?;
        }
        Ok(moved)
    }

    /// Opens a bucket, and what is around it as far as that has not been opened yet; `None` where one was deleted, or
    /// replaced by a value, since the tree was looked over.
    fn open(&mut self, bucket: Option<&Rc<Nested>>) -> Result<Option<BucketId>> {
        let mut closed = Vec::new();
        let mut next = bucket;
        let mut id = loop {
            let Some(bucket) = next else { break Some(ROOT_BUCKET) };
            if let Some(known) = self.opened.get(&Rc::as_ptr(bucket)) {
                break *known;
            }
            closed.push(bucket);
            next = bucket.parent.as_ref();
        };
        for bucket in closed.into_iter().rev() {
            id = match id.map(|id| self.tx.work.open_bucket(id, &bucket.name)) {
                Some(Ok(id)) => Some(id),
                None | Some(Err(Error::BucketNotFound { .. } | Error::IncompatibleValue { .. })) => None,
                Some(Err(other)) => return Err(other),
            };
            self.opened.insert(Rc::as_ptr(bucket), id);
        }
        Ok(id)
    }

    /// Takes from what is spare the runs that a rewrite of `key`'s leaf, and of all that leads to it, will move to; returns
    /// how many pages that lie too high come to lie lower. None, and nothing taken, where the bucket has no such page on the
    /// way to `key`, or one would not come to lie lower.
    fn take_lower_runs(&mut self, bucket: BucketId, key: &[u8]) -> Result<u64> {
        let (mut way, mut taken, mut high) = (Vec::new(), Vec::new(), 0);
        let mut next = Some((bucket, key.to_vec()));
        while let Some((at, key)) = next {
            way.clear();
            let is_rewritten = self.tx.work.page_path(at, &key, &mut way)?;
            high += way.iter().filter(|run| run.start + run.len > self.target).count() as u64;
            if high == 0 {
                return Ok(0);
            }
            let is_around = at != bucket;
            if is_around && self.stuck.contains(&at) || !self.take_lower(&way, &mut taken) {
                if is_around {
                    self.stuck.insert(bucket);
                }
                for run in taken {
                    self.spare.insert(run).expect("a run that was just taken does not overlap what is left");
                }
                return Ok(0);
            }
            // Where a leaf is rewritten, so is all that leads to it.
            next = if is_rewritten { None } else { self.tx.work.parent_of(at) };
        }
        Ok(high)
    }

    /// Takes a run for each of these; `false` where one that lies too high would not come to lie lower.
    fn take_lower(&mut self, way: &[Run], taken: &mut Vec<Run>) -> bool {
        way.iter().all(|run| {
            let start = self.spare.take(run.len);
            taken.extend(start.map(|start| Run { start, len: run.len }));
            start.is_some_and(|start| run.start + run.len <= self.target || start < run.start)
        })
    }
}

impl crate::tree::Work {
    /// Adds the pages, not yet taken apart, from a bucket's root to the leaf of `key`; whether that one is.
    fn page_path(&self, bucket: BucketId, key: &[u8], runs: &mut Vec<Run>) -> Result<bool> {
        let mut view = self.source().root(self.root(bucket))?;
        let mut between = Between::ANY;
        for _ in 0..MAX_DEPTH {
            match view {
                // An inline bucket's page has no place of its own.
                View::Leaf(leaf) if leaf.id() == 0 => {}
                View::Node(..) => {}
                View::Leaf(_) | View::Branch(_) => runs.push(self.pages().run(view.page())?),
            }
            match view.seek(key, &mut between)? {
                Some(at) if !view.is_leaf() => view = self.source().view(view.child(at)?)?,
                _ => return Ok(matches!(view, View::Node(..))),
            }
        }
        Err(too_deep(&view))
    }
}
