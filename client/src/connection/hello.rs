//! The opening of a connection: a stream of bytes, then HELLO. Nothing else is sent before the server has agreed.

use std::io;
use std::sync::Arc;

use boltkv_protocol::{
    Expect, Frame, FrameCodec, FrameError, Hello, HelloReply, Reply, Request, SessionRequest, VERSION,
};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::codec::Decoder;

use super::stream::{self, Input, NoStream, Stream};
use crate::Error;
use crate::builder::Config;

/// The id of HELLO; ids of requests go on from it.
pub(super) const HELLO_ID: u32 = 1;
/// How much is shown of an answer that is none of ours.
const MOST_SHOWN: usize = 40;

/// A stream whose HELLO is done, the codec for what follows, what has been read beyond HELLO, and what the server said.
type Opened = (Stream, FrameCodec, BytesMut, HelloReply);

/// Connects and says HELLO, within the time for connecting.
pub(super) async fn connect(config: &Config) -> Result<Opened, Error> {
    // Which of the two is under way, for whoever finds that it takes too long.
    let mut reached = false;
    let opening = async {
        let stream = stream::connect(&config.addr, config.tls.as_ref()).await.map_err(|no_stream| match no_stream {
            NoStream::Address(error) => no_address(config, error),
            NoStream::Connect(error) => unreachable(config, error),
            NoStream::Encrypt(error) => Error::Encryption { addr: config.addr.clone(), source: Arc::new(error) },
        })?;
        reached = true;
        handshake(config, stream).await
    };
    let opened = timeout(config.connect_timeout, opening).await;
    opened.unwrap_or_else(|_| {
        let late = io::Error::new(io::ErrorKind::TimedOut, format!("nothing within {:?}", config.connect_timeout));
        Err(if reached { no_answer(config, late) } else { unreachable(config, late) })
    })
}

async fn handshake(config: &Config, mut stream: Stream) -> Result<Opened, Error> {
    let mut out = BytesMut::new();
    let hello = Hello { token: config.token.clone(), ..Hello::new(config.name.clone()) };
    Request::from(SessionRequest::Hello(hello)).encode(HELLO_ID, &mut out)?;
    let sent = async {
        stream.output.write_all(&out).await?;
        stream.output.flush().await
    };
    sent.await.map_err(|error| no_answer(config, error))?;

    let (mut codec, mut buffer) = (FrameCodec::default(), BytesMut::with_capacity(1024));
    let frame = match first_frame(&mut stream.input, &mut codec, &mut buffer).await {
        Ok(frame) => frame,
        Err(FrameError::Io(error)) => return Err(no_answer(config, error)),
        // No frame of ours starts with a letter: a length is far below that.
        Err(_) if buffer.first().is_some_and(u8::is_ascii_graphic) => return Err(not_boltkv(config, &buffer)),
        Err(error) => return Err(Error::Protocol(error.to_string().into())),
    };
    let hello = agreed(frame)?;
    codec.set_max_frame(usize::try_from(hello.max_frame).unwrap_or(usize::MAX));
    Ok((stream, codec, buffer, hello))
}

async fn first_frame(stream: &mut Input, codec: &mut FrameCodec, buffer: &mut BytesMut) -> Result<Frame, FrameError> {
    loop {
        if let Some(frame) = codec.decode(buffer)? {
            return Ok(frame);
        }
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection").into());
        }
    }
}

/// What the server agrees to, or why it does not.
fn agreed(frame: Frame) -> Result<HelloReply, Error> {
    let id = frame.id;
    let broken = |what: &'static str| Error::Protocol(what.into());
    match Reply::decode(Expect::Hello, frame) {
        // A refusal may concern the connection as a whole.
        Ok(Reply::Error(error)) => Err(Error::Server(error)),
        Ok(Reply::Hello(_)) if id != HELLO_ID => Err(broken("HELLO was answered under another id")),
        Ok(Reply::Hello(hello)) if hello.version != VERSION => Err(broken("a version was chosen that was not offered")),
        Ok(Reply::Hello(hello)) if hello.max_in_flight == 0 => Err(broken("no request may be in flight")),
        Ok(Reply::Hello(hello)) => Ok(hello),
        Ok(_) => Err(broken("HELLO has another reply")),
        Err(error) => Err(Error::Protocol(error.to_string().into())),
    }
}

/// There is nobody.
fn unreachable(config: &Config, source: io::Error) -> Error {
    Error::Connect { addr: config.addr.clone(), source: Arc::new(source) }
}

/// There is nobody of that name.
fn no_address(config: &Config, source: io::Error) -> Error {
    Error::Address { addr: config.addr.clone(), source: Arc::new(source) }
}

/// There is somebody, who does not speak; or who does not trust our certificate, or asks for one, and says so only now (as
/// TLS 1.3 has it).
fn no_answer(config: &Config, source: io::Error) -> Error {
    let is_encryptions = source.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>);
    if is_encryptions {
        return Error::Encryption { addr: config.addr.clone(), source: Arc::new(source) };
    }
    Error::NoAnswer { addr: config.addr.clone(), source: Arc::new(source) }
}

/// There is somebody, who speaks otherwise.
fn not_boltkv(config: &Config, answer: &[u8]) -> Error {
    let said = if answer.starts_with(b"HTTP/") {
        "it speaks HTTP".to_owned()
    } else {
        let line = answer.split(|byte| b"\r\n".contains(byte)).next().unwrap_or_default();
        format!("it answers \"{}\"", line[..line.len().min(MOST_SHOWN)].escape_ascii())
    };
    Error::NotBoltkv { addr: config.addr.clone(), said }
}
