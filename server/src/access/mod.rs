//! Who may do what: the tokens that let clients in, and what each of them allows.
//!
//! - `grants`: a token and its rights, as configured; and which of them are held by whom
//! - `needs`: the rights that each request needs
//! - `failures`: addresses from which wrong tokens came, and how long those wait for their answer
//!
//! Nothing here knows how a token comes or what a refusal looks like. That a request is looked at before it is done, the
//! session sees to, for all dialects in one place.

mod failures;
mod grants;
mod needs;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use boltkv_protocol::{ErrorCode, ErrorReply, Token};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

pub use grants::{Grant, Level, ParseRightError, Proof, Right};
pub(crate) use grants::{Granted, Held};
pub(crate) use needs::Needs;

use crate::peer::Peer;
use failures::Failures;

/// On whose behalf requests are done.
#[derive(Debug, Clone, Default)]
pub(crate) enum Standing {
    /// The server asks nobody who he is: whoever connects may do everything.
    #[default]
    Anyone,
    /// Nobody has said yet who this is.
    Stranger,
    /// The holder of a token.
    Holder(Arc<Held>),
}

/// The tokens of a server. Without any, everybody may do everything.
#[derive(Debug, Default)]
pub(crate) struct Access {
    grants: Option<RwLock<Vec<Arc<Granted>>>>,
    failures: Failures,
}

/// A way to change the tokens of a server that runs.
#[derive(Debug, Clone)]
pub struct AccessHandle(Arc<Access>);

impl AccessHandle {
    pub(crate) const fn new(access: Arc<Access>) -> Self {
        Self(access)
    }

    /// From now on these are the tokens. Connections that were let in by one that is not among them, or that allows something
    /// else now, are ended; all others go on. Answers how many tokens went, or were changed; `None`, and nothing is done,
    /// where the server was started without a list of tokens.
    #[must_use]
    pub fn replace(&self, grants: Vec<Grant>) -> Option<usize> {
        self.0.replace(grants)
    }
}

/// Somebody who was not let in, and how long the answer is to wait.
#[derive(Debug)]
pub(crate) struct NotAdmitted {
    pub(crate) error: ErrorReply,
    pub(crate) wait: Duration,
}

impl Access {
    /// Only whom one of these lets in; where there is no list, everybody.
    pub(crate) fn new(grants: Option<Vec<Grant>>) -> Self {
        let grants = grants.map(|grants| RwLock::new(grants.into_iter().map(Granted::new).collect()));
        Self { grants, failures: Failures::default() }
    }

    /// Whether clients have to say who they are.
    pub(crate) const fn asks(&self) -> bool {
        self.grants.is_some()
    }

    /// How many did not know a token.
    pub(crate) fn failed(&self) -> u64 {
        self.failures.count()
    }

    /// Who somebody is that has just connected.
    pub(crate) const fn newcomer(&self) -> Standing {
        if self.asks() { Standing::Stranger } else { Standing::Anyone }
    }

    /// Lets the holder of a token in, by a connection that `end` ends.
    pub(crate) fn admit(&self, token: &Token, peer: &Peer, end: &CancellationToken) -> Result<Standing, NotAdmitted> {
        let Some(grants) = &self.grants else { return Ok(Standing::Anyone) };
        let found = Granted::find(&grants.read().unwrap_or_else(PoisonError::into_inner), token);
        match found {
            Some(granted) if !granted.has_expired(today()) => Ok(Standing::Holder(Held::new(granted, end.clone()))),
            Some(granted) => {
                let error = format!("the token {:?} has expired", granted.name());
                Err(self.refuse(error, peer))
            }
            None if token.is_none() => Err(self.refuse("this server asks for a token".to_owned(), peer)),
            None => Err(self.refuse("the token is wrong".to_owned(), peer)),
        }
    }

    /// Who somebody is whose certificate has these names, on a connection that `end` ends; `None` where that says nothing.
    pub(crate) fn recognize(&self, names: &[String], end: &CancellationToken) -> Option<Standing> {
        let grants = self.grants.as_ref()?;
        let found = Granted::find_named(&grants.read().unwrap_or_else(PoisonError::into_inner), names)?;
        (!found.has_expired(today())).then(|| Standing::Holder(Held::new(found, end.clone())))
    }

    fn refuse(&self, message: String, peer: &Peer) -> NotAdmitted {
        let (times, wait) = self.failures.note(peer);
        // An address that goes on is told of once, so that it does not fill the log.
        if times == 1 {
            warn!(%peer, "not let in: {message}");
        } else {
            debug!(%peer, times, "not let in: {message}");
        }
        NotAdmitted { error: ErrorReply::new(ErrorCode::Unauthenticated, message), wait }
    }

    /// From now on these are the tokens. Whoever holds one that is not among them, or that allows something else now, loses
    /// his connection. Answers how many tokens went, or were changed; `None` where the server asks for no tokens: then it
    /// does not begin to.
    pub(crate) fn replace(&self, grants: Vec<Grant>) -> Option<usize> {
        let mut held = self.grants.as_ref()?.write().unwrap_or_else(PoisonError::into_inner);
        let mut old = std::mem::take(&mut *held);
        for grant in grants {
            let same = old.iter().position(|granted| granted.is(&grant));
            held.push(same.map_or_else(|| Granted::new(grant), |at| old.swap_remove(at)));
        }
        for granted in &old {
            granted.revoke();
        }
        Some(old.len())
    }
}

impl Standing {
    /// Whether somebody may do what needs this.
    pub(crate) fn may(&self, what: &impl Needs) -> Result<(), ErrorReply> {
        match self {
            Self::Anyone => Ok(()),
            Self::Stranger => Err(ErrorReply::new(ErrorCode::Unauthenticated, "say who you are first")),
            Self::Holder(held) => what.needs(&mut |level, path| held.check(level, path)),
        }
    }

    /// Whether it is known who he is.
    pub(crate) const fn is_holder(&self) -> bool {
        matches!(self, Self::Holder(_))
    }

    /// For how long he is let in.
    pub(crate) fn expires_in(&self) -> Option<Duration> {
        let Self::Holder(held) = self else { return None };
        held.expires().map(|at| at.duration_since(today()).unwrap_or_default())
    }

    /// Whether his token is not one any more.
    pub(crate) fn is_revoked(&self) -> bool {
        matches!(self, Self::Holder(held) if held.is_revoked())
    }
}

#[expect(clippy::disallowed_methods, reason = "tokens expire by the calendar")]
fn today() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use boltkv_protocol::{Path, ReadRequest};

    use super::*;

    fn grant(name: &str, token: &str, right: &str) -> Grant {
        Grant {
            name: name.into(),
            proof: Proof::Token(Grant::digest(token.as_bytes())),
            rights: vec![right.parse().unwrap()],
            expires: None,
        }
    }

    fn admit(access: &Access, token: &str) -> Result<Standing, NotAdmitted> {
        access.admit(&Token::from(token.to_owned()), &Peer::Unix(None), &CancellationToken::new())
    }

    fn get(path: &str) -> ReadRequest {
        ReadRequest::Get { path: path.parse().unwrap(), key: "k".into() }
    }

    #[test]
    fn a_token_lets_in_and_allows_what_it_says() {
        let access = Access::new(Some(vec![grant("a", "one", "read:users"), grant("b", "two", "write")]));
        let reader = admit(&access, "one").unwrap();
        assert!(reader.may(&get("users/eu")).is_ok());
        assert_eq!(reader.may(&get("other")).unwrap_err().code, ErrorCode::Forbidden);
        assert!(admit(&access, "two").unwrap().may(&get("other")).is_ok());
        for wrong in ["", "on", "onee", "three"] {
            assert_eq!(admit(&access, wrong).unwrap_err().error.code, ErrorCode::Unauthenticated, "{wrong}");
        }
        assert_eq!(access.failed(), 4);
        assert_eq!(access.newcomer().may(&get("users")).unwrap_err().code, ErrorCode::Unauthenticated);
        assert!(Access::new(None).newcomer().may(&get("users")).is_ok(), "nobody is asked");
        assert!(admit(&Access::new(Some(vec![])), "").is_err(), "a list of nobody lets nobody in");
    }

    #[test]
    fn a_certificate_lets_in_for_its_name_and_its_name_is_no_token() {
        let ada = Grant { proof: Proof::Certificate("ada.example".into()), ..grant("ada", "", "read:users") };
        let old =
            Grant { proof: Proof::Certificate("old".into()), expires: Some(SystemTime::UNIX_EPOCH), ..ada.clone() };
        let access = Access::new(Some(vec![old, grant("a", "one", "read"), ada]));
        let (end, names) =
            (CancellationToken::new(), |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let known = access.recognize(&names(&["other", "ada.example"]), &end).unwrap();
        assert!(known.may(&get("users/eu")).is_ok() && known.may(&get("other")).is_err());
        for others in [&[][..], &["old"], &["ada", "xada.example", "*.example", "a", "one", ""]] {
            assert!(access.recognize(&names(others), &end).is_none(), "{others:?}");
        }
        assert!(admit(&access, "ada.example").is_err() && admit(&access, "").is_err());
        access.replace(vec![]);
        assert!(end.is_cancelled() && known.is_revoked());
        assert!(Access::new(None).recognize(&names(&["ada.example"]), &end).is_none());
    }

    #[test]
    fn a_refusal_names_the_bucket_and_of_a_long_path_the_beginning() {
        let access = Access::new(Some(vec![grant("a", "one", "read:users")]));
        let reader = admit(&access, "one").unwrap();
        let refused = |path: &Path| reader.may(path).unwrap_err().message.to_string();
        assert_eq!(refused(&"a/b".parse().unwrap()), "the token \"a\" lacks the right read:a/b");
        for name in [vec![b'x'; 60_000], vec![0xff; 60_000]] {
            let message = refused(&Path::from_names(vec![name; 255]).unwrap());
            assert!(message.len() < 320 && message.ends_with('…'), "{}: {message}", message.len());
        }
    }

    #[test]
    fn an_expired_token_lets_nobody_in() {
        let then = today() - Duration::from_secs(1);
        let old = Grant { expires: Some(then), ..grant("a", "one", "read") };
        let error = admit(&Access::new(Some(vec![old])), "one").unwrap_err().error;
        assert!(error.message.contains("expired"), "{error}");
    }

    #[test]
    fn a_token_that_is_taken_away_or_changed_is_revoked_and_one_that_stays_is_not() {
        let [a, b, c] = [grant("a", "one", "read"), grant("b", "two", "read"), grant("c", "three", "read")];
        let access = Access::new(Some(vec![a.clone(), b.clone(), c]));
        let [one, two, three] = ["one", "two", "three"].map(|token| admit(&access, token).unwrap());
        let changed = Grant { rights: vec![Right { level: Level::Write, path: Path::ROOT }], ..b };
        assert_eq!(access.replace(vec![changed, a]), Some(2));
        assert_eq!([one, two, three].map(|standing| standing.is_revoked()), [false, true, true]);
        assert!(admit(&access, "two").is_ok() && admit(&access, "three").is_err());
        assert_eq!(Access::new(None).replace(vec![]), None);
    }

    #[test]
    fn whose_token_is_revoked_loses_his_connection_and_those_that_ended_are_forgotten() {
        let access = Access::new(Some(vec![grant("a", "one", "read")]));
        let (end, gone) = (CancellationToken::new(), CancellationToken::new());
        let token = Token::from("one");
        let standing = access.admit(&token, &Peer::Unix(None), &end).unwrap();
        drop(access.admit(&token, &Peer::Unix(None), &gone).unwrap());
        access.replace(vec![]);
        assert!(end.is_cancelled() && !gone.is_cancelled());
        assert!(standing.is_revoked());
    }
}
