//! Parts of what errors say.

use std::path::PathBuf;

pub(super) fn size_limit(max: Option<u64>) -> String {
    max.map_or_else(
        || "what the system allows".into(),
        |max| format!("its limit of {max} bytes (max-size, or what the process may have: ulimit -f)"),
    )
}

pub(super) fn follows(found: &[u64], file: u64) -> String {
    let Some(oldest) = found.iter().min() else { return "nothing is recorded in it".into() };
    let since = match file {
        file if found.contains(&file) => "what that transaction left is not what the file has",
        file if file < *oldest => "an older copy has the file's place",
        _ => "another program has written to the file since",
    };
    let found: Vec<String> = found.iter().map(u64::to_string).collect();
    let found = found.join(" or ");
    format!("the journal goes on from a file as transaction {found} left it; {since}, or it is another file's journal")
}

pub(super) fn found(is_bucket: bool) -> &'static str {
    if is_bucket { "bucket" } else { "value" }
}

pub(super) fn in_path(path: Option<&PathBuf>) -> String {
    path.map_or_else(String::new, |path| format!(" {}", path.display()))
}
