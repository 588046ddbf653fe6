//! The call that fails: one chosen call to the disk gives an error instead of doing its work.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A call to the disk or the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Len,
    Read,
    Write {
        offset: u64,
    },
    SetLen,
    Sync,
    Map,
    /// Anything that is done to a folder.
    Folder,
}

/// How the call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// EIO; nothing was done.
    Broken,
    /// EIO; a write had got half-way.
    BrokenHalfWay,
    /// ENOSPC; nothing was done.
    Full,
    /// ENOSPC; a write had got half-way.
    FullHalfWay,
    /// EFBIG; nothing was done.
    TooLarge,
    /// The process died: this call and all later ones do nothing.
    Killed,
}

impl Fault {
    fn error(self) -> io::Error {
        let (eio, enospc, efbig) = (5, 28, 27);
        match self {
            Self::Broken | Self::BrokenHalfWay => io::Error::from_raw_os_error(eio),
            Self::Full | Self::FullHalfWay => io::Error::from_raw_os_error(enospc),
            Self::TooLarge => io::Error::from_raw_os_error(efbig),
            Self::Killed => io::Error::other("the process is dead"),
        }
    }
}

/// Waits for one call to fail it. Clones are the same trap; the default one waits for none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trap(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Calls that go well before the one that fails, and how that one fails.
    armed: Option<(u64, Fault)>,
    sprung: Option<(Call, Fault)>,
    /// Bytes by which all files together may grow, where that is limited.
    room: Option<u64>,
    /// Bytes that a file may have, where that is limited.
    max_len: Option<u64>,
}

impl Trap {
    /// Fails the call after `calls` more.
    pub(crate) fn after(calls: u64, fault: Fault) -> Self {
        let trap = Self::default();
        trap.arm(calls, fault);
        trap
    }

    /// From now on as [`Self::after`].
    pub(crate) fn arm(&self, calls: u64, fault: Fault) {
        let mut state = self.state();
        (state.armed, state.sprung) = (Some((calls, fault)), None);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on all files together grow by so many bytes at most: then the disk is full.
    pub(crate) fn limit_room(&self, bytes: u64) {
        self.state().room = Some(bytes);
    }

    /// How much they still may grow, where that is limited.
    pub(super) fn room(&self) -> Option<u64> {
        self.state().room
    }

    /// From now on a file may have so many bytes, as where the process has such a limit.
    pub(crate) fn limit_len(&self, bytes: u64) {
        self.state().max_len = Some(bytes);
    }

    pub(super) fn max_len(&self) -> Option<u64> {
        self.state().max_len
    }

    /// Takes so much room, if it is there.
    pub(super) fn take_room(&self, bytes: u64) -> io::Result<()> {
        if let Some(room) = &mut self.state().room {
            *room = room.checked_sub(bytes).ok_or_else(|| Fault::Full.error())?;
        }
        Ok(())
    }

    /// A file has become so much shorter, or is gone.
    pub(super) fn give_room(&self, bytes: u64) {
        if let Some(room) = &mut self.state().room {
            *room += bytes;
        }
    }

    /// No further call fails.
    pub(crate) fn disarm(&self) {
        self.state().armed = None;
    }

    /// The call that failed, once it has.
    pub(crate) fn sprung(&self) -> Option<Call> {
        self.state().sprung.map(|(call, _)| call)
    }

    /// Whether this call goes well.
    pub(super) fn call(&self, call: Call) -> io::Result<()> {
        let mut state = self.state();
        match &mut state.armed {
            None => Ok(()),
            Some((left @ 1.., _)) => {
                *left -= 1;
                Ok(())
            }
            Some((0, fault)) => {
                let fault = *fault;
                state.sprung.get_or_insert((call, fault));
                if fault != Fault::Killed {
                    state.armed = None;
                }
                Err(fault.error())
            }
        }
    }

    /// How many bytes of a write that just failed were written all the same.
    pub(super) fn part_of(&self, len: usize) -> usize {
        match self.state().sprung {
            Some((Call::Write { .. }, Fault::BrokenHalfWay | Fault::FullHalfWay)) => len / 2,
            _ => 0,
        }
    }
}
