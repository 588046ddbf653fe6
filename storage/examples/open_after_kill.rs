//! How long it takes to open a file whose process was killed with a full journal, the freelist stored on a clean close only:
//! `cargo run --release -p boltkv-storage --example open_after_kill [FOLDER]`
//!
//! A process of its own writes until the journal is nearly full, and is killed. What a full journal holds depends on the
//! commits: a record takes 4 KiB at least, so that small ones fill it with few changes, and large ones with many.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program that measures, and ends where it cannot")]

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use boltkv_storage::{Db, Durability, FreelistStored, JournalOptions, Options};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const ENTRIES: u64 = 1_000_000;
/// Bytes of records that are to wait; a thread brings the file up to date after three quarters of what a checkpoint is due
/// for.
const FULL: u64 = 192 << 20;
const CHECKPOINT: u64 = FULL / 3 * 4 + 4096;
/// Puts a commit, and bytes of a value.
const COMMITS: [(u64, usize); 5] = [(1, 100), (25, 100), (400, 100), (100_000, 100), (16, 100_000)];

fn options() -> Options {
    // What was appended outlasts the process, and to be killed is all that is meant to happen here.
    let journal = JournalOptions::new().checkpoint_size(CHECKPOINT);
    Options::new().journal(journal).durability(Durability::Never).freelist(FreelistStored::OnCleanClose)
}

/// Numbers without order that come again with the next run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

fn load(file: &Path) -> Outcome {
    let db = options().open(file)?;
    for part in 0..10 {
        db.update(|tx| -> boltkv_storage::Result<()> {
            let mut bucket = tx.create_bucket_if_not_exists("b")?;
            for key in 0..ENTRIES / 10 {
                bucket.put((part * ENTRIES / 10 + key).to_be_bytes(), [7; 100])?;
            }
            Ok(())
        })?;
    }
    Ok(db.close()?)
}

/// Commits until the next one may have the file brought up to date, says so, and waits to be killed.
fn fill(file: &Path, puts: u64, value: usize) -> Outcome {
    let db = options().open(file)?;
    let mut numbers = Numbers(puts);
    let value = vec![5; value];
    let mut longest = 0;
    loop {
        let before = db.stats().journal.ok_or("no journal")?.since_checkpoint;
        if before + longest >= FULL {
            break;
        }
        db.update(|tx| -> boltkv_storage::Result<()> {
            let mut bucket = tx.bucket_mut("b")?;
            for _ in 0..puts {
                bucket.put((numbers.next() % ENTRIES).to_be_bytes(), &value)?;
            }
            Ok(())
        })?;
        let after = db.stats().journal.ok_or("no journal")?.since_checkpoint;
        longest = longest.max(after.saturating_sub(before));
    }
    println!("full");
    std::io::stdout().flush()?;
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

fn kill_full(file: &Path, puts: u64, value: usize) -> Outcome {
    let mut filling = Command::new(std::env::current_exe()?);
    filling.arg("fill").arg(file).args([puts.to_string(), value.to_string()]);
    let mut child = filling.stdout(Stdio::piped()).spawn()?;
    let mut said = String::new();
    BufReader::new(child.stdout.take().ok_or("it has no output")?).read_line(&mut said)?;
    child.kill()?;
    child.wait()?;
    if said == "full\n" { Ok(()) } else { Err("it did not fill the journal".into()) }
}

fn measure(folder: &Path) -> Outcome {
    println!("{:>15}  {:>12}  {:>12}  {:>12}", "puts a commit", "bytes each", "journal", "opening");
    for (puts, value) in COMMITS {
        let file = folder.join(format!("open-after-kill-{}.db", std::process::id()));
        load(&file)?;
        kill_full(&file, puts, value)?;
        let start = Instant::now();
        let db: Db = options().open(&file)?;
        let time = start.elapsed();
        let journal = PathBuf::from(format!("{}-journal", file.display()));
        let bytes: u64 =
            std::fs::read_dir(&journal)?.map(|entry| Ok(entry?.metadata()?.len())).sum::<std::io::Result<_>>()?;
        println!("{puts:>15}  {value:>12}  {:>8} MiB  {:>9} ms", bytes >> 20, time.as_millis());
        db.close()?;
        std::fs::remove_file(&file)?;
        std::fs::remove_dir_all(&journal)?;
    }
    Ok(())
}

fn main() -> Outcome {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match &args[..] {
        [what, file, puts, value] if what == "fill" => fill(file.as_ref(), puts.parse()?, value.parse()?),
        [folder] => measure(folder.as_ref()),
        _ => measure(".".as_ref()),
    }
}
