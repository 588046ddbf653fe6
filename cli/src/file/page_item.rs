//! `boltkv file page-item`: one element of a leaf.

use boltkv_storage::Pgid;
use clap::Args;
use serde::Serialize;

use super::format::Format;
use super::output::{Base64, json_line};
use super::target::RawTarget;
use crate::failure::Outcome;

/// Print the key and the value of one element of a leaf page
///
/// Each on a line of its own; of a bucket, the value begins with root page and sequence. The file is not locked: it may be
/// open elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  boltkv file page-item etcd.db 5 0
  boltkv file page-item --key-only etcd.db 5 0
  boltkv file page-item --value-only --format bytes etcd.db 5 0 > value

With --json: {\"page\":N,\"item\":N,\"flags\":N,\"key\":\"b64\",\"value\":\"b64\"}; flags 1 is a bucket.")]
pub(crate) struct PageItem {
    #[command(flatten)]
    pub(super) target: RawTarget,
    /// The page's number
    #[arg(value_name = "PAGE")]
    pub(super) page: Pgid,
    /// The element's number, from 0
    #[arg(value_name = "ITEM")]
    pub(super) index: u16,
    /// Print only the key
    #[arg(long, conflicts_with = "value_only")]
    pub(super) key_only: bool,
    /// Print only the value
    #[arg(long)]
    pub(super) value_only: bool,
    /// How key and value are printed
    #[arg(long, value_enum, default_value = "auto", conflicts_with = "json")]
    pub(super) format: Format,
    /// Print a JSON object, key and value in base64
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Element<'a> {
    page: Pgid,
    item: u16,
    flags: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Base64<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Base64<'a>>,
}

impl PageItem {
    pub(crate) fn run(&self) -> Outcome {
        let file = self.target.open()?;
        self.target.must_have(&file, &[self.page])?;
        self.target.print(|out| {
            let page = file.page(self.page)?;
            let found = page.leaf_element(self.index)?;
            let key = (!self.value_only).then_some(&*found.key);
            let value = (!self.key_only).then_some(&*found.value);
            if self.json {
                let (key, value) = (key.map(Base64), value.map(Base64));
                let element = Element { page: self.page, item: self.index, flags: found.flags, key, value };
                return Ok(json_line(&element, out)?);
            }
            for shown in [key, value].into_iter().flatten() {
                self.format.write_line(shown, out)?;
            }
            Ok(())
        })
    }
}
