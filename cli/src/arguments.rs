//! Arguments that several commands share, and how their text is read. Whatever comes from outside has bounds here, so that
//! nothing further in overflows.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use boltkv_server::DEFAULT_PORT;

/// The longest time that can be asked for. Clocks are read and this is added to them, which must not overflow.
pub(crate) const MOST_TIME: Duration = Duration::from_secs(365 * DAY);
/// The longest that a key is asked to stay; a moment may lie further ahead. The server has room for more.
const MOST_LIFE: Duration = Duration::from_secs(36_500 * DAY);
const DAY: u64 = 24 * 60 * 60;

/// A time such as `5`, `0.5`, `200ms`, `5s`, `2m` or `1h`; in seconds where it has no unit.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    time(text, "s", MOST_TIME)
}

/// As [`seconds`], for a key, which may stay for longer than anybody waits.
pub(crate) fn key_seconds(text: &str) -> Result<Duration, String> {
    time(text, "s", MOST_LIFE)
}

/// As [`seconds`], for what cannot be had in no time: an answer.
pub(crate) fn some_seconds(text: &str) -> Result<Duration, String> {
    of_some_length(seconds(text), "it must be longer than zero: no answer comes in no time")
}

/// As [`seconds`], for how long something is good.
pub(crate) fn lifetime(text: &str) -> Result<Duration, String> {
    of_some_length(seconds(text), NO_LIFETIME)
}

/// As [`key_seconds`], for a key that is put.
pub(crate) fn key_lifetime(text: &str) -> Result<Duration, String> {
    of_some_length(key_seconds(text), NO_LIFETIME)
}

const NO_LIFETIME: &str = "it must be longer than zero";

/// What is said of a time or a number that is negative, where nothing is the least.
pub(crate) const BELOW_ZERO: &str = "it must not be below zero";

fn of_some_length(time: Result<Duration, String>, why: &str) -> Result<Duration, String> {
    match time {
        Ok(Duration::ZERO) => Err(why.to_owned()),
        Err(other) if other == BELOW_ZERO => Err(why.to_owned()),
        time => time,
    }
}

/// As [`seconds`], but in milliseconds where it has no unit.
pub(crate) fn milliseconds(text: &str) -> Result<Duration, String> {
    time(text, "ms", MOST_TIME)
}

fn time(text: &str, usual_unit: &str, most: Duration) -> Result<Duration, String> {
    let (number, unit) = number_and_unit(text);
    let seconds = match if unit.is_empty() { usual_unit } else { unit } {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err("not a time such as 5s, 200ms or 2m: the units are ms, s, m, h and d".to_owned()),
    };
    let number: f64 = number.parse().map_err(|_| "not a time such as 5s, 200ms or 2m".to_owned())?;
    if number < 0.0 {
        return Err(BELOW_ZERO.to_owned());
    }
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|time| *time <= most)
        .ok_or_else(|| format!("more than {}d, which is the longest time that can be asked for", most.as_secs() / DAY))
}

/// A size in bytes, written such as `65536`, `64KiB` or `16MiB`.
///
/// `K`, `M`, `G` and `T` are powers of 1024, with or without `iB`; `kB`, `MB`, `GB` and `TB` are powers of 1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub(crate) u64);

/// The units of sizes, each larger than the one before it.
const UNITS: [(&str, &str, u32); 4] = [("KiB", "kB", 1), ("MiB", "MB", 2), ("GiB", "GB", 3), ("TiB", "TB", 4)];

impl Size {
    /// From a number of bytes in memory.
    pub(crate) const fn of(bytes: usize) -> Self {
        // All that this is built for has 64 bits or fewer.
        Self(bytes as u64)
    }
}

impl FromStr for Size {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (number, unit) = number_and_unit(text);
        let number: u64 = number.parse().map_err(|_| {
            let is_negative = number.parse().is_ok_and(|number: i64| number < 0);
            if is_negative { BELOW_ZERO } else { "not a size such as 65536, 64KiB or 16MiB" }
        })?;
        let factor = factor(unit).ok_or("the units of a size are B, KiB, MiB, GiB, TiB, and kB, MB, GB, TB")?;
        number.checked_mul(factor).map(Self).ok_or("more bytes than can be counted")
    }
}

/// A [`Size`] as the number of bytes that an option keeps.
pub(crate) fn bytes<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let Size(bytes) = text.parse()?;
    T::try_from(bytes).map_err(|_| format!("not below 2^{} bytes", 8 * size_of::<T>()))
}

/// How many bytes a unit is. Letter case does not matter.
fn factor(unit: &str) -> Option<u64> {
    if unit.is_empty() || unit.eq_ignore_ascii_case("B") {
        return Some(1);
    }
    UNITS.iter().find_map(|&(binary, decimal, power)| {
        if unit.eq_ignore_ascii_case(binary) || unit.eq_ignore_ascii_case(&binary[..1]) {
            Some(1024_u64.pow(power))
        } else {
            unit.eq_ignore_ascii_case(decimal).then(|| 1000_u64.pow(power))
        }
    })
}

/// In the largest unit in which it is a whole number.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |&&(_, _, power): &&(&str, &str, u32)| self.0 != 0 && self.0.is_multiple_of(1024_u64.pow(power));
        match UNITS.iter().rev().find(fits) {
            Some(&(unit, _, power)) => write!(f, "{}{unit}", self.0 / 1024_u64.pow(power)),
            None => write!(f, "{}", self.0),
        }
    }
}

/// What is a number at the start of `text`, and what follows it.
fn number_and_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number.trim_end(), unit)
}

/// A host and a port, with the usual port where `text` names none. Whether there is such a host, only using it tells.
pub(crate) fn address(text: &str) -> Result<String, &'static str> {
    address_with(text, DEFAULT_PORT)
}

/// What begins the name of a socket in the file system, where an address may stand.
pub(crate) const UNIX: &str = "unix:";

/// As [`address`], or a socket in the file system, as in `unix:/run/boltkv.sock`.
pub(crate) fn address_or_socket(text: &str) -> Result<String, &'static str> {
    if text.starts_with(REDIS) {
        return Err("a port for Redis' clients, which speaks nothing else: boltkv's own commands need another one");
    }
    match text.strip_prefix(UNIX) {
        Some("") => Err("no path behind unix:"),
        Some(_) => Ok(text.to_owned()),
        None => address(text),
    }
}

/// Before the address of a port that speaks the Redis dialect only.
pub(crate) const REDIS: &str = "redis://";

/// The port of Redis.
const REDIS_PORT: u16 = 6379;

/// As [`address_or_socket`], or a port for the Redis dialect, as in `redis://127.0.0.1:6379`.
pub(crate) fn place_to_listen(text: &str) -> Result<String, &'static str> {
    match text.strip_prefix(REDIS) {
        Some(rest) => Ok(format!("{REDIS}{}", address_with(rest.strip_suffix('/').unwrap_or(rest), REDIS_PORT)?)),
        None => address_or_socket(text),
    }
}

/// Whether what is said to a host and port stays on this machine.
pub(crate) fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// As [`address`], with another usual port.
pub(crate) fn address_with(text: &str, port: u16) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("not HOST or HOST:PORT");
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a port needs its host, as in 127.0.0.1:7878");
    }
    if text.contains("://") {
        return Err("an address is HOST:PORT, without http:// or the like before it");
    }
    // An IPv6 address has colons of its own: with a port it is written in brackets.
    if text.parse::<Ipv6Addr>().is_ok() {
        return Ok(format!("[{text}]:{port}"));
    }
    let Some((host, port)) = text.rsplit_once(':').filter(|_| !text.ends_with(']')) else {
        return Ok(format!("{text}:{port}"));
    };
    if host.is_empty() {
        return Err("no host before the port");
    }
    port.parse::<u16>().map(|_| text.to_owned()).map_err(|_| "the port is not a number from 0 to 65535")
}

/// What a parser says of a value; of a number in words that do not speak of digits.
pub(crate) fn why_no_value(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref().map(ParseIntError::kind) {
        Some(IntErrorKind::InvalidDigit | IntErrorKind::Empty) => "not a whole number".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_for_clients_of_redis_is_theirs_unless_another_is_named() {
        let place = |text| place_to_listen(text).unwrap();
        assert_eq!(place("redis://127.0.0.1"), "redis://127.0.0.1:6379");
        assert_eq!(
            (place("redis://[::1]:0/"), place("127.0.0.1")),
            ("redis://[::1]:0".into(), "127.0.0.1:7878".into())
        );
        assert!(
            ["redis://", "redis://:6379", "redis://6379", "redis://unix:a"]
                .map(place_to_listen)
                .iter()
                .all(Result::is_err)
        );
    }

    #[test]
    fn a_time_may_be_a_fraction_have_a_unit_and_be_nothing_absurd() {
        assert_eq!(seconds("5"), Ok(Duration::from_secs(5)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert_eq!(seconds("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(seconds("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(seconds("365d"), Ok(MOST_TIME));
        assert_eq!((key_seconds("36500d"), key_seconds("0")), (Ok(MOST_LIFE), Ok(Duration::ZERO)));
        assert!(key_lifetime("36501d").unwrap_err().contains("36500d") && key_lifetime("0").is_err());
        assert_eq!(milliseconds("100"), Ok(Duration::from_millis(100)));
        assert_eq!(milliseconds("2s"), Ok(Duration::from_secs(2)));
        for text in ["", "s", "soon", "-1", "NaN", "inf", "1e300", "1.8e19", "366d", "5 weeks", "5µs"] {
            assert!(seconds(text).is_err(), "{text}");
            assert!(milliseconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_for_an_answer_is_not_zero() {
        assert_eq!(some_seconds("1ms"), Ok(Duration::from_millis(1)));
        for text in ["0", "0ms", "0.0000000001", "soon"] {
            assert!(some_seconds(text).is_err(), "{text}");
        }
        assert!(seconds("-5s").is_err_and(|why| why == BELOW_ZERO));
        assert!(some_seconds("-5s").is_err_and(|why| why.contains("longer than zero")));
        assert!(["0s", "-1h"].iter().all(|time| lifetime(time).is_err_and(|why| why == NO_LIFETIME)));
    }

    #[test]
    fn a_size_has_a_unit_or_is_in_bytes() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65_536),
            ("12B", 12),
            ("64KiB", 65_536),
            ("64k", 65_536),
            ("16 MiB", 16 << 20),
            ("16M", 16 << 20),
            ("16mb", 16_000_000),
            ("2GiB", 2 << 30),
            ("1T", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        assert_eq!("-1KiB".parse::<Size>(), Err(BELOW_ZERO));
        for text in ["", "MiB", "1.5GiB", "-1", "1 PiB", "1e6", "20000000TiB", "99999999999999999999"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_is_kept_as_bytes_where_it_fits() {
        assert_eq!(bytes::<u32>("4KiB"), Ok(4096));
        assert_eq!(bytes::<u64>("4GiB"), Ok(4 << 30));
        assert!(bytes::<u32>("4GiB").is_err());
        assert!(bytes::<u32>("four").is_err());
    }

    #[test]
    fn a_size_is_shown_in_the_largest_unit_that_loses_nothing_and_reads_back() {
        for (bytes, shown) in [(0, "0"), (1000, "1000"), (65_536, "64KiB"), (16 << 20, "16MiB"), (3 << 40, "3TiB")] {
            assert_eq!(Size(bytes).to_string(), shown);
            assert_eq!(shown.parse(), Ok(Size(bytes)));
        }
    }

    #[test]
    fn loopback_is_this_machine_by_whatever_name() {
        assert!(
            ["localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"]
                .iter()
                .all(|a| is_loopback(a))
        );
        assert!(
            ["db:1", "localhost.example.org:1", "10.0.0.1:1", "[::2]:1", "0.0.0.0:1"].iter().all(|a| !is_loopback(a))
        );
    }

    #[test]
    fn an_address_without_a_port_has_the_usual_one() {
        for (text, address_of) in [
            ("localhost", "localhost:7878"),
            ("db.internal:7000", "db.internal:7000"),
            ("127.0.0.1", "127.0.0.1:7878"),
            ("::1", "[::1]:7878"),
            ("[::1]", "[::1]:7878"),
            ("[::1]:7000", "[::1]:7000"),
        ] {
            assert_eq!(address(text).as_deref(), Ok(address_of));
        }
        for text in ["", "7878", ":7878", "host:", "host:99999", "host:port", "http://host:1", "boltkv://host"] {
            assert!(address(text).is_err(), "{text}");
        }
    }
}
