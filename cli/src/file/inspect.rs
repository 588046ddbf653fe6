//! `boltkv file inspect`: the tree of buckets as JSON, in bbolt's shape.

use std::io::{self, Write};

use boltkv_storage::BucketStructure;
use clap::Args;

use super::memory::Memory;
use super::output::{Out, Printed};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome};

/// Print the tree of buckets as JSON, with the number of keys in each
///
/// The outermost is called `root` and holds the buckets at the top. What is no text in a name is replaced, as bbolt does it;
/// `boltkv file tree --json` has names of any bytes.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file inspect etcd.db
  boltkv file inspect --json etcd.db | jq '.buckets[] | select(.name == \"key\") | .keyN'")]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(super) target: Target,
    /// Print the same on one line: of buckets nested a thousand deep, most would be white space
    #[arg(long)]
    pub(super) json: bool,
}

impl Inspect {
    pub(crate) fn run(&self) -> Outcome {
        let db = self.target.open_to_read(None)?;
        let tx = db.begin().map_err(|error| Failure::storage(self.target.path(), &error))?;
        let _progress = Progress::while_printing("reading buckets");
        let memory = Memory::new(&tx);
        let reached = |bytes| memory.has_read(bytes);
        self.target.print(|out| {
            let mut tree = Tree { out, indented: !self.json, open: 0, first: true };
            for bucket in tx.structure().progress(&reached) {
                tree.bucket(&bucket?)?;
            }
            tree.end()
        })
    }
}

/// Writes a tree of objects as it is walked, depth first. Its only memory is how deep it stands.
struct Tree<'a> {
    out: &'a mut Out,
    indented: bool,
    /// Buckets around the next one that are begun and not ended.
    open: usize,
    /// Whether the next bucket is the first in its parent.
    first: bool,
}

impl Tree<'_> {
    fn bucket(&mut self, bucket: &BucketStructure) -> Printed {
        while self.open > bucket.depth {
            self.close()?;
        }
        if !self.first {
            self.out.write_all(b",")?;
        }
        // An object stands in a list, which stands in an object: two steps a level.
        let level = 2 * bucket.depth;
        if level > 0 {
            self.new_line(level)?;
        }
        self.out.write_all(b"{")?;
        self.member("name", level)?;
        write_go_string(&bucket.name, self.out)?;
        self.out.write_all(b",")?;
        self.member("keyN", level)?;
        write!(self.out, "{}", bucket.values)?;
        self.first = bucket.buckets > 0;
        if self.first {
            self.out.write_all(b",")?;
            self.member("buckets", level)?;
            self.out.write_all(b"[")?;
            self.open = bucket.depth + 1;
            return Ok(());
        }
        self.new_line(level)?;
        Ok(self.out.write_all(b"}")?)
    }

    /// Ends the innermost bucket that is open.
    fn close(&mut self) -> Printed {
        self.open -= 1;
        self.first = false;
        self.new_line(2 * self.open + 1)?;
        self.out.write_all(b"]")?;
        self.new_line(2 * self.open)?;
        Ok(self.out.write_all(b"}")?)
    }

    fn end(&mut self) -> Printed {
        while self.open > 0 {
            self.close()?;
        }
        Ok(self.out.write_all(b"\n")?)
    }

    fn member(&mut self, name: &str, level: usize) -> Printed {
        self.new_line(level + 1)?;
        Ok(write!(self.out, "\"{name}\":{}", if self.indented { " " } else { "" })?)
    }

    fn new_line(&mut self, level: usize) -> Printed {
        if self.indented {
            self.out.write_all(b"\n")?;
            (0..level).try_for_each(|_| self.out.write_all(b"    "))?;
        }
        Ok(())
    }
}

/// Writes a string as Go's `encoding/json` does: what HTML or JavaScript would take for their own is escaped too, and every
/// byte that is no UTF-8 becomes a replacement character.
fn write_go_string(bytes: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(b"\"")?;
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => write!(out, "\\{character}"),
                '\x08' => out.write_all(b"\\b"),
                '\x0c' => out.write_all(b"\\f"),
                '\n' => out.write_all(b"\\n"),
                '\r' => out.write_all(b"\\r"),
                '\t' => out.write_all(b"\\t"),
                '\0'..='\x1f' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                    write!(out, "\\u{:04x}", u32::from(character))
                }
                other => write!(out, "{other}"),
            }?;
        }
        chunk.invalid().iter().try_for_each(|_| out.write_all(b"\\ufffd"))?;
    }
    out.write_all(b"\"")
}
