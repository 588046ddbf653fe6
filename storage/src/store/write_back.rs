//! Before a sync point the disk is told to take what was written, while commits go on: its own syncs are short then.

use std::panic::resume_unwind;
use std::sync::MutexGuard;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::Shared;
use super::durable::unless_full;
use crate::Result;

/// How often pages are written back, and then synced, at most, and how long it takes where little is left to the next time.
const ROUNDS: usize = 4;
const SHORT: Duration = Duration::from_millis(10);
/// Bytes that are written back together.
const PIECE: u64 = 1 << 20;
/// How often it is looked meanwhile whether memory is to be given back.
const LOOKS: Duration = Duration::from_millis(2);

impl Shared {
    /// Syncs the pages that commits have written, while they go on: once what is left to sync is what was written in a short
    /// time, the sync point's own sync is short, too.
    pub(super) fn write_back(&self) -> Result<()> {
        self.pressure.writes_back();
        // Nearly all is written by the first round.
        self.write_pieces_back(|done, all| self.pressure.step(done, all))?;
        for _ in 1..ROUNDS {
            if self.write_pieces_back(|_, _| {})? < SHORT {
                break;
            }
        }
        for _ in 0..ROUNDS {
            let clock = Instant::now();
            self.sync_file()?;
            self.writer.with(|writer| writer.commits.count_sync(Duration::ZERO));
            if clock.elapsed() < SHORT {
                break;
            }
        }
        Ok(())
    }

    /// The same on another thread, while this one gives the memory back that commits fill meanwhile: the disk takes about a
    /// second for what they may have filled it with twice. For who has the turn.
    pub(super) fn write_back_beside(&self, turn: &MutexGuard<'_, ()>) -> Result<()> {
        let (done, is_done) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let write = || {
                // Dropped at the end, whichever it is.
                let _done = done;
                self.write_back()
            };
            let writing = thread::Builder::new().name("boltkv-write-back".into());
            let Ok(writing) = writing.spawn_scoped(scope, write) else { return self.write_back() };
            while is_done.recv_timeout(LOOKS) == Err(RecvTimeoutError::Timeout) {
                if let Err(error) = self.give_back_while_full(turn, |_| !writing.is_finished()) {
                    // Where there is no room, there is none before the meta is written.
                    unless_full(error)?;
                    break;
                }
            }
            writing.join().unwrap_or_else(|panicked| resume_unwind(panicked))
        })
    }

    /// Has the system write what it was given, a piece at a time: what the journal writes meanwhile waits behind all of what the
    /// disk was told to write. How long that took; how many pieces are done, and how many there are, it is to `tell`.
    fn write_pieces_back(&self, tell: impl Fn(u64, u64)) -> Result<Duration> {
        let clock = Instant::now();
        let pieces = self.writer.with(|writer| writer.file_len).div_ceil(PIECE);
        for piece in 0..pieces {
            self.write_back_piece(piece * PIECE, PIECE)?;
            self.sync_if_due()?;
            tell(piece + 1, pieces);
        }
        Ok(clock.elapsed())
    }
}
