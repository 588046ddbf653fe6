//! Where a server is, and how a command talks to it.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use boltkv_client::{Client, Error, ErrorCode, Path, Token};
use boltkv_protocol::text;
use bytes::{Bytes, BytesMut};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::arguments::{address_or_socket, some_seconds};
use crate::failure::{Failure, Outcome};
use crate::remote_tls::TlsArgs;

/// The variable of the environment that says where the server is.
const ADDRESS: &str = "BOLTKV_ADDR";

/// The variable that is a token, and the one that names a file with one.
pub(crate) const TOKEN: &str = "BOLTKV_TOKEN";
pub(crate) const TOKEN_FILE: &str = "BOLTKV_TOKEN_FILE";

/// However long an answer may take, a server that is there takes a connection sooner.
const MOST_TO_CONNECT: Duration = Duration::from_secs(5);

/// The most that is read of a file with a token, in bytes.
const MOST_OF_TOKEN_FILE: u64 = 4 * 1024;

/// So many of the keys that are not there are named.
const MOST_NAMED: usize = 3;

/// The variable that says where the server is.
pub(crate) fn address_variable() -> Option<&'static str> {
    unless_empty(ADDRESS)
}

/// A variable that an option is taken from. `None` where it is there and empty, as scripts leave one that they do not set:
/// that says nothing.
pub(crate) fn unless_empty(name: &'static str) -> Option<&'static str> {
    let is_empty = env::var_os(name).is_some_and(|value| value.is_empty());
    (!is_empty).then_some(name)
}

/// The server that a command is for.
#[derive(Debug, Args)]
pub(crate) struct Remote {
    /// Where the server listens: HOST:PORT, HOST for port 7878, or unix:PATH
    #[arg(long, value_name = "ADDRESS", env = address_variable(), default_value = "127.0.0.1:7878", value_parser = address_or_socket)]
    addr: String,
    #[command(flatten)]
    token: TokenArgs,
    #[command(flatten)]
    tls: TlsArgs,
    /// How long to wait for an answer, such as 5s or 200ms; a number alone is seconds
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = some_seconds)]
    timeout: Duration,
}

/// What says who asks. It is no argument: those are seen by all who may list the processes of a machine.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// A file whose first line is the token that says who you are; `BOLTKV_TOKEN` has the token itself, or
    /// `BOLTKV_TOKEN_FILE` the file's name
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl TokenArgs {
    /// The token, or none.
    pub(crate) fn token(&self) -> Outcome<Token> {
        let named = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        if self.token_file.is_none()
            && let Some(token) = named(TOKEN)
        {
            return Ok(token.into_vec().into());
        }
        let file = self.token_file.clone().or_else(|| named(TOKEN_FILE).map(PathBuf::from));
        file.map_or(Ok(Token::NONE), |file| read_token(&file))
    }
}

impl Remote {
    /// Where the server is.
    pub(crate) fn addr(&self) -> &str {
        &self.addr
    }

    /// How long an answer is waited for.
    pub(crate) const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Connects, and lets `act` do what the command is for.
    pub(crate) fn run<T>(&self, act: impl AsyncFnOnce(Client) -> Outcome<T>) -> Outcome<T> {
        self.try_run(async |client| act(client?).await)
    }

    /// Connects, and lets `act` see what came of it.
    pub(crate) fn try_run<T>(&self, act: impl AsyncFnOnce(Result<Client, Error>) -> Outcome<T>) -> Outcome<T> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::not_done(format!("could not start: {error}")))?;
        let (token, tls) = (self.token.token()?, self.tls.tls()?);
        runtime.block_on(async {
            let mut connecting = Client::builder(&self.addr).name("boltkv").token(token).timeout(self.timeout);
            if let Some(tls) = tls {
                connecting = connecting.tls(tls);
            }
            act(connecting.connect_timeout(self.timeout.min(MOST_TO_CONNECT)).connect().await).await
        })
    }
}

/// The first line of a file, without blanks around it.
fn read_token(path: &FilePath) -> Outcome<Token> {
    let failed = |error| Failure::usage(format!("{}: could not read the token: {error}", path.display()));
    let mut text = Vec::new();
    File::open(path).and_then(|file| file.take(MOST_OF_TOKEN_FILE).read_to_end(&mut text)).map_err(failed)?;
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    if line.is_empty() {
        return Err(Failure::usage(format!("{}: its first line is no token", path.display())));
    }
    Ok(line.to_vec().into())
}

/// The bucket that a command is about.
#[derive(Debug, Args)]
pub(crate) struct InBucket {
    /// The bucket: names from the top down, separated by `/`; `\/`, `\\` and `\xNN` escape
    #[arg(id = "bucket", long, short, value_name = "PATH", default_value = "default", value_parser = path_parser())]
    pub(crate) path: Path,
}

impl InBucket {
    /// The path, for a command that is about an entry: at the top there are none.
    pub(crate) fn of_entries(&self) -> Outcome<Path> {
        if self.path.is_root() {
            let what = "there are only buckets at the top, /: name one of them (`boltkv bucket list` lists them)";
            return Err(Failure::usage(what));
        }
        Ok(self.path.clone())
    }

    /// Whether the server has said that the bucket is missing, and it is the one that is there when it is needed: it is
    /// made by the first `set`, and empty before.
    pub(crate) fn is_yet_to_be_made(&self, error: &Error) -> bool {
        error.code() == Some(ErrorCode::BucketNotFound) && self.path == text::default_bucket()
    }

    /// The server's answer, or `empty` where the bucket is yet to be made.
    pub(crate) fn or_empty<T>(&self, answer: Result<T, Error>, empty: T) -> Outcome<T> {
        match answer {
            Err(error) if self.is_yet_to_be_made(&error) => Ok(empty),
            answer => Ok(answer?),
        }
    }

    /// What `get` says where there is nothing.
    pub(crate) fn no_key(&self, key: &[u8]) -> Failure {
        Failure::not_done(format!("no key {} in bucket {}", shown(key), self.path))
    }

    /// A key in this bucket, for a message.
    pub(crate) fn named(&self, key: &[u8]) -> String {
        format!("key {} in bucket {}", shown(key), self.path)
    }

    /// What `get` and `delete` say when these keys are not there.
    pub(crate) fn no_keys(&self, keys: &[&Bytes]) -> Failure {
        let names: Vec<_> = keys.iter().take(MOST_NAMED).map(|key| shown(key)).collect();
        let more = match keys.len().saturating_sub(names.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Failure::not_done(format!("no key {}{more} in bucket {}", names.join(", "), self.path))
    }
}

/// The one key that a command is about, and where it is.
#[derive(Debug, Args)]
pub(crate) struct OneKey {
    /// The key, byte for byte
    #[arg(value_name = "KEY", index = 1, value_parser = bytes_parser())]
    pub(crate) key: Bytes,
    #[command(flatten)]
    pub(crate) bucket: InBucket,
    #[command(flatten)]
    pub(crate) remote: Remote,
}

/// Reads a bucket path, which need not be UTF-8.
pub(crate) fn path_parser() -> impl TypedValueParser<Value = Path> {
    OsStringValueParser::new().try_map(|text| Path::parse(&text.into_vec()))
}

/// Reads a key: the bytes of the argument as they are.
pub(crate) fn bytes_parser() -> impl TypedValueParser<Value = Bytes> {
    OsStringValueParser::new().map(|text: OsString| Bytes::from(text.into_vec()))
}

/// A key for a message: as the text dialect prints it.
fn shown(key: &[u8]) -> String {
    let mut out = BytesMut::new();
    text::write_key(key, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
