//! A Rust file without its comments and texts, so that a word in them is not taken for code.

/// The text with a blank in the place of every byte of a comment, a string or a character. Lines and offsets stay; the
/// quotes of a string stay, too.
#[must_use]
pub fn code(text: &str) -> String {
    let mut code = text.as_bytes().to_vec();
    let mut at = 0;
    // Each of these begins with one of four bytes: most bytes are passed over at once.
    while let Some(next) = text.as_bytes()[at..].iter().position(|byte| b"/\"'r".contains(byte)) {
        at += next;
        let (blank, next) = piece(text, at);
        for byte in &mut code[blank] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = next;
    }
    // Pieces begin and end at ASCII, so no character is cut.
    String::from_utf8(code).unwrap_or_default()
}

/// What is to be blanked of the piece that begins here (often nothing), and where the next one begins.
fn piece(text: &str, at: usize) -> (std::ops::Range<usize>, usize) {
    let rest = &text[at..];
    let end = |length: Option<usize>| at + length.unwrap_or(rest.len());
    if rest.starts_with("//") {
        let end = end(rest.find('\n'));
        return (at..end, end);
    }
    if rest.starts_with("/*") {
        let end = end(comment(rest));
        return (at..end, end);
    }
    if let Some(length) = raw_string(text, at) {
        return (at + 1..at + length - 1, at + length);
    }
    if rest.starts_with('"') {
        let length = end(closing(rest, b'"')) - at;
        return (at + 1..(at + length - 1).max(at + 1), at + length);
    }
    if rest.starts_with('\'') && is_character(rest) {
        let end = end(closing(rest, b'\''));
        return (at + 1..end - 1, end);
    }
    (at..at, at + 1)
}

/// The length of a comment that may hold others.
fn comment(rest: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let next = at + rest[at..].find("/*").unwrap_or(rest.len()).min(rest[at..].find("*/")?);
        depth = if rest[next..].starts_with("/*") { depth + 1 } else { depth - 1 };
        at = next + 2;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The length of a raw string that begins here: `r"…"`, `r#"…"#`, also after a `b` or `c`.
fn raw_string(text: &str, at: usize) -> Option<usize> {
    let before = text[..at].bytes().last();
    let in_a_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() && byte != b'b' && byte != b'c');
    let rest = text[at..].strip_prefix('r').filter(|_| !in_a_word)?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    let body = rest[hashes..].strip_prefix('"')?;
    let end = body.find(&format!("\"{}", "#".repeat(hashes)))?;
    Some(1 + hashes + 1 + end + 1 + hashes)
}

/// The length of a string or character, with both its quotes.
fn closing(rest: &str, quote: u8) -> Option<usize> {
    let mut bytes = rest.bytes().enumerate().skip(1);
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            _ if byte == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Whether a character begins here, not a lifetime.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars().skip(1);
    matches!((characters.next(), characters.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

/// The code without what comes after `#[cfg(test)]` and `mod tests {`: a file's own tests stand at its end.
#[must_use]
pub fn without_tests(code: &str) -> &str {
    code.find("#[cfg(test)]\nmod tests {").map_or(code, |at| &code[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked_and_lifetimes_are_not() {
        for (text, expected) in [
            ("a // b\nc", "a     \nc"),
            ("a/*/*b*/c*/d", "a          d"),
            (r#"f("x\"y", 1)"#, r#"f("    ", 1)"#),
            (r##"f(br#"a"b"#)"##, "f(br      #)"),
            ("'a' 'b 'c", "' ' 'b 'c"),
            (r"('\'', 'ä', '\u{1F}')", "('  ', '  ', '      ')"),
            ("for r in x", "for r in x"),
        ] {
            assert_eq!(code(text), expected, "{text}");
        }
    }

    #[test]
    fn a_files_own_tests_are_left_out() {
        assert_eq!(without_tests("a();\n\n#[cfg(test)]\nmod tests {\n    b();\n}\n"), "a();\n\n");
        assert_eq!(without_tests("a();\n"), "a();\n");
    }
}
