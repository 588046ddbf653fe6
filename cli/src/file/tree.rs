//! `boltkv file tree`: a drawing of the buckets.

use std::io::Write as _;

use boltkv_storage::{BucketStructure, Structure};
use bytes::Bytes;
use clap::Args;
use indicatif::BinaryBytes;
use serde::Serialize;

use super::format::Format;
use super::memory::Memory;
use super::output::{Base64, Out, Printed, json_line};
use super::progress::Progress;
use super::target::Target;
use crate::failure::{Failure, Outcome};
use crate::remote::bytes_parser;
use crate::words::counted;

/// Draw the tree of buckets, with the number of keys in each and the pages it takes
///
/// What is said of a bucket is its own: its keys, the buckets within it, the pages of its own tree (an inline one lies in a
/// page of its parent). Only at the deepest level that is drawn, what lies below is added to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file tree etcd.db
  boltkv file tree --depth 1 app.db              # how large is each bucket at the top, all in all
  boltkv file tree app.db users eu               # the bucket eu within the bucket users
  boltkv file tree --json app.db | jq -c 'select(.pages > 1000)'

With --json a line is a bucket, from the top down, the name in base64:
  {\"depth\":N,\"bucket\":\"b64\",\"keys\":N,\"buckets\":N,\"pages\":N,\"bytes\":N,\"sequence\":N}")]
pub(crate) struct Tree {
    #[command(flatten)]
    target: Target,
    /// The bucket whose tree is drawn, its names from the top down; otherwise that of the whole file
    #[arg(value_name = "BUCKET", value_parser = bytes_parser())]
    bucket: Vec<Bytes>,
    /// How many levels of buckets are drawn
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..))]
    depth: u16,
    /// Print lines of JSON, one a bucket
    #[arg(long)]
    json: bool,
}

/// What is told of a bucket.
#[derive(Default, Clone, Copy)]
struct Figures {
    keys: u64,
    buckets: u64,
    pages: u64,
}

impl Figures {
    fn of(bucket: &BucketStructure) -> Self {
        Self { keys: bucket.values, buckets: bucket.buckets, pages: bucket.pages }
    }

    fn add(&mut self, other: Self) {
        self.keys += other.keys;
        self.buckets += other.buckets;
        self.pages += other.pages;
    }
}

#[derive(Serialize)]
struct Line<'a> {
    depth: usize,
    bucket: Base64<'a>,
    keys: u64,
    buckets: u64,
    pages: u64,
    bytes: u64,
    sequence: u64,
}

impl Tree {
    pub(crate) fn run(&self) -> Outcome {
        let db = self.target.open_to_read(Some("boltkv bucket list"))?;
        let failed = |error| Failure::storage(self.target.path(), &error);
        let tx = db.begin().map_err(failed)?;
        let structure = if self.bucket.is_empty() {
            tx.structure()
        } else {
            tx.bucket_path(&self.bucket).map_err(failed)?.structure()
        };
        let memory = Memory::new(&tx);
        let reached = |bytes| memory.has_read(bytes);
        let page_size = db.stats().page_size.into();
        let _progress = Progress::while_printing("reading buckets");
        self.target.print(|out| {
            let drawing = Drawing { out, json: self.json, page_size, lines_down: Vec::new() };
            drawing.draw(structure.progress(&reached), self.depth.into(), &self.title())
        })
    }

    /// What stands at the root of the drawing: the file, or the bucket that was asked for.
    fn title(&self) -> Vec<u8> {
        match self.bucket.last() {
            Some(name) => name.to_vec(),
            None => self.target.path().as_os_str().as_encoded_bytes().to_vec(),
        }
    }
}

/// Draws buckets as they come, depth first. It keeps one of them, and whether the levels above it go on.
struct Drawing<'a> {
    out: &'a mut Out,
    json: bool,
    page_size: u64,
    /// Of each level above, whether more buckets come on it.
    lines_down: Vec<bool>,
}

impl Drawing<'_> {
    fn draw(mut self, structure: Structure<'_>, deepest: usize, title: &[u8]) -> Printed {
        let mut total = Figures::default();
        // The last bucket that was found at a level that is drawn, with what lies below it and is not.
        let mut held: Option<(BucketStructure, Figures)> = None;
        for bucket in structure {
            let mut bucket = bucket?;
            let figures = Figures::of(&bucket);
            total.add(figures);
            match &mut held {
                Some((_, held)) if bucket.depth > deepest => held.add(figures),
                _ => {
                    if bucket.depth == 0 {
                        bucket.name = title.to_vec();
                    }
                    self.bucket(held.replace((bucket, figures)))?;
                }
            }
        }
        self.bucket(held)?;
        if self.json {
            return Ok(());
        }
        writeln!(self.out)?;
        Ok(writeln!(self.out, "{} in {}", content(total), self.size(total.pages))?)
    }

    fn bucket(&mut self, bucket: Option<(BucketStructure, Figures)>) -> Printed {
        let Some((bucket, figures)) = bucket else { return Ok(()) };
        if self.json {
            let Figures { keys, buckets, pages } = figures;
            let (depth, sequence, bytes) = (bucket.depth, bucket.sequence, pages * self.page_size);
            let name = Base64(&bucket.name);
            return Ok(json_line(&Line { depth, bucket: name, keys, buckets, pages, bytes, sequence }, self.out)?);
        }
        if let Some(above) = bucket.depth.checked_sub(1) {
            self.lines_down.truncate(above);
            for &goes_on in &self.lines_down {
                self.out.write_all(if goes_on { "│   " } else { "    " }.as_bytes())?;
            }
            self.out.write_all(if bucket.is_last { "└── " } else { "├── " }.as_bytes())?;
            self.lines_down.push(!bucket.is_last);
        }
        Format::Auto.write(&bucket.name, self.out)?;
        write!(self.out, ": {}", content(figures))?;
        match figures.pages {
            0 => self.out.write_all(b", inline")?,
            pages => write!(self.out, ", {}", self.size(pages))?,
        }
        if bucket.sequence > 0 {
            write!(self.out, ", sequence {}", bucket.sequence)?;
        }
        Ok(writeln!(self.out)?)
    }

    fn size(&self, pages: u64) -> String {
        format!("{} ({})", counted(pages, "page"), BinaryBytes(pages * self.page_size))
    }
}

fn content(figures: Figures) -> String {
    let keys = counted(figures.keys, "key");
    if figures.buckets == 0 { keys } else { format!("{keys}, {}", counted(figures.buckets, "bucket")) }
}
