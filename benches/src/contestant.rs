//! Who takes part: an engine, and how its freelist is kept where that is not its default, or that it keeps a journal.
//! Written `boltkv`, `boltkv+on-close` or `boltkv+journal`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Error, Result, bail};

use crate::engines::{self, Freelist, Setup};
use crate::work::{Told, Work};
use crate::worker;

/// Every engine, in the order in which they are shown.
pub const ENGINES: [&str; 10] =
    ["boltkv", "bbolt", "lmdb", "redb", "fjall", "sanakirja", "jammdb", "nut", "bbolt-rs", "bugfruit"];

/// An engine and a choice of its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contestant {
    /// One of [`ENGINES`].
    pub engine: &'static str,
    freelist: Freelist,
    journal: bool,
}

impl Contestant {
    /// Does a work in an empty folder.
    ///
    /// # Errors
    /// The engine's; an engine that was not built in.
    pub fn run(&self, work: &Work, folder: &Path, tell: impl FnMut(Told) -> Result<()>) -> Result<()> {
        let numbers = work.value_bytes == 8 && work.keys.are_numbers();
        let setup = Setup { synced: work.synced, numbers, freelist: self.freelist, journal: self.journal };
        match self.engine {
            "boltkv" => worker::run::<engines::Boltkv>(work, folder, setup, tell),
            #[cfg(feature = "heed")]
            "lmdb" => worker::run::<engines::Lmdb>(work, folder, setup, tell),
            #[cfg(feature = "redb")]
            "redb" => worker::run::<engines::Redb>(work, folder, setup, tell),
            #[cfg(feature = "fjall")]
            "fjall" => worker::run::<engines::Fjall>(work, folder, setup, tell),
            #[cfg(feature = "sanakirja")]
            "sanakirja" => worker::run::<engines::Sanakirja>(work, folder, setup, tell),
            #[cfg(feature = "jammdb")]
            "jammdb" => worker::run::<engines::Jammdb>(work, folder, setup, tell),
            #[cfg(feature = "nut")]
            "nut" => worker::run::<engines::Nut>(work, folder, setup, tell),
            #[cfg(feature = "bbolt-rs")]
            "bbolt-rs" => worker::run::<engines::BboltRs>(work, folder, setup, tell),
            other => bail!("{other} is not built in: see the features in benches/Cargo.toml"),
        }
    }
}

impl FromStr for Contestant {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let (engine, choice) = name.split_once('+').unwrap_or((name, ""));
        let Some(&engine) = ENGINES.iter().find(|&&known| known == engine) else {
            bail!("no engine {engine:?}; there are {}", ENGINES.join(", "));
        };
        let journal = engine == "boltkv" && choice == "journal";
        let freelist = match choice {
            "" => Freelist::Default,
            _ if journal => Freelist::Default,
            "on-close" => Freelist::OnClose,
            "not-stored" => Freelist::NotStored,
            "not-stored-map" => Freelist::NotStoredMap,
            other => bail!("no {other:?} of {engine}; there are on-close, not-stored, not-stored-map, boltkv+journal"),
        };
        Ok(Self { engine, freelist, journal })
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.engine)?;
        f.write_str(match self.freelist {
            _ if self.journal => "+journal",
            Freelist::Default => "",
            Freelist::OnClose => "+on-close",
            Freelist::NotStored => "+not-stored",
            Freelist::NotStoredMap => "+not-stored-map",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contestant_is_read_as_it_is_written() {
        for name in
            ["boltkv", "boltkv+on-close", "boltkv+journal", "bbolt+not-stored", "bbolt+not-stored-map", "bbolt-rs"]
        {
            assert_eq!(name.parse::<Contestant>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn an_unknown_engine_is_refused_with_the_known_ones() {
        assert!("leveldb".parse::<Contestant>().unwrap_err().to_string().contains("boltkv"));
        assert!("boltkv+sometimes".parse::<Contestant>().is_err());
        assert!("lmdb+journal".parse::<Contestant>().unwrap_err().to_string().contains("journal"));
    }
}
