//! Commands that write files of their own: `compact` and `bench`.

use std::path::Path;

use boltkv_storage::{Durability, Options};
use clap::ValueEnum as _;

use super::super::bench::{Bench, ReadMode};
use super::super::bench_work::WriteMode;
use super::super::compact::{Compact, Done};
use super::super::interrupt::Interrupt;
use super::super::memory::Memory;
use super::super::progress::Progress;
use super::super::target::{Target, same_file};
use super::arguments::Given;
use super::look::{existing, output};
use crate::failure::{Failure, Outcome};

pub(super) fn compact(given: &Given) -> Outcome {
    let output = output(given);
    if output.as_os_str().is_empty() {
        return Err(Failure::not_done("output file required"));
    }
    let source = existing(given.file())?;
    let target = Target::patient(source);
    // Below 0 a transaction takes one entry, as in bbolt.
    let tx_max_size = u64::try_from(given.number("tx-max-size", 65536)).unwrap_or(1);
    if output.metadata().is_ok() {
        return compact_into(&target, &output, tx_max_size);
    }
    Compact { target, output, tx_max_size, no_sync: true, json: false }.run()
}

/// Into a database that is there. It is synced once, at the end: until then a crash leaves what it was.
fn compact_into(source: &Target, output: &Path, tx_max_size: u64) -> Outcome {
    if same_file(source.path(), output) {
        return Err(Failure::not_done(format!("{} is the file to be compacted", output.display())));
    }
    let _interrupt = Interrupt::new({
        let output = output.display().to_string();
        move || format!("{output} may have a part of it")
    })?;
    let from = source.open_to_read(None)?;
    let bytes_before = source.path().metadata().map_or(0, |file| file.len());
    let target = Target::patient(output);
    let into = target.open_with(Options::new().durability(Durability::Never))?;
    let tx = from.begin().map_err(|error| Failure::storage(source.path(), &error))?;
    {
        let (progress, memory) = (Progress::of_bytes(tx.size()), Memory::new(&tx));
        let mut reached = |bytes| {
            progress.reach(bytes);
            memory.has_read(bytes);
        };
        let compacted = tx.compact_telling(&into, tx_max_size, &mut reached).and_then(|()| into.sync());
        compacted.map_err(|error| Failure::storage(output, &error))?;
    }
    drop(into);
    let bytes_after = output.metadata().map_or(0, |file| file.len());
    source.print(|out| Ok(Done { bytes_before, bytes_after }.print(out)?))
}

pub(super) fn bench(given: &Given) -> Outcome {
    let (count, batch_size) = (positive(given, "count", 1000)?, positive(given, "batch-size", 0)?);
    if batch_size > 0 && count % batch_size != 0 {
        return Err(Failure::not_done("the number of iterations must be divisible by the batch size"));
    }
    let write_mode = WriteMode::from_str(&given.text("write-mode", "seq"), false)
        .map_err(|_| Failure::not_done("the write mode should be one of seq, rnd, seq-nest, or rnd-nest"))?;
    let read_mode = given.text("read-mode", "seq");
    let read_mode = ReadMode::from_str(&read_mode, false)
        .map_err(|_| Failure::not_done(format!("bench: read: invalid read mode: {read_mode}")))?;
    let key_size = positive(given, "key-size", 8)?;
    if !(4..=32_768).contains(&key_size) {
        return Err(Failure::not_done(format!("--key-size {key_size}: a key has from 4 to 32768 bytes here")));
    }
    if let Some(flag) = ["blockprofile", "cpuprofile", "memprofile"].iter().find(|flag| given.flag(flag).is_some()) {
        return Err(Failure::not_done(format!("--{flag}: this is no Go program, and has no profile of its runtime")));
    }
    let bench = Bench {
        count,
        batch_size,
        key_size,
        value_size: positive(given, "value-size", 32)?,
        write_mode,
        read_mode,
        path: given.flag("path").filter(|path| !path.is_empty()).map(Into::into),
        work: given.is("work"),
        no_sync: given.is("no-sync"),
        fill_percent: Some(given.text("fill-percent", "0.5").parse().unwrap_or(0.5)),
        page_size: positive(given, "page-size", 4096)?,
        initial_mmap_size: positive(given, "initial-mmap-size", 0)?.into(),
        gobench_output: given.is("gobench-output"),
        json: false,
        as_bbolt: true,
    };
    bench.run()
}

/// A number that nothing can be below 0 of.
fn positive(given: &Given, flag: &str, default: u32) -> Outcome<u32> {
    let number = given.number(flag, default.into());
    u32::try_from(number).map_err(|_| Failure::not_done(format!("--{flag} {number}: it is from 0 to {}", u32::MAX)))
}
