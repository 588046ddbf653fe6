//! What the advice that a map is given does to gets and scans, on a file that is not in memory, or does not fit. Makes a
//! file of 660 MB where there is none.
//!
//! ```sh
//! cargo build --release -p boltkv-benches --example advice
//! target/release/examples/advice random /var/tmp/advice.db
//! systemd-run --scope --property MemoryMax=256M target/release/examples/advice normal /var/tmp/advice.db
//! ```
#![allow(clippy::print_stdout, reason = "it is a program")]

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use boltkv_benches::data::splitmix;
use boltkv_storage::{Advice, Bucket, Db, Durability, Error, Options};

const ENTRIES: u64 = 5_000_000;
const VALUE: [u8; 100] = [0xB5; 100];

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [advice, path] = arguments.as_slice() else { bail!("usage: advice random|normal FILE") };
    let advice = match advice.as_str() {
        "random" => Advice::Random,
        "normal" => Advice::Normal,
        other => bail!("no advice {other:?}; there are random, normal"),
    };
    let path = Path::new(path);
    if !path.exists() {
        make(path)?;
    }
    let any = |n: u64| splitmix(n) % ENTRIES;
    // Nine of ten ask for a tenth of the keys.
    let hot = |n: u64| if splitmix(n).is_multiple_of(10) { any(splitmix(n)) } else { any(splitmix(n)) / 10 };
    for (what, count, key) in [
        ("get, the first ones", 2_000, &any as &dyn Fn(u64) -> u64),
        ("get, 40,000 later", 40_000, &any),
        ("get, nine of ten of a tenth of the keys", 40_000, &hot),
    ] {
        let db = forgotten(path, advice)?;
        let tx = db.begin()?;
        let bucket = tx.bucket("b")?;
        let later = if count > 2_000 { count } else { 0 };
        gets(bucket, 0..later, key)?;
        let start = Instant::now();
        gets(bucket, later..later + count, key)?;
        println!("{what}: {:.1?}", start.elapsed() / count);
    }
    let db = forgotten(path, advice)?;
    for what in ["scan", "scan again"] {
        let start = Instant::now();
        let entries = db.begin()?.bucket("b")?.iter().try_fold(0, |before, entry| entry.map(|_| before + 1))?;
        println!("{what}: {:.2?}, {entries} entries", start.elapsed());
    }
    Ok(())
}

fn make(path: &Path) -> Result<()> {
    let db = Options::new().durability(Durability::Never).open(path)?;
    for first in (0..ENTRIES).step_by(100_000) {
        db.update(|tx| {
            let mut bucket = tx.create_bucket_if_not_exists("b")?;
            (first..first + 100_000).try_for_each(|n| bucket.put(n.to_be_bytes(), VALUE))?;
            Ok::<_, Error>(())
        })?;
    }
    db.sync()?;
    Ok(())
}

/// The database, of which the system has nothing in memory.
fn forgotten(path: &Path, advice: Advice) -> Result<Db> {
    let file = File::open(path)?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Options::new().advice(advice).read_only(true).open(path).with_context(|| format!("cannot open {}", path.display()))
}

fn gets(bucket: Bucket<'_>, numbers: std::ops::Range<u32>, key: &dyn Fn(u64) -> u64) -> Result<()> {
    for n in numbers {
        black_box(bucket.get(key(n.into()).to_be_bytes())?);
    }
    Ok(())
}
