//! Keys and fields drawn at random.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use boltkv_protocol::resp::{Args, Version, Writer};
use boltkv_storage::Bucket;

use super::failure::Failure;
use super::keyspace::Keyspace;
use super::number;
use crate::commands::expiry::{Moment, Shown};
use boltkv_protocol::resp::names::said;

/// The most fields that are drawn at once: a list of three times as many is made for them.
const MOST: i64 = 100_000;
/// So many keys are looked at for one that has not expired.
const LOOKED_AT: usize = 1_000_000;
/// So many are drawn from a list of all, where that is not too long.
const MANY: usize = 1_000;
/// How often it is drawn again where what was drawn cannot be given.
const TRIES: usize = 64;

/// Numbers that nobody can guess, and that are good for nothing else (`SplitMix64`).
struct Draw(u64);

impl Draw {
    fn new() -> Self {
        Self(RandomState::new().hash_one(0))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        // A remainder is as good as it needs to be here.
        usize::try_from((mixed ^ (mixed >> 31)) % (end as u64).max(1)).unwrap_or(0)
    }

    fn entry<'s>(&mut self, bucket: &Bucket<'s>) -> Result<Option<Field<'s>>, Failure> {
        let drawn = bucket.cursor().draw(|ways| self.below(ways))?;
        Ok(drawn.map(|(key, value)| (key, value.unwrap_or_default())))
    }
}

pub(super) fn random_key(keyspace: &Keyspace<'_>, out: &mut Writer<'_>) -> Result<(), Failure> {
    let Some(bucket) = keyspace.shown.map(|shown| shown.bucket) else {
        out.null();
        return Ok(());
    };
    let mut draw = Draw::new();
    for _ in 0..TRIES {
        match draw.entry(&bucket)? {
            Some((key, _)) if keyspace.is_gone(key)? => {}
            drawn => {
                out.maybe(drawn.map(|(key, _)| said(key)));
                return Ok(());
            }
        }
    }
    // Nearly all are past their time: the first that is not.
    for entry in bucket.iter().take(LOOKED_AT) {
        let (key, _) = entry?;
        if !keyspace.is_gone(key)? {
            out.bulk(said(key));
            return Ok(());
        }
    }
    out.null();
    Ok(())
}

/// A hash without the fields that have expired.
struct Fresh<'s, 'm> {
    hash: Shown<'s>,
    moment: &'m Moment<'s>,
}

impl<'s> Fresh<'s, '_> {
    fn hides(&self, field: &[u8]) -> Result<bool, Failure> {
        Ok(self.hash.is_past(field, self.moment)?)
    }

    /// Those of the first so many that are there, and whether there are no others.
    fn first(&self, most: usize) -> Result<(Fields<'s>, bool), Failure> {
        let (mut all, mut left) = (Vec::new(), most);
        let mut fields = self.hash.bucket.iter();
        while left > 0 {
            let Some(entry) = fields.next() else { return Ok((all, true)) };
            let (field, value) = entry?;
            if !self.hides(field)? {
                all.push((field, value.ok_or_else(Failure::wrong_type)?));
            }
            left -= 1;
        }
        Ok((all, fields.next().is_none()))
    }

    /// A field; `None` where nearly all have expired.
    fn draw(&self, draw: &mut Draw) -> Result<Option<Field<'s>>, Failure> {
        for _ in 0..TRIES {
            match draw.entry(&self.hash.bucket)? {
                Some((field, _)) if self.hides(field)? => {}
                drawn => return Ok(drawn),
            }
        }
        Ok(None)
    }
}

/// HRANDFIELD.
pub(super) fn random_fields(keyspace: &Keyspace<'_>, args: &Args, out: &mut Writer<'_>) -> Result<(), Failure> {
    let look = || Ok::<_, Failure>(keyspace.hash(args.word(1))?.map(|hash| Fresh { hash, moment: &keyspace.moment }));
    let Some(count) = args.get(2) else {
        let hash = look()?;
        let drawn = hash.map_or(Ok(None), |hash| hash.draw(&mut Draw::new()))?;
        out.maybe(drawn.map(|(field, _)| said(field)));
        return Ok(());
    };
    let count = number::integer(count)?;
    if count == i64::MIN {
        return Err(Failure::not_between(-i64::MAX, i64::MAX));
    }
    let with_values = match args.get(3) {
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"withvalues") && args.len() == 4 => true,
        Some(_) => return Err(Failure::syntax()),
    };
    if with_values && count.unsigned_abs() > i64::MAX.unsigned_abs() / 2 {
        return Err(Failure::out_of_range());
    }
    let fields = match look()? {
        None => Vec::new(),
        Some(_) if count < -MOST => return Err(Failure::out_of_range()),
        Some(hash) if count < 0 => repeated(&hash, usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX))?,
        Some(hash) => distinct(&hash, usize::try_from(count.min(MOST)).unwrap_or(0))?,
    };
    write(&fields, with_values, out);
    Ok(())
}

/// A key, or a field, with its value.
type Field<'s> = (&'s [u8], &'s [u8]);
type Fields<'s> = Vec<Field<'s>>;

fn write(fields: &Fields<'_>, with_values: bool, out: &mut Writer<'_>) {
    let in_pairs = with_values && out.version() == Version::Three;
    out.array(if with_values && !in_pairs { 2 * fields.len() } else { fields.len() });
    for (field, value) in fields {
        if in_pairs {
            out.array(2);
        }
        out.bulk(said(field));
        if with_values {
            out.bulk(value);
        }
    }
}

/// So many fields, each drawn from all.
fn repeated<'s>(hash: &Fresh<'s, '_>, count: usize) -> Result<Fields<'s>, Failure> {
    let mut draw = Draw::new();
    let mut drawn = Vec::new();
    if count >= MANY {
        // A way down the tree for each takes a hundred times as long as a place in a list.
        let (all, is_all) = hash.first(count.saturating_mul(3))?;
        if is_all {
            drawn.extend((0..count).filter_map(|_| all.get(draw.below(all.len()))));
            return Ok(drawn);
        }
    }
    for _ in 0..count {
        let Some(field) = hash.draw(&mut draw)? else { break };
        drawn.push(field);
    }
    Ok(drawn)
}

/// So many fields, none twice; all where there are no more.
fn distinct<'s>(hash: &Fresh<'s, '_>, count: usize) -> Result<Fields<'s>, Failure> {
    // Where it is most of them, they are drawn from a list of all.
    let (mut all, _) = hash.first(count.saturating_mul(3))?;
    let mut draw = Draw::new();
    if all.len() < count.saturating_mul(2) {
        for at in 0..count.min(all.len()) {
            let other = at + draw.below(all.len() - at);
            all.swap(at, other);
        }
        all.truncate(count);
        return Ok(all);
    }
    let (mut seen, mut drawn) = (HashSet::new(), Vec::with_capacity(count));
    for _ in 0..count.saturating_mul(TRIES) {
        if drawn.len() == count {
            return Ok(drawn);
        }
        if let Some((field, value)) = hash.draw(&mut draw)?
            && seen.insert(field)
        {
            drawn.push((field, value));
        }
    }
    // Chance was against it: others make up what is missing.
    let others: Vec<_> = all.into_iter().filter(|(field, _)| !seen.contains(field)).take(count - drawn.len()).collect();
    drawn.extend(others);
    Ok(drawn)
}
