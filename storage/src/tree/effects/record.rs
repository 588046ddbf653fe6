//! Recording: what a write transaction has done is written down as it does it.
//!
//! Every change to a bucket's content ends in [`Work::record`]. What goes back to a savepoint goes from the record too, and
//! what only concerns where things lie in the file (fill, pages that are moved) never was in it.

use super::codec::Effect;
use crate::tree::arena::{Bytes, Loc};
use crate::tree::work::Work;
use crate::tree::{BucketId, ROOT_BUCKET};

/// A value from here on is not copied: it lies in the arena as long as the transaction lives.
const LONG: usize = 1 << 14;
/// Bytes that are kept from one transaction to the next.
const KEPT: usize = 1 << 16;

/// The effects of one transaction so far, while they are asked for.
#[derive(Default)]
pub(crate) struct Effects {
    on: bool,
    /// All of them, but for long values.
    bytes: Vec<u8>,
    /// The long values, where in `bytes` they belong.
    long: Vec<LongValue>,
    /// How many numbers were given to buckets.
    given: u32,
    /// The number of each bucket that has one, by its place in the transaction's list, and when it was given.
    numbers: Vec<Number>,
    /// Numbers that were given in an earlier age stand for nothing any more.
    age: u64,
    /// Memory of [`Work::number_of`].
    unnumbered: Vec<BucketId>,
}

#[derive(Clone, Copy)]
struct LongValue {
    at: usize,
    loc: Loc,
    len: usize,
}

/// Empty, it is of no age.
#[derive(Clone, Copy, Default)]
struct Number {
    number: u32,
    age: u64,
}

/// A place in the record to which it can be taken back.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tree) struct EffectsMark {
    bytes: usize,
    long: usize,
    given: u32,
}

impl Effects {
    /// From now on effects are recorded.
    fn start(&mut self) {
        self.on = true;
        self.age = 1;
    }

    pub(in crate::tree) fn mark(&self) -> EffectsMark {
        EffectsMark { bytes: self.bytes.len(), long: self.long.len(), given: self.given }
    }

    /// Takes back what was recorded since.
    pub(in crate::tree) fn take_back_to(&mut self, mark: EffectsMark) {
        self.bytes.truncate(mark.bytes);
        self.long.truncate(mark.long);
        self.given = mark.given;
        // Numbers that were given since the savepoint will be given again.
        self.age += 1;
    }

    /// Without what is in it, and not recording.
    pub(in crate::tree) fn emptied(mut self) -> Self {
        self.bytes.clear();
        self.long.clear();
        self.numbers.clear();
        self.unnumbered.clear();
        self.bytes.shrink_to(KEPT);
        self.long.shrink_to(KEPT / size_of::<LongValue>());
        self.numbers.shrink_to(KEPT / size_of::<Number>());
        self.unnumbered.shrink_to(KEPT / size_of::<BucketId>());
        Self { on: false, given: 0, age: 0, ..self }
    }

    fn number(&self, bucket: BucketId) -> Option<u32> {
        if bucket == ROOT_BUCKET {
            return Some(0);
        }
        let number = self.numbers.get(bucket.0 as usize)?;
        (number.age == self.age).then_some(number.number)
    }

    fn give_number(&mut self, bucket: BucketId) -> u32 {
        self.given += 1;
        let at = bucket.0 as usize;
        if self.numbers.len() <= at {
            self.numbers.resize(at + 1, Number::default());
        }
        self.numbers[at] = Number { number: self.given, age: self.age };
        self.given
    }
}

/// What was done to the content of a bucket.
#[derive(Clone, Copy)]
pub(in crate::tree) enum Done<'a> {
    /// The value lies in the arena.
    Put {
        key: &'a [u8],
        value: Loc,
        len: usize,
    },
    /// The same, with a short value that lies elsewhere.
    Patched {
        key: &'a [u8],
        value: &'a [u8],
    },
    Deleted {
        key: &'a [u8],
    },
    RangeDeleted {
        first: &'a [u8],
        last: &'a [u8],
    },
    /// A bucket, which is opened for writing, was created in it.
    Created {
        bucket: BucketId,
    },
    BucketDeleted {
        name: &'a [u8],
    },
    /// A bucket of it was moved to another one, where it is called `its_name`.
    Moved {
        name: &'a [u8],
        to: BucketId,
        its_name: &'a [u8],
    },
    Sequence(u64),
}

impl Work {
    /// From now on what is done is recorded. A journal makes it durable, so that leaves may get patches in memory, where that
    /// is asked for.
    pub(crate) fn record_effects(&mut self, may_patch: bool) {
        self.effects.start();
        if may_patch {
            self.may_patch();
        }
    }

    /// Whether anything was recorded.
    pub(crate) fn has_effects(&self) -> bool {
        !self.effects.bytes.is_empty()
    }

    /// Lets `act` have the effects that were recorded, in pieces that follow one another.
    pub(crate) fn with_effects<T>(&self, act: impl FnOnce(&[&[u8]]) -> T) -> T {
        let Effects { bytes, long, .. } = &self.effects;
        if long.is_empty() {
            return act(&[bytes]);
        }
        let mut pieces = Vec::with_capacity(2 * long.len() + 1);
        let mut from = 0;
        for value in long {
            pieces.push(&bytes[from..value.at]);
            pieces.push(self.bytes().at(value.loc, value.len));
            from = value.at;
        }
        pieces.push(&bytes[from..]);
        act(&pieces)
    }

    /// Records what was done to the content of `bucket`, where that is asked for: the one place through which every change
    /// of a transaction goes.
    #[inline]
    pub(in crate::tree) fn record(&mut self, bucket: BucketId, done: Done<'_>) {
        if self.effects.on {
            self.record_now(bucket, done);
        }
    }

    fn record_now(&mut self, bucket: BucketId, done: Done<'_>) {
        let number = self.number_of(bucket);
        let target = match done {
            Done::Moved { to, .. } => self.number_of(to),
            _ => 0,
        };
        let Self { effects, arena, base, buckets, .. } = self;
        let bytes = Bytes { pages: base.pages(), arena };
        let to = &mut effects.bytes;
        match done {
            Done::Put { key, value, len } if len >= LONG => {
                Effect::begin_put(to, number, key, len);
                effects.long.push(LongValue { at: to.len(), loc: value, len });
            }
            Done::Put { key, value, len } => {
                Effect::Put { bucket: number, key, value: bytes.at(value, len) }.write(to);
            }
            Done::Patched { key, value } => Effect::Put { bucket: number, key, value }.write(to),
            Done::Deleted { key } => Effect::Deleted { bucket: number, key }.write(to),
            Done::RangeDeleted { first, last } => Effect::RangeDeleted { bucket: number, first, last }.write(to),
            Done::Created { bucket } => {
                let name = buckets.get(bucket).parent.map_or(&b""[..], |(_, name)| name.get(bytes));
                Effect::Created { within: number, name }.write(to);
                effects.give_number(bucket);
            }
            Done::BucketDeleted { name } => Effect::BucketDeleted { within: number, name }.write(to),
            Done::Moved { name, its_name, .. } => {
                Effect::Moved { from: number, name, to: target, its_name }.write(to);
                effects.age += 1;
            }
            Done::Sequence(sequence) => Effect::Sequence { bucket: number, sequence }.write(to),
        }
    }

    /// The number by which the record calls a bucket, which it is given where it has none.
    fn number_of(&mut self, bucket: BucketId) -> u32 {
        if let Some(number) = self.effects.number(bucket) {
            return number;
        }
        let Self { effects, arena, base, buckets, .. } = self;
        let bytes = Bytes { pages: base.pages(), arena };
        let mut above = bucket;
        let mut number = loop {
            if let Some(number) = effects.number(above) {
                break number;
            }
            effects.unnumbered.push(above);
            above = buckets.get(above).parent.map_or(ROOT_BUCKET, |(parent, _)| parent);
        };
        while let Some(next) = effects.unnumbered.pop() {
            let name = buckets.get(next).parent.map_or(&b""[..], |(_, name)| name.get(bytes));
            Effect::Path { within: number, name }.write(&mut effects.bytes);
            number = effects.give_number(next);
        }
        number
    }
}
