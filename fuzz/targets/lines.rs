//! Any bytes, taken for lines of text, in pieces of any size: every line is a command or an error, no more is kept than a
//! line may have, and what is printed is read as the same again.
#![no_main]

use boltkv_protocol::text::{
    Answer, LineCodec, LineEvent, MAX_LINE, MissingBucket, Queued, TextCommand, default_bucket, parse, write_error, write_key,
    write_value,
};
use boltkv_protocol::{Cond, Path, ReadRequest, Reply, Request, TxnResultsWriter, WriteRequest};
use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use tokio_util::codec::Decoder as _;

/// The longest frame of a transaction.
const LONGEST: usize = 256 * 1024;

// The first byte says how many bytes come at a time; some of them make long lines.
fuzz_target!(|bytes: &[u8]| {
    let [step, stream @ ..] = bytes else { return };
    let (mut codec, mut buffer) = (LineCodec::default(), BytesMut::new());
    for piece in stream.chunks(usize::from(*step).max(1)) {
        buffer.extend_from_slice(piece);
        while let Some(event) = codec.decode(&mut buffer).expect("lines are never an error") {
            arrived(event);
        }
        assert!(buffer.len() <= MAX_LINE + 1 + piece.len(), "{} bytes are kept", buffer.len());
    }
    while let Some(event) = codec.decode_eof(&mut buffer).expect("lines are never an error") {
        arrived(event);
    }
});

fn arrived(event: LineEvent) {
    let LineEvent::Line { text, .. } = &event else {
        one_line(&event.to_error().expect("what is no line is an error"));
        return;
    };
    assert!(text.len() <= MAX_LINE);
    queued(text);
    match parse(text, &default_bucket()) {
        Err(error) => one_line(&error),
        Ok(Some(TextCommand::Write { request: WriteRequest::Set { key, value, .. }, .. })) => pasted_back(key, value),
        Ok(Some(TextCommand::Read { request: ReadRequest::Get { key, .. }, .. })) => pasted_back(key, text.clone()),
        Ok(Some(TextCommand::ReadEach { reads, .. })) => {
            let keys = reads.map(|request| match request {
                ReadRequest::Get { key, .. } => key.len(),
                other @ (ReadRequest::Ping(_) | ReadRequest::Sequence(_) | ReadRequest::ExpiryTime { .. }) => {
                    panic!("MGET asks for {other:?}")
                }
            });
            assert!(keys.sum::<usize>() <= text.len(), "words are longer than their line");
        }
        Ok(Some(TextCommand::Use(path))) if path.names().all(|name| !name.is_empty()) => {
            assert_eq!(path.to_string().parse::<Path>(), Ok(path));
        }
        Ok(_) => {}
    }
}

/// What is queued for a transaction is no longer than that may be, and can be printed when it comes back.
fn queued(text: &Bytes) {
    let Ok(Some(command)) = parse(text, &default_bucket()) else { return };
    let mut lines = Queued::new(LONGEST);
    match lines.add(command) {
        Err(error) => one_line(&error),
        Ok(Some(_)) => assert_eq!(lines.requests(), 0, "what comes back is not queued"),
        Ok(None) => {
            let (txn, answers) = lines.into_txn();
            let mut frame = BytesMut::new();
            Request::<Bytes>::from(txn).encode(1, &mut frame).expect("what was queued is a transaction");
            assert!(frame.len() <= LONGEST, "{} bytes", frame.len());
            let mut out = BytesMut::new();
            answers.write(&TxnResultsWriter::default().finish(1), &mut out);
            assert!(out.ends_with(b"END\n"), "{out:?}");
        }
    }
}

fn one_line(error: &boltkv_protocol::ErrorReply) {
    let mut out = BytesMut::new();
    write_error(error, &mut out);
    assert_eq!(out.iter().position(|&byte| byte == b'\n'), Some(out.len() - 1), "an error is one line");
}

/// A key and a value, printed, are a line that sets the same.
fn pasted_back(key: Bytes, value: Bytes) {
    let mut line = BytesMut::from("SET ");
    write_key(&key, &mut line);
    line.extend_from_slice(b" ");
    let start = line.len();
    write_value(&value, &mut line);
    let mut printed = BytesMut::new();
    Answer::Value.write(&Reply::Value(value.clone()), MissingBucket::Error, &mut printed);
    assert_eq!(line[start..], printed[..printed.len() - 1], "a value is printed as it is pasted back");
    line.extend_from_slice(b"\n");

    let (mut codec, mut rest) = (LineCodec::default(), line);
    match codec.decode(&mut rest).expect("lines are never an error") {
        // Escapes take room.
        Some(LineEvent::TooLong { .. }) => {}
        Some(LineEvent::Line { text, .. }) => {
            let request = WriteRequest::Set { path: default_bucket(), key, value, cond: Cond::Always };
            let command = parse(&text, &default_bucket()).expect("what was printed is a command");
            assert_eq!(command, Some(TextCommand::Write { request, answer: Answer::Done }));
        }
        other => panic!("what was printed is {other:?}"),
    }
    assert!(rest.is_empty(), "what was printed is one line");
}
