//! What the server says when it cannot do what was asked: a code that programs act on, a message for people, and detail
//! bytes whose meaning belongs to the code.
//!
//! The numbers are the wire's and never change their meaning.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

macro_rules! error_codes {
    ($($variant:ident = $number:literal, $name:literal, $meaning:literal;)+) => {
        /// Why a request was refused or failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = $meaning] $variant,)+
            /// A code of a newer server that this version has no name for. Never one of the numbers above.
            Other(u8),
        }

        impl ErrorCode {
            /// Every code this version has a name for, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The code's number on the wire: never 0, which means success.
            #[must_use]
            pub const fn to_u8(self) -> u8 {
                match self {
                    $(Self::$variant => $number,)+
                    Self::Other(number) => number,
                }
            }

            /// The code with this number; `None` for 0, which means success.
            #[must_use]
            pub const fn from_u8(number: u8) -> Option<Self> {
                match number {
                    0 => None,
                    $($number => Some(Self::$variant),)+
                    other => Some(Self::Other(other)),
                }
            }

            /// The code's name as text lines and documentation write it, such as `KEY_NOT_FOUND`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                    Self::Other(_) => "OTHER",
                }
            }

            /// What the code means for the caller, in a sentence.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                    Self::Other(_) => "A code of a newer server that this version has no name for.",
                }
            }
        }
    };
}

error_codes! {
    Malformed = 1, "MALFORMED", "The request breaks the protocol's rules; mend it.";
    Unsupported = 2, "UNSUPPORTED", "The server does not know this operation or flag.";
    UnsupportedVersion = 3, "UNSUPPORTED_VERSION", "Client and server have no protocol version in common.";
    HelloRequired = 4, "HELLO_REQUIRED", "A binary connection starts with HELLO.";
    Unauthenticated = 5, "UNAUTHENTICATED", "The token is missing or wrong.";
    Forbidden = 6, "FORBIDDEN", "The token does not allow this.";
    KeyNotFound = 10, "KEY_NOT_FOUND", "There is no such key in the bucket.";
    BucketNotFound = 11, "BUCKET_NOT_FOUND", "There is no such bucket.";
    BucketExists = 12, "BUCKET_EXISTS", "The bucket is there already.";
    IncompatibleValue = 13, "INCOMPATIBLE_VALUE", "A bucket where a value is meant, a value where a bucket is meant, or one that is no number where one is meant.";
    KeyRequired = 14, "KEY_REQUIRED", "A key is at least one byte long.";
    KeyTooLarge = 15, "KEY_TOO_LARGE", "The key is longer than the engine takes.";
    ValueTooLarge = 16, "VALUE_TOO_LARGE", "The value is longer than the engine takes or a frame holds.";
    FrameTooLarge = 17, "FRAME_TOO_LARGE", "The frame is longer than the server takes.";
    BucketNameRequired = 18, "BUCKET_NAME_REQUIRED", "The root holds buckets only, and a bucket's name is at least one byte long.";
    TxnTooLarge = 19, "TXN_TOO_LARGE", "The transaction asks for more than the server does at once; make it smaller.";
    ConditionFailed = 20, "CONDITION_FAILED", "The condition does not hold; nothing was written. Read again, then retry.";
    SnapshotExpired = 21, "SNAPSHOT_EXPIRED", "The snapshot, or the stream that pinned it, was given up.";
    Cancelled = 22, "CANCELLED", "The stream was cancelled by the client.";
    NumberOutOfRange = 23, "NUMBER_OUT_OF_RANGE", "The number would not fit its 64 bits; nothing was written.";
    ReadOnly = 30, "READ_ONLY", "The server takes no writes; nothing was written.";
    Overloaded = 31, "OVERLOADED", "The server has too much to do; nothing was written. Try later.";
    ShuttingDown = 32, "SHUTTING_DOWN", "The server is stopping; nothing was written. Try later.";
    NoSpace = 33, "NO_SPACE", "The disk is full; nothing was written. Try later.";
    StorageFailed = 40, "STORAGE_FAILED", "The disk failed and this write's outcome is unknown; no more writes until the server is restarted.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(number) => write!(f, "OTHER_{number}"),
            known => f.write_str(known.name()),
        }
    }
}

/// An error as a reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ErrorReply {
    /// What programs act on.
    pub code: ErrorCode,
    /// What people read. Cut at 65,535 bytes on the wire.
    pub message: Cow<'static, str>,
    /// Meaning and layout belong to the code; often empty.
    pub detail: Bytes,
}

impl ErrorReply {
    /// An error without detail. Costs no allocation when the message is a literal.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), detail: Bytes::new() }
    }

    /// `VALUE_TOO_LARGE` for a value of `size` bytes that does not fit a frame of `max_frame`; the size is the detail.
    #[must_use]
    pub fn value_too_large(size: u64, max_frame: usize) -> Self {
        Self {
            code: ErrorCode::ValueTooLarge,
            message: format!("the value of {size} bytes does not fit a frame of {max_frame} bytes").into(),
            detail: Bytes::copy_from_slice(&size.to_be_bytes()),
        }
    }

    /// The size that a `VALUE_TOO_LARGE` carries in its detail; `None` where there is none.
    #[must_use]
    pub fn value_size(&self) -> Option<u64> {
        if self.code != ErrorCode::ValueTooLarge {
            return None;
        }
        self.detail.first_chunk().map(|size| u64::from_be_bytes(*size))
    }
}
