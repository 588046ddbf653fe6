//! Opening the file that is served, and closing it.

use std::pin::pin;
use std::time::Duration;

use boltkv_storage::{Db, Displaced, FreelistStored, Options};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::warn;

use crate::Error;
use crate::config::{Config, Database};

/// An opening that takes so long is told of, and again whenever it has taken twice as long.
const LONG: Duration = Duration::from_secs(1);

/// Bytes of a limited file, or of the disk, that only deletions may take: more pages than any tree is deep, of any size that is
/// in use.
const MOST_KEPT_FOR_DELETIONS: u64 = 1 << 20;

/// Opens the database that a configuration names.
pub(crate) async fn open(config: &Config) -> Result<Db, Error> {
    let path = match &config.database {
        Database::Open(db) => return Ok(db.clone()),
        Database::File(path) => path.clone(),
    };
    // Stored with every commit the list would cost each of them 8 bytes a free page; so only the opening after a crash
    // pays, which reads every page.
    let freelist = FreelistStored::OnCleanClose;
    let mut options = Options::new().read_only(config.read_only).timeout(config.timeouts.lock);
    options = options.freelist(freelist).durability(config.durability);
    options = options.max_size_reserve(MOST_KEPT_FOR_DELETIONS.min(config.max_size.unwrap_or(u64::MAX) / 16));
    if let Some(max) = config.max_size {
        options = options.max_size(max);
    }
    let (file, keeps_closed) = (path.clone(), config.keeps_closed);
    let (journal, discard, read_only) = (config.journal.clone(), config.discard_journal, config.read_only);
    let journal = journal.map(|journal| journal.most_default_memory(config.limits.all_memory() / 4));
    let opened = spawn_blocking(move || match journal {
        None => options.open(path),
        Some(journal) => match options.clone().journal(journal.clone()).open(&path) {
            Err(error) if discard && error.can_discard_journal() => {
                if read_only {
                    warn!(%error, "the journal is passed over: the file is shown as it is, and neither is changed");
                } else {
                    warn!(%error, "the journal is given up; what it alone recorded is lost");
                }
                options.journal(journal.discard_unfit(true)).open(path)
            }
            opened => opened,
        },
    });
    let opened = patiently(opened, |waited| {
        let why = keeps_closed
            .and_then(|why| why(&file))
            .unwrap_or_else(|| format!("it waits for another process to let go of it, {}", Config::BUSY_OPENING));
        warn!("{} is not open after {} s: {why}", file.display(), waited.as_secs());
    });
    let db = opened.await.map_err(|failed| Error::Thread(failed.into()))?.map_err(Error::Open)?;
    tell(&db);
    Ok(db)
}

/// Waits, however long it takes, and says at times how long that has been.
async fn patiently<T>(awaited: impl Future<Output = T>, mut say: impl FnMut(Duration)) -> T {
    let mut awaited = pin!(awaited);
    let (mut waited, mut step) = (Duration::ZERO, LONG);
    loop {
        if let Ok(done) = timeout(step, &mut awaited).await {
            return done;
        }
        waited += step;
        step = waited;
        say(waited);
    }
}

/// Logs what opening has found.
fn tell(db: &Db) {
    let file = db.path().unwrap_or(std::path::Path::new("")).display();
    let damaged = db.damaged_meta();
    if let Some(damaged) = damaged.filter(|damaged| damaged.is_known) {
        let done = if db.is_read_only() { "it is read from there" } else { "it was put back" };
        warn!("{file}: {damaged}; {done}: check the disk");
    } else if let Some(damaged) = damaged {
        // It may be what a power cut in a commit leaves: no reason not to serve what is there.
        warn!("{file}: {damaged}; the next write replaces that meta: to look into the file first, stop and copy it");
    }
    let stats = db.stats();
    if let Some(before) = stats.journal.and_then(|journal| journal.changed_since) {
        warn!(
            "{file}: since its journal was closed, with transaction {before}, another program has written to it, or it is another \
             file: it is served as transaction {} left it",
            stats.txid
        );
    }
    if stats.journal.is_some_and(|journal| journal.torn) {
        warn!(
            "{file}: what its journal ended with was not whole, and nothing shows that it was synced: a crash cut it off, or it was \
             the newest, and damaged; it was passed over"
        );
    }
    let bytes = stats.pages.saturating_mul(stats.page_size.into());
    if let Some(max) = stats.max_size.filter(|&max| max < bytes) {
        warn!(
            "{file}: {bytes} bytes are in use, more than its limit of {max}: it does not grow, and has room for writes only \
               as far as pages are free"
        );
    }
}

/// Brings the file that was opened here up to date, so that nothing else is needed beside it.
pub(crate) async fn close(db: Db) -> Result<(), Error> {
    let closed = spawn_blocking(|| {
        let again = db.clone();
        db.close().map_err(|source| Error::Close { source, all_in_journal: again.is_all_in_journal() })?;
        match (again.displaced(), again.path()) {
            (Some(Displaced::File), Some(file)) => Err(Error::FileGone { file: file.into() }),
            _ => Ok(()),
        }
    });
    closed.await.map_err(|failed| Error::Thread(failed.into()))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_is_told_of_now_and_then_and_waited_for() {
        let mut told = Vec::new();
        let slow = async {
            tokio::time::sleep(Duration::from_millis(8_500)).await;
            "open"
        };
        assert_eq!(patiently(slow, |waited| told.push(waited.as_secs())).await, "open");
        assert_eq!(told, [1, 2, 4, 8]);
        assert_eq!(patiently(async { 1 }, |_| panic!("it took no time")).await, 1);
    }
}
