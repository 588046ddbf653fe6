//! What a small write and its sync cost, in the ways in which a journal could do it; in turns, so that all of them meet the same
//! disk. `cargo run --release -p boltkv-storage --example journal_writes [FOLDER]`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program that measures, and ends where it cannot")]

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::{ReadWriteFlags, pwritev2};

const SEGMENT: u64 = 16 << 20;
const WRITES: u32 = 1500;
const ROUNDS: usize = 7;
/// A single small write, and a group of some hundreds.
const LENGTHS: [usize; 2] = [4096, 65_536];

struct Way {
    name: &'static str,
    /// Bytes of the writes before; 0: the file is only allocated.
    beforehand: usize,
    flags: OFlags,
    synced_by: SyncedBy,
}

#[derive(Clone, Copy)]
enum SyncedBy {
    Call,
    Write,
    File,
}

fn ways() -> Vec<Way> {
    let way = |name, beforehand, flags, synced_by| Way { name, beforehand, flags, synced_by };
    let (plain, both) = (OFlags::empty(), OFlags::DIRECT | OFlags::DSYNC);
    vec![
        way("4 KiB beforehand, write + fdatasync", 4096, plain, SyncedBy::Call),
        way("1 MiB beforehand, write + fdatasync", 1 << 20, plain, SyncedBy::Call),
        way("only allocated, write + fdatasync", 0, plain, SyncedBy::Call),
        way("4 KiB beforehand, RWF_DSYNC", 4096, plain, SyncedBy::Write),
        way("4 KiB beforehand, O_DIRECT + fdatasync", 4096, OFlags::DIRECT, SyncedBy::Call),
        way("4 KiB beforehand, O_DIRECT|O_DSYNC", 4096, both, SyncedBy::File),
    ]
}

/// Makes the file, and opens it again as the way wants it.
fn prepare(path: &Path, way: &Way) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
    if way.beforehand == 0 {
        fallocate(&file, FallocateFlags::empty(), 0, SEGMENT)?;
    } else {
        let zeros = vec![0; way.beforehand];
        for offset in (0..SEGMENT).step_by(way.beforehand) {
            file.write_all_at(&zeros, offset)?;
        }
    }
    file.sync_all()?;
    let flags = way.flags.bits().cast_signed();
    OpenOptions::new().write(true).custom_flags(flags).open(path)
}

/// Microseconds of a write.
fn measure(file: &File, way: &Way, data: &[u8]) -> io::Result<f64> {
    let mut offset = 4096;
    let start = Instant::now();
    for _ in 0..WRITES {
        if offset + data.len() as u64 > SEGMENT {
            offset = 4096;
        }
        match way.synced_by {
            SyncedBy::Write => drop(pwritev2(file, &[IoSlice::new(data)], offset, ReadWriteFlags::DSYNC)?),
            SyncedBy::File => file.write_all_at(data, offset)?,
            SyncedBy::Call => {
                file.write_all_at(data, offset)?;
                file.sync_data()?;
            }
        }
        offset += data.len() as u64;
    }
    Ok(start.elapsed().as_secs_f64() * 1e6 / f64::from(WRITES))
}

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).map_or_else(|| PathBuf::from("."), PathBuf::from);
    let path = folder.join(format!("journal-writes-{}", std::process::id()));
    // Direct writes want memory that begins on a block.
    let memory = vec![7_u8; 4096 + LENGTHS[1]];
    let aligned = memory.as_ptr().align_offset(4096);
    for len in LENGTHS {
        let mut times: Vec<Vec<f64>> = ways().iter().map(|_| Vec::new()).collect();
        for _ in 0..ROUNDS {
            for (way, times) in ways().iter().zip(&mut times) {
                // A file system may refuse direct writes.
                let time = prepare(&path, way).and_then(|file| measure(&file, way, &memory[aligned..aligned + len]));
                times.extend(time.ok());
            }
        }
        for (way, mut times) in ways().iter().zip(times) {
            times.sort_by(f64::total_cmp);
            match times.get(times.len() / 2) {
                Some(median) => println!("{len} bytes  {:<40} {median:6.1} us", way.name),
                None => println!("{len} bytes  {:<40} refused", way.name),
            }
        }
    }
    std::fs::remove_file(path)
}
