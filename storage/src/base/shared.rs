//! What the tables of patches are made of, which readers look into while the writer goes on. For the model tests
//! (`interleavings`) that is loom's, which goes through every order in which threads can come by it.

#[cfg(not(all(test, loom)))]
mod parts {
    use std::io;
    pub(crate) use std::sync::{Arc, atomic::AtomicU64};

    use zerocopy::FromZeros as _;

    /// So many zeros, as the system has them.
    pub(crate) fn zeros(len: usize) -> io::Result<Vec<AtomicU64>> {
        AtomicU64::new_vec_zeroed(len).map_err(|_| io::ErrorKind::OutOfMemory.into())
    }

    /// Puts a number where nobody else looks; what was there before.
    #[inline]
    pub(crate) fn replace(number: &mut AtomicU64, with: u64) -> u64 {
        std::mem::replace(number.get_mut(), with)
    }

    /// What is shared with nobody else.
    pub(crate) fn into_inner<T>(shared: Arc<T>) -> Option<T> {
        Arc::into_inner(shared)
    }
}

#[cfg(all(test, loom))]
mod parts {
    use std::io;

    pub(crate) use loom::sync::{Arc, atomic::AtomicU64};

    #[allow(clippy::unnecessary_wraps, reason = "the other one may find no memory")]
    pub(crate) fn zeros(len: usize) -> io::Result<Vec<AtomicU64>> {
        Ok((0..len).map(|_| AtomicU64::new(0)).collect())
    }

    pub(crate) fn replace(number: &mut AtomicU64, with: u64) -> u64 {
        number.with_mut(|number| std::mem::replace(number, with))
    }

    pub(crate) fn into_inner<T>(shared: Arc<T>) -> Option<T> {
        Arc::try_unwrap(shared).ok()
    }
}

pub(crate) use parts::{Arc, AtomicU64, into_inner, replace, zeros};
