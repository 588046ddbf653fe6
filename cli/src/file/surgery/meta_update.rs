//! `boltkv file surgery meta update`: fields of a meta set by hand.

use boltkv_storage::tools::MetaChange;
use clap::Args;
use serde::Serialize;

use super::OnCopy;
use crate::failure::Outcome;

/// Set fields of a meta page, and make the rest of it valid
///
/// The magic number, the version, the flags and the checksum become what they have to be. Whether the new values make sense
/// is not looked at: have `boltkv file check` look at the copy.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file surgery meta update broken.db --output mended.db --meta-page 1 \\
      --fields root:16,freelist:8
  boltkv file surgery meta update broken.db --output mended.db --fields freelist:none
  boltkv file surgery meta update broken.db --output mended.db --page-size 4096 \\
    --fields pageSize:4096,root:16,freelist:none,pgid:120     (both meta pages are lost)")]
pub(crate) struct Update {
    #[command(flatten)]
    on_copy: OnCopy,
    /// The meta page to be changed
    #[arg(long, value_name = "PAGE", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1))]
    meta_page: u64,
    /// What to set: pageSize, root, freelist (a page, or none) and pgid, the high-water mark
    #[arg(long, value_name = "FIELD:VALUE,…", value_delimiter = ',', value_parser = field)]
    fields: Vec<Field>,
}

/// A field with its new value.
#[derive(Debug, Clone, Copy)]
enum Field {
    PageSize(u32),
    Root(u64),
    Freelist(u64),
    Pgid(u64),
}

fn field(argument: &str) -> Result<Field, String> {
    const NOT_STORED: u64 = u64::MAX;
    let (name, value) = argument.split_once(':').ok_or("it has to be FIELD:VALUE")?;
    let number = || value.parse::<u64>().map_err(|error| format!("{value}: {error}"));
    Ok(match name {
        "pageSize" => Field::PageSize(value.parse().map_err(|error| format!("{value}: {error}"))?),
        "root" => Field::Root(number()?),
        "freelist" if value == "none" => Field::Freelist(NOT_STORED),
        "freelist" => Field::Freelist(number()?),
        "pgid" => Field::Pgid(number()?),
        _ => return Err("the fields are pageSize, root, freelist and pgid".into()),
    })
}

#[derive(Serialize)]
struct Done {
    meta_page: u64,
    changed: bool,
    page_size: u32,
    root: u64,
    /// null where it is not stored.
    freelist: Option<u64>,
    pgid: u64,
    txid: u64,
}

impl Update {
    pub(crate) fn run(&self) -> Outcome {
        let page = self.meta_page;
        let updated = self.on_copy.make(|surgery| surgery.update_meta(page, &self.change()))?;
        let meta = updated.meta;
        let done = Done {
            meta_page: page,
            changed: updated.changed,
            page_size: meta.page_size,
            root: meta.root,
            freelist: meta.stores_freelist().then_some(meta.freelist),
            pgid: meta.high_water_mark,
            txid: meta.txid,
        };
        let mut lines = vec![if updated.changed {
            format!("meta page {page} is changed")
        } else {
            format!("meta page {page} was like this already")
        }];
        lines.extend(
            updated.other_page_size.map(|other| {
                format!("its page size {} is not that of meta page {}: {other}", meta.page_size, 1 - page)
            }),
        );
        self.on_copy.say(&done, &lines)
    }

    /// Of a field that is given twice, the last value counts.
    fn change(&self) -> MetaChange {
        let mut change = MetaChange::default();
        for field in &self.fields {
            match *field {
                Field::PageSize(size) => change.page_size = Some(size),
                Field::Root(page) => change.root = Some(page),
                Field::Freelist(page) => change.freelist = Some(page),
                Field::Pgid(page) => change.high_water_mark = Some(page),
            }
        }
        change
    }
}
