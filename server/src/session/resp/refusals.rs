//! What is said to a client that asks for what cannot be had, before anything is done.

use std::fmt::Write as _;

use boltkv_protocol::ErrorCode;
use boltkv_protocol::resp::{Args, NoSubcommand, ProtocolError, Spec};

use crate::commands::{Failure, parse_number};

/// Bytes of a word that are shown.
const SHOWN: usize = 128;

pub(super) fn failed(line: &'static str) -> Failure {
    Failure::new(ErrorCode::Malformed, line)
}

/// The whole number that a word is.
pub(super) fn integer(word: &[u8]) -> Result<i64, Failure> {
    parse_number(word).ok_or_else(Failure::not_an_integer)
}

pub(super) fn auth_comes_first() -> Failure {
    Failure::new(ErrorCode::Unauthenticated, "NOAUTH Authentication required.")
}

pub(super) fn protocol_error(error: &ProtocolError) -> Failure {
    Failure::new(ErrorCode::Malformed, format!("ERR {error}"))
}

/// What there is in Redis and not here.
pub(super) fn not_here(name: &str, sub: &str) -> Failure {
    Failure::new(ErrorCode::Unsupported, format!("ERR {name} {sub} is not supported"))
}

/// A word as it can stand in a line.
pub(super) fn shown(word: &[u8]) -> String {
    word[..word.len().min(SHOWN)].escape_ascii().to_string()
}

/// A command that is none, as far as it fits a line.
pub(super) fn unknown(args: &Args) -> Failure {
    let mut line = format!("ERR unknown command '{}', with args beginning with: ", shown(args.word(0)));
    for word in args.from(1) {
        if line.len() > 2 * SHOWN {
            break;
        }
        // Writing to a string cannot fail.
        let _ = write!(line, "'{}' ", shown(word));
    }
    Failure::new(ErrorCode::Unsupported, line)
}

/// A command of a command that is none.
pub(super) fn no_subcommand(why: NoSubcommand, spec: &Spec, args: &Args) -> Failure {
    match why {
        NoSubcommand::Arity(sub) => Failure::wrong_number_of_arguments(&format!("{}|{}", spec.name, sub.name)),
        NoSubcommand::Unknown => {
            let line = format!("ERR unknown subcommand '{}'. Try {} HELP.", shown(args.word(1)), spec.name);
            Failure::new(ErrorCode::Unsupported, line)
        }
    }
}

/// A line of HTTP: a page in a browser can be made to send it here.
pub(super) fn http() -> Failure {
    failed("ERR that is HTTP, which is not spoken here")
}
