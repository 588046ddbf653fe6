//! How much of what threads of their own do may be under way at a time, of all connections, and the one way to start such
//! a thread.
//!
//! Who works has a place until it has let go of the database, and of the memory that it took of the server's: whoever waits
//! for the places waits for all of that. So a lease is given back before the place is, and stands before it in a tuple.

use std::sync::Arc;
use std::thread;

use boltkv_protocol::{ErrorCode, ErrorReply};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of all who do the same.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    most: u32,
    free: Arc<Semaphore>,
}

/// One of them, free again when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    _permit: OwnedSemaphorePermit,
}

impl Places {
    /// So many.
    pub(super) fn new(most: u32) -> Self {
        Self { most, free: Arc::new(Semaphore::new(most as usize)) }
    }

    /// How many of them are taken.
    pub(crate) fn taken(&self) -> usize {
        (self.most as usize).saturating_sub(self.free.available_permits())
    }

    /// Takes one, if there is one.
    pub(super) fn take(&self) -> Option<Place> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(|permit| Place { _permit: permit })
    }

    /// What is said where all are taken by `what`. Of the options that set their number the first one may have said that
    /// there are none.
    pub(super) fn all_taken(&self, what: &str, options: &[&str]) -> ErrorReply {
        let message = match self.most {
            0 => format!("the server does no {what} ({})", options.first().copied().unwrap_or_default()),
            most => {
                let options = options.join(", ");
                format!("{most} {what} are under way, and the server does no more at a time ({options})")
            }
        };
        ErrorReply::new(ErrorCode::Overloaded, message)
    }

    /// Waits until all are free. None can be taken then.
    pub(super) async fn end(&self) {
        if self.free.acquire_many(self.most).await.is_ok() {
            self.free.close();
        }
    }
}

/// Has a thread of its own do this work, which nobody waits for; `what_for` says why where the system has none.
pub(super) fn start_thread(name: &str, what_for: &str, work: impl FnOnce() + Send + 'static) -> Result<(), ErrorReply> {
    match thread::Builder::new().name(name.into()).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => {
            let message = format!("the system has no thread {what_for}: {error}");
            Err(ErrorReply::new(ErrorCode::Overloaded, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_place_is_free_again_when_it_is_dropped_and_none_is_after_the_end() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        assert!(places.take().is_none());
        assert_eq!(places.taken(), 2);
        drop(first);
        assert_eq!(places.taken(), 1);
        let ending = tokio::spawn({
            let places = places.clone();
            async move { places.end().await }
        });
        tokio::task::yield_now().await;
        assert!(!ending.is_finished());
        drop(second);
        ending.await.unwrap();
        assert!(places.take().is_none());
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn what_is_said_names_the_options_that_set_it() {
        let said = |most| Places::new(most).all_taken("games", &["--max-games", "--memory"]).message;
        assert_eq!(said(0), "the server does no games (--max-games)");
        assert_eq!(said(3), "3 games are under way, and the server does no more at a time (--max-games, --memory)");
    }
}
