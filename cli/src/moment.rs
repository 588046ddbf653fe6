//! Moments of time, as people write them and as the journal has them: milliseconds since 1970.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};

/// As people write it, in UTC; of one that no calendar has, its milliseconds. A journal's first segment has none: it has the
/// time of the last record before it.
pub(crate) fn shown(time_ms: u64) -> String {
    if time_ms == 0 {
        return "-".into();
    }
    let moment = i64::try_from(time_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(|| format!("{time_ms} ms"), |moment| format!("{moment:.3}"))
}

/// Since 1970.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads a moment such as `2026-11-22T14:03:00Z` or `2026-11-22 15:03:00.5+01:00`: without an offset it could be any of many.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let moment: Timestamp = text.parse().map_err(|_| lacking(text))?;
    u64::try_from(moment.as_millisecond()).map_err(|_| "it is before 1970".to_owned())
}

/// What keeps a text from being a moment, with the whole form of what was meant.
fn lacking(text: &str) -> String {
    match text.parse::<DateTime>() {
        Ok(day) if day.time() == Time::midnight() && !text.contains(':') => {
            format!("it lacks the time of day and its offset: {day}Z is when it begins in UTC")
        }
        Ok(time) => format!("it lacks its offset: {time}Z is in UTC, and {time}+02:00 two hours earlier"),
        Err(_) => "a time is such as 2026-11-22T14:03:00Z".to_owned(),
    }
}

/// As [`parse`], also a day, which begins in UTC, and seconds since 1970.
pub(crate) fn point(text: &str) -> Result<u64, String> {
    /// What has more is a time in milliseconds.
    const MOST_DIGITS: usize = 11;
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let found = if is_number {
        text.parse().ok().filter(|_| text.len() <= MOST_DIGITS).and_then(|seconds: u64| seconds.checked_mul(1_000))
    } else {
        parse(text).or_else(|_| parse(&format!("{text}T00:00:00Z"))).ok()
    };
    found.ok_or_else(|| {
        "not a time such as 2030-01-01T00:00:00Z, 2030-01-01 (which begins in UTC), or 1893456000, in seconds since 1970"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{parse, point, shown};

    #[test]
    fn a_point_in_time_may_be_a_day_or_seconds_since_1970() {
        for text in ["2030-01-01T00:00:00Z", "2030-01-01", "1893456000", "2030-01-01T01:00:00+01:00"] {
            assert_eq!(point(text), Ok(1_893_456_000_000), "{text}");
        }
        for text in ["", "soon", "1893456000000", "-1", "1.5", "2030-13-01", "2030-01-01T00:00:00", "1969-12-31"] {
            assert!(point(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_is_its_day_and_its_time() {
        assert_eq!(shown(0), "-");
        assert_eq!(shown(1), "1970-01-01T00:00:00.001Z");
        assert_eq!(shown(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(shown(1_767_225_599_999), "2025-12-31T23:59:59.999Z");
        assert_eq!(shown(u64::MAX), format!("{} ms", u64::MAX));
    }

    #[test]
    fn what_is_shown_is_read_and_what_could_be_any_of_many_is_not() {
        for time_ms in [1, 951_782_400_001, 1_767_225_599_999] {
            assert_eq!(parse(&shown(time_ms)), Ok(time_ms));
        }
        assert_eq!(parse("2026-11-22T14:03:00Z"), parse("2026-11-22 15:03:00.000+01:00"));
        for text in
            ["", "2026-11-22", "2026-11-22T14:03:00", "1969-12-31T23:59:59Z", "yesterday", "2026-13-01T00:00:00Z"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_lacks_something_is_told_in_the_whole_form_and_what_is_no_time_in_a_few_words() {
        let why = |text| parse(text).unwrap_err();
        assert!(why("2026-11-30").contains("the time of day and its offset: 2026-11-30T00:00:00Z "));
        for text in ["2026-11-30 10:00", "2026-11-30T10"] {
            assert!(why(text).contains("lacks its offset: 2026-11-30T10:00:00Z "), "{text}");
        }
        assert_eq!(why("yesterday"), "a time is such as 2026-11-22T14:03:00Z");
    }
}
