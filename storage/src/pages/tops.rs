//! Where the trees of the top-level buckets begin that were looked up first in a snapshot.
//!
//! Who reads one key in a transaction of its own looks up its bucket first, in a leaf where hardly anything else is: that is
//! nearly as much work as the key. In one snapshot the answer is always the same.

use std::sync::OnceLock;

use crate::format::Pgid;

/// How many are noted: as a rule there is one that everybody reads, and one of what is stored about it.
const MOST: usize = 2;
/// The longest name that is noted.
const LONGEST: usize = 31;

/// The buckets that are noted of a snapshot.
#[derive(Debug, Default)]
pub(crate) struct Tops([OnceLock<Top>; MOST]);

/// A bucket whose tree has pages of its own.
#[derive(Debug)]
pub(crate) struct Top {
    len: u8,
    bytes: [u8; LONGEST],
    pub(crate) root: Pgid,
    pub(crate) sequence: u64,
}

impl Top {
    pub(crate) fn name(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Tops {
    /// The bucket of this name, if it is noted.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Top> {
        self.0.iter().map_while(OnceLock::get).find(|top| top.name() == name)
    }

    /// Notes a bucket that was found, where there is room.
    pub(crate) fn note(&self, name: &[u8], root: Pgid, sequence: u64) {
        let Some(free) = self.0.iter().find(|top| top.get().is_none()) else { return };
        let Some(len) = u8::try_from(name.len()).ok().filter(|len| usize::from(*len) <= LONGEST) else { return };
        let mut bytes = [0; LONGEST];
        bytes[..name.len()].copy_from_slice(name);
        // Another reader may have noted one meanwhile: that is as good.
        let _ = free.set(Top { len, bytes, root, sequence });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_noted_and_found_by_their_names() {
        let tops = Tops::default();
        tops.note(&[b'n'; LONGEST + 1], 1, 0);
        for (root, name) in [(3, &b"a"[..]), (4, &[b'n'; LONGEST]), (5, b"c")] {
            tops.note(name, root, root * 2);
        }
        let found = |name: &[u8]| tops.get(name).map(|top| (top.name().to_vec(), top.root, top.sequence));
        assert_eq!(found(b"a"), Some((b"a".to_vec(), 3, 6)));
        assert_eq!(found(&[b'n'; LONGEST]), Some((vec![b'n'; LONGEST], 4, 8)));
        assert_eq!([found(b"c"), found(b""), found(&[b'n'; LONGEST + 1])], [None, None, None]);
    }
}
