//! Commands on the times of keys: none comes while a script runs, and some were long ago.

use super::draw::{Draw, Words, words};

pub(crate) fn command(draw: &mut Draw) -> Words {
    let name = draw.pick(&[
        "EXPIRE",
        "PEXPIRE",
        "EXPIREAT",
        "EXPIREAT",
        "PEXPIREAT",
        "PEXPIREAT",
        "TTL",
        "PTTL",
        "EXPIRETIME",
        "PEXPIRETIME",
        "PERSIST",
    ]);
    let mut command = words(&[draw.case(name), draw.key()]);
    if name.starts_with("EXPIRE") && name != "EXPIRETIME" || name.starts_with("PEXPIRE") && name != "PEXPIRETIME" {
        command.push(time(name, draw));
        // Times that are counted from now are never the same as others, which of them is later depends on the clock.
        let options: &[&str] =
            if name.ends_with("AT") { &["NX", "XX", "GT", "LT", "GT", "LT", "FOO"] } else { &["NX", "XX", "FOO"] };
        for option in draw.some(0, 3, |draw| draw.pick(options)) {
            command.push(draw.case(option).into());
        }
    }
    if draw.below(40) == 0 {
        command.pop();
    }
    command
}

/// A time far away, or one that is over.
fn time(name: &str, draw: &mut Draw) -> Vec<u8> {
    if draw.below(8) == 0 {
        let odd =
            ["x", "", "1.5", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "9223372036854775"];
        return draw.pick(&odd).into();
    }
    let seconds = if name.ends_with("AT") {
        draw.pick(&["32503680000", "32503680001", "99999999999", "1700000000", "1", "0", "-1"])
    } else {
        draw.pick(&["1000000", "9000000", "20000000", "0", "-1", "-1000"])
    };
    format!("{seconds}{}", if name.starts_with('P') && seconds != "0" { "000" } else { "" }).into()
}
