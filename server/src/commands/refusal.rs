//! What the engine's errors are called on the wire.

use boltkv_protocol::{ErrorCode, ErrorReply};
use boltkv_storage::Error;
use tracing::warn;

/// The reply to a request that the engine refused or failed at.
#[expect(clippy::needless_pass_by_value, reason = "stands where `map_err` hands over the error")]
pub(crate) fn refusal(error: Error) -> ErrorReply {
    let code = match &error {
        Error::BucketNotFound { .. } => ErrorCode::BucketNotFound,
        Error::BucketExists { .. } | Error::SameBuckets { .. } => ErrorCode::BucketExists,
        Error::BucketNameRequired => ErrorCode::BucketNameRequired,
        Error::KeyRequired => ErrorCode::KeyRequired,
        Error::KeyTooLarge { .. } => ErrorCode::KeyTooLarge,
        Error::ValueTooLarge { .. } => ErrorCode::ValueTooLarge,
        Error::SequenceExhausted => ErrorCode::NumberOutOfRange,
        Error::IncompatibleValue { .. } | Error::MovedIntoItself { .. } => ErrorCode::IncompatibleValue,
        Error::ReadOnly => ErrorCode::ReadOnly,
        Error::NoSpace { .. } | Error::MaxSizeReached { .. } => ErrorCode::NoSpace,
        // Failed disks, poisoned databases, damaged pages, and whatever the engine will learn to say: the caller cannot mend it.
        _ => ErrorCode::StorageFailed,
    };
    if let Error::Corrupt { .. } = &error {
        warn!(%error, "a request met a damaged page");
    }
    ErrorReply::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io;

    use boltkv_storage::BucketPath;

    use super::*;

    // Promises: ops-failed-disk.
    #[test]
    fn a_full_disk_is_told_from_a_failed_one() {
        let code = |error| refusal(error).code;
        assert_eq!(code(Error::NoSpace { source: io::ErrorKind::StorageFull.into() }), ErrorCode::NoSpace);
        assert_eq!(code(Error::MaxSizeReached { max: None }), ErrorCode::NoSpace);
        assert_eq!(code(Error::Poisoned { reason: "sync".into() }), ErrorCode::StorageFailed);
        let failed = Error::Io { op: "sync", path: None, source: io::ErrorKind::Other.into() };
        assert_eq!(code(failed), ErrorCode::StorageFailed);
        assert_eq!(
            code(Error::Corrupt { page: 7, bucket: BucketPath::default(), what: "cut".into() }),
            ErrorCode::StorageFailed
        );
    }

    #[test]
    fn what_the_data_says_no_to_has_a_code_of_its_own_and_a_message_that_names_the_limit() {
        let reply = refusal(Error::KeyTooLarge { len: 40_000, max: 32_768 });
        assert_eq!(reply.code, ErrorCode::KeyTooLarge);
        assert!(reply.message.contains("32768"), "{}", reply.message);
        let code = |error| refusal(error).code;
        assert_eq!(
            code(Error::BucketNotFound { name: b"a".to_vec(), within: BucketPath::default() }),
            ErrorCode::BucketNotFound
        );
        assert_eq!(
            code(Error::BucketExists { name: b"a".to_vec(), within: BucketPath::default() }),
            ErrorCode::BucketExists
        );
        assert_eq!(code(Error::BucketNameRequired), ErrorCode::BucketNameRequired);
        assert_eq!(code(Error::KeyRequired), ErrorCode::KeyRequired);
        assert_eq!(code(Error::ValueTooLarge { len: 3, max: 2 }), ErrorCode::ValueTooLarge);
        assert_eq!(
            code(Error::IncompatibleValue { key: b"a".to_vec(), within: BucketPath::default(), is_bucket: true }),
            ErrorCode::IncompatibleValue
        );
        assert_eq!(code(Error::ReadOnly), ErrorCode::ReadOnly);
    }
}
