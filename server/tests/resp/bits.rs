//! The Redis dialect's commands on bits, in replies that Redis gives.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::TestServer;
use crate::common::raw_resp::RawResp;

#[test]
fn bits_are_set_and_found() {
    let server = TestServer::start();
    let offset = "ERR bit offset is not an integer or out of range";
    RawResp::connect(server.address).all(&[
        ("SETBIT k 7 1", "0"),
        ("SETBIT k 7 0", "1"),
        ("SETBIT k 9 1", "0"),
        ("GET k", "\\x00@"),
        ("GETBIT k 9", "1"),
        ("GETBIT k 4294967295", "0"),
        ("GETBIT k 4294967296", offset),
        ("GETBIT k -1", offset),
        ("SETBIT k 1 2", "ERR bit is not an integer or out of range"),
        ("SET k foobar", "OK"),
        ("BITCOUNT k", "26"),
        ("BITCOUNT k 0 0", "4"),
        ("BITCOUNT k 5 30 BIT", "17"),
        ("BITCOUNT k -1 -9223372036854775808", "0"),
        ("BITCOUNT k 1", "ERR syntax error"),
        ("BITCOUNT missing 1", "0"),
        ("BITPOS k 1", "1"),
        ("BITPOS k 0 2 -1 bit", "3"),
        ("BITPOS k 2", "ERR The bit argument must be 1 or 0."),
        ("BITPOS missing 0", "0"),
        ("BITPOS missing 1", "-1"),
        ("BITFIELD ones SET i16 0 -1", "[1] 0"),
        ("BITPOS ones 0", "16"),
        ("BITPOS ones 0 1", "16"),
        ("BITPOS ones 0 0 -1", "-1"),
        ("BITOP NOT zeros ones", "2"),
        ("BITPOS zeros 1", "-1"),
        ("BITOP OR k zeros missing ones", "2"),
        ("GET k", "\\xff\\xff"),
        ("BITOP and k zeros k", "2"),
        ("BITOP XOR k missing missing", "0"),
        ("EXISTS k", "0"),
        ("BITOP NOT k a b", "ERR BITOP NOT must be called with a single source key."),
        ("BITOP NAND k a b", "ERR syntax error"),
    ]);
}

#[test]
fn numbers_of_any_width_are_read_and_changed() {
    let server = TestServer::start();
    let kind = "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.";
    RawResp::connect(server.address).all(&[
        ("BITFIELD k SET u8 #1 255 GET i8 8 INCRBY u8 #1 1", "[3] 0 -1 0"),
        ("BITFIELD k OVERFLOW SAT INCRBY i5 100 30 OVERFLOW FAIL INCRBY i5 100 1", "[2] 15 nil"),
        ("BITFIELD k SET i64 3 -9223372036854775808 INCRBY i64 3 -1", "[2] 0 9223372036854775807"),
        ("BITFIELD k OVERFLOW SAT SET u4 0 -1 GET u4 0", "[2] 0 15"),
        ("BITFIELD k GET u64 0", kind),
        ("BITFIELD k GET i65 0", kind),
        ("BITFIELD k GET u8 #-1", "ERR bit offset is not an integer or out of range"),
        ("BITFIELD k GET u8 #9223372036854775807", "ERR bit offset is not an integer or out of range"),
        ("BITFIELD k OVERFLOW x", "ERR Invalid OVERFLOW type specified"),
        ("BITFIELD k SET u8 0", "ERR syntax error"),
        ("BITFIELD k", "[0]"),
        ("BITFIELD_RO k GET u4 0 GET i1 4294967295", "[2] 15 0"),
        ("BITFIELD_RO k SET u4 0 1", "ERR BITFIELD_RO only supports the GET subcommand"),
        ("BITFIELD_RO missing GET u4 0", "[1] 0"),
        ("BITFIELD far SET u8 134217721 1", "ERR string exceeds maximum allowed size (proto-max-bulk-len)"),
        ("EXISTS far", "0"),
    ]);
}
