//! Errors in bbolt's words, where it has any for them.

use boltkv_storage::{Error, Problem};

/// What bbolt says where the engine says `error`; nothing where it has no word for it, or only a panic.
pub(crate) fn of(error: &Error) -> Option<String> {
    Some(match error {
        Error::NotABoltFile | Error::EmptyFile => "invalid database".into(),
        Error::VersionMismatch { .. } => "version mismatch".into(),
        Error::ChecksumMismatch => "checksum error".into(),
        Error::BucketNotFound { .. } | Error::IncompatibleValue { .. } => "bucket not found".into(),
        Error::BucketExists { .. } => "bucket already exists".into(),
        Error::BucketNameRequired => "bucket name required".into(),
        Error::KeyRequired => "key required".into(),
        Error::Io { op, path: Some(path), source } => {
            format!("{op} {}: {}", path.display(), reason(source))
        }
        _ => return None,
    })
}

/// A problem as `bbolt check` names it, where it has a short name for it: scripts look for these.
pub(crate) fn of_problem(problem: &Problem) -> String {
    const NAMES: [(&str, &str); 4] = [
        ("it is in use and free", "reachable freed"),
        ("it is neither in use nor free", "unreachable unfreed"),
        ("it is freed twice", "already freed"),
        ("it is referenced twice", "multiple references"),
    ];
    let Problem { page, what, .. } = problem;
    let named = NAMES.iter().find_map(|(ours, theirs)| Some((theirs, what.strip_prefix(ours)?)));
    named.map_or_else(|| problem.to_string(), |(name, where_to)| format!("page {page}: {name}{where_to}"))
}

/// What the system said, as Go tells it: in small letters, without the number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// What is wrong with a text that should be bytes in hexadecimal.
pub(crate) fn hex_fault(text: &[u8]) -> Option<String> {
    match text.iter().find(|byte| !byte.is_ascii_hexdigit()) {
        Some(&byte) => Some(format!("encoding/hex: invalid byte: U+{byte:04X} '{}'", char::from(byte))),
        None if text.len() % 2 == 1 => Some("encoding/hex: odd length hex string".into()),
        None => None,
    }
}
