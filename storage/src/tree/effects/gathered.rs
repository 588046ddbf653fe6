//! What is done to single keys, gathered across records, to be made in the keys' order.

use std::cmp::Ordering;
use std::slice;

use super::Recorded;
use super::codec::{Effect, Reader};
use crate::disk::prefetch;
use crate::format::{alike_in_all, prefix as prefix_of};

/// How far ahead the processor is asked for an effect, and for how many of its bytes.
const AHEAD: usize = 8;
const FETCHED: usize = 128;

/// Effects on single keys, sorted by bucket and key; those on one key are in the order in which they were recorded.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    all: Vec<One>,
    /// So many of them were taken.
    taken: usize,
}

/// Where an effect on a single key is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct One {
    /// Of the key, behind what is alike in all of the bucket's; it is known once all are there.
    prefix: u64,
    record: u32,
    at: u32,
    pub(super) bucket: u32,
}

impl One {
    /// `None` where the place is beyond what is told of it.
    pub(super) fn new(bucket: u32, record: usize, at: usize) -> Option<Self> {
        Some(Self { prefix: 0, record: u32::try_from(record).ok()?, at: u32::try_from(at).ok()?, bucket })
    }

    pub(super) fn at(&self) -> usize {
        self.at as usize
    }

    pub(super) fn record<'a>(&self, records: &'a [Recorded]) -> &'a Recorded {
        &records[self.record as usize]
    }

    /// The bytes that the effect begins with.
    fn begin<'a>(&self, records: &'a [Recorded]) -> &'a [u8] {
        let bytes = self.record(records).effects.get(self.at()..).unwrap_or_default();
        bytes.get(..FETCHED).unwrap_or(bytes)
    }

    pub(super) fn effect<'a>(&self, records: &'a [Recorded]) -> Option<Effect<'a>> {
        Reader::new_at(&self.record(records).effects, self.at()).next()?.ok()
    }

    /// Its key; a bucket's sequence has the one that no entry can have.
    fn key<'a>(&self, records: &'a [Recorded]) -> &'a [u8] {
        match self.effect(records) {
            Some(Effect::Put { key, .. } | Effect::Deleted { key, .. }) => key,
            _ => &[],
        }
    }

    fn cmp(&self, other: &Self, records: &[Recorded]) -> Ordering {
        let keys = || self.key(records).cmp(other.key(records));
        let places = || (self.record, self.at).cmp(&(other.record, other.at));
        self.prefix.cmp(&other.prefix).then_with(keys).then_with(places)
    }

    /// Whether `next` does away with all that this one does.
    fn is_undone_by(&self, next: &Self, records: &[Recorded]) -> bool {
        if (self.bucket, self.prefix) != (next.bucket, next.prefix) {
            return false;
        }
        match (self.effect(records), next.effect(records)) {
            (Some(Effect::Put { key, .. }), Some(Effect::Put { key: of_next, .. })) => key == of_next,
            (Some(Effect::Sequence { .. }), Some(Effect::Sequence { .. })) => true,
            _ => false,
        }
    }
}

impl Gathered {
    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many were taken.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    pub(super) fn push(&mut self, one: One) {
        self.all.push(one);
    }

    /// Sorts them, once all are there.
    pub(super) fn sort(&mut self, records: &[Recorded]) {
        // Keys are read in the order of the records as far as that goes.
        self.all.sort_by_key(|one| one.bucket);
        for of_bucket in self.all.chunk_by_mut(|one, other| one.bucket == other.bucket) {
            // The empty key that stands for the sequence is before all others whatever those have in common.
            let keys = of_bucket.iter().map(|one| one.key(records)).filter(|key| !key.is_empty());
            let common = alike_in_all(keys);
            for one in &mut *of_bucket {
                one.prefix = prefix_of(one.key(records).get(common..).unwrap_or_default());
            }
            of_bucket.sort_unstable_by(|one, other| one.cmp(other, records));
        }
    }

    /// Takes the next one that is not undone by the one behind it.
    pub(super) fn take(&mut self, records: &[Recorded]) -> Option<One> {
        while let Some(one) = self.all.get(self.taken) {
            // In this order records lie anywhere.
            self.all
                .get(self.taken + 2 * AHEAD)
                .iter()
                .for_each(|soon| prefetch(slice::from_ref(soon.record(records))));
            self.all.get(self.taken + AHEAD).iter().for_each(|soon| prefetch(soon.begin(records)));
            self.taken += 1;
            if !self.all.get(self.taken).is_some_and(|next| one.is_undone_by(next, records)) {
                return Some(*one);
            }
        }
        self.all.clear();
        self.taken = 0;
        None
    }
}
