//! `boltkv file surgery meta validate`: whether the two metas are sound.

use std::io::Write as _;

use clap::Args;
use serde::Serialize;

use super::super::output::json_line;
use super::super::target::RawTarget;
use crate::failure::{Failure, Outcome};

/// Look at both meta pages
///
/// Prints a line for each; exit code 1 where one of them is not valid. A file is opened by the valid one with the higher
/// transaction number.
#[derive(Debug, Args)]
#[command(after_help = "Example:
  boltkv file surgery meta validate broken.db")]
pub(crate) struct Validate {
    #[command(flatten)]
    target: RawTarget,
    /// Print an object of JSON for each
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Line {
    meta_page: u64,
    valid: bool,
    /// Why it is not.
    why: Option<String>,
    txid: Option<u64>,
}

impl Validate {
    pub(crate) fn run(&self) -> Outcome {
        let file = self.target.open()?;
        let lines = [0, 1].map(|meta_page| {
            let meta = file.meta(meta_page);
            let why = meta.map_or_else(|| Some("the file ends before it".to_owned()), |meta| why_not(meta.fault()));
            Line { meta_page, valid: why.is_none(), why, txid: meta.map(|meta| meta.txid) }
        });
        self.target.print(|out| {
            for line in &lines {
                match (&line.why, line.txid) {
                    _ if self.json => json_line(line, out)?,
                    (Some(why), _) => writeln!(out, "meta page {} is not valid: {why}", line.meta_page)?,
                    (None, txid) => {
                        let txid = txid.unwrap_or_default();
                        writeln!(out, "meta page {} is valid: transaction {txid}", line.meta_page)?;
                    }
                }
            }
            Ok(())
        })?;
        match lines.iter().filter(|line| !line.valid).count() {
            0 => Ok(()),
            1 => Err(Failure::not_done(format!("{}: a meta page is not valid", self.target.path().display()))),
            _ => Err(Failure::not_done(format!("{}: neither meta page is valid", self.target.path().display()))),
        }
    }
}

/// What is wrong with one meta, in words that do not speak of both.
fn why_not(fault: Option<boltkv_storage::Error>) -> Option<String> {
    use boltkv_storage::Error;
    Some(match fault? {
        Error::NotABoltFile => "it does not hold the magic number 0xED0CDAED".into(),
        Error::ChecksumMismatch => "its checksum does not match".into(),
        other => other.to_string(),
    })
}
