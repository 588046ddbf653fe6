//! Who may see the metrics: whoever the server lets in, where it asks. That it lives and whether it is ready, everybody may
//! know.

use std::io;
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use boltkv_protocol::{Dialect, Token};
use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::access::{Access, NotAdmitted};
use crate::handshakes::Rewound;
use crate::peer::Peer;
use crate::tls::{Encryption, Whose, client_names};

/// What a server asks of whoever connects.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) access: Arc<Access>,
    pub(crate) encryption: Arc<Encryption>,
}

/// Somebody who asks for a page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visitor {
    pub(super) peer: Peer,
    pub(super) encrypted: bool,
    /// The certificate says who it is.
    known: bool,
}

/// A connection, encrypted or not.
pub(super) trait Io: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

impl Gate {
    /// Encrypts a connection whose client begins so, where the server can.
    ///
    /// # Errors
    /// The socket's, or what is wrong with what the client sends.
    pub(super) async fn enter(&self, stream: TcpStream, peer: Peer) -> io::Result<(Box<dyn Io>, Visitor)> {
        if let Some(config) = self.encryption.now() {
            let mut first = [0];
            if stream.peek(&mut first).await? == 1 && Dialect::of(first[0]) == Dialect::Tls {
                let socket = Rewound::new(BytesMut::new(), stream);
                let (origin, end) = (peer.origin(), CancellationToken::new());
                let stream = self.encryption.accept(Whose::Admins, socket, config, origin, end).await?;
                let names = client_names(stream.get_ref().1.peer_certificates());
                // Nothing that lasts is done for him: whoever takes the token back has nothing to end.
                let known = self.access.recognize(&names, &CancellationToken::new()).is_some();
                return Ok((Box::new(stream), Visitor { peer, encrypted: true, known }));
            }
        }
        Ok((Box::new(stream), Visitor { peer, encrypted: false, known: false }))
    }

    /// Lets somebody in who shows what the server asks for.
    ///
    /// # Errors
    /// The refusal.
    pub(super) async fn admit(&self, visitor: Visitor, headers: &HeaderMap) -> Result<(), Response> {
        if self.encryption.is_on() && !visitor.encrypted && !visitor.peer.is_here() {
            let why = "from beyond its own machine the server tells this only over TLS\n";
            return Err((StatusCode::FORBIDDEN, why).into_response());
        }
        if visitor.known {
            return Ok(());
        }
        let shown = headers.get(AUTHORIZATION).map_or(Token::NONE, bearer);
        let Err(NotAdmitted { error, wait }) = self.access.admit(&shown, &visitor.peer, &CancellationToken::new())
        else {
            return Ok(());
        };
        sleep(wait).await;
        let asks = [(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))];
        Err((StatusCode::UNAUTHORIZED, asks, format!("{}\n", error.message)).into_response())
    }
}

/// The token of `Bearer TOKEN`; none where it says something else.
fn bearer(value: &HeaderValue) -> Token {
    let token = value.as_bytes().split_at_checked(7).filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    token.map_or(Token::NONE, |(_, token)| Bytes::copy_from_slice(token.trim_ascii()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_behind_the_word_bearer() {
        let secret = |text| bearer(&HeaderValue::from_static(text)).secret().to_vec();
        assert_eq!(secret("Bearer abc"), b"abc");
        assert_eq!(secret("bearer  abc "), b"abc");
        for other in ["", "Bearer", "Basic abc", "Bearerabc"] {
            assert_eq!(secret(other), b"", "{other}");
        }
    }
}
