//! The allocator of the binary, and what a server asks of it.
//!
//! glibc's allocator keeps most of what thousands of clients had after they have left, because something small that
//! lives on lies at the end of each of its heaps; musl's lets one thread at a time allocate. jemalloc returns single
//! pages, from threads of its own, so that no request pays for it, and its threads hardly meet.

/// What allocates. It is built for pages as large as those of the machine that builds it.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Has memory returned to the system within about a second of being freed. To be called while there is one thread:
/// others may have taken the defaults with them already. Commands that end soon do without.
#[cfg(target_os = "linux")]
pub(crate) fn return_memory() {
    use tikv_jemalloc_ctl::{Access as _, AsName as _};

    /// How long freed pages are kept for the next use, in milliseconds.
    const KEPT_MS: isize = 1000;

    let ask = || {
        // The defaults of arenas to come, and the one that the first thread has.
        "arenas.dirty_decay_ms\0".name().write(KEPT_MS)?;
        "arenas.muzzy_decay_ms\0".name().write(0_isize)?;
        "arena.0.dirty_decay_ms\0".name().write(KEPT_MS)?;
        "arena.0.muzzy_decay_ms\0".name().write(0_isize)?;
        "background_thread\0".name().write(true)
    };
    if let Err(error) = ask() {
        tracing::warn!(%error, "the allocator does not take its settings; memory is returned later than it could be");
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn return_memory() {}
