//! Commands on keys, whatever they hold, and on databases.

use super::draw::{Draw, Words, words};
use super::hashes::{pattern, scan_options};

/// The databases that scripts use.
pub(crate) const DATABASES: &[&str] = &["0", "1", "2"];

pub(crate) fn command(draw: &mut Draw) -> Words {
    let name = draw.pick(&[
        "DEL",
        "UNLINK",
        "EXISTS",
        "TOUCH",
        "TYPE",
        "RENAME",
        "RENAME",
        "RENAMENX",
        "COPY",
        "COPY",
        "MOVE",
        "MOVE",
        "SELECT",
        "SELECT",
        "SWAPDB",
        "KEYS",
        "SCAN",
        "RANDOMKEY",
        "DBSIZE",
        "FLUSHDB",
        "FLUSHALL",
    ]);
    let mut command = words(&[draw.case(name)]);
    match name {
        "DEL" | "UNLINK" | "EXISTS" | "TOUCH" => command.extend(draw.some(1, 4, |draw| draw.key().into())),
        "TYPE" => command.push(draw.key().into()),
        "RENAME" | "RENAMENX" => command.extend(words(&[draw.key(), draw.key()])),
        "COPY" => {
            command.extend(words(&[draw.key(), draw.key()]));
            for option in draw.some(0, 3, |draw| draw.pick(&["DB", "DB", "REPLACE", "REPLACE", "FOO"])) {
                command.push(draw.case(option).into());
                if option == "DB" {
                    command.push(database(draw));
                }
            }
        }
        "MOVE" => command.extend([draw.key().into(), database(draw)]),
        "SELECT" => command.push(database(draw)),
        "SWAPDB" => command.extend([database(draw), database(draw)]),
        "KEYS" => command.push(pattern(draw)),
        "SCAN" => {
            command.push(draw.pick(&["0", "0", "0", "0", "0", "x", ""]).into());
            command.extend(scan_options(&["MATCH", "COUNT", "COUNT", "TYPE", "FOO"], draw));
        }
        // Rarely, or nothing would ever be there.
        "FLUSHDB" | "FLUSHALL" if draw.below(4) > 0 => return words(&["DBSIZE"]),
        "FLUSHDB" | "FLUSHALL" => command.extend(draw.some(0, 2, |draw| draw.pick(&["SYNC", "async", "FOO"]).into())),
        _ => {}
    }
    match draw.below(40) {
        0 if command.len() > 1 => drop(command.pop()),
        1 => command.push(draw.value()),
        _ => {}
    }
    command
}

fn database(draw: &mut Draw) -> Vec<u8> {
    match draw.below(8) {
        0 => draw.pick(&["16", "-1", "x", "", "4294967296", "9223372036854775808", "01"]).into(),
        _ => draw.pick(DATABASES).into(),
    }
}
