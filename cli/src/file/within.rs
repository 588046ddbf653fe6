//! The bucket that a command is about: names from the top down, one argument each, as bbolt takes them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use boltkv_client::Path;
use boltkv_storage::{Bucket, Error, Tx};
use clap::builder::{OsStringValueParser, TypedValueParser};

/// Reads an argument's bytes as they are; a name need not be UTF-8.
pub(super) fn name_parser() -> impl TypedValueParser<Value = Vec<u8>> {
    OsStringValueParser::new().map(OsString::into_vec)
}

/// The bucket of that path.
pub(super) fn bucket_at<'tx>(tx: &'tx Tx, names: &[Vec<u8>]) -> Result<Bucket<'tx>, Error> {
    let Some((top, inner)) = names.split_first() else { return Err(Error::BucketNameRequired) };
    inner.iter().try_fold(tx.bucket(top)?, |bucket, name| bucket.bucket(name))
}

/// The path in the form in which a server is asked for it, quoted for a shell; nothing where the protocol has no such path.
pub(super) fn path_to_ask(names: &[Vec<u8>]) -> Option<String> {
    Path::from_names(names).ok().map(|path| quoted_for_shell(&path.to_string()))
}

/// An argument as a shell reads it.
pub(super) fn quoted_for_shell(argument: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-:=".contains(character);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        let path = |names: &[&[u8]]| path_to_ask(&names.iter().map(|name| name.to_vec()).collect::<Vec<_>>());
        assert_eq!(path(&[b"users", b"eu"]).as_deref(), Some("users/eu"));
        assert_eq!(path(&[b"it's", b"a/b \xff"]).as_deref(), Some(r"'it'\''s/a\/b \xff'"));
        assert_eq!(path(&[&vec![0; 70_000]]), None);
    }
}
