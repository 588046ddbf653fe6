//! The Redis dialect, byte by byte: requests as clients of Redis send them, and replies as Redis 7.0 sends them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use boltkv_protocol::resp::{Args, MAX_ARGS, MAX_INLINE, ProtocolError, RespCodec, Version, Writer};
use bytes::BytesMut;

const MAX_ITEM: usize = 1 << 20;

/// All requests in these bytes, and how it ends.
fn requests(bytes: &[u8]) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let (mut codec, mut input, mut all) = (RespCodec::new(MAX_ITEM), BytesMut::from(bytes), Vec::new());
    loop {
        match codec.decode(&mut input) {
            Ok(Some(args)) => all.push(args.from(0).map(<[u8]>::to_vec).collect()),
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

#[test]
fn arrays_are_requests() {
    for (bytes, expected) in [
        ("*1\r\n$4\r\nPING\r\n", vec![words(&["PING"])]),
        ("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", vec![words(&["GET", "k"])]),
        ("*3\r\n$3\r\nset\r\n$0\r\n\r\n$4\r\na\r\nb\r\n", vec![words(&["set", "", "a\r\nb"])]),
        ("*0\r\n*-1\r\n*1\r\n$1\r\na\r\n", vec![words(&[]), words(&[]), words(&["a"])]),
        // Nobody looks at what ends a word: its length says where that is.
        ("*1\r\n$4\r\nPINGxx*1\r\n$1\r\na\r\n", vec![words(&["PING"]), words(&["a"])]),
        ("*1\r\n$4\r\nPIN", vec![]),
        ("*1\r\n$4\r\nPING\r", vec![]),
        ("*1", vec![]),
    ] {
        assert_eq!(requests(bytes.as_bytes()), (expected, None), "{bytes:?}");
    }
}

#[test]
fn lines_are_requests() {
    for (bytes, expected) in [
        ("PING\r\nPING\n", vec![words(&["PING"]), words(&["PING"])]),
        ("  set\tk  v \r\n", vec![words(&["set", "k", "v"])]),
        ("\r\n\n", vec![words(&[]), words(&[])]),
        (r#"set "a b" "\x41\n\"\q""#, vec![]),
        ("set \"a b\" \"\\x41\\n\\\"\\q\"\n", vec![words(&["set", "a b", "A\n\"q"])]),
        ("set '\\x41\\'' ''\n", vec![words(&["set", "\\x41'", ""])]),
        ("set a\"b\"\n*1\r\n$1\r\nc\r\nd\n", vec![words(&["set", "ab"]), words(&["c"]), words(&["d"])]),
    ] {
        assert_eq!(requests(bytes.as_bytes()), (expected, None), "{bytes:?}");
    }
    for bytes in ["set \"a\n", "set 'a\n", "set \"a\"b\n", "set 'a'b\n"] {
        assert_eq!(requests(bytes.as_bytes()), (vec![], Some(ProtocolError::Quotes)), "{bytes:?}");
    }
}

#[test]
fn what_is_no_request_is_told_as_redis_tells_it_and_what_is_too_large_with_the_limit() {
    let many = "1".repeat(MAX_INLINE);
    let cases = [
        ("*x\r\n".to_owned(), "invalid multibulk length"),
        ("*\r\n".to_owned(), "invalid multibulk length"),
        ("*+1\r\n".to_owned(), "invalid multibulk length"),
        ("*01\r\n".to_owned(), "invalid multibulk length"),
        ("*-0\r\n".to_owned(), "invalid multibulk length"),
        (format!("*{}\r\n", MAX_ARGS + 1), "invalid multibulk length: a request has at most 131072 words"),
        ("*1\r\n$\r\n".to_owned(), "invalid bulk length"),
        ("*1\r\n$-1\r\n".to_owned(), "invalid bulk length"),
        ("*1\r\n$ 1\r\n".to_owned(), "invalid bulk length"),
        (
            format!("*1\r\n${}\r\n", MAX_ITEM + 1),
            "invalid bulk length: a request has at most 1048576 bytes (--max-frame)",
        ),
        (format!("*1\r\n${}\r\n", MAX_ITEM - 5), "a request has at most 1048576 bytes (--max-frame)"),
        ("*1\r\n:1\r\n".to_owned(), "expected '$', got ':'"),
        ("*1\r\n*1\r\n$1\r\na\r\n".to_owned(), "expected '$', got '*'"),
        ("*1\r\n\0".to_owned(), "expected '$', got '\\u{0}'"),
        (format!("*{many}"), "too big mbulk count string"),
        (format!("*1\r\n${many}"), "too big bulk count string"),
        (many, "too big inline request"),
    ];
    for (bytes, expected) in cases {
        let (before, error) = requests(bytes.as_bytes());
        assert_eq!(before, Vec::<Vec<Vec<u8>>>::new());
        assert_eq!(error.unwrap().to_string(), format!("Protocol error: {expected}"));
    }
}

#[test]
fn who_has_not_said_who_he_is_has_less_room() {
    let first = |bytes: &str, is_stranger| {
        let mut codec = RespCodec::new(MAX_ITEM);
        codec.set_stranger(is_stranger);
        codec.decode(&mut BytesMut::from(bytes))
    };
    for (bytes, error) in
        [("*11\r\n", ProtocolError::CountOfStranger), ("*1\r\n$4097\r\n", ProtocolError::LengthOfStranger)]
    {
        assert_eq!(first(bytes, false), Ok(None));
        assert_eq!(first(bytes, true), Err(error));
    }
    assert_eq!(first("*10\r\n$4096\r\n", true), Ok(None));
}

/// What is written, in both versions of the protocol.
fn written(write: impl Fn(&mut Writer<'_>)) -> [String; 2] {
    [Version::Two, Version::Three].map(|version| {
        let mut out = BytesMut::new();
        write(&mut Writer::new(&mut out, version, usize::MAX));
        String::from_utf8(out.to_vec()).unwrap()
    })
}

// Promises: resp-bytes.
#[test]
fn replies_are_those_of_redis() {
    type Write = fn(&mut Writer<'_>);
    let cases: [(Write, &str, &str); 15] = [
        (|out| out.ok(), "+OK\r\n", "+OK\r\n"),
        (|out| out.simple("PONG"), "+PONG\r\n", "+PONG\r\n"),
        (|out| out.error("ERR no\r\nsuch"), "-ERR no  such\r\n", "-ERR no  such\r\n"),
        (|out| out.integer(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n"),
        (|out| out.count(7), ":7\r\n", ":7\r\n"),
        (|out| out.flag(true), ":1\r\n", ":1\r\n"),
        (|out| out.bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n"),
        (|out| out.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n"),
        (|out| out.maybe(None), "$-1\r\n", "_\r\n"),
        (|out| out.null_array(), "*-1\r\n", "_\r\n"),
        (|out| out.verbatim("ab"), "$2\r\nab\r\n", "=6\r\ntxt:ab\r\n"),
        (|out| out.array(0), "*0\r\n", "*0\r\n"),
        (|out| out.array(3), "*3\r\n", "*3\r\n"),
        (|out| out.map(2), "*4\r\n", "%2\r\n"),
        (|out| out.set(2), "*2\r\n", "~2\r\n"),
    ];
    for (write, two, three) in cases {
        assert_eq!(written(write), [two, three]);
    }
}

#[test]
fn what_does_not_fit_is_counted_and_its_beginning_is_kept() {
    let mut out = BytesMut::from("before");
    let mut writer = Writer::new(&mut out, Version::Two, 10);
    writer.ok();
    writer.ok();
    writer.bulk(b"value");
    assert_eq!((writer.len(), writer.fits()), (21, false));
    writer.rewind(5);
    assert!(writer.fits());
    writer.integer(1);
    assert_eq!(out, "before+OK\r\n:1\r\n");
    assert_eq!(Args::of(&["get", "k"]).word(1), b"k");
}
