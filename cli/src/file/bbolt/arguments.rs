//! Reading a command line as bbolt does, with its messages: flags anywhere, until `--`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use bytes::Bytes;

use super::super::format::quoted;
use super::flags::{self, Flag, Kind};

/// How many arguments a command takes, flags not counted.
#[derive(Clone, Copy)]
pub(super) enum Count {
    Any,
    Exactly(usize),
    AtLeast(usize),
    Between(usize, usize),
}

impl Count {
    pub(super) fn fit(self, found: usize) -> Result<(), String> {
        match self {
            Self::Exactly(wanted) if found != wanted => Err(format!("accepts {wanted} arg(s), received {found}")),
            Self::AtLeast(least) if found < least => {
                Err(format!("requires at least {least} arg(s), only received {found}"))
            }
            Self::Between(least, most) if found < least || found > most => {
                Err(format!("accepts between {least} and {most} arg(s), received {found}"))
            }
            _ => Ok(()),
        }
    }
}

/// What a command line gives: every flag's value was looked at.
pub(super) struct Given {
    flags: Vec<(&'static str, OsString)>,
    args: Vec<OsString>,
}

impl Given {
    /// Reads what stands behind the name of a command that has these flags.
    pub(super) fn read(flags: &'static [Flag], words: &[OsString]) -> Result<Self, String> {
        let mut given = Self { flags: Vec::new(), args: Vec::new() };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_bytes() {
                b"--" => given.args.extend(words.by_ref().cloned()),
                [b'-', b'-', long @ ..] => given.long(flags, long, &mut words)?,
                [b'-', short, ..] if *short != b'-' => given.short(flags, &word.as_bytes()[1..], &mut words)?,
                _ => given.args.push(word.clone()),
            }
        }
        Ok(given)
    }

    fn long<'a>(
        &mut self,
        flags: &'static [Flag],
        word: &[u8],
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), String> {
        let (name, value) = split_at(word, b'=');
        let shown = String::from_utf8_lossy(name);
        let flag = flags::named(flags, &shown).ok_or_else(|| format!("unknown flag: --{shown}"))?;
        let value = match (value, flag.kind) {
            (Some(value), _) => value.to_vec(),
            (None, Kind::Switch) => b"true".to_vec(),
            (None, _) => {
                let next = rest.next().ok_or_else(|| format!("flag needs an argument: --{shown}"))?;
                next.as_bytes().to_vec()
            }
        };
        self.take(flag, value)
    }

    /// Short flags, of which several may stand behind one dash, the last one with its value.
    fn short<'a>(
        &mut self,
        flags: &'static [Flag],
        letters: &[u8],
        rest: &mut impl Iterator<Item = &'a OsString>,
    ) -> Result<(), String> {
        for (index, &letter) in letters.iter().enumerate() {
            let (letter, all) = (char::from(letter), String::from_utf8_lossy(letters));
            let flag = flags::lettered(flags, letter);
            let flag = flag.ok_or_else(|| format!("unknown shorthand flag: '{letter}' in -{all}"))?;
            if flag.kind == Kind::Switch {
                self.take(flag, b"true".to_vec())?;
                continue;
            }
            let value = match &letters[index + 1..] {
                [] => {
                    let next = rest.next();
                    next.ok_or_else(|| format!("flag needs an argument: '{letter}' in -{all}"))?.as_bytes()
                }
                value => value.strip_prefix(b"=").unwrap_or(value),
            };
            return self.take(flag, value.to_vec());
        }
        Ok(())
    }

    fn take(&mut self, flag: &'static Flag, value: Vec<u8>) -> Result<(), String> {
        let value = OsString::from_vec(value);
        flag.kind.check(&value).map_err(|why| {
            let name = flag.short.map_or_else(String::new, |short| format!("-{short}, "));
            format!("invalid argument {} for \"{name}--{}\" flag: {why}", quoted(value.as_bytes()), flag.name)
        })?;
        self.flags.push((flag.name, value));
        Ok(())
    }

    /// The flags that must be there, are.
    pub(super) fn has_required(&self, flags: &[Flag]) -> Result<(), String> {
        let missing = flags.iter().filter(|flag| flag.required && self.flag(flag.name).is_none());
        let missing: Vec<String> = missing.map(|flag| format!("\"{}\"", flag.name)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(format!("required flag(s) {} not set", missing.join(", ")))
    }

    /// A flag's value; of one that is given more than once, the last.
    pub(super) fn flag(&self, name: &str) -> Option<&OsStr> {
        self.flags.iter().rev().find(|(given, _)| *given == name).map(|(_, value)| value.as_os_str())
    }

    /// All values of a flag that takes a list, which may come in several pieces.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        let given = self.flags.iter().filter(|(given, _)| *given == name);
        given.flat_map(|(_, list)| list.to_string_lossy().split(',').map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// Whether a switch is on.
    pub(super) fn is(&self, name: &str) -> bool {
        self.flag(name).is_some_and(|value| value.to_str().and_then(boolean) == Some(true))
    }

    /// A flag that is a number. Its value was looked at when it was read.
    pub(super) fn number(&self, name: &str, default: i128) -> i128 {
        self.flag(name).and_then(|value| number(value.to_str()?).ok()).unwrap_or(default)
    }

    /// A flag that is a text.
    pub(super) fn text(&self, name: &str, default: &str) -> String {
        self.flag(name).map_or_else(|| default.to_owned(), |value| value.to_string_lossy().into_owned())
    }

    pub(super) fn args(&self) -> &[OsString] {
        &self.args
    }

    /// The first argument, mostly the file.
    pub(super) fn file(&self) -> &Path {
        self.args.first().map_or(Path::new(""), Path::new)
    }

    /// The arguments from the second on, as they are: names of buckets, and keys.
    pub(super) fn names(&self) -> Vec<Bytes> {
        self.args.iter().skip(1).map(|name| Bytes::copy_from_slice(name.as_bytes())).collect()
    }
}

impl Kind {
    /// What is wrong with a value, as Go says it.
    fn check(self, value: &OsStr) -> Result<(), String> {
        let shown = quoted(value.as_bytes());
        let invalid = |parser: &str| format!("strconv.{parser}: parsing {shown}: invalid syntax");
        let out_of_range = |parser: &str| format!("strconv.{parser}: parsing {shown}: value out of range");
        let text = value.to_str().unwrap_or("\u{fffd}");
        let (parser, range) = match self {
            Self::Text | Self::List => return Ok(()),
            Self::Switch => return boolean(text).map(drop).ok_or_else(|| invalid("ParseBool")),
            Self::Float => return text.parse::<f64>().map(drop).map_err(|_| invalid("ParseFloat")),
            Self::Uint => ("ParseUint", 0..=i128::from(u64::MAX)),
            Self::Uint32 => ("ParseUint", 0..=i128::from(u32::MAX)),
            Self::Int => ("ParseInt", i128::from(i64::MIN)..=i128::from(i64::MAX)),
        };
        match number(text) {
            Ok(_) if self != Self::Int && text.starts_with(['-', '+']) => Err(invalid(parser)),
            Ok(number) if range.contains(&number) => Ok(()),
            Ok(_) | Err(NoNumber::TooLarge) => Err(out_of_range(parser)),
            Err(NoNumber::Invalid) => Err(invalid(parser)),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum NoNumber {
    Invalid,
    TooLarge,
}

/// A whole number as Go reads one in a flag: decimal, or with `0x`, `0o`, `0` or `0b` before it.
fn number(text: &str) -> Result<i128, NoNumber> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'-') => (-1, &text[1..]),
        Some(b'+') => (1, &text[1..]),
        _ => (1, text),
    };
    let small = digits.to_ascii_lowercase();
    let (radix, digits) = match small.as_bytes() {
        [b'0', b'x', ..] => (16, &small[2..]),
        [b'0', b'b', ..] => (2, &small[2..]),
        [b'0', b'o', ..] => (8, &small[2..]),
        [b'0', _, ..] => (8, &small[1..]),
        _ => (10, &*small),
    };
    if digits.starts_with(['-', '+']) {
        return Err(NoNumber::Invalid);
    }
    let parsed = i128::from_str_radix(digits, radix).map_err(|error| match error.kind() {
        PosOverflow | NegOverflow => NoNumber::TooLarge,
        _ => NoNumber::Invalid,
    })?;
    Ok(sign * parsed)
}

/// A page's or an element's number among the arguments: decimal only.
pub(super) fn page(argument: &OsStr) -> Result<u64, String> {
    let shown = quoted(argument.as_bytes());
    let text = argument.to_str().filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    let text = text.ok_or_else(|| format!("strconv.ParseUint: parsing {shown}: invalid syntax"))?;
    text.parse().map_err(|_| format!("strconv.ParseUint: parsing {shown}: value out of range"))
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

fn split_at(word: &[u8], at: u8) -> (&[u8], Option<&[u8]>) {
    match word.iter().position(|&byte| byte == at) {
        Some(index) => (&word[..index], Some(&word[index + 1..])),
        None => (word, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_go_reads_them() {
        let good = [("0", 0), ("16", 16), ("0x10", 16), ("0X1f", 31), ("010", 8), ("0o10", 8), ("0b11", 3), ("-5", -5)];
        for (text, expected) in good {
            assert_eq!(number(text), Ok(expected), "{text}");
        }
        for text in ["", "-", "0x", "08", "1a", "--1", "0x-1", "ü"] {
            assert_eq!(number(text), Err(NoNumber::Invalid), "{text}");
        }
        assert_eq!(Kind::Uint.check(OsStr::new("18446744073709551615")), Ok(()));
        for (text, why) in [("18446744073709551616", "value out of range"), ("-1", "invalid syntax")] {
            let said = Kind::Uint.check(OsStr::new(text)).unwrap_err();
            assert_eq!(said, format!("strconv.ParseUint: parsing \"{text}\": {why}"));
        }
    }
}
