//! What `range` and `delete_range` take.

use std::ops::{self, Bound, RangeBounds};

/// Two bounds of keys: any of Rust's ranges of anything that is bytes (`"a".."c"`, `&key[..]..`, `..=[0xff; 4]`), `..` for
/// all keys, or a pair of [`Bound`]s.
///
/// The standard library's [`RangeBounds`] would have to be told what type the keys of `..` are, of which there are none.
pub trait KeyRange: sealed::Sealed {
    #[doc(hidden)]
    fn low(&self) -> Bound<&[u8]>;

    #[doc(hidden)]
    fn high(&self) -> Bound<&[u8]>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! key_ranges {
    ($($range:ty),*) => {$(
        impl<K: AsRef<[u8]>> sealed::Sealed for $range {}

        impl<K: AsRef<[u8]>> KeyRange for $range {
            fn low(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::start_bound(self).map(AsRef::as_ref)
            }

            fn high(&self) -> Bound<&[u8]> {
                RangeBounds::<K>::end_bound(self).map(AsRef::as_ref)
            }
        }
    )*};
}

key_ranges!(
    ops::Range<K>,
    ops::RangeFrom<K>,
    ops::RangeTo<K>,
    ops::RangeInclusive<K>,
    ops::RangeToInclusive<K>,
    (Bound<K>, Bound<K>)
);

impl sealed::Sealed for ops::RangeFull {}

impl KeyRange for ops::RangeFull {
    fn low(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }

    fn high(&self) -> Bound<&[u8]> {
        Bound::Unbounded
    }
}
