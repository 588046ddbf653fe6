//! Commands on values.

use super::draw::{Draw, Words, words};

pub(crate) fn command(draw: &mut Draw) -> Words {
    let name = draw.pick(&[
        "GET",
        "SET",
        "SET",
        "SET",
        "SETNX",
        "SETEX",
        "PSETEX",
        "GETSET",
        "GETDEL",
        "GETEX",
        "MGET",
        "MSET",
        "MSETNX",
        "APPEND",
        "APPEND",
        "STRLEN",
        "GETRANGE",
        "SUBSTR",
        "SETRANGE",
        "INCR",
        "DECR",
        "INCRBY",
        "DECRBY",
        "INCRBYFLOAT",
        "INCRBYFLOAT",
        "LCS",
    ]);
    let mut command = words(&[draw.case(name)]);
    let mut say = |word: &[u8]| command.push(word.to_vec());
    match name {
        "MGET" => {
            for key in draw.some(1, 5, Draw::key) {
                say(key.as_bytes());
            }
        }
        "MSET" | "MSETNX" => {
            for _ in 0..=draw.below(3) {
                say(draw.key().as_bytes());
                say(&draw.value());
            }
        }
        _ => {
            say(draw.key().as_bytes());
            for word in arguments(name, draw) {
                say(&word);
            }
        }
    }
    // Now and then a word is missing, or one too many.
    match draw.below(40) {
        0 => drop(command.pop()),
        1 => command.push(draw.value()),
        _ => {}
    }
    if command.is_empty() { words(&["PING"]) } else { command }
}

/// What follows the key.
fn arguments(name: &str, draw: &mut Draw) -> Words {
    match name {
        "SET" => {
            let mut arguments = vec![draw.value()];
            arguments.extend(options(&["NX", "XX", "GET", "KEEPTTL"], draw));
            arguments
        }
        "GETEX" => options(&["PERSIST", "KEEPTTL", "GET"], draw),
        "SETEX" | "PSETEX" => vec![time_that_is_none(draw), draw.value()],
        "SETNX" | "GETSET" | "APPEND" => vec![draw.value()],
        "GETRANGE" | "SUBSTR" => words(&[draw.integer(), draw.integer()]),
        // Far behind the end there is memory to be taken, which Redis has more of.
        "SETRANGE" => {
            let offset = if draw.below(5) == 0 {
                draw.pick(&["-1", "x", "9223372036854775807"]).to_owned()
            } else {
                draw.below(300).to_string()
            };
            vec![offset.into(), draw.value()]
        }
        "INCRBY" | "DECRBY" => words(&[draw.integer()]),
        "INCRBYFLOAT" => words(&[draw.float()]),
        "LCS" => {
            let mut arguments = words(&[draw.key()]);
            for option in draw.some(0, 4, |draw| draw.pick(&["LEN", "IDX", "IDX", "WITHMATCHLEN", "MINMATCHLEN"])) {
                arguments.push(draw.case(option).into());
                if option == "MINMATCHLEN" {
                    arguments.push(draw.integer().into());
                }
            }
            arguments
        }
        _ => Vec::new(),
    }
}

fn options(flags: &[&str], draw: &mut Draw) -> Words {
    let mut options = Vec::new();
    while draw.below(2) == 0 {
        if draw.below(4) == 0 {
            let unit = draw.pick(&["EX", "PX", "EXAT", "PXAT"]);
            options.push(draw.case(unit).into_bytes());
            options.push(if unit.ends_with("AT") { time(unit, draw) } else { time_that_is_none(draw) });
        } else {
            let flag = draw.pick(flags);
            options.push(draw.case(flag).into_bytes());
        }
    }
    options
}

/// A time that is far away, or long over: what lies between is answered at another moment by each server.
fn time(unit: &str, draw: &mut Draw) -> Vec<u8> {
    let seconds = draw.pick(&["1", "1700000000", "32503680000", "32503680001"]);
    format!("{seconds}{}", if unit == "PXAT" { "000" } else { "" }).into()
}

/// A time that is refused, or what is no time.
fn time_that_is_none(draw: &mut Draw) -> Vec<u8> {
    draw.pick(&["0", "-1", "x", "", "1.5", "-9223372036854775808", "9223372036854775808"]).into()
}
