//! Any bytes, sent in pieces of any size by somebody who has no token: nothing changes, and he is told nothing that is not for
//! everybody.
#![no_main]

#[path = "../../server/tests/strangers/claim.rs"]
mod claim;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static SERVER: LazyLock<claim::Guarded> = LazyLock::new(claim::Guarded::start);

// The first byte says how many bytes are sent at a time.
fuzz_target!(|bytes: &[u8]| {
    let [step, sent @ ..] = bytes else { return };
    SERVER.try_to_get_in(usize::from(*step) << 4 | 1, sent);
});
