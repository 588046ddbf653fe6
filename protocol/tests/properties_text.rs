//! What holds for any bytes in text: no line panics, and what is printed can be pasted back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod generate;

use boltkv_protocol::text::{Answer, LineCodec, LineEvent, TextCommand, parse, value_len, write_key, write_value};
use boltkv_protocol::{Cond, Entry, EntryKind, ErrorCode, Path, WriteRequest};
use bytes::{Bytes, BytesMut};
use generate::{awkward, feed};
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #[test]
    fn garbage_lines_never_panic(stream in vec(prop_oneof![Just(b' '), Just(b'"'), Just(b'\\'), any::<u8>()], 0..100)) {
        for start in [&b""[..], b"SET k ", b"GET ", b"SCAN ", b"BUCKET USE "] {
            let line = Bytes::from([start, &stream].concat());
            if let Err(error) = parse(&line, &Path::ROOT) {
                prop_assert!(matches!(error.code, ErrorCode::Malformed | ErrorCode::Unsupported));
            }
        }
    }

    // Promises: text-printed.
    #[test]
    fn a_printed_key_and_value_can_be_pasted_back(key in awkward(), value in awkward()) {
        let mut line = BytesMut::from("SET ".as_bytes());
        write_key(&key, &mut line);
        line.extend_from_slice(b" ");
        let before = line.len();
        write_value(&value, &mut line);
        prop_assert_eq!(line.len() - before, value_len(&value));
        line.extend_from_slice(b"\n");

        // Through the line codec: what is printed stays on one line.
        let events = feed(&mut LineCodec::default(), &line, 7).unwrap();
        let [LineEvent::Line { text, .. }] = &events[..] else { panic!("{events:?}") };
        let expected = WriteRequest::Set { path: Path::ROOT, key, value, cond: Cond::Always };
        let command = parse(text, &Path::ROOT).unwrap();
        prop_assert_eq!(command, Some(TextCommand::Write { request: expected, answer: Answer::Done }));
    }

    #[test]
    fn a_printed_entry_is_never_taken_for_a_reply_of_another_kind(key in awkward(), value in awkward()) {
        for kind in [EntryKind::Value, EntryKind::Bucket, EntryKind::TooLarge] {
            let mut out = BytesMut::new();
            Answer::Entries.write_entry(&Entry { kind, key: &key, value: &value }, &mut out);
            let line_end = out.iter().position(|&byte| byte == b'\n');
            prop_assert_eq!(line_end, Some(out.len() - 1));
            prop_assert!(out != "END\n" && out != "(nil)\n" && !out.starts_with(b"ERR "));
        }
    }

    #[test]
    fn a_printed_bucket_name_is_the_path_of_that_bucket(name in awkward()) {
        prop_assume!(!name.is_empty());
        let expected = TextCommand::Use(Path::from_names([&name]).unwrap());
        for answer in [Answer::Names, Answer::Entries] {
            let mut line = BytesMut::from("BUCKET USE ".as_bytes());
            answer.write_entry(&Entry { kind: EntryKind::Bucket, key: &name, value: &Bytes::new() }, &mut line);
            line.truncate(line.len() - 1);
            let command = parse(&line.freeze(), &Path::ROOT).unwrap();
            prop_assert_eq!(command.as_ref(), Some(&expected));
        }
    }

    // Promises: text-path.
    #[test]
    fn a_path_reads_back_as_it_was_displayed(names in vec(awkward(), 0..4)) {
        prop_assume!(names.iter().all(|name| !name.is_empty()));
        let path = Path::from_names(&names).unwrap();
        prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path.clone()));
        prop_assert_eq!(path.names().collect::<Vec<_>>(), names);
    }
}
