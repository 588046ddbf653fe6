//! What is stored about times, as bytes. All numbers are big-endian, so that they sort as numbers do.

use boltkv_protocol::Path;

/// A bucket's path as it is stored: its names, each a `u16` and so many bytes. What begins with it lies within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place<'a>(pub(super) &'a [u8]);

impl<'a> From<&'a Path> for Place<'a> {
    fn from(path: &'a Path) -> Self {
        Self(path.names_on_the_wire())
    }
}

impl<'a> Place<'a> {
    /// The names from the top down. What is no path ends early.
    pub(super) fn names(self) -> impl Iterator<Item = &'a [u8]> {
        self.steps().map(|(_, name)| name)
    }

    /// For each name the bucket that it is in, and it.
    pub(super) fn steps(self) -> impl Iterator<Item = (Place<'a>, &'a [u8])> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (within, rest) = self.0.split_at_checked(at)?;
            let (len, rest) = rest.split_first_chunk()?;
            let name = rest.get(..u16::from_be_bytes(*len).into())?;
            at += len.len() + name.len();
            Some((Place(within), name))
        })
    }

    /// The bucket that it is in, and its name; `None` for the root.
    pub(super) fn split(self) -> Option<(Place<'a>, &'a [u8])> {
        self.steps().last()
    }

    /// The root holds buckets only.
    pub(super) const fn is_root(self) -> bool {
        self.0.is_empty()
    }

    /// The path of the bucket `name` in it. A name that is longer than any bucket's is cut: there is nothing of that name.
    pub(super) fn child(self, name: &[u8]) -> Vec<u8> {
        let len = u16::try_from(name.len()).unwrap_or(u16::MAX);
        [self.0, &len.to_be_bytes(), &name[..len.into()]].concat()
    }
}

/// When a key expires, and under which number of `at` it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub(super) time: u64,
    pub(super) serial: u64,
}

impl Stamp {
    /// The bytes of a stamp. They sort as stamps do.
    pub(super) fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.time) << 64 | u128::from(self.serial)).to_be_bytes()
    }

    /// `None` for what is none: somebody else may have written it.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (time, serial) = bytes.split_first_chunk()?;
        let serial = serial.try_into().ok()?;
        Some(Self { time: u64::from_be_bytes(*time), serial: u64::from_be_bytes(serial) })
    }

    /// Whether its time has come.
    pub(super) const fn is_past(self, now: u64) -> bool {
        self.time <= now
    }
}

/// What `at` has for a stamp: the number of the bucket, and the key in it.
pub(super) fn due(id: u64, key: &[u8]) -> Vec<u8> {
    [&id.to_be_bytes(), key].concat()
}

/// The bucket's number, and the key.
pub(super) fn parse_due(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (id, key) = bytes.split_first_chunk()?;
    Some((u64::from_be_bytes(*id), key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_names_of_its_path() {
        let path: Path = r"a/bc/\x00".parse().unwrap();
        let place = Place::from(&path);
        assert_eq!(place.names().collect::<Vec<_>>(), path.names().collect::<Vec<_>>());
        let (within, name) = place.split().unwrap();
        assert_eq!((within, name), (Place::from(&"a/bc".parse().unwrap()), &b"\0"[..]));
        assert_eq!(within.child(name), place.0);
        assert_eq!(Place(&[]).split(), None);
        assert!(Place(&[]).is_root() && !place.is_root());
        for cut in 0..place.0.len() {
            assert!(Place(&place.0[..cut]).names().count() < 3, "what is cut has fewer names");
        }
    }

    #[test]
    fn stamps_sort_as_their_bytes_and_what_is_none_is_none() {
        let stamp = |time, serial| Stamp { time, serial };
        let sorted = [stamp(0, 9), stamp(1, 0), stamp(1, 300), stamp(256, 1), stamp(u64::MAX, 0)];
        assert!(sorted.windows(2).all(|pair| pair[0].to_bytes() < pair[1].to_bytes()));
        for stamp in sorted {
            assert_eq!(Stamp::parse(&stamp.to_bytes()), Some(stamp));
        }
        for len in [0, 8, 15, 17] {
            assert_eq!(Stamp::parse(&vec![0; len]), None);
        }
        assert_eq!(parse_due(&due(7, b"k")), Some((7, &b"k"[..])));
        assert_eq!(parse_due(&[0; 7]), None);
    }
}
