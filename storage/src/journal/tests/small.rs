//! All kinds of entries, over several segments and openings, with as few bytes as show them: small enough to be interpreted by
//! Miri.

use super::{begin, effects, folder, meta, records, waiting};
use crate::Error;
use crate::journal::read;

#[test]
fn records_links_a_close_and_damage_are_told_apart() {
    let folder = folder();
    let mut journal = begin(&folder, 1);
    // The second one goes on in the next segment.
    let lens = [10, 13_000, 0];
    for (txid, len) in (2..).zip(lens) {
        journal.append(txid, txid, &[&effects(txid, len)]).unwrap();
        journal.sync().unwrap();
    }
    let expected: Vec<_> = (2..).zip(lens).map(|(txid, len)| (txid, effects(txid, len))).collect();
    assert_eq!(records(&waiting(&folder, 1).unwrap()), expected);
    journal.link(3, &meta(5), journal.recorded()).unwrap();
    journal.sync().unwrap();
    assert_eq!(records(&waiting(&folder, 5).unwrap()), expected[2..]);
    assert!(matches!(waiting(&folder, 9), Err(Error::JournalDoesNotFit { .. })));

    // What was synced is damaged: the second block of the first segment is the first record.
    let (name, byte) = (folder.list().unwrap().into_iter().min().unwrap(), 4096 + 80);
    let disk = folder.open(&name).unwrap();
    disk.write_at(&[0xff], byte).unwrap();
    assert!(matches!(waiting(&folder, 1), Err(Error::JournalDamaged { offset: 4096, .. })));
    assert_eq!(records(&waiting(&folder, 5).unwrap()), expected[2..], "what the file contains may be damaged");

    journal.close().unwrap();
    let changed = waiting(&folder, 9).unwrap();
    assert!(changed.is_closed() && changed.is_empty());
    let (listing, mut entries) = (read(&folder).unwrap().listing(), Vec::new());
    for number in listing.segments().map(|(_, header, ..)| header.number).collect::<Vec<_>>() {
        let each = |listed: crate::journal::Listed<'_>| {
            entries.push((listed.entry.txid, listed.is_whole));
            Ok::<_, Error>(())
        };
        listing.entries(number, each).unwrap();
    }
    assert_eq!(entries, [(2, false), (3, false), (4, true), (3, true), (4, true)]);
}
