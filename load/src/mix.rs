//! What is asked, and how much of it: `get`, or `get:80+set:20`.

use std::fmt;
use std::str::FromStr;

use rand::{Rng, RngExt as _};

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// One value by its key.
    Get,
    /// A value put under a key.
    Set,
    /// A key removed.
    Delete,
    /// Entries in order from a key on, with their values.
    Scan,
}

impl Op {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Get, Self::Set, Self::Delete, Self::Scan];

    /// Its name, as it stands in a mix.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Delete => "delete",
            Self::Scan => "scan",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which requests are sent, each as often as its share says.
///
/// ```
/// let mix: boltkv_load::Mix = "get:80+set:20".parse()?;
/// assert_eq!(mix.to_string(), "get:80+set:20");
/// # Ok::<(), boltkv_load::MixError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    shares: [u32; 4],
    total: u32,
}

/// Why a text is no mix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MixError {
    /// A name that is no request's.
    #[error("\"{0}\" is no request: there are get, set, delete and scan, and mixes of them such as get:80+set:20")]
    Unknown(String),
    /// A share that is no number from 1 to 1,000,000.
    #[error("\"{0}\" is no share: a whole number from 1 to 1000000")]
    Share(String),
    /// The same request twice.
    #[error("{0} is named twice")]
    Twice(Op),
    /// A share, and nothing beside it.
    #[error("{0} has a share, and nothing beside it: a mix is such as get:80+set:20")]
    Alone(Op),
}

/// The largest share of one kind; four of them fit a `u32`.
const MOST_SHARE: u32 = 1_000_000;

impl Mix {
    /// Requests of one kind only.
    #[must_use]
    pub const fn only(op: Op) -> Self {
        let mut shares = [0; 4];
        // An index by an enum of four into an array of four.
        shares[op.index()] = 1;
        Self { shares, total: 1 }
    }

    /// Whether there are requests of this kind in it.
    #[must_use]
    pub const fn has(&self, op: Op) -> bool {
        self.shares[op.index()] > 0
    }

    /// A kind, drawn by the shares.
    pub(crate) fn pick(&self, random: &mut impl Rng) -> Op {
        let mut at = if self.total == 1 { 0 } else { random.random_range(0..self.total) };
        for op in Op::ALL {
            let share = self.shares[op.index()];
            if at < share {
                return op;
            }
            at -= share;
        }
        Op::Get
    }
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Self, MixError> {
        let mut shares = [0; 4];
        for part in text.split('+') {
            let (name, share) = part.split_once(':').map_or((part, None), |(name, share)| (name, Some(share)));
            let op = Op::ALL.into_iter().find(|op| op.name().eq_ignore_ascii_case(name.trim()));
            let op = op.ok_or_else(|| MixError::Unknown(name.to_owned()))?;
            let number = share.map_or(Ok(1), |share| {
                let number = share.trim().parse().ok().filter(|share| (1..=MOST_SHARE).contains(share));
                number.ok_or_else(|| MixError::Share(share.to_owned()))
            })?;
            if share.is_some() && !text.contains('+') {
                return Err(MixError::Alone(op));
            }
            if std::mem::replace(&mut shares[op.index()], number) != 0 {
                return Err(MixError::Twice(op));
            }
        }
        Ok(Self { shares, total: shares.iter().sum() })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Op::ALL.into_iter().filter(|op| self.has(*op));
        let text: Vec<_> = if named.clone().count() == 1 {
            named.map(|op| op.name().to_owned()).collect()
        } else {
            named.map(|op| format!("{op}:{}", self.shares[op.index()])).collect()
        };
        f.pad(&text.join("+"))
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::SmallRng;

    use super::*;

    #[test]
    fn a_mix_is_read_and_shown_the_same() {
        for text in ["get", "scan", "get:80+set:20", "get:1+set:1+delete:1+scan:1000000"] {
            assert_eq!(text.parse::<Mix>().map(|mix| mix.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("SET".parse(), Ok(Mix::only(Op::Set)));
        assert_eq!("get+set".parse::<Mix>(), "set:1 + get:1".parse());
    }

    #[test]
    fn what_is_no_mix_says_what_is_wrong_with_it() {
        assert_eq!("put".parse::<Mix>(), Err(MixError::Unknown("put".into())));
        assert_eq!("".parse::<Mix>(), Err(MixError::Unknown(String::new())));
        assert_eq!("get+".parse::<Mix>(), Err(MixError::Unknown(String::new())));
        for share in ["0", "-1", "half", "1000001", "99999999999"] {
            assert_eq!(format!("get:{share}").parse::<Mix>(), Err(MixError::Share(share.into())));
        }
        assert_eq!("get:1+set+get:2".parse::<Mix>(), Err(MixError::Twice(Op::Get)));
        assert_eq!("get:80".parse::<Mix>(), Err(MixError::Alone(Op::Get)));
    }

    #[test]
    fn kinds_are_drawn_by_their_shares() {
        let mix: Mix = "get:80+scan:20".parse().unwrap();
        let mut random = SmallRng::seed_from_u64(7);
        let mut drawn = [0; 4];
        (0..10_000).for_each(|_| drawn[mix.pick(&mut random).index()] += 1);
        assert!((7_800..8_200).contains(&drawn[0]), "{drawn:?}");
        assert_eq!((drawn[1], drawn[2], drawn[0] + drawn[3]), (0, 0, 10_000));
    }
}
