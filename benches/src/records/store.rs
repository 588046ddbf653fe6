//! Records in a bucket of boltkv's.

use std::hint::black_box;

use anyhow::{Context as _, Result};
use boltkv_storage::{Bucket, BucketMut, Db};

use super::layout::{decode, encode, field};
use super::record::{Bytes as _, FIELDS};
use super::{Layout, Record, Task};
use crate::data::splitmix;

/// The field that is summed up, and the one that is changed.
const SUMMED: &str = "age";
const CHANGED: &str = "login_count";

/// Does a task with so many records, in the bucket of that name. Returns a number that stands for what was read.
///
/// # Errors
/// The engine's; a record that is missing or does not decode.
pub fn run(db: &Db, bucket: &str, layout: Layout, task: Task, count: u64) -> Result<u64> {
    let records = task.records(count);
    let random = |n: u64| (splitmix(n) % count).cast_signed();
    let read = |id| -> Result<u64> {
        let tx = db.begin()?;
        Ok(witness(&load(tx.bucket(bucket)?, layout, id)?))
    };
    match task {
        Task::Make => (0..records.cast_signed()).try_for_each(|id| make(layout, &Record::new(id))).map(|()| 0),
        Task::WriteEach => {
            for id in 0..records.cast_signed() {
                db.try_update(|tx| store(&mut tx.bucket_mut(bucket)?, layout, &Record::new(id)))?;
            }
            Ok(0)
        }
        Task::WriteAll => db.try_update(|tx| {
            let mut bucket = tx.bucket_mut(bucket)?;
            (0..records.cast_signed()).try_for_each(|id| store(&mut bucket, layout, &Record::new(id)))?;
            Ok(0)
        }),
        Task::Read => (0..records).try_fold(0, |sum, n| Ok(sum + read(random(n))?)),
        Task::ReadMany => db.try_view(|tx| {
            let bucket = tx.bucket(bucket)?;
            let middle = (count / 2).cast_signed();
            (middle..middle + records.cast_signed())
                .try_fold(0, |sum, id| Ok(sum + witness(&load(bucket, layout, id)?)))
        }),
        Task::FieldSum => db.try_view(|tx| {
            let bucket = tx.bucket(bucket)?;
            (0..records.cast_signed())
                .try_fold(0, |sum, id| Ok(sum + u64::from(age(bucket, layout, id)?.unsigned_abs())))
        }),
        Task::Update => {
            for n in 0..records {
                db.try_update(|tx| raise(&mut tx.bucket_mut(bucket)?, layout, random(n)))?;
            }
            Ok(0)
        }
    }
}

fn witness(record: &Record) -> u64 {
    record.age.unsigned_abs().into()
}

/// A record's key, or the beginning of its keys.
fn key(id: i64) -> [u8; 8] {
    id.to_be_bytes()
}

/// The key of one of its fields.
fn field_key(id: i64, name: &str) -> Vec<u8> {
    [&key(id), name.as_bytes()].concat()
}

fn store(bucket: &mut BucketMut<'_>, layout: Layout, record: &Record) -> Result<()> {
    let mut value = Vec::new();
    match layout {
        Layout::MultiKv => {
            for field in &FIELDS {
                value.clear();
                (field.put)(record, &mut value);
                bucket.put(field_key(record.id, field.name), &value)?;
            }
        }
        Layout::Nested => {
            let mut own = bucket.create_bucket_if_not_exists(key(record.id))?;
            for field in &FIELDS {
                value.clear();
                (field.put)(record, &mut value);
                own.put(field.name, &value)?;
            }
        }
        _ => bucket.put(key(record.id), encode(layout, record)?)?,
    }
    Ok(())
}

/// The keys and values of a record, which nobody stores.
fn make(layout: Layout, record: &Record) -> Result<()> {
    if !matches!(layout, Layout::MultiKv | Layout::Nested) {
        black_box((key(record.id), encode(layout, record)?));
        return Ok(());
    }
    let mut value = Vec::new();
    for field in &FIELDS {
        value.clear();
        (field.put)(record, &mut value);
        if layout == Layout::MultiKv {
            black_box(field_key(record.id, field.name));
        }
        black_box(&value);
    }
    Ok(())
}

fn load(bucket: Bucket<'_>, layout: Layout, id: i64) -> Result<Record> {
    let entries = match layout {
        Layout::MultiKv => bucket.prefix(key(id)),
        Layout::Nested => bucket.bucket(key(id))?.iter(),
        _ => return decode(layout, bucket.get(key(id))?.context("a record is missing")?),
    };
    let before_name = if layout == Layout::MultiKv { key(id).len() } else { 0 };
    let mut record = Record::default();
    for entry in entries {
        let (key, value) = entry?;
        let mut value = value.context("a field is a bucket")?;
        (field(&key[before_name..])?.take)(&mut record, &mut value)?;
    }
    Ok(record)
}

/// One field of a record, by itself where the layout has it so.
fn age(bucket: Bucket<'_>, layout: Layout, id: i64) -> Result<i32> {
    let value = match layout {
        Layout::MultiKv => bucket.get(field_key(id, SUMMED))?,
        Layout::Nested => bucket.bucket(key(id))?.get(SUMMED)?,
        _ => return Ok(load(bucket, layout, id)?.age),
    };
    i32::take(&mut value.context("a field is missing")?)
}

/// Raises one field of a record by one.
fn raise(bucket: &mut BucketMut<'_>, layout: Layout, id: i64) -> Result<()> {
    let raised = |value: Option<&[u8]>| -> Result<[u8; 4]> {
        Ok((i32::take(&mut value.context("a field is missing")?)? + 1).to_le_bytes())
    };
    match layout {
        Layout::MultiKv => {
            let key = field_key(id, CHANGED);
            let value = raised(bucket.get(&key)?)?;
            bucket.put(key, value)?;
        }
        Layout::Nested => {
            let mut own = bucket.bucket_mut(key(id))?;
            let value = raised(own.get(CHANGED)?)?;
            own.put(CHANGED, value)?;
        }
        _ => {
            let mut record = load(bucket.as_bucket(), layout, id)?;
            record.login_count += 1;
            bucket.put(key(id), encode(layout, &record)?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_reads_what_it_has_stored_and_changes_one_field() {
        for (layout, name) in Layout::ALL {
            let db = boltkv_storage::Options::new().open_in_memory().unwrap();
            db.update(|tx| tx.create_bucket("users").map(drop)).unwrap();
            for task in [Task::WriteAll, Task::WriteEach, Task::Update] {
                run(&db, "users", layout, task, 30).unwrap();
            }
            let tx = db.begin().unwrap();
            let logins = |id| load(tx.bucket("users").unwrap(), layout, id).unwrap().login_count;
            let raised: i32 = (0..30).map(|id| logins(id) - Record::new(id).login_count).sum();
            assert_eq!(raised, 15, "{name}");
            let sum: u64 = (0..30).map(|id| witness(&Record::new(id))).sum();
            assert_eq!(run(&db, "users", layout, Task::FieldSum, 30).unwrap(), sum, "{name}");
        }
    }
}
