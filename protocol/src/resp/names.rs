//! The name of a key or field that has none.
//!
//! Redis has keys and fields of no bytes; the file has none: there, such a one is called [`EMPTY`].

/// What a key or field of no bytes is called in the file.
pub const EMPTY: &[u8] = b"boltkv.empty";

/// What a name is in the file.
#[must_use]
pub const fn stored(name: &[u8]) -> &[u8] {
    if name.is_empty() { EMPTY } else { name }
}

/// What a name in the file is to clients.
#[must_use]
pub fn said(name: &[u8]) -> &[u8] {
    if name == EMPTY { &[] } else { name }
}
