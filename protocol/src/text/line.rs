//! Lines, cut from a stream of bytes. How a line ended is told, because the server's way of ending a connection depends on it.
//!
//! No more than a line's limit is ever kept: what goes beyond is thrown away as it arrives.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio_util::codec::Decoder;

use super::http::{Sketch, is_http};
use crate::{ErrorCode, ErrorReply};

/// The longest line in bytes, without its end.
pub const MAX_LINE: usize = 64 * 1024;

/// How a line ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineEnd {
    /// A bare line feed.
    Lf,
    /// Carriage return and line feed.
    CrLf,
}

/// What was cut from the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEvent {
    /// A line.
    Line {
        /// What it says, without its end.
        text: Bytes,
        /// How it ended.
        end: LineEnd,
    },
    /// A line over [`MAX_LINE`], skipped to its end.
    TooLong {
        /// How it ended.
        end: LineEnd,
    },
    /// A line of HTTP, of any length: it ends in `HTTP/` and a version, or starts with `Host:`. A browser may have sent it
    /// on behalf of some web page, so nothing that comes after it must be executed: the connection is to be closed.
    Http,
    /// The stream ended within a line. It may have been cut, so it must not be executed.
    Unfinished,
}

impl LineEvent {
    /// The error that this is to be answered with; `None` for a line.
    #[must_use]
    pub fn to_error(&self) -> Option<ErrorReply> {
        let message = match self {
            Self::Line { .. } => return None,
            Self::TooLong { .. } => "the line is over the limit of 65536 bytes",
            Self::Http => {
                "this is a line of HTTP, after which nothing is executed; \
                 a key or value that ends like one is written in quotes"
            }
            Self::Unfinished => "the last line has no end and may have been cut: not executed",
        };
        Some(ErrorReply::new(ErrorCode::Malformed, message))
    }
}

/// Cuts lines from a stream.
#[derive(Debug, Clone, Default)]
pub struct LineCodec {
    /// How much of the buffer is known to hold no line feed.
    searched: usize,
    /// Within a line that went over the limit, and what is kept of it.
    skipping: Option<Sketch>,
}

impl Decoder for LineCodec {
    type Item = LineEvent;
    /// Only the stream's own errors; no line is one.
    type Error = io::Error;

    fn decode(&mut self, src: &mut BytesMut) -> Result<Option<LineEvent>, io::Error> {
        let new = src.get(self.searched..).unwrap_or_default();
        let Some(offset) = new.iter().position(|&byte| byte == b'\n') else {
            self.wait_for_more(src);
            return Ok(None);
        };
        let mut line = src.split_to(self.searched + offset);
        src.advance(1);
        self.searched = 0;
        let end = match line.last() {
            Some(b'\r') => {
                line.truncate(line.len() - 1);
                LineEnd::CrLf
            }
            _ => LineEnd::Lf,
        };
        let skipped = self.skipping.take();
        let too_long = skipped.is_some() || line.len() > MAX_LINE;
        let http = skipped.map_or_else(
            || is_http(&line),
            |mut sketch| {
                sketch.add(&line);
                sketch.is_http()
            },
        );
        Ok(Some(match (http, too_long) {
            (true, _) => LineEvent::Http,
            (false, true) => LineEvent::TooLong { end },
            (false, false) => LineEvent::Line { text: line.freeze(), end },
        }))
    }

    fn decode_eof(&mut self, src: &mut BytesMut) -> Result<Option<LineEvent>, io::Error> {
        if let Some(event) = self.decode(src)? {
            return Ok(Some(event));
        }
        let unfinished = self.skipping.take().is_some() || !src.is_empty();
        src.clear();
        self.searched = 0;
        Ok(unfinished.then_some(LineEvent::Unfinished))
    }
}

impl LineCodec {
    /// Whether what arrives belongs to a line over [`MAX_LINE`], of which nothing is kept.
    #[must_use]
    pub const fn is_skipping(&self) -> bool {
        self.skipping.is_some()
    }

    /// There is no line feed yet: keep what may become a line, and nothing of what cannot.
    fn wait_for_more(&mut self, src: &mut BytesMut) {
        // One more than the limit, for the carriage return that may be waiting for its line feed.
        if self.skipping.is_some() || src.len() > MAX_LINE + 1 {
            let keep = usize::from(src.last() == Some(&b'\r'));
            let skipped = src.split_to(src.len() - keep);
            self.skipping.get_or_insert_default().add(&skipped);
        }
        self.searched = src.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the codec makes of a stream that arrives in pieces of `step` bytes and then ends.
    fn events(stream: &[u8], step: usize) -> Vec<LineEvent> {
        let (mut codec, mut buffer, mut events) = (LineCodec::default(), BytesMut::new(), Vec::new());
        for piece in stream.chunks(step) {
            buffer.extend_from_slice(piece);
            while let Some(event) = codec.decode(&mut buffer).unwrap() {
                events.push(event);
            }
            assert!(buffer.len() <= MAX_LINE + 1 + step, "kept {} bytes", buffer.len());
        }
        while let Some(event) = codec.decode_eof(&mut buffer).unwrap() {
            events.push(event);
        }
        events
    }

    fn line(text: &'static str, end: LineEnd) -> LineEvent {
        LineEvent::Line { text: text.into(), end }
    }

    #[test]
    fn lines_are_cut_the_same_however_the_bytes_arrive() {
        let stream = b"GET a\nGET b\r\n\n\r\nSET c \r \nrest";
        for step in 1..=stream.len() {
            assert_eq!(
                events(stream, step),
                [
                    line("GET a", LineEnd::Lf),
                    line("GET b", LineEnd::CrLf),
                    line("", LineEnd::Lf),
                    line("", LineEnd::CrLf),
                    line("SET c \r ", LineEnd::Lf),
                    LineEvent::Unfinished,
                ],
                "in pieces of {step}"
            );
        }
    }

    #[test]
    fn a_line_of_the_limit_passes_and_one_byte_more_is_skipped_to_its_end() {
        for (len, end, ending) in [
            (MAX_LINE, LineEnd::Lf, "\n"),
            (MAX_LINE, LineEnd::CrLf, "\r\n"),
            (MAX_LINE + 1, LineEnd::Lf, "\n"),
            (MAX_LINE + 1, LineEnd::CrLf, "\r\n"),
            (5 * MAX_LINE, LineEnd::Lf, "\n"),
            (5 * MAX_LINE, LineEnd::CrLf, "\r\n"),
        ] {
            let long = "x".repeat(len);
            let stream = format!("{long}{ending}PING\n");
            let first =
                if len > MAX_LINE { LineEvent::TooLong { end } } else { LineEvent::Line { text: long.into(), end } };
            for step in [1, 1000, 65_536, stream.len()] {
                assert_eq!(events(stream.as_bytes(), step), [first.clone(), line("PING", LineEnd::Lf)]);
            }
        }
    }

    #[test]
    fn a_line_of_http_is_told_however_long_it_is_and_wherever_it_comes() {
        let long = "x".repeat(3 * MAX_LINE);
        for http in ["SET / HTTP/1.1 ".to_owned(), format!("POST /{long} http/1.0"), format!("\tHost : {long}")] {
            for ending in ["\n", "\r\n"] {
                let stream = format!("\nPING\n{http}{ending}PING\n");
                let expected =
                    [line("", LineEnd::Lf), line("PING", LineEnd::Lf), LineEvent::Http, line("PING", LineEnd::Lf)];
                for step in [1, 1000, 65_536, stream.len()] {
                    assert_eq!(events(stream.as_bytes(), step), expected);
                }
            }
        }
    }

    #[test]
    fn a_stream_that_ends_within_a_long_line_is_unfinished_once() {
        assert_eq!(events(&vec![b'x'; 3 * MAX_LINE], 1000), [LineEvent::Unfinished]);
        assert_eq!(events(b"", 1), []);
    }

    #[test]
    fn what_is_no_line_is_answered_as_malformed() {
        assert_eq!(line("PING", LineEnd::Lf).to_error(), None);
        for event in [LineEvent::TooLong { end: LineEnd::Lf }, LineEvent::Http, LineEvent::Unfinished] {
            assert_eq!(event.to_error().map(|error| error.code), Some(ErrorCode::Malformed));
        }
    }
}
