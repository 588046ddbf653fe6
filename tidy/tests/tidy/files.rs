//! How long a file is, and that something leads to it. How long a function is, clippy says: `too-many-lines-threshold` in
//! `clippy.toml`.

use std::path::Path;

use boltkv_tidy::{files, modules};

use crate::nothing;

/// Lines that a file may have.
const MOST_LINES: usize = 400;

/// Files that are longer, how long they may be, and why. A file that comes below `MOST_LINES` goes from this list; a number in
/// it may go down, never up.
const LONGER: [(&str, usize, &str); 9] = [
    ("server/tests/sessions/binary.rs", 475, "a test for each promise of the binary dialect, side by side"),
    (
        "storage/src/handles/bucket.rs",
        450,
        "the public face of a bucket: one method and its documentation after the other",
    ),
    ("storage/src/handles/cursor.rs", 425, "both cursors, which share the stack that they stand on"),
    ("storage/src/handles/tx.rs", 425, "the public face of a write transaction, with its documentation"),
    ("storage/src/tree/slots/mod.rs", 450, "one structure, whose invariants are kept in one place"),
    ("storage/tests/tools/inspect.rs", 425, "one made-up file for all that is told of it"),
    ("storage/tests/model.rs", 575, "every operation against the model"),
    ("storage/tests/tools/repair.rs", 500, "a damaged file for each kind of damage"),
    ("storage/tests/tools/surgery.rs", 475, "a test for each operation on a page"),
];

#[test]
fn a_file_says_one_thing_and_is_short() {
    let mut found = Vec::new();
    for path in files::ending_in("rs") {
        let lines = files::read(&path).lines().count();
        let name = path.display().to_string();
        match LONGER.iter().find(|(longer, ..)| *longer == name) {
            Some((_, most, why)) if lines > *most => {
                found.push(format!("{name} has {lines} lines, may have {most} ({why}), and is to become shorter"));
            }
            Some(_) if lines <= MOST_LINES => found.push(format!("{name} is short now: take it out of LONGER")),
            None if lines > MOST_LINES => {
                found.push(format!(
                    "{name} has {lines} lines, may have {MOST_LINES}: it says two things, give one away"
                ));
            }
            _ => {}
        }
    }
    let gone = LONGER.iter().filter(|(path, ..)| !files::root().join(path).exists());
    found.extend(gone.map(|(path, ..)| format!("{path} is no more: take it out of LONGER")));
    nothing(&found, "files that are too long");
}

#[test]
fn every_file_is_led_to_by_a_module() {
    let reached = modules::reached();
    let dead: Vec<_> = files::ending_in("rs").into_iter().filter(|path| !reached.contains_key(path)).collect();
    let dead: Vec<_> = dead.iter().map(|path| format!("{} is compiled nowhere: delete it", path.display())).collect();
    nothing(&dead, "dead files");
    // That the walk finds anything at all, on every kind of way.
    for (path, used) in [
        ("storage/src/lib.rs", modules::Use::Product),
        ("cli/src/file/surgery/meta_update.rs", modules::Use::Product),
        ("storage/src/crash/power.rs", modules::Use::Test),
        ("storage/tests/common/random.rs", modules::Use::Test),
    ] {
        assert_eq!(reached.get(Path::new(path)), Some(&used), "{path}");
    }
}
