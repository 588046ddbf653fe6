//! Which dialect a connection speaks: its first byte says, where its port does not. What is not spoken here is refused in its own words.

use std::io;

use boltkv_protocol::resp::write_error_line;
use boltkv_protocol::text::write_error;
use boltkv_protocol::{Dialect, ErrorCode, ErrorReply, Reply};
use bytes::{BufMut, Bytes};
use tokio::time::Instant;
use tracing::debug;

use crate::commands::Failure;
use crate::session::{BinaryCodec, Connection, Event, RespCodec, Session, Socket, TextCodec};
use crate::silent::Silent;
use crate::sockets::Speaks;

/// A TLS alert, fatal: `handshake_failure` (RFC 8446, section 6), in the record layer every version reads.
const TLS_REFUSAL: &[u8] = &[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28];

/// Serves a connection until it ends. It is `silent` until its first byte, or until it has
/// said who it is.
///
/// # Errors
/// The socket's.
pub(crate) async fn serve<S: Socket>(mut conn: Box<Connection<S>>, silent: Silent) -> io::Result<()> {
    let timeouts = &conn.shared.timeouts;
    let deadline = conn.opened + timeouts.first_byte.min(timeouts.idle);
    conn.stranger = Some(silent);
    let mut dialect = first_byte(&mut conn, deadline).await?;
    if dialect == Some(Dialect::Tls)
        && let Some(config) = conn.shared.encryption.now()
    {
        let deadline = conn.opened + conn.shared.timeouts.hello;
        // On the heap: most connections never need the room that a handshake takes.
        conn = Box::pin(conn.encrypted(config, deadline)).await?;
        let deadline = Instant::now() + conn.shared.timeouts.hello;
        dialect = first_byte(&mut conn, deadline).await?;
    } else if must_encrypt(&conn) {
        debug!("not encrypted");
        let message = "this server takes only what is encrypted (TLS) from beyond its own machine";
        return tell(conn, dialect, &ErrorReply::new(ErrorCode::Unauthenticated, message)).await;
    }
    // No line of Redis' begins so, and who waits for a frame would wait in vain. It may still be a client of Redis that is out
    // of step: to him it is a protocol error.
    if conn.speaks == Speaks::Redis && dialect == Some(Dialect::Binary) {
        let message =
            "Protocol error: this port is for clients of Redis; boltkv's own commands and clients need another one";
        return tell(conn, dialect, &ErrorReply::new(ErrorCode::Unsupported, message)).await;
    }
    if conn.shared.access.asks() {
        conn.wire.set_strangers(true);
    } else {
        conn.stranger = None;
    }
    debug!(?dialect, "dialect");
    match dialect {
        // On the heap: a connection that has not spoken does not need a session.
        Some(Dialect::Binary) => {
            let codec = BinaryCodec::new(&conn.shared);
            return Box::new(Session::new(conn, codec)).serve().await;
        }
        Some(Dialect::Text) => {
            let codec = TextCodec::new(conn.opened, &conn.shared);
            return Box::new(Session::new(conn, codec)).serve().await;
        }
        Some(Dialect::Resp) => {
            let codec = RespCodec::new(&conn.shared, conn.listed.client());
            return Box::new(Session::new(conn, codec)).serve().await;
        }
        Some(Dialect::Tls) => conn.wire.output.put_slice(TLS_REFUSAL),
        None => {}
    }
    conn.close().await;
    Ok(())
}

/// The dialect of a connection that begins with this byte.
const fn spoken(speaks: Speaks, first_byte: u8) -> Dialect {
    match (speaks, Dialect::of(first_byte)) {
        (Speaks::Redis, Dialect::Text) => Dialect::Resp,
        (_, dialect) => dialect,
    }
}

/// Whether a connection that is not encrypted is not served: where others can be, and it comes from elsewhere.
fn must_encrypt<S: Socket>(conn: &Connection<S>) -> bool {
    conn.shared.encryption.is_on() && !conn.peer.is_here()
}

/// Tells a connection why it is not served, in its dialect, if that is known by `deadline`; then closes it.
///
/// # Errors
/// The socket's.
pub(crate) async fn refuse<S: Socket>(
    mut conn: Box<Connection<S>>,
    error: ErrorReply,
    deadline: Instant,
) -> io::Result<()> {
    let dialect = first_byte(&mut conn, deadline).await?;
    tell(conn, dialect, &error).await
}

/// Says it in the connection's dialect, and closes it.
async fn tell<S: Socket>(mut conn: Box<Connection<S>>, dialect: Option<Dialect>, error: &ErrorReply) -> io::Result<()> {
    let out = &mut conn.wire.output;
    match dialect {
        // A message of a line always fits a frame.
        Some(Dialect::Binary) => drop(Reply::<Bytes>::Error(error.clone()).encode(0, out)),
        // Clients know a Redis without a free place by this line, and try again later.
        Some(Dialect::Resp) if error.code == ErrorCode::Overloaded => {
            write_error_line("ERR max number of clients reached", out);
        }
        Some(Dialect::Resp) => write_error_line(&Failure::from(error.clone()).line, out),
        Some(Dialect::Tls) => out.put_slice(TLS_REFUSAL),
        Some(Dialect::Text) | None => write_error(error, out),
    }
    conn.close().await;
    Ok(())
}

/// Waits for the first byte, which stays in the input. `None` if none comes.
async fn first_byte<S: Socket>(conn: &mut Connection<S>, deadline: Instant) -> io::Result<Option<Dialect>> {
    match conn.event(true, Some(deadline)).await? {
        Event::Progress => Ok(conn.wire.input.bytes.first().map(|byte| spoken(conn.speaks, *byte))),
        // Nothing was said that could be answered, and another one may wait for the place.
        Event::Stop => Err(io::ErrorKind::ConnectionAborted.into()),
        Event::Answered(_) | Event::Deadline => Ok(None),
    }
}
