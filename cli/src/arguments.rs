//! Arguments that several commands share, and how their text is read.

use std::time::Duration;

/// A time in seconds, such as `5` or `0.5`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_may_be_a_fraction_and_nothing_absurd() {
        assert_eq!(seconds("5"), Ok(Duration::from_secs(5)));
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        for text in ["", "soon", "-1", "NaN", "inf", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
