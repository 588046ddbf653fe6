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

    /// What an entry with this value says, in the bucket of these names; nothing where it is none of those that tell times.
    /// Times are kept twice, and told once.
    ///
    /// # Errors
    /// What is wrong with one that should tell a time, for people.
    pub fn of_entry(names: &[impl AsRef<[u8]>], value: &[u8]) -> Result<Option<Self>, &'static str> {
        let [own, of, within @ ..] = names else { return Ok(None) };
        if own.as_ref() != OWN || of.as_ref() != OF {
            return Ok(None);
        }
        let no_bucket = "it should tell when a key expires, but the last name of its path says no bucket";
        let [place] = within else { return Err(no_bucket) };
        let bucket = Path::from_names(Place(place.as_ref()).names()).map_err(|_| no_bucket)?;
        if bucket.is_root() || bucket.names_on_the_wire() != place.as_ref() {
            return Err(no_bucket);
        }
        let stamp =
            Stamp::parse(value).ok_or("it should tell when a key expires, but its value is no time of 16 bytes")?;
        Ok(Some(Self { bucket, at_ms: stamp.time }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_says_of_which_bucket_it_is_and_one_that_should_and_does_not_is_told() {
        let path: Path = "users/eu".parse().unwrap();
        let place = path.names_on_the_wire();
        let value = Stamp { time: 7, serial: 1 }.to_bytes();
        let told = |names: &[&[u8]], value: &[u8]| KeptTime::of_entry(names, value);
        assert_eq!(told(&[OWN, OF, place], &value), Ok(Some(KeptTime { bucket: path.clone(), at_ms: 7 })));
        assert!(KeptTime::is_in(&[OWN]) && !KeptTime::is_in(&[OF, OWN]));
        for names in [&[OWN][..], &[OWN, b"ids", place], &[b"users", OF, place]] {
            assert_eq!(told(names, &value), Ok(None), "{names:?}");
        }
        for names in [&[OWN, OF][..], &[OWN, OF, place, place]] {
            assert!(told(names, &value).is_err_and(|why| why.contains("no bucket")), "{names:?}");
        }
        for place in [&[][..], &place[..place.len() - 1], &[place, &[0]].concat()] {
            assert!(told(&[OWN, OF, place], &value).is_err_and(|why| why.contains("no bucket")), "{place:?}");
        }
        for value in [&value[1..], &[&value[..], &[0]].concat(), &[]] {
            assert!(told(&[OWN, OF, place], value).is_err_and(|why| why.contains("no time")), "{value:?}");
        }
    }
}
