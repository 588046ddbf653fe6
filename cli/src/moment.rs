//! Moments of time, as people write them and as the journal has them: milliseconds since 1970.

use jiff::Timestamp;

/// As people write it, in UTC; of one that no calendar has, its milliseconds. A journal's first segment has none: it has the
/// time of the last record before it.
pub(crate) fn shown(time_ms: u64) -> String {
    if time_ms == 0 {
        return "-".into();
    }
    let moment = i64::try_from(time_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(|| format!("{time_ms} ms"), |moment| format!("{moment:.3}"))
}

/// Reads a moment such as `2026-11-22T14:03:00Z` or `2026-11-22 15:03:00.5+01:00`: without an offset it could be any of many.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let moment: Timestamp = text.parse().map_err(|error: jiff::Error| error.to_string())?;
    u64::try_from(moment.as_millisecond()).map_err(|_| "it is before 1970".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{parse, shown};

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
}
