//! Rows of names and values, as the server tells of itself, and how many of them go into a reply.

use bytes::Bytes;

/// Names and values.
pub(crate) type Row = Vec<(Bytes, Bytes)>;

/// A row of these.
pub(crate) fn row<const N: usize>(fields: [(&'static str, String); N]) -> Row {
    fields.into_iter().map(|(name, value)| (Bytes::from_static(name.as_bytes()), value.into())).collect()
}

/// As many rows as take `most` bytes in a reply, and one in any case.
pub(crate) fn page(rows: impl Iterator<Item = Row>, most: usize) -> Vec<Row> {
    let (mut page, mut taken) = (Vec::new(), 0);
    for row in rows {
        taken += len(&row);
        if taken > most && !page.is_empty() {
            break;
        }
        page.push(row);
    }
    page
}

/// What a row takes at most, in any dialect: each byte of a value may be escaped.
pub(crate) fn len(row: &Row) -> usize {
    4 + row.iter().map(|(name, value)| name.len() + 2 * value.len() + 8).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_fits_and_never_nothing() {
        let rows = || (0..10).map(|n| row([("id", n.to_string())]));
        let one = len(&row([("id", "0".to_owned())]));
        assert_eq!(page(rows(), 3 * one).len(), 3);
        assert_eq!(page(rows(), 3 * one - 1).len(), 2);
        assert_eq!(page(rows(), 0).len(), 1);
        assert_eq!(page(rows(), usize::MAX).len(), 10);
        assert!(page(std::iter::empty(), 100).is_empty());
    }
}
