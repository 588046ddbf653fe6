//! `boltkv token`: the tokens that let clients in.

pub(crate) mod file;

use std::fs::{self, File};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use boltkv_server::{Grant, Proof, Right};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::arguments::lifetime;
use crate::failure::{Failure, Outcome, note};
use crate::lines::write_failed;
use crate::moment;
use crate::remote::unless_empty;
use file::TokensFile;

/// Random bytes in a token: nobody guesses 2^256.
const RANDOM: usize = 32;

/// Whoever reads a token may do what its holder may.
const TOKEN_MODE: u32 = 0o600;

/// When a change counts.
const AT_SIGHUP: &str = "a server that runs reads the file again at SIGHUP";

/// Tokens that let clients in
///
/// A server that is started with `--tokens FILE` lets in who has one of its tokens, and nobody else. The file has a line for
/// each: its name, its SHA-256, what its holder may do, and until when. The token itself is printed once, when it is created.
/// A server that runs reads the file again at SIGHUP.
#[derive(Debug, Subcommand)]
pub(crate) enum Token {
    Create(Create),
    List(List),
    Revoke(Revoke),
}

/// Create a token: add it to a file of tokens, and print it
///
/// The token is printed to standard output, or written to a new file, and nowhere else: what the file of tokens has of it lets
/// nobody in.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv token create admin --right admin --tokens /etc/boltkv/tokens
  boltkv token create billing --right write:billing --right read:users \\
      --tokens tokens --output billing.token
  boltkv token create visitor --right read:public --expires 30d --tokens tokens
  boltkv token create ada --certificate ada.example.org --right write --tokens tokens

Rights: read, write or admin, and after a colon the bucket for which, with all within it; without one, everything. Each \
includes those before it. A token without a right may do what needs none, such as `boltkv health`. What every command \
needs: docs/deployment.md.")]
pub(crate) struct Create {
    /// What its holder is called, in messages and logs
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    /// What its holder may do, such as `read` or `write:users/eu`; may be given again
    #[arg(long = "right", value_name = "RIGHT", value_parser = right)]
    rights: Vec<Right>,
    /// Make no token: its holder is who has a certificate for this name, of a host or a URI, from one of the server's
    /// `--tls-client-ca`
    #[arg(long, value_name = "NAME", value_parser = file::certificate)]
    certificate: Option<String>,
    /// After what time it is not a token any more, such as 12h or 90d, 365d at most; without it, never
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
    /// Write the token to this file, which must not be there, and which its owner alone can read, as `--token-file` takes it;
    /// without it, or for `-`, to standard output
    #[arg(long, short, value_name = "OUT", conflicts_with = "certificate")]
    output: Option<PathBuf>,
    #[command(flatten)]
    tokens: InFile,
}

/// List the tokens of a file
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv token list --tokens /etc/boltkv/tokens")]
pub(crate) struct List {
    /// Print JSON, an object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tokens: InFile,
}

/// Remove a token from a file
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv token revoke billing --tokens /etc/boltkv/tokens && kill -HUP \"$SERVER\"")]
pub(crate) struct Revoke {
    /// Which
    #[arg(value_name = "NAME", value_parser = name)]
    name: String,
    #[command(flatten)]
    tokens: InFile,
}

#[derive(Debug, Args)]
struct InFile {
    /// The file of tokens
    #[arg(long = "tokens", value_name = "FILE", env = unless_empty("BOLTKV_TOKENS"))]
    path: PathBuf,
}

fn name(text: &str) -> Result<String, String> {
    file::check_name(text).map(|()| text.to_owned())
}

fn right(text: &str) -> Result<Right, String> {
    text.parse().map_err(|error: boltkv_server::ParseRightError| error.to_string())
}

impl Token {
    pub(crate) fn run(&self) -> Outcome {
        match self {
            Self::Create(create) => create.run(),
            Self::List(list) => list.run(),
            Self::Revoke(revoke) => revoke.run(),
        }
    }
}

impl Create {
    #[expect(clippy::disallowed_methods, reason = "a token expires by the calendar")]
    fn run(&self) -> Outcome {
        let mut tokens = TokensFile::read_to_change(&self.tokens.path)?;
        let (name, path) = (&self.name, self.tokens.path.display());
        if tokens.grants.iter().any(|grant| grant.name == *name) {
            return Err(Failure::not_done(format!("{path} has a token {name}: `boltkv token revoke` removes it")));
        }
        let expires = self.expires.map(|after| SystemTime::now() + after);
        let (proof, token) = if let Some(certificate) = &self.certificate {
            (Proof::Certificate(certificate.clone()), None)
        } else {
            let token = new_token()?;
            (Proof::Token(Grant::digest(token.as_bytes())), Some(token))
        };
        if let Some(other) = tokens.grants.iter().find(|grant| grant.proof == proof) {
            return Err(Failure::not_done(format!("{path} has {} for this certificate", other.name)));
        }
        let grant = Grant { name: name.clone(), proof, rights: self.rights.clone(), expires };
        match (token, self.output.as_deref().filter(|output| *output != Path::new("-"))) {
            (Some(token), Some(output)) => add_and_write(&mut tokens, &grant, &token, output)?,
            (Some(token), None) => add_and_print(&mut tokens, &grant, &token)?,
            (None, _) => tokens.add(&grant)?,
        }
        if self.rights.is_empty() {
            note(&format!("{name} has no right: it may PING, STATS and /metrics; --right gives it more"));
        }
        remind(AT_SIGHUP);
        Ok(())
    }
}

fn add_and_print(tokens: &mut TokensFile, grant: &Grant, token: &str) -> Outcome {
    tokens.add(grant)?;
    if let Err(error) = writeln!(io::stdout(), "{token}") {
        // Nobody has it, and its name would be taken.
        tokens.remove(&grant.name)?;
        return Err(Failure::stdout(&error));
    }
    Ok(())
}

/// The token is there before it counts: what fails leaves neither.
fn add_and_write(tokens: &mut TokensFile, grant: &Grant, token: &str, output: &Path) -> Outcome {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::usage(format!("{}: it is there already", output.display())),
        _ => write_failed(Some(output), &error),
    };
    let mut file = File::options().write(true).create_new(true).mode(TOKEN_MODE).open(output).map_err(failed)?;
    let written = writeln!(file, "{token}").and_then(|()| file.sync_all()).map_err(failed);
    let added = written.and_then(|()| tokens.add(grant));
    if added.is_err() {
        // What stays where this fails lets nobody in.
        let _ = fs::remove_file(output);
    }
    added
}

/// Who types it is told what a script knows.
fn remind(what: &str) {
    if io::stderr().is_terminal() {
        note(what);
    }
}

fn new_token() -> Outcome<String> {
    let mut random = [0; RANDOM];
    let got = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    match got {
        Ok(RANDOM) => Ok(format!("bkv_{}", URL_SAFE_NO_PAD.encode(random))),
        Ok(_) => Err(Failure::not_done("the system gave too few random bytes")),
        Err(error) => Err(Failure::not_done(format!("the system gave no random bytes: {error}"))),
    }
}

impl List {
    #[expect(clippy::disallowed_methods, reason = "a token expires by the calendar")]
    fn run(&self) -> Outcome {
        let tokens = TokensFile::read(&self.tokens.path)?;
        let now = SystemTime::now();
        let mut out = io::stdout().lock();
        let widest = tokens.grants.iter().map(|grant| grant.name.len()).max().unwrap_or(0);
        for Grant { name, proof, rights, expires } in &tokens.grants {
            let has_expired = expires.is_some_and(|at| at <= now);
            let until = expires.map(|at| moment::shown(moment::millis(at)));
            let certificate = if let Proof::Certificate(name) = proof { Some(name) } else { None };
            let printed = if self.json {
                let rights: Vec<_> = rights.iter().map(Right::to_string).collect();
                let mut json = json!({ "name": name, "rights": rights, "expires": until, "expired": has_expired });
                json["certificate"] = json!(certificate);
                writeln!(out, "{json}")
            } else {
                let until = until.map_or_else(String::new, |until| {
                    format!("  {} {until}", if has_expired { "expired" } else { "until" })
                });
                let certificate = certificate.map(|name| format!("  certificate {name}")).unwrap_or_default();
                writeln!(out, "{name:widest$}  {}{until}{certificate}", file::rights(rights))
            };
            printed.map_err(|error| Failure::stdout(&error))?;
        }
        Ok(())
    }
}

impl Revoke {
    fn run(&self) -> Outcome {
        let mut tokens = TokensFile::read_to_change(&self.tokens.path)?;
        if !tokens.grants.iter().any(|grant| grant.name == self.name) {
            let what = format!("{} has no token {}", self.tokens.path.display(), self.name);
            return Err(Failure::not_done(what));
        }
        tokens.remove(&self.name)?;
        remind(AT_SIGHUP);
        Ok(())
    }
}
