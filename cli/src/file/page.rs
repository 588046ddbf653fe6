//! `boltkv file page`: pages, for people to read.

use std::io::Write as _;

use boltkv_storage::tools::{MetaFields, RawFile, RawLeafElement, RawPage};
use boltkv_storage::{PageType, Pgid};
use clap::Args;
use serde::Serialize;

use super::dump::SEPARATOR;
use super::format::{Format, is_printable, write_hex, write_quoted};
use super::info::fault_of;
use super::output::{Base64, Error, Out, Printed, json_line};
use super::progress::Progress;
use super::target::RawTarget;
use crate::failure::{Failure, Outcome};

/// Print pages: what they are, and every element in them
///
/// What is damaged is said in its place, and the rest printed (exit code 1). The file is not locked: it may be open
/// elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file page etcd.db 0 1
  boltkv file page --format-value redacted etcd.db 5
  boltkv file page --all etcd.db
  boltkv file page --json etcd.db 5 | jq -r 'select(.key) | .key | @base64d'

With --json the first line of a page is, in bytes and pages
  {\"page\":N,\"type\":\"leaf\",\"size\":N,\"count\":N,\"overflow\":N}
One line for each thing in it follows, one of
  {\"page\":N,\"item\":N,\"key\":\"b64\",\"value\":\"b64\"}
  {\"page\":N,\"item\":N,\"key\":\"b64\",\"root\":N,\"sequence\":N}     a bucket; root 0: it lies inline
  {\"page\":N,\"item\":N,\"key\":\"b64\",\"child\":N}                 of a branch
  {\"page\":N,\"free\":N}                                      of the freelist
  {\"page\":N,\"version\":N,…,\"fault\":null}                    the fields of a meta
  {\"page\":N,\"error\":\"…\"}")]
pub(crate) struct Page {
    #[command(flatten)]
    pub(super) target: RawTarget,
    /// The pages' numbers
    #[arg(value_name = "PAGE", required_unless_present = "all")]
    pub(super) pages: Vec<Pgid>,
    /// Print all pages, free ones as they were when they were last used
    #[arg(long, conflicts_with = "pages")]
    pub(super) all: bool,
    /// How values are printed
    #[arg(long, value_enum, default_value = "auto", conflicts_with = "json")]
    pub(super) format_value: Format,
    /// Print lines of JSON, keys and values in base64
    #[arg(long)]
    pub(super) json: bool,
    /// As bbolt's command: a damaged meta is printed like any other, and damage is no failure.
    #[arg(skip)]
    pub(super) as_bbolt: bool,
}

impl Page {
    pub(crate) fn run(&self) -> Outcome {
        let file = self.target.open()?;
        if !self.as_bbolt {
            self.target.must_have(&file, &self.pages)?;
        }
        let mut damaged = 0_u64;
        let progress = self.all.then(|| Progress::while_printing_pages(file.end())).flatten();
        self.target.print(|out| {
            let (format, json, as_bbolt) = (self.format_value, self.json, self.as_bbolt);
            let mut printer = Printer { format, json, as_bbolt, first: true, out };
            if !self.all {
                return self.pages.iter().try_for_each(|&page| {
                    damaged += u64::from(printer.print(&file, page)?.is_none());
                    Ok(())
                });
            }
            let mut page = 0;
            while page < file.end() {
                if let Some(progress) = &progress {
                    progress.reach(page);
                }
                let run = printer.print(&file, page)?;
                damaged += u64::from(run.is_none());
                page += run.unwrap_or(1);
            }
            Ok(())
        })?;
        let file = self.target.path().display();
        match damaged {
            0 => Ok(()),
            _ if self.as_bbolt => Ok(()),
            1 => Err(Failure::not_done(format!("{file}: 1 page is damaged"))),
            many => Err(Failure::not_done(format!("{file}: {many} pages are damaged"))),
        }
    }
}

/// Prints one page after the other.
struct Printer<'a> {
    format: Format,
    json: bool,
    as_bbolt: bool,
    first: bool,
    out: &'a mut Out,
}

#[derive(Serialize)]
struct Head {
    page: Pgid,
    #[serde(rename = "type")]
    page_type: String,
    size: u64,
    count: u16,
    overflow: u32,
}

#[derive(Serialize)]
struct Line<T> {
    page: Pgid,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What<'a> {
    Value {
        item: u16,
        key: Base64<'a>,
        value: Base64<'a>,
    },
    Bucket {
        item: u16,
        key: Base64<'a>,
        root: Pgid,
        sequence: u64,
    },
    Child {
        item: u16,
        key: Base64<'a>,
        child: Pgid,
    },
    Free {
        free: Pgid,
    },
    Meta {
        version: u32,
        page_size: u32,
        flags: u32,
        root: Pgid,
        freelist: Pgid,
        high_water_mark: Pgid,
        txid: u64,
        /// In hexadecimal, as it is printed: of a number so large, many readers of JSON drop digits.
        checksum: String,
        fault: Option<String>,
    },
    Error {
        error: String,
    },
}

impl Printer<'_> {
    /// Prints a page; returns how many pages it spans, or nothing where it is damaged.
    fn print(&mut self, file: &RawFile, id: Pgid) -> Printed<Option<u64>> {
        if !std::mem::take(&mut self.first) && !self.json {
            self.out.write_all(SEPARATOR)?;
        }
        let page = match file.page(id) {
            Ok(page) => page,
            Err(error) => return self.damage(id, &error, id >= file.pages()),
        };
        match self.print_content(id, &page) {
            Ok(()) => Ok(Some(u64::from(page.header().overflow) + 1)),
            Err(Error::Read(error)) => self.damage(id, &error, false),
            Err(failed) => Err(failed),
        }
    }

    /// Says what is wrong with a page, in its place.
    fn damage(&mut self, id: Pgid, error: &boltkv_storage::Error, beyond_the_end: bool) -> Printed<Option<u64>> {
        if self.json {
            json_line(&Line { page: id, what: What::Error { error: error.to_string() } }, self.out)?;
        } else if self.as_bbolt {
            let error = if beyond_the_end { "EOF".to_owned() } else { error.to_string() };
            // Its spelling: scripts look for it.
            writeln!(self.out, "Prining page {id} failed: {error}. Continuing...")?;
        } else {
            writeln!(self.out, "Page {id} cannot be printed: {error}")?;
        }
        Ok(None)
    }

    fn print_content(&mut self, id: Pgid, page: &RawPage<'_>) -> Printed {
        let header = page.header();
        let page_type = match header.page_type() {
            PageType::Unknown => format!("unknown<{:02x}>", header.flags),
            known => known.to_string(),
        };
        if self.json {
            let (count, overflow) = (header.count, header.overflow);
            json_line(&Head { page: id, page_type, size: page.len(), count, overflow }, self.out)?;
        } else {
            writeln!(self.out, "Page ID:    {id}")?;
            writeln!(self.out, "Page Type:  {page_type}")?;
            writeln!(self.out, "Total Size: {} bytes", page.len())?;
            writeln!(self.out, "Overflow pages: {}", header.overflow)?;
        }
        match header.page_type() {
            PageType::Meta => page.meta().map_or(Ok(()), |meta| self.print_meta(id, &meta)),
            PageType::Leaf => self.print_leaf(id, page),
            PageType::Branch => self.print_branch(id, page),
            PageType::Freelist => self.print_freelist(id, page),
            _ => Ok(()),
        }
    }

    fn print_meta(&mut self, id: Pgid, meta: &MetaFields) -> Printed {
        let fault = fault_of(meta);
        let &MetaFields { version, page_size, flags, root, freelist, high_water_mark, txid, checksum, .. } = meta;
        if self.json {
            let checksum = format!("{checksum:016x}");
            let what = What::Meta { version, page_size, flags, root, freelist, high_water_mark, txid, checksum, fault };
            return Ok(json_line(&Line { page: id, what }, self.out)?);
        }
        writeln!(self.out, "Version:    {version}")?;
        writeln!(self.out, "Page Size:  {page_size} bytes")?;
        writeln!(self.out, "Flags:      {flags:08x}")?;
        writeln!(self.out, "Root:       <pgid={root}>")?;
        writeln!(self.out, "Freelist:   <pgid={freelist}>")?;
        writeln!(self.out, "HWM:        <pgid={high_water_mark}>")?;
        writeln!(self.out, "Txn ID:     {txid}")?;
        writeln!(self.out, "Checksum:   {checksum:016x}")?;
        if let Some(fault) = fault.filter(|_| !self.as_bbolt) {
            writeln!(self.out, "Damaged:    {fault}")?;
        }
        Ok(self.out.write_all(b"\n")?)
    }

    fn print_leaf(&mut self, id: Pgid, page: &RawPage<'_>) -> Printed {
        self.print_count(page)?;
        for item in 0..page.header().count {
            let element = page.leaf_element(item)?;
            if self.json {
                let what = match element.bucket() {
                    Some((root, sequence)) => What::Bucket { item, key: Base64(&element.key), root, sequence },
                    None => What::Value { item, key: Base64(&element.key), value: Base64(&element.value) },
                };
                json_line(&Line { page: id, what }, self.out)?;
            } else {
                self.print_key(&element.key)?;
                self.print_value(&element)?;
            }
        }
        self.print_end()
    }

    fn print_branch(&mut self, id: Pgid, page: &RawPage<'_>) -> Printed {
        self.print_count(page)?;
        for item in 0..page.header().count {
            let element = page.branch_element(item)?;
            if self.json {
                let what = What::Child { item, key: Base64(&element.key), child: element.child };
                json_line(&Line { page: id, what }, self.out)?;
            } else {
                self.print_key(&element.key)?;
                writeln!(self.out, "<pgid={}>", element.child)?;
            }
        }
        self.print_end()
    }

    fn print_freelist(&mut self, id: Pgid, page: &RawPage<'_>) -> Printed {
        let (count, ids) = page.freelist()?;
        if !self.json {
            write!(self.out, "Item Count: {count}\nOverflow: {}\n\n", page.header().overflow)?;
        }
        for free in ids {
            let free = free?;
            if self.json {
                json_line(&Line { page: id, what: What::Free { free } }, self.out)?;
            } else {
                writeln!(self.out, "{free}")?;
            }
        }
        self.print_end()
    }

    fn print_count(&mut self, page: &RawPage<'_>) -> Printed {
        if !self.json {
            write!(self.out, "Item Count: {}\n\n", page.header().count)?;
        }
        Ok(())
    }

    fn print_end(&mut self) -> Printed {
        if !self.json {
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Quoted if all of it can be printed, otherwise in hexadecimal: bbolt's way with keys here.
    fn print_key(&mut self, key: &[u8]) -> Printed {
        if is_printable(key) {
            write_quoted(key, self.out)?;
        } else {
            write_hex(key, self.out)?;
        }
        Ok(self.out.write_all(b": ")?)
    }

    fn print_value(&mut self, element: &RawLeafElement<'_>) -> Printed {
        match element.bucket() {
            Some((root, sequence)) => writeln!(self.out, "<pgid={root},seq={sequence}>")?,
            None => self.format.write_line(&element.value, self.out)?,
        }
        Ok(())
    }
}
