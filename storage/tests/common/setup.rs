//! How a database is opened for a test, said once for both sides.

use boltkv_storage::{Fill, FreelistStored, JournalOptions, Options};

/// Bytes of memory for what is new.
const MEMORY: usize = 16 << 10;

/// How to open a file, here and with Go's bbolt.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Of a new file, in bytes.
    pub page_size: u32,
    /// Whether commits write the freelist to the file.
    pub freelist_stored: bool,
    /// bbolt's fill percent; `None` is this engine's own rule, and bbolt's default there.
    pub fill: Option<f64>,
    /// Whether commits go to a journal first; bbolt has none.
    pub journal: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self { page_size: 4096, freelist_stored: true, fill: Some(0.5), journal: false }
    }
}

impl Setup {
    pub fn with_page_size(page_size: u32) -> Self {
        Self { page_size, ..Self::default() }
    }

    pub fn options(&self) -> Options {
        let freelist = if self.freelist_stored { FreelistStored::Always } else { FreelistStored::Never };
        // Buckets for which no fill is set, the root above all, have bbolt's default there.
        let fill = self.fill.map_or(Fill::Auto, |_| Fill::Percent(0.5));
        let options = Options::new().page_size(self.page_size).freelist(freelist).fill(fill);
        // As small as they may be, so that there are checkpoints in between, and leaves are written anew before them.
        if self.journal {
            let journal = JournalOptions::new().memory(MEMORY);
            options.journal(journal.checkpoint_size(JournalOptions::LEAST_CHECKPOINT_SIZE))
        } else {
            options
        }
    }

    pub fn fill(&self) -> Fill {
        self.fill.map_or(Fill::Auto, Fill::Percent)
    }

    /// The same as flags of the Go program.
    pub fn peer_flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--page-size={}", self.page_size)];
        flags.extend(self.fill.map(|fill| format!("--fill={fill}")));
        if !self.freelist_stored {
            flags.push("--no-freelist".to_owned());
        }
        flags
    }
}
