//! What holds for any bytes in the Redis dialect: however they are cut, the same requests; whatever they announce, no memory
//! but for what has come.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use boltkv_protocol::resp::{Args, ProtocolError, RespCodec};
use bytes::BytesMut;
use proptest::collection::vec;
use proptest::prelude::*;

const MAX_ITEM: usize = 64 * 1024;

type Requests = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

/// All requests in a stream that comes in these pieces, and what ends it.
fn requests<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> Requests {
    let (mut codec, mut input, mut all) = (RespCodec::new(MAX_ITEM), BytesMut::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match codec.decode(&mut input) {
                Ok(Some(args)) => all.push(args.from(0).map(<[u8]>::to_vec).collect()),
                Ok(None) => break,
                Err(error) => return (all, Some(error)),
            }
        }
        // Where something has begun, it takes at least what has come of it.
        assert!(codec.item_len(&input).is_none_or(|len| len >= input.len()));
    }
    (all, None)
}

fn encode(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// What streams are made of: requests, and what is nearly one.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let word = vec(any::<u8>(), 0..40);
    let number = prop_oneof![Just(0_i64), -2..200_i64, any::<i64>()];
    prop_oneof![
        6 => vec(word, 0..6).prop_map(|words| encode(&words)),
        2 => "[a-z \"'\\\\]{0,30}\r?\n".prop_map(String::into_bytes),
        1 => (prop_oneof![Just('*'), Just('$')], number).prop_map(|(kind, n)| format!("{kind}{n}\r\n").into_bytes()),
        1 => vec(any::<u8>(), 0..10),
    ]
}

proptest! {
    // Promises: resp-pieces.
    #[test]
    fn however_a_stream_is_cut_its_requests_are_the_same(parts in vec(part(), 0..12), cuts in vec(1..64_usize, 1..40)) {
        let stream = parts.concat();
        let whole = requests([&stream[..]]);
        let (mut rest, mut pieces) = (&stream[..], Vec::new());
        for len in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, behind) = rest.split_at((*len).min(rest.len()));
            pieces.push(piece);
            rest = behind;
        }
        prop_assert_eq!(&requests(pieces), &whole);
        prop_assert_eq!(&requests(stream.chunks(1)), &whole);
    }

    #[test]
    fn words_come_out_as_they_went_in(words in vec(vec(any::<u8>(), 0..300), 1..20)) {
        let (all, error) = requests([&encode(&words)[..]]);
        prop_assert_eq!((all, error), (vec![words.clone()], None));
        let args = Args::of(&words);
        let whole = args.from(0).map(<[u8]>::to_vec).collect::<Vec<_>>();
        prop_assert_eq!(&whole, &words);
        prop_assert_eq!((args.word(words.len()), args.get(words.len())), (&b""[..], None));
    }

    // Promises: resp-room.
    #[test]
    fn what_is_announced_takes_no_memory(count in any::<i64>(), len in any::<i64>(), has_word in any::<bool>()) {
        let word = if has_word { format!("$1\r\na\r\n${len}\r\n") } else { format!("${len}\r\n") };
        for stream in [format!("*{count}\r\n{word}"), format!("*131072\r\n{word}"), format!("*1\r\n${}\r\n", MAX_ITEM - 20)] {
            let mut input = BytesMut::from(stream.as_bytes());
            let mut codec = RespCodec::new(MAX_ITEM);
            let measured = allocation_counter::measure(|| while let Ok(Some(_)) = codec.decode(&mut input) {});
            prop_assert!(measured.bytes_max < 512, "{} bytes for {:?}", measured.bytes_max, stream);
        }
    }
}
