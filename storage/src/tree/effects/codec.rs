//! What one effect looks like in bytes: a byte for its kind, then numbers (7 bits a byte, the lowest first) and strings
//! (their length, then their bytes).

/// One change that a transaction has made. Whoever makes them all, in this order, to the state before has the state
/// after: nothing in them is known only to the process that wrote them.
///
/// Buckets are called by numbers: 0 is the top, and each `Path` and `Created` gives the next one, from 1 on. After a
/// `Moved` only 0 and those that are given from then on stand for something, because the others' paths may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect<'a> {
    /// Changes nothing: the bucket `name` in another one has the next number.
    Path {
        within: u32,
        name: &'a [u8],
    },
    /// A bucket was created, and has the next number.
    Created {
        within: u32,
        name: &'a [u8],
    },
    Put {
        bucket: u32,
        key: &'a [u8],
        value: &'a [u8],
    },
    /// There was a value of this key.
    Deleted {
        bucket: u32,
        key: &'a [u8],
    },
    /// All from the first key to the last, both of which were there; no bucket was among them.
    RangeDeleted {
        bucket: u32,
        first: &'a [u8],
        last: &'a [u8],
    },
    BucketDeleted {
        within: u32,
        name: &'a [u8],
    },
    /// The bucket `name` was moved, and is called `its_name` where it is now.
    Moved {
        from: u32,
        name: &'a [u8],
        to: u32,
        its_name: &'a [u8],
    },
    Sequence {
        bucket: u32,
        sequence: u64,
    },
}

const PATH: u8 = 1;
const CREATED: u8 = 2;
const PUT: u8 = 3;
const DELETED: u8 = 4;
const RANGE_DELETED: u8 = 5;
const BUCKET_DELETED: u8 = 6;
const MOVED: u8 = 7;
const SEQUENCE: u8 = 8;
/// As [`MOVED`], with the new name behind it, which is another one.
const MOVED_AS: u8 = 9;

/// Bytes of the longest number.
const LONGEST_NUMBER: usize = 10;

impl Effect<'_> {
    /// Writes all of it.
    pub(super) fn write(self, to: &mut Vec<u8>) {
        match self {
            Self::Path { within, name } => named(to, PATH, within, name),
            Self::Created { within, name } => named(to, CREATED, within, name),
            Self::Put { bucket, key, value } => {
                Self::begin_put(to, bucket, key, value.len());
                to.extend_from_slice(value);
            }
            Self::Deleted { bucket, key } => named(to, DELETED, bucket, key),
            Self::RangeDeleted { bucket, first, last } => {
                named(to, RANGE_DELETED, bucket, first);
                string(to, last);
            }
            Self::BucketDeleted { within, name } => named(to, BUCKET_DELETED, within, name),
            Self::Moved { from, name, to: target, its_name } => {
                let is_renamed = name != its_name;
                named(to, if is_renamed { MOVED_AS } else { MOVED }, from, name);
                number(to, target.into());
                if is_renamed {
                    string(to, its_name);
                }
            }
            Self::Sequence { bucket, sequence } => {
                to.push(SEQUENCE);
                number(to, bucket.into());
                number(to, sequence);
            }
        }
    }

    /// Writes a [`Self::Put`] up to its value, which is so long.
    pub(super) fn begin_put(to: &mut Vec<u8>, bucket: u32, key: &[u8], len: usize) {
        named(to, PUT, bucket, key);
        number(to, len as u64);
    }
}

fn named(to: &mut Vec<u8>, kind: u8, bucket: u32, name: &[u8]) {
    to.push(kind);
    number(to, bucket.into());
    string(to, name);
}

fn string(to: &mut Vec<u8>, bytes: &[u8]) {
    number(to, bytes.len() as u64);
    to.extend_from_slice(bytes);
}

#[inline]
fn number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// Where bytes are no effects, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unreadable {
    /// The effect that it is about begins at this byte.
    pub(crate) at: usize,
    pub(crate) what: &'static str,
}

/// Reads effects one after the other; nothing comes after an error.
#[derive(Debug, Clone)]
pub(crate) struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(all: &'a [u8]) -> Self {
        Self { all, at: 0 }
    }

    /// Reads on from an effect that begins there.
    pub(super) fn new_at(all: &'a [u8], at: usize) -> Self {
        Self { all, at }
    }

    /// Where the next effect begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn take(&mut self) -> Result<Effect<'a>, &'static str> {
        let kind = self.byte()?;
        Ok(match kind {
            PATH => Effect::Path { within: self.bucket()?, name: self.string()? },
            CREATED => Effect::Created { within: self.bucket()?, name: self.string()? },
            PUT => Effect::Put { bucket: self.bucket()?, key: self.string()?, value: self.string()? },
            DELETED => Effect::Deleted { bucket: self.bucket()?, key: self.string()? },
            RANGE_DELETED => {
                Effect::RangeDeleted { bucket: self.bucket()?, first: self.string()?, last: self.string()? }
            }
            BUCKET_DELETED => Effect::BucketDeleted { within: self.bucket()?, name: self.string()? },
            MOVED => {
                let (from, name, to) = (self.bucket()?, self.string()?, self.bucket()?);
                Effect::Moved { from, name, to, its_name: name }
            }
            MOVED_AS => {
                let (from, name, to, its_name) = (self.bucket()?, self.string()?, self.bucket()?, self.string()?);
                if name == its_name {
                    return Err("a new name that is the old one");
                }
                Effect::Moved { from, name, to, its_name }
            }
            SEQUENCE => Effect::Sequence { bucket: self.bucket()?, sequence: self.number()? },
            _ => return Err("an effect of a kind that is not known"),
        })
    }

    fn byte(&mut self) -> Result<u8, &'static str> {
        let byte = *self.all.get(self.at).ok_or("an effect that is cut off")?;
        self.at += 1;
        Ok(byte)
    }

    /// Each number in one way only: what two readers may not read in two ways is not written in two ways either.
    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0;
        for place in 0..LONGEST_NUMBER {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if place == LONGEST_NUMBER - 1 && bits > 1 {
                return Err("a number of more than 64 bits");
            }
            number |= bits << (7 * place);
            if byte < 0x80 {
                return if byte == 0 && place > 0 {
                    Err("a number that is longer than it has to be")
                } else {
                    Ok(number)
                };
            }
        }
        Err("a number of more than 64 bits")
    }

    fn bucket(&mut self) -> Result<u32, &'static str> {
        u32::try_from(self.number()?).map_err(|_| "a bucket's number of more than 32 bits")
    }

    fn string(&mut self) -> Result<&'a [u8], &'static str> {
        let len = usize::try_from(self.number()?).map_err(|_| "a string that is cut off")?;
        let end = self.at.checked_add(len).ok_or("a string that is cut off")?;
        let bytes = self.all.get(self.at..end).ok_or("a string that is cut off")?;
        self.at = end;
        Ok(bytes)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Effect<'a>, Unreadable>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.at;
        if at >= self.all.len() {
            return None;
        }
        Some(self.take().map_err(|what| {
            self.at = self.all.len();
            Unreadable { at, what }
        }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What of a generated effect is borrowed when it is written.
    type Parts = (usize, u32, u32, Vec<u8>, Vec<u8>, u64);

    fn effect((kind, bucket, other, key, value, sequence): &Parts) -> Effect<'_> {
        let (bucket, name) = (*bucket, key.as_slice());
        match kind {
            0 => Effect::Path { within: bucket, name },
            1 => Effect::Created { within: bucket, name },
            2 => Effect::Put { bucket, key: name, value },
            3 => Effect::Deleted { bucket, key: name },
            4 => Effect::RangeDeleted { bucket, first: name, last: value },
            5 => Effect::BucketDeleted { within: bucket, name },
            6 => Effect::Moved { from: bucket, name, to: *other, its_name: name },
            7 => Effect::Moved { from: bucket, name, to: *other, its_name: value },
            _ => Effect::Sequence { bucket, sequence: *sequence },
        }
    }

    fn parts() -> impl Strategy<Value = Parts> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..300);
        (0..9_usize, any::<u32>(), 0..200_u32, bytes(), bytes(), any::<u64>())
    }

    proptest! {
        #[test]
        fn effects_are_read_as_they_were_written(all in proptest::collection::vec(parts(), 0..20)) {
            let mut bytes = Vec::new();
            for parts in &all {
                effect(parts).write(&mut bytes);
            }
            let read: Vec<_> = Reader::new(&bytes).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(read, all.iter().map(effect).collect::<Vec<_>>());
        }

        #[test]
        fn what_is_read_is_written_as_it_was_and_all_else_is_an_error(bytes in proptest::collection::vec(0..12_u8, 0..60)) {
            let mut again = Vec::new();
            for effect in Reader::new(&bytes) {
                match effect {
                    Ok(effect) => effect.write(&mut again),
                    Err(Unreadable { at, .. }) => {
                        prop_assert_eq!(at, again.len());
                        return Ok(());
                    }
                }
            }
            prop_assert_eq!(again, bytes);
        }

        #[test]
        fn a_cut_is_noticed_unless_it_is_between_two_effects(all in proptest::collection::vec(parts(), 1..5), cut in any::<usize>()) {
            let (mut bytes, mut ends) = (Vec::new(), vec![0]);
            for parts in &all {
                effect(parts).write(&mut bytes);
                ends.push(bytes.len());
            }
            let cut = cut % bytes.len();
            let sound = Reader::new(&bytes[..cut]).all(|effect| effect.is_ok());
            prop_assert_eq!(sound, ends.contains(&cut));
        }
    }

    #[test]
    fn numbers_have_one_form_and_64_bits() {
        for number in [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = vec![SEQUENCE, 0];
            super::number(&mut bytes, number);
            let read = Reader::new(&bytes).next().unwrap();
            assert_eq!(read, Ok(Effect::Sequence { bucket: 0, sequence: number }));
        }
        let longer = [SEQUENCE, 0, 0x81, 0];
        let too_large = [&[SEQUENCE, 0][..], &[0xFF; 9], &[2]].concat();
        let endless = [&[SEQUENCE, 0][..], &[0xFF; 20]].concat();
        let of_a_bucket = [SEQUENCE, 0xFF, 0xFF, 0xFF, 0xFF, 0x10, 0];
        for bytes in [&longer[..], &too_large, &endless, &of_a_bucket] {
            assert!(Reader::new(bytes).next().unwrap().is_err(), "{bytes:?}");
        }
    }
}
