//! How the map of a file is asked for.

/// How a file is mapped.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MapOptions {
    pub(crate) populate: bool,
    pub(crate) advice: Advice,
}

/// What the kernel is told about how the map will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Advice {
    /// Nothing: the kernel reads ahead, and around what is read, as it does for any file.
    Normal,
    /// Pages will be read at random: the kernel does not read ahead, so that what memory there is holds pages that were
    /// asked for. bbolt's choice, and the default. What a scan or a check will come to is asked for ahead by the engine.
    #[default]
    Random,
}
