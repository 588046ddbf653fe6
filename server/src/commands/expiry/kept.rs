//! What the entries of [`OWN`] say to who reads them without a server: an export of a file has them among its lines.

use boltkv_protocol::Path;

use super::records::{Place, Stamp};
use super::{OF, OWN};

/// When a key expires, as the bucket `boltkv.expires` of a file says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTime {
    /// The bucket that has the key; its name is that of the entry.
    pub bucket: Path,
    /// Milliseconds since 1970.
    pub at_ms: u64,
}

impl KeptTime {
    /// Whether a bucket of these names, from the top down, is boltkv's own, in which times are kept.
    #[must_use]
    pub fn is_in(names: &[impl AsRef<[u8]>]) -> bool {
        names.first().is_some_and(|name| name.as_ref() == OWN)
    }

    /// What an entry with this value says, in the bucket of these names. Times are kept twice, and told once.
    #[must_use]
    pub fn of_entry(names: &[impl AsRef<[u8]>], value: &[u8]) -> Option<Self> {
        let [own, of, place] = names else { return None };
        if own.as_ref() != OWN || of.as_ref() != OF {
            return None;
        }
        let bucket = Path::from_names(Place(place.as_ref()).names()).ok()?;
        let is_whole = !bucket.is_root() && bucket.names_on_the_wire() == place.as_ref();
        Some(Self { bucket, at_ms: Stamp::parse(value)?.time }).filter(|_| is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_of_which_bucket_it_is_and_what_is_none_says_nothing() {
        let path: Path = "users/eu".parse().unwrap();
        let place = path.names_on_the_wire();
        let value = Stamp { time: 7, serial: 1 }.to_bytes();
        let told = |names: &[&[u8]], value: &[u8]| KeptTime::of_entry(names, value);
        assert_eq!(told(&[OWN, OF, place], &value), Some(KeptTime { bucket: path.clone(), at_ms: 7 }));
        assert!(KeptTime::is_in(&[OWN]) && !KeptTime::is_in(&[OF, OWN]));
        for names in [&[OWN, OF][..], &[OWN, b"ids", place], &[b"users", OF, place], &[OWN, OF, place, place]] {
            assert_eq!(told(names, &value), None, "{names:?}");
        }
        for place in [&[][..], &place[..place.len() - 1], &[place, &[0]].concat()] {
            assert_eq!(told(&[OWN, OF, place], &value), None, "{place:?}");
        }
        assert_eq!(told(&[OWN, OF, place], &value[1..]), None);
    }
}
