//! How every reply is printed: one line each, and nothing that could be taken for something else.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use boltkv_protocol::text::{
    Answer, MissingBucket, write_end, write_error, write_help, write_key, write_ok, write_value,
};
use boltkv_protocol::{Entry, EntryKind, ErrorCode, ErrorReply, Reply};
use bytes::BytesMut;

type Borrowed<'a> = Reply<&'a [u8]>;

fn print(answer: Answer, reply: &Borrowed<'_>, missing: MissingBucket) -> String {
    let mut out = BytesMut::new();
    answer.write(reply, missing, &mut out);
    String::from_utf8(out.to_vec()).unwrap()
}

fn key(bytes: &[u8]) -> String {
    let mut out = BytesMut::new();
    write_key(bytes, &mut out);
    String::from_utf8(out.to_vec()).unwrap()
}

fn value(bytes: &[u8]) -> String {
    let mut out = BytesMut::new();
    write_value(bytes, &mut out);
    String::from_utf8(out.to_vec()).unwrap()
}

fn entry(kind: EntryKind, key: &'static [u8], value: &'static [u8]) -> Entry<&'static [u8]> {
    Entry { kind, key, value }
}

#[test]
fn every_reply_has_its_line() {
    let entries = || {
        Reply::Entries(vec![
            entry(EntryKind::Value, b"a b", b"one two"),
            entry(EntryKind::Value, b"empty", b""),
            entry(EntryKind::Bucket, b"eu", b""),
            entry(EntryKind::TooLarge, b"huge", &[0, 0, 0, 0, 1, 0, 0, 0]),
        ])
    };
    for (answer, reply, expected) in [
        (Answer::Done, Reply::Written { txid: 7 }, "OK\n"),
        (Answer::Value, Reply::Value(b"world".as_slice()), "world\n"),
        (Answer::Value, Reply::Value(b""), "\"\"\n"),
        (Answer::Exists, Reply::Value(b"world"), "1\n"),
        (Answer::Deleted, Reply::Deleted { txid: 7, existed: true }, "OK\n"),
        (Answer::Deleted, Reply::Deleted { txid: 7, existed: false }, "(nil)\n"),
        (Answer::Count, Reply::Count(12), "12\n"),
        (Answer::Pong, Reply::Pong(b""), "PONG\n"),
        (
            Answer::Entries,
            entries(),
            "\"a b\" one two\nempty \"\"\neu/\nhuge ERR VALUE_TOO_LARGE 16777216 bytes\nEND\n",
        ),
        (Answer::Entries, Reply::Entries(vec![]), "END\n"),
        (Answer::Names, Reply::Entries(vec![entry(EntryKind::Bucket, b"eu", b"")]), "eu\nEND\n"),
    ] {
        assert_eq!(print(answer, &reply, MissingBucket::Error), expected, "{answer:?} {reply:?}");
    }
}

/// A line, or nothing where an error is printed as such.
type Line = Option<&'static str>;

/// Every answer with what it prints for a missing key, for a missing default bucket, and for a value too large to send.
const EMPTINESS: [(Answer, Line, Line, Line); 8] = [
    (Answer::Done, None, None, None),
    (Answer::Value, Some("(nil)\n"), Some("(nil)\n"), None),
    (Answer::Exists, Some("0\n"), Some("0\n"), Some("1\n")),
    (Answer::Deleted, Some("(nil)\n"), Some("(nil)\n"), None),
    (Answer::Entries, Some("END\n"), Some("END\n"), None),
    (Answer::Names, None, None, None),
    (Answer::Count, Some("0\n"), Some("0\n"), None),
    (Answer::Pong, None, None, None),
];

#[test]
fn absence_is_no_error_where_emptiness_says_it() {
    for (answer, no_key, no_bucket, too_large) in EMPTINESS {
        for (code, missing, expected) in [
            (ErrorCode::KeyNotFound, MissingBucket::Error, no_key),
            (ErrorCode::BucketNotFound, MissingBucket::Empty, no_bucket),
            (ErrorCode::BucketNotFound, MissingBucket::Error, None),
            (ErrorCode::ValueTooLarge, MissingBucket::Empty, too_large),
            (ErrorCode::NoSpace, MissingBucket::Empty, None),
        ] {
            let printed = print(answer, &Reply::Error(ErrorReply::new(code, "why")), missing);
            let as_error = format!("ERR {code} why\n");
            assert_eq!(printed, expected.unwrap_or(&as_error), "{answer:?} {code}");
        }
    }
}

#[test]
fn what_cannot_stand_bare_is_found_wherever_it_stands() {
    for len in 1..70 {
        let plain = vec![b'~'; len];
        assert_eq!(value(&plain).as_bytes(), plain);
        for at in 0..len {
            for (byte, escaped) in [(b'\n', "\\n"), (b'\\', "\\\\"), (0x7f, "\\x7f"), (0x80, "\\x80")] {
                let mut bytes = plain.clone();
                bytes[at] = byte;
                let expected = format!("\"{}{escaped}{}\"", "~".repeat(at), "~".repeat(len - at - 1));
                assert_eq!(value(&bytes), expected);
            }
        }
    }
}

#[test]
fn values_are_bare_only_where_they_read_back_as_themselves() {
    for bare in ["v", "one  two", "a/b", "a\"b", "größe", "(nil", "ok", "ENDE", "ERRATA", "-ERR x"] {
        assert_eq!(value(bare.as_bytes()), bare);
    }
    for (bytes, quoted) in [
        (&b""[..], r#""""#),
        (b" v", r#"" v""#),
        (b"v ", r#""v ""#),
        (b"\"v", r#""\"v""#),
        (b"a\\b", r#""a\\b""#),
        (b"a\nb\r\t\x00\x7f", r#""a\nb\r\t\x00\x7f""#),
        (b"\xc2\x85", r#""\xc2\x85""#),
        (b"a\xffb", r#""a\xffb""#),
        (b"(nil)", r#""(nil)""#),
        (b"OK", r#""OK""#),
        (b"END", r#""END""#),
        (b"ERR", r#""ERR""#),
        (b"ERR x", r#""ERR x""#),
    ] {
        assert_eq!(value(bytes), quoted);
        assert_eq!(key(bytes), quoted);
    }
}

#[test]
fn a_key_with_a_blank_is_quoted_and_a_value_is_not() {
    assert_eq!(key(b"one two"), "\"one two\"");
    assert_eq!(value(b"one two"), "one two");
}

#[test]
fn a_buckets_name_is_printed_as_it_stands_in_a_path() {
    for (name, in_scan, in_list) in [
        (&b"eu"[..], "eu/\n", "eu\n"),
        (b"a/b", "\"a\\\\/b/\"\n", "\"a\\\\/b\"\n"),
        (b"a b", "\"a b/\"\n", "\"a b\"\n"),
        (b"\xff", "\"\\xff/\"\n", "\"\\xff\"\n"),
        (b"END", "END/\n", "\"END\"\n"),
    ] {
        let bucket = Entry { kind: EntryKind::Bucket, key: name, value: b"" };
        let print = |answer: Answer| {
            let mut out = BytesMut::new();
            answer.write_entry(&bucket, &mut out);
            String::from_utf8(out.to_vec()).unwrap()
        };
        assert_eq!(print(Answer::Entries), in_scan);
        assert_eq!(print(Answer::Names), in_list);
    }
}

#[test]
fn an_error_stays_on_one_line_whatever_its_message_holds() {
    let mut out = BytesMut::new();
    write_error(&ErrorReply::new(ErrorCode::Malformed, "a \"b\"\r\nOK\0"), &mut out);
    assert_eq!(out, "ERR MALFORMED a \"b\"\\r\\nOK\\u{0}\n");
}

#[test]
fn the_fixed_lines_are_what_they_are() {
    let mut out = BytesMut::new();
    write_ok(&mut out);
    write_end(&mut out);
    assert_eq!(out, "OK\nEND\n");
}

#[test]
fn help_has_a_line_for_every_command_this_version_has() {
    let mut out = BytesMut::new();
    write_help(&mut out);
    let help = String::from_utf8(out.to_vec()).unwrap();
    let lines: Vec<_> = help.lines().collect();
    let starts = |start: &str| lines.iter().filter(|line| line.starts_with(start)).count();
    for usage in [
        "GET key ",
        "SET key value ",
        "SETNX key value ",
        "SETXX key value ",
        "CAS key old value ",
        "CAD key value ",
        "DELETE key ",
        "EXISTS key ",
        "MGET key… ",
        "SCAN [prefix] [LIMIT n] ",
        "COUNT [prefix] ",
        "BUCKET CREATE path ",
        "BUCKET DELETE path ",
        "BUCKET USE path ",
        "BUCKET LIST [path] ",
        "INCR key [n] ",
        "DECR key [n] ",
        "DELRANGE low high [LIMIT n] ",
        "SETEX key seconds value ",
        "EXPIRE key seconds ",
        "TTL key ",
        "BUCKET STAT path ",
        "BUCKET NEXT path ",
        "BUCKET SEQUENCE path [n] ",
        "BUCKET MOVE path path ",
        "PING ",
        "STATS ",
        "HELP ",
        "QUIT ",
    ] {
        assert_eq!(starts(usage), 1, "{usage}");
    }
    assert!(help.contains("(DEL)"));
    assert_eq!((lines.len(), lines.last()), (44, Some(&"END")));
}
