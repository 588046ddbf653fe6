//! Records as bytes: the four layouts that keep a record in one value.

use anyhow::{Context as _, Result, bail};

use super::record::{Bytes as _, FIELDS, Field};
use super::{Layout, Record};

/// The field of that name.
pub(super) fn field(name: &[u8]) -> Result<&'static Field> {
    FIELDS.iter().find(|field| field.name.as_bytes() == name).context("a field that no record has")
}

/// The value that holds a record, in layouts that have one.
pub(super) fn encode(layout: Layout, record: &Record) -> Result<Vec<u8>> {
    match layout {
        Layout::Binary => Ok(FIELDS.iter().fold(Vec::new(), |mut out, field| {
            (field.put)(record, &mut out);
            out
        })),
        Layout::BinaryNamed => Ok(FIELDS.iter().fold(Vec::new(), |mut out, field| {
            field.name.to_owned().put(&mut out);
            (field.put)(record, &mut out);
            out
        })),
        Layout::Json => Ok(serde_json::to_vec(record)?),
        Layout::MessagePack => Ok(rmp_serde::to_vec_named(record)?),
        Layout::MultiKv | Layout::Nested => bail!("a record of many entries has no one value"),
    }
}

/// The record in a value.
pub(super) fn decode(layout: Layout, mut value: &[u8]) -> Result<Record> {
    let mut record = Record::default();
    match layout {
        Layout::Binary => FIELDS.iter().try_for_each(|field| (field.take)(&mut record, &mut value))?,
        Layout::BinaryNamed => {
            while !value.is_empty() {
                let name = String::take(&mut value)?;
                (field(name.as_bytes())?.take)(&mut record, &mut value)?;
            }
        }
        Layout::Json => record = serde_json::from_slice(value)?,
        Layout::MessagePack => record = rmp_serde::from_slice(value)?,
        Layout::MultiKv | Layout::Nested => bail!("a record of many entries has no one value"),
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_from_every_layout_of_one_value() {
        for layout in [Layout::Binary, Layout::BinaryNamed, Layout::Json, Layout::MessagePack] {
            let record = Record::new(12_345);
            let value = encode(layout, &record).unwrap();
            assert_eq!(decode(layout, &value).unwrap(), record, "{layout:?}");
            assert!(decode(layout, &value[..value.len() - 1]).is_err(), "{layout:?}, cut");
        }
    }
}
