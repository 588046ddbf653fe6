//! Any bytes, taken for requests of the Redis dialect, in pieces of any size: they are the same as in one piece, take no more
//! memory than has come, and what is written in reply is read as what it is.
#![no_main]

use boltkv_protocol::resp::{Args, ProtocolError, RespCodec, Version, Writer, find};
use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;

/// The longest request.
const LONGEST: usize = 16 * 1024;

type Requests = (Vec<Vec<Vec<u8>>>, Option<ProtocolError>);

// The first byte says how many bytes come at a time, and whether the client has said who it is.
fuzz_target!(|bytes: &[u8]| {
    let [step, stream @ ..] = bytes else { return };
    let is_stranger = step & 0x80 != 0;
    let whole = requests(stream, stream.len().max(1), is_stranger);
    let pieces = requests(stream, usize::from(step & 0x7f).max(1), is_stranger);
    assert_eq!(whole, pieces, "how it is cut makes a difference");
});

fn requests(stream: &[u8], step: usize, is_stranger: bool) -> Requests {
    let (mut codec, mut input, mut all) = (RespCodec::new(LONGEST), BytesMut::new(), Vec::new());
    codec.set_stranger(is_stranger);
    for piece in stream.chunks(step) {
        input.extend_from_slice(piece);
        loop {
            match codec.decode(&mut input) {
                Ok(Some(args)) => all.push(arrived(args, stream.len())),
                Ok(None) => break,
                Err(error) => {
                    assert!(error.to_string().starts_with("Protocol error: "));
                    return (all, Some(error));
                }
            }
        }
        assert!(codec.item_len(&input).is_none_or(|len| len >= input.len()), "an item is shorter than what came of it");
    }
    (all, None)
}

fn arrived(args: Args, most: usize) -> Vec<Vec<u8>> {
    let words: Vec<_> = args.from(0).map(<[u8]>::to_vec).collect();
    assert_eq!(words.len(), args.len());
    assert!(words.iter().map(Vec::len).sum::<usize>() <= most, "words are longer than what came");
    if let Some(spec) = find(args.word(0)) {
        assert!(spec.keys_of(&args).count() <= args.len());
        let _ = spec.subcommand_of(&args);
    }
    let detached = args.clone().detached();
    assert!(detached == args || detached.from(0).eq(args.from(0)));
    answered(&words);
    words
}

/// A reply is as long as it says, whatever is in it, and what does not fit is cut without a gap.
fn answered(words: &[Vec<u8>]) {
    for version in [Version::Two, Version::Three] {
        let mut whole = BytesMut::new();
        let mut writer = Writer::new(&mut whole, version, usize::MAX);
        write(words, &mut writer);
        let len = writer.len();
        assert_eq!(len, whole.len());
        let mut part = BytesMut::new();
        let mut writer = Writer::new(&mut part, version, len / 2);
        write(words, &mut writer);
        assert_eq!((writer.len(), writer.fits()), (len, len <= len / 2));
        assert!(whole.starts_with(&part));
    }
}

fn write(words: &[Vec<u8>], out: &mut Writer<'_>) {
    out.array(words.len());
    for word in words {
        out.bulk(word);
        out.error(&String::from_utf8_lossy(word));
    }
}
