//! What every floor uses: errors.

mod error;

pub(crate) use error::Excerpt;
pub use error::{BucketPath, Error, Result};
