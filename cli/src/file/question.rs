//! How a server is asked what a command asks a file: for the message that says that a server has the file.

use boltkv_client::Path;

use crate::shell::quoted_for_shell;

/// The path in the form in which a server is asked for it, quoted for a shell; nothing where the protocol has no such path.
pub(super) fn path_to_ask(names: &[impl AsRef<[u8]>]) -> Option<String> {
    Path::from_names(names).ok().map(|path| quoted_for_shell(path.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_can_be_pasted_into_a_shell() {
        let path = |names: &[&[u8]]| path_to_ask(names);
        assert_eq!(path(&[b"users", b"eu"]).as_deref(), Some("users/eu"));
        assert_eq!(path(&[b"it's", b"a/b \xff"]).as_deref(), Some(r"'it'\''s/a\/b \xff'"));
        assert_eq!(path(&[&vec![0; 70_000]]), None);
    }
}
