//! Random scripts of the Redis dialect's commands, said to this server and to Redis: the replies are the same, byte by byte.
//!
//! `BOLTKV_RESP_SCRIPTS=10000` runs so many scripts, `BOLTKV_SEED=5` begins at that one; a failure names its own, and shows
//! the script up to what was answered differently. A group of commands is a generator (`draw::Generator`) in a file of its
//! own, and a line in [`GENERATORS`].
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code: a panic is how it reports")]

#[path = "../common/mod.rs"]
mod common;

mod bits;
mod draw;
mod hashes;
mod keys;
mod redis;
mod replies;
mod strings;
mod times;

use common::TestServer;
use common::raw_resp::{RawResp, request};
use draw::{Draw, Generator, KEYS, Words, show, words};
use redis::Redis;
use replies::Queued;

/// How many scripts are run where nothing is said.
const SCRIPTS: u64 = 300;

/// Each group's commands, and how often they are drawn.
const GENERATORS: &[(usize, Generator)] =
    &[(10, strings::command), (5, bits::command), (8, hashes::command), (8, keys::command), (5, times::command)];

/// What is asked of each key when a script has ended.
const LOOKS: &[&str] = &["TYPE", "GET", "HGETALL", "PEXPIRETIME"];

/// A script: nothing is there, commands follow, some of them as one, and then it is looked what is left.
fn script(draw: &mut Draw) -> Vec<Words> {
    let mut script = vec![words(&["RESET"]), words(&["HELLO", draw.pick(&["2", "3"])]), words(&["FLUSHALL"])];
    let mut left_of_transaction = None;
    for _ in 0..10 + draw.below(40) {
        match &mut left_of_transaction {
            Some(0) => {
                script.push(words(&[draw.pick(&["EXEC", "EXEC", "EXEC", "DISCARD"])]));
                left_of_transaction = None;
            }
            Some(left) => *left -= 1,
            None if draw.below(15) == 0 => {
                script.push(words(&["MULTI"]));
                left_of_transaction = Some(draw.below(6));
            }
            None => {}
        }
        script.push(match draw.below(20) {
            0 => words(&["WATCH"]).into_iter().chain(draw.some(1, 3, |draw| draw.key().into())).collect(),
            1 if draw.below(4) == 0 => words(&[draw.pick(&["UNWATCH", "MULTI", "DISCARD", "EXEC"])]),
            _ => command(draw),
        });
    }
    script.push(words(&["EXEC"]));
    for database in keys::DATABASES {
        script.extend([words(&["SELECT", database]), words(&["DBSIZE"])]);
        script.extend(KEYS.iter().flat_map(|key| LOOKS.iter().map(move |look| words(&[look, key]))));
    }
    script
}

fn command(draw: &mut Draw) -> Words {
    let all = GENERATORS.iter().map(|(weight, _)| weight).sum();
    let mut drawn = draw.below(all);
    for (weight, generator) in GENERATORS {
        if drawn < *weight {
            return generator(draw);
        }
        drawn -= weight;
    }
    unreachable!("the weights are those that were added up")
}

/// Runs a script on both, all of it at once.
fn compare(seed: u64, ours: &mut RawResp, theirs: &mut RawResp) {
    let script = script(&mut Draw::new(seed));
    let bytes: Vec<u8> = script.iter().flat_map(|words| request(words)).collect();
    ours.send_bytes(&bytes);
    theirs.send_bytes(&bytes);
    let mut queued = Queued::default();
    for (at, said) in script.iter().enumerate() {
        let (our, their) = (ours.reply(), theirs.reply());
        // What HELLO tells is each server's own.
        if said[0] == b"HELLO" || queued.are_same(said, &our, &their) {
            continue;
        }
        let before: Vec<_> = script[..at].iter().map(|words| show(words)).collect();
        panic!(
            "BOLTKV_SEED={seed}:\n{}\n> {}\nours:   {}\nRedis': {}",
            before.join("\n"),
            show(said),
            our.escape_ascii(),
            their.escape_ascii()
        );
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().expect("a number"))
}

#[boltkv_needs::program("redis-server")]
#[test]
fn whatever_is_asked_is_answered_as_redis_answers() {
    let (server, redis) = (TestServer::start(), Redis::start());
    let (mut ours, mut theirs) = (RawResp::connect(server.address), redis.connect());
    let first = number("BOLTKV_SEED").unwrap_or(1);
    let scripts = number("BOLTKV_RESP_SCRIPTS").unwrap_or(SCRIPTS);
    println!("{scripts} scripts from BOLTKV_SEED={first} on");
    for seed in first..first + scripts {
        compare(seed, &mut ours, &mut theirs);
    }
}
