//! The Redis dialect's commands on values, in replies that Redis gives.
#![allow(clippy::unwrap_used, reason = "test code: a panic is how it reports")]

use crate::common::TestServer;
use crate::common::raw_resp::RawResp;

#[test]
fn set_takes_options_and_tells_what_contradicts_another() {
    let server = TestServer::start();
    let syntax = "ERR syntax error";
    RawResp::connect(server.address).all(&[
        ("SET a 1", "OK"),
        ("SET a 2 NX", "nil"),
        ("SET b 2 xx", "nil"),
        ("SET a 2 XX GET", "1"),
        ("SET a 3 NX GET", "2"),
        ("SET c 3 GET NX", "nil"),
        ("MGET a b c", "[3] 2 nil 3"),
        ("SET a 1 NX XX", syntax),
        ("SET a 1 EX", syntax),
        ("SET a 1 EX 10 PX 10", syntax),
        ("SET a 1 KEEPTTL EX 10", syntax),
        ("SET a 1 PERSIST", syntax),
        ("SET a 1 EX x", "ERR value is not an integer or out of range"),
        ("SET a 1 EX 0", "ERR invalid expire time in 'set' command"),
        ("SET a 1 PX -1", "ERR invalid expire time in 'set' command"),
        ("SET a 1 EX 9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("SET a 1 PX 9223372036854775807", "ERR invalid expire time in 'set' command"),
        ("SETEX a 0 1", "ERR invalid expire time in 'setex' command"),
        ("PSETEX a -5 1", "ERR invalid expire time in 'psetex' command"),
        ("GETEX a PX 0", "ERR invalid expire time in 'getex' command"),
        ("GETEX missing PX 0", "nil"),
        ("GETEX a KEEPTTL", syntax),
        ("GETEX a PERSIST", "2"),
        ("GETDEL a", "2"),
        ("GETDEL a", "nil"),
        ("HSET h f v", "1"),
        ("SET h 1 GET", "WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SET h 1", "OK"),
        ("GETSET h 2", "1"),
        ("SETNX h 3", "0"),
        ("MSETNX new 1 h 3", "0"),
        ("MSETNX new 1 newer 3", "1"),
        ("MSET x 1 y", "ERR wrong number of arguments for 'mset' command"),
    ]);
}

#[test]
fn numbers_are_added_to_within_their_bounds() {
    let server = TestServer::start();
    let no_integer = "ERR value is not an integer or out of range";
    RawResp::connect(server.address).all(&[
        ("INCR n", "1"),
        ("DECRBY n 11", "-10"),
        ("INCRBY n 9223372036854775807", "9223372036854775797"),
        ("INCRBY n 11", "ERR increment or decrement would overflow"),
        ("DECRBY n -9223372036854775808", "ERR decrement would overflow"),
        ("SET n -9223372036854775808", "OK"),
        ("DECR n", "ERR increment or decrement would overflow"),
        ("INCRBY n 1.0", no_integer),
        ("SET n 01", "OK"),
        ("INCR n", no_integer),
        ("SET n 10.50", "OK"),
        ("INCRBYFLOAT n 0.1", "10.6"),
        ("INCRBYFLOAT n -5", "5.6"),
        ("INCRBYFLOAT n 1e-17", "5.60000000000000001"),
        ("INCRBYFLOAT n inf", "ERR increment would produce NaN or Infinity"),
        ("INCRBYFLOAT n x", "ERR value is not a valid float"),
        ("INCRBYFLOAT new 3.0e3", "3000"),
    ]);
}

#[test]
fn parts_of_values_are_read_and_overwritten() {
    let server = TestServer::start();
    RawResp::connect(server.address).all(&[
        ("APPEND k Hello", "5"),
        ("APPEND k World", "10"),
        ("GETRANGE k -5 -1", "World"),
        ("SUBSTR k 0 4", "Hello"),
        ("GETRANGE k 5 2", ""),
        ("GETRANGE k -1 -9223372036854775808", ""),
        ("SETRANGE k 5 -", "10"),
        ("SETRANGE k 12 !", "13"),
        ("GET k", "Hello-orld\\x00\\x00!"),
        ("SETRANGE k -1 x", "ERR offset is out of range"),
        ("STRLEN k", "13"),
        ("STRLEN missing", "0"),
        ("MSET a ohmytext b mynewtext", "OK"),
        ("LCS a b", "mytext"),
        ("LCS a b LEN", "6"),
        ("LCS a b IDX", "[4] matches [2] [2] [2] 4 7 [2] 5 8 [2] [2] 2 3 [2] 0 1 len 6"),
        ("LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN", "[4] matches [1] [3] [2] 4 7 [2] 5 8 4 len 6"),
        ("LCS a b IDX LEN", "ERR If you want both the length and indexes, please just use IDX."),
        ("LCS a missing", ""),
    ]);
}

/// What a frame has beside its value.
const VALUE_FRAME: usize = 14;

#[test]
fn a_value_becomes_no_longer_than_a_reply_can_be_and_a_failure_changes_nothing() {
    let server = TestServer::start_with(|config| config.limits.max_frame = (16 << 20) + VALUE_FRAME);
    let mut client = RawResp::connect(server.address);
    let too_long = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
    client.all(&[
        ("SETRANGE k 16777215 x", "16777216"),
        ("APPEND k y", too_long),
        ("SETRANGE k 16777216 x", too_long),
        ("SETRANGE k 9223372036854775807 x", too_long),
        ("STRLEN k", "16777216"),
        ("LCS k k", "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"),
        ("LCS k k LEN", "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len"),
        ("SETBIT b 134217728 1", too_long),
        ("EXISTS b", "0"),
    ]);
    assert_eq!(client.raw(&["GET", "k"]).len(), "$16777216\r\n\r\n".len() + (16 << 20));
}

// A few words ask for a long value: many at once are more than the server's memory, and it serves them one after the other.
#[test]
fn many_long_values_made_at_once_share_the_memory() {
    let limit = 1 << 20;
    let server = TestServer::start_with(|config| {
        (config.limits.max_frame, config.limits.memory) = (limit + VALUE_FRAME, Some(5 * limit));
    });
    let mut client = RawResp::connect(server.address);
    let count = 40;
    for at in 0..count {
        client.send(&["SETRANGE", &format!("k{at}"), &(limit - 1).to_string(), "x"]);
    }
    for _ in 0..count {
        assert_eq!(client.reply(), format!(":{limit}\r\n").into_bytes());
    }
    // As one they do not fit, and none of them is done.
    assert_eq!(client.ask("MULTI"), "OK");
    for at in 0..count {
        assert_eq!(client.ask(&format!("SETRANGE new{at} {} x", limit - 1)), "QUEUED");
    }
    assert!(client.ask("EXEC").contains("OVERLOADED"));
    assert_eq!(client.ask("EXISTS new0"), "0");
}
