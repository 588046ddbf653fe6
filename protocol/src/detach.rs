//! Requests that outlive the buffer they were read into.
//!
//! What is decoded from a frame is a slice of the buffer that the frame arrived in, and keeps all of it: a key of ten bytes,
//! a buffer of 256 KiB. Whoever keeps a request for longer than its turn detaches it first.

use bytes::{Bytes, BytesMut};

/// What is this long has come in a buffer of about its own length, and is not copied.
const LARGE: usize = 16 * 1024;

/// Moves what is small into memory of its own, all of it into one piece.
pub(crate) fn detach<'a, const N: usize>(parts: [Option<&'a mut Bytes>; N]) {
    let is_small = |part: &&'a mut Bytes| part.len() < LARGE;
    let parts = parts.map(|part| part.filter(is_small));
    let mut own = BytesMut::with_capacity(parts.iter().flatten().map(|part| part.len()).sum());
    for part in parts.iter().flatten() {
        own.extend_from_slice(part);
    }
    let mut own = own.freeze();
    for part in parts.into_iter().flatten() {
        *part = own.split_to(part.len());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// Bytes that tell whether anyone still has a part of them.
    fn buffer(len: usize) -> (Bytes, Arc<()>) {
        struct Owner(Vec<u8>, #[expect(dead_code, reason = "only its being dropped is looked at")] Arc<()>);
        impl AsRef<[u8]> for Owner {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        let watch = Arc::new(());
        (Bytes::from_owner(Owner((0..=u8::MAX).cycle().take(len).collect(), Arc::clone(&watch))), watch)
    }

    #[test]
    fn small_parts_say_the_same_and_let_go_of_their_buffer() {
        let (whole, watch) = buffer(LARGE);
        let (mut key, mut value) = (whole.slice(3..13), whole.slice(100..LARGE));
        let expected = (key.to_vec(), value.to_vec());
        drop(whole);
        assert_eq!(Arc::strong_count(&watch), 2);
        detach([Some(&mut key), None, Some(&mut value)]);
        assert_eq!((key.to_vec(), value.to_vec()), expected);
        assert_eq!(Arc::strong_count(&watch), 1);
    }

    #[test]
    fn a_large_part_is_not_copied() {
        let (mut value, watch) = buffer(LARGE);
        let place = value.as_ptr();
        detach([Some(&mut value)]);
        assert_eq!((value.as_ptr(), Arc::strong_count(&watch)), (place, 2));
    }
}
