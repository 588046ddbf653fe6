//! A page of Markdown in the making, with the folder that its plots go to.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::bars::{self, Bar};
use super::plot::{self, Panel, Rows};
use super::redis;
use crate::servers::Servers;

/// Characters that a line of prose has at most.
const WIDEST: usize = 120;

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    /// What is written so far.
    pub(super) text: String,
    /// Where plots go.
    pub(super) plots: PathBuf,
}

impl Page {
    /// A heading: `##` and the like belong to the text.
    pub(super) fn heading(&mut self, text: &str) {
        let _ = write!(self.text, "{text}\n\n");
    }

    /// A paragraph, or several, or points of a list; those with lines that are too long are wrapped anew.
    pub(super) fn paragraph(&mut self, text: &str) {
        let (mut code, mut block) = (false, Vec::new());
        for line in text.lines() {
            let fence = line.starts_with("```");
            let apart = code || fence || line.is_empty() || line.starts_with(['|', '#', '!']);
            if apart || line.starts_with("- ") {
                self.wrapped(&std::mem::take(&mut block));
            }
            if apart {
                let _ = writeln!(self.text, "{line}");
            } else {
                block.push(line);
            }
            code ^= fence;
        }
        self.wrapped(&block);
        self.text.push('\n');
    }

    /// Lines that belong together, in lines of at most [`WIDEST`] characters, but for words that are longer.
    fn wrapped(&mut self, lines: &[&str]) {
        if lines.iter().all(|line| line.chars().count() <= WIDEST) {
            for line in lines {
                self.text.extend([line, "\n"]);
            }
            return;
        }
        let indent = if lines[0].starts_with("- ") { "  " } else { "" };
        let mut width = 0;
        for (at, word) in lines.iter().flat_map(|line| line.split_whitespace()).enumerate() {
            let needed = word.chars().count();
            let before = match (at, width + 1 + needed <= WIDEST) {
                (0, _) => String::new(),
                (_, true) => " ".to_owned(),
                (_, false) => format!("\n{indent}"),
            };
            width = if before.starts_with('\n') { indent.len() } else { width + before.len() } + needed;
            let _ = write!(self.text, "{before}{word}");
        }
        self.text.push('\n');
    }

    /// What people found out about `what`, if they wrote anything: `notes/WHAT.md`, beside the plots.
    ///
    /// # Errors
    /// There is a file of that name, and it cannot be read.
    pub(super) fn note(&mut self, what: &str) -> Result<()> {
        let file = self.plots.join(format!("notes/{what}.md"));
        match fs::read_to_string(&file) {
            Ok(text) => self.paragraph(text.trim_end()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", file.display())),
        }
        Ok(())
    }

    /// A table; nothing where it has no rows.
    pub(super) fn table<C: AsRef<str>>(&mut self, head: &[&str], rows: &[Vec<C>]) {
        if rows.is_empty() {
            return;
        }
        let mut line = |cells: &[&str]| {
            let _ = writeln!(self.text, "| {} |", cells.join(" | "));
        };
        line(head);
        line(&vec!["---"; head.len()]);
        for row in rows {
            line(&row.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        }
        self.text.push('\n');
    }

    /// A plot of rows of dots.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub(super) fn dots(&mut self, name: &str, what: &str, rows: &Rows<'_>) -> Result<()> {
        plot::dots(&self.plots.join(format!("{name}.svg")), rows)?;
        let _ = write!(self.text, "![{what}](benchmarks/{name}.svg)\n\n");
        Ok(())
    }

    /// A plot of bars.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub(super) fn bars(&mut self, name: &str, what: &str, axis: &str, bars: &[Bar]) -> Result<()> {
        bars::draw(&self.plots.join(format!("{name}.svg")), axis, bars)?;
        let _ = write!(self.text, "![{what}](benchmarks/{name}.svg)\n\n");
        Ok(())
    }

    /// A plot of how boltkv stands to Redis, on this machine and on others.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub(super) fn beside_redis(&mut self, name: &str, what: &str, here: &Servers, others: &[&Servers]) -> Result<()> {
        let all: Vec<_> = [here].into_iter().chain(others.iter().copied()).collect();
        redis::draw(&self.plots.join(format!("{name}.svg")), &all)?;
        let _ = write!(self.text, "![{what}](benchmarks/{name}.svg)\n\n");
        Ok(())
    }

    /// A plot of panels, two in a row.
    ///
    /// # Errors
    /// Its file cannot be written.
    pub(super) fn plot(&mut self, name: &str, what: &str, panels: &[Panel]) -> Result<()> {
        plot::draw(&self.plots.join(format!("{name}.svg")), 2, panels)?;
        let _ = write!(self.text, "![{what}](benchmarks/{name}.svg)\n\n");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_head_and_its_rows_and_none_without_rows() {
        let mut page = Page { text: String::new(), plots: PathBuf::new() };
        page.table::<&str>(&["a"], &[]);
        assert_eq!(page.text, "");
        page.table(&["a", "b"], &[vec!["1", "2"]]);
        assert_eq!(page.text, "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n");
    }
}
