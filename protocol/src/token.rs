//! What a client says to be let in.

use std::fmt;

use bytes::Bytes;

/// A token as a client sends it. Whoever has it is let in, so nothing shows it: `Debug` says only whether there is one.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Token(Bytes);

impl Token {
    /// No token.
    pub const NONE: Self = Self(Bytes::new());

    /// Whether there is none.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// Its bytes, for whoever sends it or looks it up.
    #[must_use]
    pub fn secret(&self) -> &[u8] {
        &self.0
    }
}

impl<T: Into<Bytes>> From<T> for Token {
    fn from(secret: T) -> Self {
        Self(secret.into())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_none() { "Token(none)" } else { "Token(not shown)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Hello;

    #[test]
    fn no_debug_output_shows_it() {
        let hello = Hello { token: "open sesame".into(), ..Hello::new("billing") };
        let shown = format!("{hello:?}");
        assert!(shown.contains("billing") && shown.contains("not shown") && !shown.contains("sesame"), "{shown}");
        assert!(format!("{:?}", Token::NONE).contains("none"));
    }
}
