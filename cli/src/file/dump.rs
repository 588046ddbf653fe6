//! `boltkv file dump`: pages in hexadecimal.

use std::io::{self, Write};

use boltkv_storage::tools::RawFile;
use boltkv_storage::{Error, Pgid};
use clap::Args;
use serde::Serialize;

use super::output::{Base64, json_line};
use super::target::RawTarget;
use crate::failure::Outcome;

/// What stands between pages.
pub(super) const SEPARATOR: &[u8] = b"===============================================\n";
const LINE: usize = 16;

/// Print pages in hexadecimal
///
/// 16 bytes a line, behind their place in the file; a run of equal lines is cut short with `*`. A page that runs on over
/// others is printed up to the end of its first. The file is not locked: it may be open elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file dump etcd.db 0
  boltkv file dump etcd.db 0 1
  boltkv file dump --page-size 4096 wreck.db 3

With --json a line is {\"page\":N,\"offset\":N,\"bytes\":\"b64\"}, the offset in bytes from the start of the file.")]
pub(crate) struct Dump {
    #[command(flatten)]
    pub(super) target: RawTarget,
    /// The pages' numbers
    #[arg(value_name = "PAGE", required = true)]
    pub(super) pages: Vec<Pgid>,
    /// Print lines of JSON, one a page
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Dumped<'a> {
    page: Pgid,
    offset: u64,
    bytes: Base64<'a>,
}

impl Dump {
    pub(crate) fn run(&self) -> Outcome {
        let file = self.target.open()?;
        self.target.must_have(&file, &self.pages)?;
        self.target.print(|out| {
            for (index, &page) in self.pages.iter().enumerate() {
                let (offset, bytes) = read(&file, page)?;
                if self.json {
                    json_line(&Dumped { page, offset, bytes: Base64(&bytes) }, out)?;
                    continue;
                }
                if index > 0 {
                    out.write_all(SEPARATOR)?;
                }
                print(offset, &bytes, out)?;
            }
            Ok(())
        })
    }
}

/// Where a page begins, and its bytes.
fn read(file: &RawFile, page: Pgid) -> Result<(u64, Vec<u8>), Error> {
    // The header says nothing that is needed; that it can be read says that the page is there.
    file.header(page)?;
    let offset = page * u64::from(file.page_size());
    let mut bytes = vec![0; file.page_size() as usize];
    let read = file.read_at(&mut bytes, offset)?;
    bytes.truncate(read);
    Ok((offset, bytes))
}

fn print(offset: u64, bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    let mut before: Option<&[u8]> = None;
    let mut skipping = false;
    let last = bytes.len().saturating_sub(LINE);
    for (at, line) in bytes.chunks(LINE).enumerate().map(|(index, line)| (index * LINE, line)) {
        let again = before == Some(line) && at != last;
        before = Some(line);
        if again && skipping {
            continue;
        }
        write!(out, "{:07x}", offset + at as u64)?;
        if again {
            out.write_all(b" *")?;
        } else {
            for pair in line.chunks(2) {
                out.write_all(b" ")?;
                super::format::write_hex(pair, out)?;
            }
        }
        skipping = again;
        out.write_all(b"\n")?;
    }
    out.write_all(b"\n")
}
