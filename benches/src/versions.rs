//! Which versions of the Rust engines are measured: what the lock file says.

use std::collections::BTreeMap;

/// The lock file that this program was built by.
const LOCK: &str = include_str!("../../Cargo.lock");

/// The crates of the peers.
const CRATES: [&str; 7] = ["heed", "redb", "fjall", "sanakirja", "jammdb", "nut", "bbolt-rs"];

/// The peers' crates with their versions.
#[must_use]
pub fn of_crates() -> BTreeMap<String, String> {
    CRATES.iter().filter_map(|&name| Some((name.to_owned(), locked(LOCK, name)?.to_owned()))).collect()
}

fn locked<'l>(lock: &'l str, name: &str) -> Option<&'l str> {
    let (_, after) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    after.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_a_version() {
        assert_eq!(of_crates().len(), CRATES.len());
        assert_eq!(locked("[[package]]\nname = \"a\"\nversion = \"1.2.3\"\n", "a"), Some("1.2.3"));
    }
}
