//! What is written is read, what Redis has written too, and damage does no harm.

use super::*;

#[test]
fn the_checksum_is_redis_own() {
    assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
}

#[test]
fn what_is_written_is_read() {
    for len in [0, 1, 63, 64, 16_383, 16_384, 70_000] {
        let value: Vec<_> = (0..=u8::MAX).cycle().take(len).collect();
        assert_eq!(read(&write_string(&value), usize::MAX).unwrap(), Dumped::String(value));
    }
    let mut hash = begin_hash(1);
    put_string(b"field", &mut hash);
    put_string(b"value", &mut hash);
    assert_eq!(read(&finish(hash), usize::MAX).unwrap(), Dumped::Hash(vec![(b"field".to_vec(), b"value".to_vec())]));
}

#[test]
fn what_redis_has_packed_is_read() {
    let packed = b"\x00\x61\xe0\x5a\x00";
    assert_eq!(unpack(packed, 100), Some([&b"a"[..], &[b'a'; 99]].concat()));
    assert_eq!((unpack(packed, 99), unpack(packed, 1 << 40), unpack(b"\x20\x00", 3)), (None, None, None));
    let list =
        [&[0, 0, 0, 0, 0, 0][..], b"\x81a\x02", b"\x05\x01", b"\xdf\xff\x02", b"\xf1\x00\x80\x03", b"\xff"].concat();
    let mut list = list;
    let len = u32::try_from(list.len()).unwrap().to_le_bytes();
    list[..4].copy_from_slice(&len);
    let words: Vec<_> = ["a", "5", "-1", "-32768"].iter().map(|word| word.as_bytes().to_vec()).collect();
    assert_eq!(listpack(&list, 1 << 10), Some(words));
}

#[test]
fn what_is_packed_takes_no_more_than_it_may() {
    // A string of 200 bytes, and a list of many short ones: two bytes for each, and 64 in memory.
    let mut dump = vec![TYPE_STRING, 0xc3, 5, 0x40, 200];
    dump.extend_from_slice(b"\x00\x61\xe0\xbe\x00");
    let dump = finish(dump);
    assert_eq!(read(&dump, 1_000).unwrap(), Dumped::String(vec![b'a'; 200]));
    assert_eq!(read(&dump, 200).unwrap_err(), Failure::string_too_long());
    let mut numbers = begin_hash(500);
    numbers.extend([0xc0, 5].repeat(1_000));
    let numbers = finish(numbers);
    assert!(read(&numbers, 100_000).is_ok());
    assert_eq!(read(&numbers, 10_000).unwrap_err(), Failure::string_too_long());
    let mut list = vec![0; 6];
    list.extend([1, 1].repeat(1_000));
    list.push(0xff);
    let len = u32::try_from(list.len()).unwrap().to_le_bytes();
    list[..4].copy_from_slice(&len);
    assert_eq!(listpack(&list, 100_000).map(|list| list.len()), Some(1_000));
    assert_eq!(listpack(&list, 10_000), None);
}

#[test]
fn no_bytes_make_it_panic_or_take_more_than_they_are() {
    let mut dump = begin_hash(3);
    put_string(b"field", &mut dump);
    put_string(&[b'v'; 100], &mut dump);
    let dump = finish(dump);
    for at in 0..dump.len() {
        for byte in [0, 0x7f, 0x80, 0x81, 0xc3, 0xff] {
            let mut damaged = dump.clone();
            damaged[at] = byte;
            // Without its checksum, what is damaged is read.
            let end = damaged.len() - 8;
            damaged[end..].fill(0);
            let _ = read(&damaged, 1 << 20);
            let _ = (listpack(&damaged, 1 << 20), ziplist(&damaged, 1 << 20));
        }
    }
}
