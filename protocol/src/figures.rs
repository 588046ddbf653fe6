//! Names and values, as a server tells of itself: one set of them, or rows.

use bytes::{BufMut, Bytes, BytesMut};

use crate::field::{DecodeError, EncodeError, Fields, put_bytes32, put_str16};

pub(crate) fn decode_stats(fields: &mut Fields) -> Result<Vec<(Bytes, Bytes)>, DecodeError> {
    // Room is made as they come: their number is only what the other side says.
    (0..fields.u16("n")?).map(|_| Ok((fields.str16("name")?, fields.bytes32("value")?))).collect()
}

pub(crate) fn encode_stats<B: AsRef<[u8]>>(figures: &[(B, B)], out: &mut BytesMut) -> Result<(), EncodeError> {
    let count = figures.len();
    out.put_u16(u16::try_from(count).map_err(|_| EncodeError { field: "n", len: count, limit: u16::MAX.into() })?);
    for (name, value) in figures {
        put_str16(out, "name", name.as_ref())?;
        put_bytes32(out, "value", value.as_ref())?;
    }
    Ok(())
}

pub(crate) fn decode_rows(fields: &mut Fields) -> Result<Vec<Vec<(Bytes, Bytes)>>, DecodeError> {
    (0..fields.u32("rows")?).map(|_| decode_stats(fields)).collect()
}

pub(crate) fn encode_rows<B: AsRef<[u8]>>(rows: &[Vec<(B, B)>], out: &mut BytesMut) -> Result<(), EncodeError> {
    let limit = u32::MAX as usize;
    let count = u32::try_from(rows.len()).map_err(|_| EncodeError { field: "rows", len: rows.len(), limit })?;
    out.put_u32(count);
    rows.iter().try_for_each(|row| encode_stats(row, out))
}
