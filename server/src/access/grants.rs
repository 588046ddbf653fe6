//! Tokens and what they allow.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use boltkv_protocol::{ErrorCode, ErrorReply, Path, PathError, Token};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use tokio_util::sync::CancellationToken;

/// A token that lets clients in, and what its holders may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// What the holder is called in messages and logs.
    pub name: String,
    /// What shows that somebody is the holder.
    pub proof: Proof,
    /// What the holder may do; nothing where there is none, but to connect.
    pub rights: Vec<Right>,
    /// From when on it is not a token any more.
    pub expires: Option<SystemTime>,
}

/// What shows that somebody is the holder of a [`Grant`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Proof {
    /// A token that has this SHA-256. The token itself is known to its holder only.
    Token([u8; 32]),
    /// A certificate for this name, from one of those that clients' certificates have to be from: a name of the DNS in small
    /// letters, or a URI, as the certificate's alternative names have it.
    Certificate(String),
}

/// What the holder of a token may do in a bucket and in all within it.
///
/// As text: the level, and after a colon the bucket's path; without one, the root, which is everything.
/// ```
/// use boltkv_server::{Level, Right};
/// let right: Right = "read:users/eu".parse()?;
/// assert_eq!((right.level, right.path.to_string()), (Level::Read, "users/eu".to_owned()));
/// assert_eq!("admin".parse::<Right>()?.to_string(), "admin:/");
/// # Ok::<(), boltkv_server::ParseRightError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// How much.
    pub level: Level,
    /// The bucket; the root is everything.
    pub path: Path,
}

/// How much somebody may do. Each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Read, list, count, watch.
    Read,
    /// Put and delete; create, delete, move and number buckets.
    Write,
    /// What concerns the server as a whole, where the path is the root.
    Admin,
}

/// Why a text is no [`Right`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseRightError {
    /// It begins with none of the levels.
    #[error("a right begins with read, write or admin, and a bucket follows after a colon, as in read:users/eu")]
    Level,
    /// Nothing follows the colon: a variable that is empty must not grant everything.
    #[error("no bucket follows the colon; everything is read, write or admin alone")]
    Nothing,
    /// What follows is no path of a bucket.
    #[error("{0}")]
    Path(#[from] PathError),
}

impl Level {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

impl FromStr for Right {
    type Err = ParseRightError;

    fn from_str(text: &str) -> Result<Self, ParseRightError> {
        let (level, path) = text.split_once(':').unwrap_or((text, "/"));
        let level = Level::ALL.into_iter().find(|known| known.name() == level).ok_or(ParseRightError::Level)?;
        if path.is_empty() {
            return Err(ParseRightError::Nothing);
        }
        Ok(Self { level, path: path.parse()? })
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.level.name(), self.path)
    }
}

impl Grant {
    /// What of a token is kept.
    #[must_use]
    pub fn digest(token: &[u8]) -> [u8; 32] {
        Sha256::digest(token).into()
    }
}

/// A grant that is in force, and who holds it.
#[derive(Debug)]
pub(crate) struct Granted {
    grant: Grant,
    holders: Mutex<Holders>,
}

#[derive(Debug, Default)]
struct Holders {
    revoked: bool,
    /// What ends their connections.
    ends: HashMap<u64, CancellationToken>,
    next: u64,
}

/// A grant that a connection holds until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    granted: Arc<Granted>,
    number: u64,
}

impl Granted {
    pub(super) fn new(grant: Grant) -> Arc<Self> {
        Arc::new(Self { grant, holders: Mutex::default() })
    }

    pub(super) fn is(&self, grant: &Grant) -> bool {
        self.grant == *grant
    }

    pub(super) fn name(&self) -> &str {
        &self.grant.name
    }

    /// The one whose token this is. It takes as long whatever the token is: all are looked at, each wholly.
    pub(super) fn find(all: &[Arc<Self>], token: &Token) -> Option<Arc<Self>> {
        let digest = Grant::digest(token.secret());
        let mut found = u32::MAX;
        for (at, granted) in (0_u32..).zip(all) {
            let Proof::Token(sha256) = &granted.grant.proof else { continue };
            let is_it: Choice = sha256.ct_eq(&digest);
            found.conditional_assign(&at, is_it);
        }
        all.get(found as usize).map(Arc::clone)
    }

    /// The first one whose holder has a certificate for one of these names.
    pub(super) fn find_named(all: &[Arc<Self>], names: &[String]) -> Option<Arc<Self>> {
        let is_it =
            |granted: &&Arc<Self>| matches!(&granted.grant.proof, Proof::Certificate(name) if names.contains(name));
        all.iter().find(is_it).map(Arc::clone)
    }

    pub(super) fn has_expired(&self, now: SystemTime) -> bool {
        self.grant.expires.is_some_and(|at| at <= now)
    }

    /// It is in force no more; whoever holds it loses his connection.
    pub(super) fn revoke(&self) {
        let mut holders = self.lock();
        holders.revoked = true;
        for (_, end) in holders.ends.drain() {
            end.cancel();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Holders> {
        // Nothing that holds it can panic half way.
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Held by a connection that `end` ends when the token is revoked; at once, if it was meanwhile.
    pub(super) fn new(granted: Arc<Granted>, end: CancellationToken) -> Arc<Self> {
        let mut holders = granted.lock();
        let number = holders.next;
        holders.next += 1;
        if holders.revoked {
            end.cancel();
        } else {
            holders.ends.insert(number, end);
        }
        drop(holders);
        Arc::new(Self { granted, number })
    }

    /// Whether a right of it covers this bucket.
    pub(super) fn check(&self, level: Level, path: &Path) -> Result<(), ErrorReply> {
        let Grant { rights, name, .. } = &self.granted.grant;
        if rights.iter().any(|right| right.level >= level && path.is_within(&right.path)) {
            return Ok(());
        }
        let message = format!("the token {name:?} lacks the right {}:{}", level.name(), excerpt(path));
        Err(ErrorReply::new(ErrorCode::Forbidden, message))
    }

    pub(super) fn expires(&self) -> Option<SystemTime> {
        self.granted.grant.expires
    }

    pub(super) fn is_revoked(&self) -> bool {
        self.granted.lock().revoked
    }

    /// What its holder is called.
    pub(crate) fn name(&self) -> &str {
        self.granted.name()
    }
}

/// A path for a message: cut where it is long, and not gone through beyond that. It may be as long as a frame, and written out
/// four times that.
fn excerpt(path: &Path) -> String {
    let mut excerpt = Excerpt(String::new());
    if write!(excerpt, "{path}").is_err() {
        excerpt.0.push('…');
    }
    excerpt.0
}

/// Takes text until it is long.
struct Excerpt(String);

impl fmt::Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const MOST: usize = 256;
        if self.0.len() + text.len() > MOST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.granted.lock().ends.remove(&self.number);
    }
}
