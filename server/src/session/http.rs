//! Web pages can make a browser send almost any bytes to any port: `POST /… HTTP/1.1`, some headers, and then lines of their
//! own choosing. So a text connection that opens like an HTTP request is closed before anything is executed.

use boltkv_protocol::is_http_request_line;
use boltkv_protocol::text::LineEvent;

/// As much of the first line as tells a method and the blank after it.
const OPENING: usize = 16;

/// Looks at the first line of a connection.
#[derive(Debug, Default)]
pub(super) struct HttpGuard {
    opening: Vec<u8>,
    passes: Option<bool>,
}

impl HttpGuard {
    /// Looks at what has arrived, before lines are cut from it: of a line that is too long, only this is left.
    pub(super) fn look(&mut self, input: &[u8]) {
        if self.passes.is_none()
            && let Some(new) = input.get(self.opening.len()..input.len().min(OPENING))
        {
            self.opening.extend_from_slice(new);
        }
    }

    /// Whether the connection may go on: what the first line says, goes for all that follow.
    pub(super) fn passes(&mut self, line: &LineEvent) -> bool {
        let opening = &self.opening;
        *self.passes.get_or_insert_with(|| match line {
            LineEvent::Line { text, .. } => !is_http_request_line(text),
            // How it ended is not known; how it would have to end is.
            LineEvent::TooLong { .. } => !is_http_request_line(&[opening, &b" HTTP/1.1"[..]].concat()),
            LineEvent::Unfinished => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::text::{LineCodec, MAX_LINE};
    use bytes::BytesMut;
    use tokio_util::codec::Decoder;

    use super::*;

    /// Whether each line passes that is cut from a stream that arrives in pieces of `step` bytes.
    fn passes(stream: &[u8], step: usize) -> Vec<bool> {
        let (mut guard, mut codec, mut input, mut passes) =
            (HttpGuard::default(), LineCodec::default(), BytesMut::new(), Vec::new());
        for piece in stream.chunks(step) {
            input.extend_from_slice(piece);
            guard.look(&input);
            while let Some(line) = codec.decode(&mut input).unwrap() {
                passes.push(guard.passes(&line));
            }
        }
        passes
    }

    #[test]
    fn only_a_first_line_that_is_an_http_request_is_held_up() {
        for step in [1, 3, 1000] {
            assert_eq!(passes(b"POST / HTTP/1.1\r\nSET a b\r\n", step), [false, false]);
            assert_eq!(passes(b"SET a POST\nPOST / HTTP/1.1\n", step), [true, true]);
        }
    }

    #[test]
    fn a_request_whose_first_line_is_too_long_is_held_up_too() {
        let long = "x".repeat(2 * MAX_LINE);
        for step in [1000, usize::MAX] {
            assert_eq!(passes(format!("POST /{long} HTTP/1.1\nSET a b\n").as_bytes(), step), [false, false]);
            assert_eq!(passes(format!("SET k {long}\nSET a b\n").as_bytes(), step), [true, true]);
        }
    }
}
