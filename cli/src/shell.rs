//! What people paste into a shell.

/// An argument as a shell reads it.
pub(crate) fn quoted_for_shell(argument: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || "/._-:=".contains(character);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}
