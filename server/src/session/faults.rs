//! Whether a thread has waited for the disk because something that it looked at was not in memory.

/// Whether the calling thread has, since it last asked here. Where the system does not tell, it may have.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn has_waited_for_the_disk() -> bool {
    use std::cell::Cell;
    use std::ffi::c_long;

    use nix::sys::resource::{UsageWho, getrusage};

    thread_local! {
        static BEFORE: Cell<c_long> = const { Cell::new(0) };
    }
    getrusage(UsageWho::RUSAGE_THREAD).map_or(true, |usage| {
        let faults = usage.major_page_faults();
        BEFORE.replace(faults) != faults
    })
}

/// Whether the calling thread has: it may have, for the system does not tell.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) const fn has_waited_for_the_disk() -> bool {
    true
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use boltkv_storage::{Error, Options};
    use rustix::fs::{Advice, Mode, OFlags, fadvise, fsync, open};

    use super::*;

    #[test]
    fn one_that_waits_for_another_has_not_and_one_that_reads_what_is_not_in_memory_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let db = Options::new().open(&path).unwrap();
        db.update(|tx| {
            let mut bucket = tx.create_bucket("b")?;
            (0..10_000_u32).try_for_each(|n| bucket.put(n.to_be_bytes(), [0; 400]))?;
            Ok::<_, Error>(())
        })
        .unwrap();
        db.close().unwrap();
        let file = open(&path, OFlags::RDONLY, Mode::empty()).unwrap();
        fsync(&file).unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let db = Options::new().open(&path).unwrap();
        let tx = db.begin().unwrap();
        let bucket = tx.bucket("b").unwrap();
        let key = 5_000_u32.to_be_bytes();
        // A file system in memory forgets nothing.
        let is_cold = !bucket.is_resident(key);
        has_waited_for_the_disk();
        let (_nobody_sends, nothing) = channel::<()>();
        nothing.recv_timeout(Duration::from_millis(5)).unwrap_err();
        assert!(!has_waited_for_the_disk(), "it waited for something else");
        assert!(bucket.get(key).unwrap().is_some());
        assert_eq!(has_waited_for_the_disk(), is_cold);
        assert!(bucket.get(key).unwrap().is_some());
        assert!(!has_waited_for_the_disk(), "it is in memory now");
    }
}
