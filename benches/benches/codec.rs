//! The wire's codecs, both dialects, without a socket: a thousand requests that have arrived, and a thousand replies.
#![allow(missing_docs, reason = "criterion's macros make public items")]
#![allow(clippy::expect_used, reason = "a benchmark that cannot run has nothing to say")]

use std::fmt::Write as _;
use std::hint::black_box;

use boltkv_protocol::text::{self, Answer, LineCodec, LineEvent, MissingBucket, TextCommand};
use boltkv_protocol::{Cond, DEFAULT_MAX_FRAME, FrameCodec, Path, ReadRequest, Reply, Request, WriteRequest};
use bytes::BytesMut;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tokio_util::codec::Decoder as _;

const COUNT: u32 = 1000;
const VALUE: [u8; 100] = [b'v'; 100];

fn key(n: u32) -> String {
    format!("key-{n:012}")
}

fn get(path: &Path, n: u32) -> Request {
    Request::Read(ReadRequest::Get { path: path.clone(), key: key(n).into() })
}

fn set(path: &Path, n: u32) -> Request {
    Request::Write(WriteRequest::Set {
        path: path.clone(),
        key: key(n).into(),
        value: VALUE.to_vec().into(),
        cond: Cond::Always,
    })
}

fn frames(c: &mut Criterion) {
    let mut group = c.benchmark_group("codec, frames");
    group.throughput(Throughput::Elements(COUNT.into()));
    let path = text::default_bucket();
    for (name, request) in [("GET", get as fn(&Path, u32) -> Request), ("SET", set)] {
        let mut arrived = BytesMut::new();
        (1..=COUNT).for_each(|id| request(&path, id).encode(id, &mut arrived).expect("fields are short"));
        group.bench_function(format!("{name} decoded"), |b| {
            b.iter_batched_ref(|| arrived.clone(), |bytes| assert_eq!(decode(bytes), COUNT), BatchSize::SmallInput);
        });
    }
    let mut out = BytesMut::new();
    for (name, reply) in [("value", Reply::Value(&VALUE[..])), ("written", Reply::Written { txid: 7 })] {
        group.bench_function(format!("{name} encoded"), |b| {
            b.iter(|| {
                out.clear();
                (1..=COUNT).for_each(|id| reply.encode(id, &mut out).expect("the value is short"));
                black_box(out.len())
            });
        });
    }
    group.finish();
}

/// Decodes all requests; how many there are.
fn decode(bytes: &mut BytesMut) -> u32 {
    let mut codec = FrameCodec::new(DEFAULT_MAX_FRAME);
    let mut count = 0;
    while let Some(frame) = codec.decode(bytes).expect("frames are whole") {
        black_box(Request::decode(frame).expect("requests are sound"));
        count += 1;
    }
    count
}

fn lines(c: &mut Criterion) {
    let mut group = c.benchmark_group("codec, text");
    group.throughput(Throughput::Elements(COUNT.into()));
    let value = std::str::from_utf8(&VALUE).expect("the value is ASCII");
    for (name, value) in [("GET", ""), ("SET", value)] {
        let mut arrived = String::new();
        for n in 0..COUNT {
            writeln!(arrived, "{name} {} {value}", key(n)).expect("a string takes everything");
        }
        let arrived = BytesMut::from(arrived.as_bytes());
        group.bench_function(format!("{name} cut and parsed"), |b| {
            b.iter_batched_ref(|| arrived.clone(), |bytes| assert_eq!(parse(bytes), COUNT), BatchSize::SmallInput);
        });
    }
    let mut out = BytesMut::new();
    let reply = Reply::Value(&VALUE[..]);
    group.bench_function("value written", |b| {
        b.iter(|| {
            out.clear();
            (0..COUNT).for_each(|_| Answer::Value.write(&reply, MissingBucket::Error, &mut out));
            black_box(out.len())
        });
    });
    group.finish();
}

/// Cuts and parses all lines; how many requests there are.
fn parse(bytes: &mut BytesMut) -> u32 {
    let (mut codec, path) = (LineCodec::default(), text::default_bucket());
    let mut count = 0;
    while let Some(LineEvent::Line { text, .. }) = codec.decode(bytes).expect("no line is an error") {
        let command = text::parse(&text, &path).expect("lines are sound");
        count += u32::from(matches!(black_box(command), Some(TextCommand::Read { .. } | TextCommand::Write { .. })));
    }
    count
}

criterion_group!(benches, frames, lines);
criterion_main!(benches);
