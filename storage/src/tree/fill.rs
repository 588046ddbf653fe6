//! How full pages are left.

/// How full a page is left when a node is split at commit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Fill {
    /// A node that only grew at its end is split full, any other into as few pages as leave each about a fifth of its
    /// room, equally full. A bucket takes half to two thirds of the space that bbolt gives it. A value of four pages or
    /// more has pages of its own, so that it is not copied when a neighbour changes. Free pages are taken in rounds
    /// through the file; what every commit writes again lies at its end.
    #[default]
    Auto,
    /// bbolt's rule: pages are filled up to this part of their size (0.1 to 1.0; what lies outside
    /// is moved to the nearer end; bbolt's default is 0.5). A commit with such a bucket takes the lowest free pages, as
    /// in bbolt.
    Percent(f64),
}

impl Fill {
    /// Bytes up to which a page is filled.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a part of a page size, which is at most 2^24"
    )]
    pub(crate) fn threshold(self, page_size: usize) -> usize {
        let part = match self {
            Self::Auto => 0.5,
            Self::Percent(part) if part.is_nan() => 0.5,
            Self::Percent(part) => part.clamp(0.1, 1.0),
        };
        (page_size as f64 * part) as usize
    }
}
