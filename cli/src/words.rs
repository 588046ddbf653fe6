//! What several commands say in the same words.

use indicatif::HumanCount;

/// So many of something, for people.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{} {what}{}", HumanCount(count), if count == 1 { "" } else { "s" })
}
