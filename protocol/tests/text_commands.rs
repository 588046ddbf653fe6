//! What every text line asks for, and why a line is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::num::NonZeroU64;
use std::ops::Bound;

use boltkv_protocol::text::{Answer, MAX_LINE, TextCommand, default_bucket, parse};
use boltkv_protocol::{
    Cond, ErrorCode, KeyRange, LowBound, Path, ReadRequest, Scan, ScanMode, ScanOptions, StreamRequest, WriteRequest,
};
use bytes::Bytes;

fn ask(line: &'static str) -> TextCommand {
    let line = Bytes::from_static(line.as_bytes());
    parse(&line, &default_bucket()).unwrap_or_else(|error| panic!("{line:?}: {error}")).unwrap()
}

fn refusal(line: &[u8]) -> (ErrorCode, String) {
    let error = parse(&Bytes::copy_from_slice(line), &default_bucket()).unwrap_err();
    (error.code, error.message.into_owned())
}

fn read(request: ReadRequest, answer: Answer) -> TextCommand {
    TextCommand::Read { request, answer }
}

fn write(request: WriteRequest, answer: Answer) -> TextCommand {
    TextCommand::Write { request, answer }
}

fn stream(request: StreamRequest, answer: Answer) -> TextCommand {
    TextCommand::Stream { request, answer }
}

fn get(key: &'static [u8]) -> ReadRequest {
    ReadRequest::Get { path: default_bucket(), key: Bytes::from_static(key) }
}

fn set(key: &'static [u8], value: &'static [u8]) -> TextCommand {
    let request = WriteRequest::Set {
        path: default_bucket(),
        key: Bytes::from_static(key),
        value: Bytes::from_static(value),
        cond: Cond::Always,
    };
    write(request, Answer::Done)
}

fn set_if(cond: Cond, key: &'static str, value: &'static str) -> TextCommand {
    let request = WriteRequest::Set { path: default_bucket(), key: key.into(), value: value.into(), cond };
    write(request, Answer::Done)
}

fn scan(prefix: Option<&'static str>, limit: u64) -> TextCommand {
    let range = prefix.map_or(KeyRange::ALL, KeyRange::prefix);
    let options = ScanOptions { limit: NonZeroU64::new(limit), ..ScanOptions::default() };
    stream(StreamRequest::Scan(Scan { path: default_bucket(), range, options }), Answer::Entries)
}

#[test]
fn every_command_maps_to_its_request() {
    let eu: Path = "users/eu".parse().unwrap();
    let delete = WriteRequest::Delete { path: default_bucket(), key: Bytes::from_static(b"k"), cond: Cond::Always };
    let count = |range| {
        let options = ScanOptions { mode: ScanMode::Count, ..ScanOptions::default() };
        stream(StreamRequest::Scan(Scan { path: default_bucket(), range, options }), Answer::Count)
    };
    let list = |path| stream(StreamRequest::ListBuckets(Scan { path, ..Scan::default() }), Answer::Names);

    assert_eq!(ask("GET k"), read(get(b"k"), Answer::Value));
    assert_eq!(ask("SET k v"), set(b"k", b"v"));
    assert_eq!(ask("DELETE k"), write(delete.clone(), Answer::Deleted));
    assert_eq!(ask("DEL k"), write(delete, Answer::Deleted));
    let increment = |delta| {
        write(WriteRequest::Increment { path: default_bucket(), key: Bytes::from_static(b"k"), delta }, Answer::Number)
    };
    assert_eq!(ask("INCR k"), increment(1));
    assert_eq!(ask("INCR k -5"), increment(-5));
    assert_eq!(ask("DECR k"), increment(-1));
    assert_eq!(ask("DECR k 5"), increment(-5));
    let delete_range = |low, high, limit| {
        let request = WriteRequest::DeleteRange {
            path: default_bucket(),
            range: KeyRange { low, high },
            limit: NonZeroU64::new(limit),
        };
        write(request, Answer::DeletedRange)
    };
    let (from, to) =
        (|key: &'static str| LowBound::Included(key.into()), |key: &'static str| Bound::Excluded(key.into()));
    assert_eq!(ask("DELRANGE a b"), delete_range(from("a"), to("b"), 0));
    assert_eq!(ask("DELRANGE limit 10"), delete_range(from("limit"), to("10"), 0));
    assert_eq!(ask("DELRANGE \"\" b LIMIT 10"), delete_range(LowBound::Unbounded, to("b"), 10));
    assert_eq!(ask("DELRANGE a \"\""), delete_range(from("a"), Bound::Unbounded, 0));
    assert_eq!(ask("BUCKET NEXT users/eu"), write(WriteRequest::NextSequence(eu.clone()), Answer::Number));
    assert_eq!(
        ask("BUCKET SEQUENCE users/eu 7"),
        write(WriteRequest::SetSequence { path: eu.clone(), sequence: 7 }, Answer::Done)
    );
    assert_eq!(
        ask("BUCKET MOVE users/eu eu"),
        write(WriteRequest::MoveBucket { path: eu.clone(), to: "eu".parse().unwrap() }, Answer::Done)
    );
    assert_eq!(ask("EXISTS k"), read(get(b"k"), Answer::Exists));
    let TextCommand::ReadEach { reads, answer: Answer::Value } = ask("MGET a \"b\"") else { panic!("no reads") };
    assert_eq!(reads.collect::<Vec<_>>(), [get(b"a"), get(b"b")]);
    assert_eq!(ask("SCAN"), scan(None, 0));
    assert_eq!(ask("SCAN \"\""), scan(None, 0));
    assert_eq!(ask("SCAN us"), scan(Some("us"), 0));
    assert_eq!(ask("SCAN us LIMIT 10"), scan(Some("us"), 10));
    assert_eq!(ask("SCAN limit 10"), scan(None, 10));
    assert_eq!(ask("SCAN LIMIT"), scan(Some("LIMIT"), 0));
    assert_eq!(ask("COUNT"), count(KeyRange::ALL));
    assert_eq!(ask("COUNT us"), count(KeyRange::prefix("us")));
    assert_eq!(ask("BUCKET CREATE users/eu"), write(WriteRequest::CreateBucketIfMissing(eu.clone()), Answer::Done));
    assert_eq!(ask("BUCKET DELETE users/eu/"), write(WriteRequest::DeleteBucket(eu.clone()), Answer::Done));
    assert_eq!(ask("BUCKET USE users/eu"), TextCommand::Use(eu.clone()));
    assert_eq!(ask("BUCKET LIST users/eu"), list(eu));
    assert_eq!(ask("BUCKET LIST"), list(Path::ROOT));
    assert_eq!(ask("PING"), read(ReadRequest::Ping(Bytes::new()), Answer::Pong));
    assert_eq!(ask("HELP"), TextCommand::Help);
    assert_eq!(ask("QUIT"), TextCommand::Quit);
}

// Promises: text-case.
#[test]
fn commands_are_taken_in_any_letter_case_with_any_blanks_around_words() {
    assert_eq!(ask("get k"), ask("GET k"));
    assert_eq!(ask(" \tGeT \t k \t"), ask("GET k"));
    assert_eq!(ask("bucket  use\tb"), ask("BUCKET USE b"));
    assert_eq!(ask("scan a Limit 3"), ask("SCAN a LIMIT 3"));
}

#[test]
fn requests_go_to_the_connections_bucket() {
    let current: Path = "a/b".parse().unwrap();
    let Ok(Some(TextCommand::Read { request: ReadRequest::Get { path, .. }, .. })) =
        parse(&Bytes::from_static(b"GET k"), &current)
    else {
        panic!("no GET")
    };
    assert_eq!(path, current);
}

#[test]
fn a_line_of_blanks_asks_for_nothing() {
    for line in ["", " ", "\t \t"] {
        assert_eq!(parse(&Bytes::from_static(line.as_bytes()), &Path::ROOT), Ok(None));
    }
}

// Promises: text-value.
#[test]
fn sets_value_is_all_that_follows_one_blank_after_the_key() {
    assert_eq!(ask("SET k hello  world "), set(b"k", b"hello  world "));
    assert_eq!(ask("SET k  v"), set(b"k", b" v"));
    assert_eq!(ask("SET k \t"), set(b"k", b"\t"));
    assert_eq!(ask(r"SET k a\n"), set(b"k", br"a\n"));
    assert_eq!(ask("SET k a \"b\""), set(b"k", b"a \"b\""));
    assert_eq!(ask("SET \"a b\" v"), set(b"a b", b"v"));
}

#[test]
fn a_quoted_value_is_unescaped_and_must_end_the_line() {
    assert_eq!(ask(r#"SET k """#), set(b"k", b""));
    assert_eq!(ask(r#"SET k "a \"b\" \\ \n\r\t\x00\xfF""#), set(b"k", b"a \"b\" \\ \n\r\t\x00\xff"));
    for line in [r#"SET k "v" "#, r#"SET k "v"x"#, r#"SET k "v" "w""#, r#"SET k "v"#] {
        assert_eq!(refusal(line.as_bytes()).0, ErrorCode::Malformed, "{line}");
    }
}

#[test]
fn a_value_must_be_there() {
    for line in ["SET", "SET k", "SET k "] {
        assert_eq!(refusal(line.as_bytes()), (ErrorCode::Malformed, "usage: SET key value".into()));
    }
}

// Promises: text-words.
#[test]
fn a_quote_within_a_word_is_literal_and_one_at_its_start_must_close_at_its_end() {
    assert_eq!(ask("GET a\"b"), read(get(b"a\"b"), Answer::Value));
    assert_eq!(ask(r#"GET "a b""#), read(get(b"a b"), Answer::Value));
    assert_eq!(ask(r"GET \x41"), read(get(br"\x41"), Answer::Value));
    for line in [r#"GET "a"#, r#"GET "a\"#, r#"GET "a"b"#, r#"GET "\q""#, r#"GET "\x4""#, r#"GET "\x4g""#, r#"GET "\x"#]
    {
        assert_eq!(refusal(line.as_bytes()).0, ErrorCode::Malformed, "{line}");
    }
}

#[test]
fn a_condition_is_a_command_of_its_own_so_that_no_value_is_taken_for_one() {
    let equals = |old: &'static str| Cond::IfEquals(old.into());
    for (line, command) in [
        ("SETNX k two words ", set_if(Cond::IfAbsent, "k", "two words ")),
        ("setxx k \"\"", set_if(Cond::IfPresent, "k", "")),
        ("CAS k old new value", set_if(equals("old"), "k", "new value")),
        ("CAS k \"old value\" \"new\\n\"", set_if(equals("old value"), "k", "new\n")),
        ("cas k \"\" new", set_if(equals(""), "k", "new")),
        // What reads like a condition is a value to SET.
        ("SET k NX", set_if(Cond::Always, "k", "NX")),
        ("SET k v NX", set_if(Cond::Always, "k", "v NX")),
    ] {
        assert_eq!(ask(line), command, "{line}");
    }
    for (line, value) in [("CAD k old value", "old value"), ("CAD k \"\"", "")] {
        let (path, key) = (default_bucket(), "k".into());
        let request = WriteRequest::Delete { path, key, cond: Cond::IfEquals(value.into()) };
        assert_eq!(ask(line), write(request, Answer::Deleted), "{line}");
    }
    for (line, usage) in [
        ("SETNX k", "usage: SETNX key value"),
        ("SETXX", "usage: SETXX key value"),
        ("CAS k old", "usage: CAS key old value"),
        ("CAS k", "usage: CAS key old value"),
        ("CAD k", "usage: CAD key value"),
        ("CAD k ", "usage: CAD key value"),
    ] {
        assert_eq!(refusal(line.as_bytes()), (ErrorCode::Malformed, usage.into()), "{line}");
    }
}

#[test]
fn a_wrong_number_of_arguments_is_told_the_usage() {
    for (line, usage) in [
        ("GET", "usage: GET key"),
        ("GET a b", "usage: GET key"),
        ("GET /index.html HTTP/1.1", "usage: GET key"),
        ("DEL", "usage: DELETE key"),
        ("MGET", "usage: MGET key…"),
        ("SCAN a b", "usage: SCAN [prefix] [LIMIT n]"),
        ("SCAN a b 3", "usage: SCAN [prefix] [LIMIT n]"),
        ("SCAN a LIMIT 3 x", "usage: SCAN [prefix] [LIMIT n]"),
        ("COUNT a b", "usage: COUNT [prefix]"),
        ("BUCKET CREATE", "usage: BUCKET CREATE path"),
        ("BUCKET LIST a b", "usage: BUCKET LIST [path]"),
        ("PING x", "usage: PING"),
        ("QUIT now", "usage: QUIT"),
    ] {
        assert_eq!(refusal(line.as_bytes()), (ErrorCode::Malformed, usage.into()), "{line}");
    }
}

#[test]
fn other_mistakes_say_what_is_wrong() {
    for (line, code, message) in [
        ("FROB a", ErrorCode::Unsupported, "unknown command \"FROB\"; HELP lists them all"),
        (
            "BUCKET",
            ErrorCode::Malformed,
            "BUCKET is followed by one of CREATE, DELETE, USE, LIST, STAT, NEXT, SEQUENCE, MOVE",
        ),
        (
            "bucket x",
            ErrorCode::Malformed,
            "BUCKET is followed by one of CREATE, DELETE, USE, LIST, STAT, NEXT, SEQUENCE, MOVE",
        ),
        ("SCAN LIMIT 0", ErrorCode::Malformed, "LIMIT takes a number of 1 or more, not \"0\""),
        ("SCAN a LIMIT -1", ErrorCode::Malformed, "LIMIT takes a number of 1 or more, not \"-1\""),
        ("BUCKET USE a//b", ErrorCode::Malformed, "a bucket name in the path is empty"),
    ] {
        assert_eq!(refusal(line.as_bytes()), (code, message.into()), "{line}");
    }
}

#[test]
fn what_a_message_repeats_is_escaped_and_cut() {
    let (_, message) = refusal(b"\x01\xff\"\n");
    assert_eq!(message, r#"unknown command "\x01\xff\"\n"; HELP lists them all"#);
    let (_, message) = refusal(&[b'x'; 1000]);
    assert_eq!(message.len(), "unknown command \"\"…; HELP lists them all".len() + 32);
}

#[test]
fn a_line_of_quoted_words_takes_memory_by_its_length_and_not_by_its_words() {
    for word in ["\"\\n\" ", "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\\n\" ", "a "] {
        let line = Bytes::from(format!("MGET {}", word.repeat(MAX_LINE / word.len() - 10)));
        let measured = allocation_counter::measure(|| {
            let Ok(Some(TextCommand::ReadEach { reads, .. })) = parse(&line, &default_bucket()) else {
                panic!("no reads")
            };
            assert_eq!(reads.count(), MAX_LINE / word.len() - 10);
        });
        assert!(measured.bytes_max < 1024, "{} bytes", measured.bytes_max);
    }
}

#[test]
fn a_sequence_without_a_number_is_read() {
    let read = parse(&Bytes::from_static(b"BUCKET SEQUENCE users/eu"), &Path::ROOT);
    let request = ReadRequest::Sequence("users/eu".parse().unwrap());
    assert_eq!(read, Ok(Some(TextCommand::Read { request, answer: Answer::Number })));
}

#[test]
fn numbers_of_64_bits_are_taken_and_others_are_refused() {
    for line in
        ["INCR k one", "INCR k 1.5", "INCR k 9223372036854775808", "DECR k -9223372036854775808", "INCR", "INCR k 1 2"]
    {
        assert_eq!(refusal(line.as_bytes()).0, ErrorCode::Malformed, "{line}");
    }
    for line in [
        "BUCKET SEQUENCE b -1",
        "BUCKET SEQUENCE",
        "BUCKET SEQUENCE b 1 2",
        "BUCKET MOVE b",
        "DELRANGE a",
        "DELRANGE a b c",
        "DELRANGE a b LIMIT 0",
    ] {
        assert_eq!(refusal(line.as_bytes()).0, ErrorCode::Malformed, "{line}");
    }
}
