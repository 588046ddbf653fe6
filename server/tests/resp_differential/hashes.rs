//! Commands on hashes.

use super::draw::{Draw, Words, words};

/// So few that commands meet, and that Redis tells all of them in one step of a scan.
const FIELDS: &[&str] = &["f", "g", "", "field:4", "\r\n", "7"];

pub(crate) fn command(draw: &mut Draw) -> Words {
    let name = draw.pick(&[
        "HSET",
        "HSET",
        "HSET",
        "HMSET",
        "HSETNX",
        "HGET",
        "HMGET",
        "HGETALL",
        "HDEL",
        "HDEL",
        "HLEN",
        "HEXISTS",
        "HKEYS",
        "HVALS",
        "HINCRBY",
        "HINCRBY",
        "HINCRBYFLOAT",
        "HINCRBYFLOAT",
        "HSTRLEN",
        "HSCAN",
        "HRANDFIELD",
    ]);
    let mut command = words(&[draw.case(name), draw.key()]);
    match name {
        "HSET" | "HMSET" => {
            for _ in 0..=draw.below(4) {
                command.push(field(draw));
                command.push(draw.value());
            }
        }
        "HSETNX" => command.extend([field(draw), draw.value()]),
        "HMGET" | "HDEL" => command.extend(draw.some(1, 5, field)),
        "HGET" | "HEXISTS" | "HSTRLEN" => command.push(field(draw)),
        "HINCRBY" => command.extend([field(draw), draw.integer().into()]),
        "HINCRBYFLOAT" => command.extend([field(draw), draw.float().into()]),
        "HSCAN" => command.extend(scan(draw)),
        "HRANDFIELD" => command.extend(random(draw)),
        _ => {}
    }
    match draw.below(40) {
        0 => drop(command.pop()),
        1 => command.push(draw.value()),
        _ => {}
    }
    command
}

fn field(draw: &mut Draw) -> Vec<u8> {
    draw.pick(FIELDS).into()
}

/// A cursor and options.
fn scan(draw: &mut Draw) -> Words {
    let mut scan = words(&[draw.pick(&["0", "0", "0", "0", "0", "x", ""])]);
    scan.extend(scan_options(&["MATCH", "COUNT", "COUNT", "FOO"], draw));
    scan
}

/// Options of a scan that looks at everything.
pub(crate) fn scan_options(options: &[&str], draw: &mut Draw) -> Words {
    let mut said = Words::new();
    while draw.below(2) == 0 {
        let option = draw.pick(options);
        said.push(draw.case(option).into());
        said.push(match option {
            "MATCH" => pattern(draw),
            "TYPE" => draw.pick(&["string", "hash", "HASH", "list", "stream"]).into(),
            _ if draw.below(6) == 0 => draw.pick(&["0", "-1", "x", "", "9223372036854775808"]).into(),
            _ => draw.pick(&["100", "1000"]).into(),
        });
    }
    said
}

/// A pattern that means some of the keys and fields.
pub(crate) fn pattern(draw: &mut Draw) -> Vec<u8> {
    let patterns = ["*", "*", "**", "", "?", "[a-b]", "[^a]", "*e*:?", "\\a", "?*", "[", "[b-a]*", "f*", "\r*", "*\n"];
    draw.pick(&patterns).into()
}

/// How many, and whether with values. What is drawn is drawn by each server anew.
fn random(draw: &mut Draw) -> Words {
    let mut random = Words::new();
    if draw.below(3) > 0 {
        let count = draw.pick(&["0", "1", "3", "100", "-1", "-20", "x", "", "-9223372036854775808"]);
        random.push(count.into());
        if draw.below(2) == 0 {
            let option = draw.pick(&["WITHVALUES", "WITHVALUES", "FOO"]);
            random.push(draw.case(option).into());
        }
    }
    random
}
