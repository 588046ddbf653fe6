//! HTTP, which is recognised only to be refused.
//!
//! A web page can make a browser send almost any lines to any port, after lines that the browser writes itself: a request
//! line, which ends in `HTTP/` and a version, and the header `Host:`, which no page can leave out. One line of either kind
//! ends a text connection, whenever it comes, so that nothing behind it is executed.

/// Whether a line is one of HTTP: it ends in `HTTP/` and a version, or starts with `Host:`; in any letter case, with any
/// blanks around.
pub(super) fn is_http(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    ends_in_version(line) || is_host(line)
}

/// Whether bytes end in `HTTP/1.1` or the like, in any letter case.
pub(super) fn ends_in_version(bytes: &[u8]) -> bool {
    let Some(major) = without_number(bytes) else { return false };
    let minor = major.strip_suffix(b".").and_then(without_number);
    [Some(major), minor].into_iter().flatten().any(|name| ends_with_ignore_case(name, b"HTTP/"))
}

/// What stands before the decimal number at the end; `None` where there is no number.
fn without_number(bytes: &[u8]) -> Option<&[u8]> {
    let digits = bytes.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { None } else { bytes.get(..bytes.len() - digits) }
}

fn ends_with_ignore_case(bytes: &[u8], end: &[u8]) -> bool {
    let start = bytes.len().checked_sub(end.len());
    start.and_then(|start| bytes.get(start..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
}

fn is_host(line: &[u8]) -> bool {
    line.split_at_checked(4)
        .is_some_and(|(name, rest)| name.eq_ignore_ascii_case(b"host") && rest.trim_ascii_start().starts_with(b":"))
}

/// What is kept of a line that is thrown away as it arrives: its first and last bytes, with every run of blanks as one.
/// That is enough to tell whether it is a line of HTTP.
#[derive(Debug, Clone, Default)]
pub(super) struct Sketch {
    kept: Vec<u8>,
}

impl Sketch {
    /// As many bytes as are kept of the start, and at least of the end.
    const END: usize = 64;

    /// More of the line.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let is_blank = byte.is_ascii_whitespace();
            if is_blank && self.kept.last().is_none_or(u8::is_ascii_whitespace) {
                continue;
            }
            if self.kept.len() == 3 * Self::END {
                self.kept.drain(Self::END..2 * Self::END);
            }
            self.kept.push(byte);
        }
    }

    pub(super) fn is_http(&self) -> bool {
        is_http(&self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP: [&[u8]; 14] = [
        b"GET / HTTP/1.1",
        b"POST /SET%20k%20v HTTP/1.0",
        b"QUERY / HTTP/1.1",
        b"SET / HTTP/1.1",
        b"get / http/1.1",
        b"\t GET / HTTP/1.1 \t",
        b"PRI * HTTP/2.0",
        b"GET / HTTP/3",
        b"GET\t/\tHttP/10.25",
        b"\xff\x00 / HTTP/1.1",
        b"Host: localhost",
        b"hOST:x",
        b"  host \t: x",
        b"Host:",
    ];
    const OTHER: [&[u8]; 11] = [
        b"",
        b"GET k",
        b"HTTP/",
        b"HTTP/1.",
        b"HTTP/1.x",
        b"GET HTTP/1.1 k",
        b"SET k \"HTTP/1.1\"",
        b"SET k 1.1",
        b"hosts: x",
        b"hos",
        b"SET Host: x",
    ];

    #[test]
    fn a_line_of_http_is_told_from_commands() {
        for line in HTTP {
            assert!(is_http(line), "{}", line.escape_ascii());
        }
        for line in OTHER {
            assert!(!is_http(line), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_sketch_tells_the_same_of_a_line_of_any_length() {
        let sketched = |line: &[u8], step: usize| {
            let mut sketch = Sketch::default();
            line.chunks(step).for_each(|piece| sketch.add(piece));
            assert!(sketch.kept.len() <= 3 * Sketch::END);
            sketch.is_http()
        };
        let long = vec![b'x'; 10_000];
        let blanks = vec![b' '; 10_000];
        for step in [1, 7, 20_000] {
            assert!(sketched(&[b"SET /", &long[..], b" HTTP/1.1", &blanks].concat(), step));
            assert!(sketched(&[&blanks[..], b"Host", &blanks, b": ", &long].concat(), step));
            assert!(!sketched(&[b"SET k ", &long[..]].concat(), step));
            assert!(!sketched(&[b"SET k ", &long[..], b" HTTP/", &blanks, b"1.1"].concat(), step));
        }
    }
}
