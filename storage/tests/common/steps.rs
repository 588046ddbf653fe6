//! A bucket's entries, gone through step by step beside the model's.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

use super::model::Model;
use boltkv_storage::Bucket;

/// Steps on until an end is reached; what a cursor does beyond it is tested beside the cursor.
pub fn walk(bucket: Bucket<'_>, expected: &Model, from: Option<Vec<u8>>, steps: &[bool]) {
    let entries: Vec<_> = expected.entries().collect();
    let mut cursor = bucket.cursor();
    let (mut found, mut at) = match from {
        Some(key) => (cursor.seek(&key).unwrap(), entries.partition_point(|(at, _)| *at < key.as_slice())),
        None if steps.first() == Some(&false) => (cursor.last().unwrap(), entries.len().wrapping_sub(1)),
        None => (cursor.first().unwrap(), 0),
    };
    for forward in steps {
        assert_eq!(found, entries.get(at).copied());
        if found.is_none() {
            return;
        }
        (found, at) =
            if *forward { (cursor.next().unwrap(), at + 1) } else { (cursor.prev().unwrap(), at.wrapping_sub(1)) };
    }
    assert_eq!(found, entries.get(at).copied());
}

/// Takes entries from both ends of a range, then all that is left.
pub fn range(bucket: Bucket<'_>, expected: &Model, keys: (Bound<&[u8]>, Bound<&[u8]>), ends: &[bool]) {
    let mut all: VecDeque<_> = expected.entries().filter(|(key, _)| keys.contains(key)).collect();
    let mut here = bucket.range(keys).map(Result::unwrap);
    for front in ends {
        if *front {
            assert_eq!(here.next(), all.pop_front());
        } else {
            assert_eq!(here.next_back(), all.pop_back());
        }
    }
    assert_eq!(here.collect::<Vec<_>>(), Vec::from(all));
}
