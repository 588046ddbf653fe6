//! Commands on bits.

use super::draw::{Draw, Words, words};

pub(crate) fn command(draw: &mut Draw) -> Words {
    let name = draw.pick(&[
        "SETBIT",
        "SETBIT",
        "GETBIT",
        "BITCOUNT",
        "BITCOUNT",
        "BITPOS",
        "BITPOS",
        "BITOP",
        "BITOP",
        "BITFIELD",
        "BITFIELD",
        "BITFIELD_RO",
    ]);
    let mut command = words(&[draw.case(name)]);
    if name == "BITOP" {
        let operation = draw.pick(&["AND", "OR", "XOR", "NOT", "NOT", "NAND"]);
        command.push(draw.case(operation).into());
        let most = if operation == "NOT" { 4 } else { 6 };
        command.extend(draw.some(2, most, |draw| draw.key().into()));
        return command;
    }
    command.push(draw.key().into());
    match name {
        "SETBIT" => {
            command.push(offset(draw));
            command.push(draw.pick(&["0", "1", "1", "0", "1", "0", "2", "-1", "x"]).into());
        }
        "GETBIT" => command.push(offset(draw)),
        "BITCOUNT" => command.extend(range(draw)),
        "BITPOS" => {
            command.push(draw.pick(&["0", "1", "0", "1", "0", "1", "2", "x"]).into());
            command.extend(range(draw));
        }
        _ => {
            for _ in 0..draw.below(5) {
                command.extend(step(name, draw));
            }
        }
    }
    if draw.below(40) == 0 {
        command.pop();
    }
    command
}

fn range(draw: &mut Draw) -> Words {
    let mut range = draw.some(0, 3, |draw| draw.integer().into_bytes());
    if draw.below(2) == 0 {
        let unit = draw.pick(&["BIT", "BIT", "BYTE", "BITS"]);
        range.push(draw.case(unit).into());
    }
    range
}

fn offset(draw: &mut Draw) -> Vec<u8> {
    match draw.below(10) {
        0 => draw.pick(&["-1", "x", "4294967296", "9223372036854775807", "#1"]).into(),
        _ => draw.below(500).to_string().into(),
    }
}

/// A part of a BITFIELD.
fn step(name: &str, draw: &mut Draw) -> Words {
    let action = draw.pick(if name == "BITFIELD" {
        &["GET", "SET", "SET", "INCRBY", "INCRBY", "OVERFLOW"]
    } else {
        &["GET", "GET", "GET", "GET", "GET", "SET"]
    });
    let mut step = words(&[draw.case(action)]);
    if action == "OVERFLOW" {
        let overflow = draw.pick(&["WRAP", "SAT", "SAT", "FAIL", "FAIL", "x"]);
        step.push(draw.case(overflow).into());
        return step;
    }
    let kind = match draw.below(30) {
        0 => draw.pick(&["u64", "i65", "i0", "x8", "", "u"]).to_owned(),
        1..=6 => "i64".to_owned(),
        _ => format!("{}{}", draw.pick(&["u", "i"]), 1 + draw.below(63)),
    };
    step.push(kind.into());
    step.push(if draw.below(3) == 0 { format!("#{}", draw.below(10)).into() } else { offset(draw) });
    if action != "GET" {
        step.push(draw.integer().into());
    }
    step
}
