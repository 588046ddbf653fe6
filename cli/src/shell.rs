//! What people paste into a shell.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;

/// An argument as a shell reads it. What is no text, or would steer a terminal, is written as bash, ksh and zsh know it.
pub(crate) fn quoted_for_shell(argument: impl AsRef<OsStr>) -> String {
    let argument = argument.as_ref();
    let Some(text) = argument.to_str().filter(|text| !text.chars().any(char::is_control)) else {
        return escaped(argument.as_bytes());
    };
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-:=".contains(character);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Each byte that is not plain as its number.
fn escaped(bytes: &[u8]) -> String {
    let mut quoted = "$'".to_owned();
    for &byte in bytes {
        if (byte.is_ascii_graphic() || byte == b' ') && !matches!(byte, b'\'' | b'\\') {
            quoted.push(byte.into());
        } else {
            // Three digits: whatever follows is none of it.
            let _ = write!(quoted, "\\{byte:03o}");
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_can_be_pasted_too() {
        assert_eq!(quoted_for_shell("a/b.db"), "a/b.db");
        assert_eq!(quoted_for_shell("it's"), r"'it'\''s'");
        assert_eq!(quoted_for_shell(OsStr::from_bytes(b"n\xff1 it's.db")), r"$'n\3771 it\047s.db'");
        assert_eq!(quoted_for_shell("two\nlines\\"), r"$'two\012lines\134'");
    }
}
