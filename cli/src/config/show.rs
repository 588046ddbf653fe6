//! Settings as text: as a configuration file, and as JSON.

use std::ffi::OsString;
use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use crate::failure::one_line;
use crate::serve::layers::{Found, Origin, Setting};

/// Columns of a comment.
const WIDTH: usize = 100;

/// What holds, as a file that says the same, each setting with where it comes from.
pub(super) fn as_toml(values: &[Found]) -> String {
    let mut text = "# The settings that hold, as `boltkv config show` has found them.\n".to_owned();
    for (section, values) in sections(values) {
        if let Some(section) = section {
            let _ = write!(text, "\n[{section}]\n");
        }
        for Found { setting, value } in values {
            let name = setting.name();
            let origin = one_line(&from(&value.origin));
            let line = match written(setting, &value.texts) {
                None => match setting.help().split_once("Default: ") {
                    Some((_, what)) => format!("# {name} is not set: {what}"),
                    None => format!("# {name} is not set"),
                },
                Some(_) if setting.is_secret() => format!("# {name} is a secret, which is not shown: {origin}"),
                Some(value) => format!("{name} = {value}  # {origin}"),
            };
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

/// A file for whoever begins one: every setting with what it does, and its default as a comment.
pub(super) fn of_defaults(values: &[Found]) -> String {
    let mut text =
        "# Settings of `boltkv serve`. Those that begin with `#` are the defaults: take the `#` away to change one.\n\
                    # `boltkv config check --config FILE` says what is wrong with a file.\n"
            .to_owned();
    for (section, values) in sections(values) {
        if let Some(section) = section {
            let _ = write!(text, "\n[{section}]\n");
        }
        for Found { setting, value } in values {
            text.push('\n');
            for line in wrapped(&setting.help()) {
                let _ = writeln!(text, "# {line}");
            }
            let value = written(setting, &value.texts);
            let _ = match value {
                Some(value) => writeln!(text, "#{} = {value}", setting.name()),
                None => writeln!(text, "# Not set: {} = {}", setting.name(), setting.value_name()),
            };
        }
    }
    text
}

/// What holds, as one line: an object for each setting, by its name.
pub(super) fn as_json(values: &[Found]) -> String {
    let all: Map<_, _> = values.iter().map(|found| (found.setting.name().to_owned(), object(found))).collect();
    format!("{}\n", Json::Object(all))
}

fn object(Found { setting, value }: &Found) -> Json {
    let mut object = Map::new();
    let shown = if setting.is_secret() { Json::Null } else { plain(setting, &value.texts) };
    object.insert("value".into(), shown);
    object.insert("section".into(), setting.section().into());
    if setting.is_secret() {
        object.insert("secret".into(), true.into());
    }
    let origin = match &value.origin {
        Origin::Default => json!({ "source": "default" }),
        Origin::File { path, line } => json!({ "source": "file", "file": path.to_string_lossy(), "line": line }),
        Origin::Variable(variable) => json!({ "source": "environment", "variable": variable }),
        Origin::Flag => json!({ "source": "flag" }),
    };
    if let Json::Object(origin) = origin {
        object.extend(origin);
    }
    Json::Object(object)
}

/// As it is kept in JSON: numbers as numbers, and what has a unit as text.
fn plain(setting: &Setting, texts: &[OsString]) -> Json {
    let one = |text: &OsString| {
        let text = text.to_string_lossy();
        match (is_true(setting, &text), number(setting, &text)) {
            (Some(is), _) => is.into(),
            (None, Some(number)) => number.into(),
            (None, None) => text.into(),
        }
    };
    if setting.is_list() { texts.iter().map(one).collect() } else { texts.first().map_or(Json::Null, one) }
}

/// The settings by their sections, those of none first, each in its order.
fn sections(values: &[Found]) -> Vec<(Option<String>, Vec<&Found>)> {
    let mut sections: Vec<(Option<String>, Vec<_>)> = vec![(None, Vec::new())];
    for found in values {
        let name = found.setting.section();
        match sections.iter_mut().find(|(section, _)| *section == name) {
            Some((_, values)) => values.push(found),
            None => sections.push((name, vec![found])),
        }
    }
    sections
}

/// Where a value comes from.
fn from(origin: &Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::File { path, line } => format!("{}:{line}", path.display()),
        Origin::Variable(variable) => format!("variable {variable}"),
        Origin::Flag => "flag".to_owned(),
    }
}

/// As TOML; `None` where it is not set.
fn written(setting: &Setting, texts: &[OsString]) -> Option<String> {
    let one = |text: &OsString| {
        let text = text.to_string_lossy();
        match (is_true(setting, &text), number(setting, &text)) {
            (Some(is), _) => is.to_string(),
            (None, Some(number)) => number.to_string(),
            (None, None) => quoted(&text),
        }
    };
    if setting.is_list() {
        return (!texts.is_empty()).then(|| format!("[{}]", texts.iter().map(one).collect::<Vec<_>>().join(", ")));
    }
    texts.first().map(one)
}

/// Whether a switch is on, in any of the ways in which it can be written.
fn is_true(setting: &Setting, text: &str) -> Option<bool> {
    const ON: [&str; 5] = ["true", "yes", "on", "y", "1"];
    setting.is_switch().then(|| ON.contains(&text.to_lowercase().as_str()) || text.eq_ignore_ascii_case("t"))
}

fn number(setting: &Setting, text: &str) -> Option<i64> {
    if setting.takes_numbers() { text.parse().ok() } else { None }
}

/// A string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if character.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(character));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// In lines that fit a screen.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        if lines[last].is_empty() {
            lines[last].push_str(word);
        } else if lines[last].chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(word.to_owned());
        } else {
            lines[last].push(' ');
            lines[last].push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::layers::Value;

    #[test]
    fn a_string_is_quoted_as_toml_reads_it() {
        for text in ["plain", "two words", "C:\\new", "\"quoted\"", "tab\tline\n\u{1b}\u{7f}", "größe 😀", "#", ""]
        {
            let file = format!("key = {}", quoted(text));
            let table = toml::de::DeTable::parse(&file).unwrap();
            assert_eq!(table.get_ref()["key"].get_ref().as_str(), Some(text), "{file}");
        }
    }

    #[test]
    fn a_secret_is_not_shown_and_a_list_is_an_array() {
        let found = |option: clap::Arg, texts: &[&str], origin| Found {
            setting: Setting::of(option),
            value: Value { texts: texts.iter().map(OsString::from).collect(), origin },
        };
        let token = clap::Arg::new("token").long("token").hide_env_values(true);
        let listen = clap::Arg::new("listen").long("listen").action(clap::ArgAction::Append);
        let origin = Origin::File { path: "a\n.toml".into(), line: 7 };
        let found = [found(token, &["hidden"], origin), found(listen, &["a", "b"], Origin::Flag)];
        let toml = as_toml(&found);
        assert!(
            toml.ends_with("# token is a secret, which is not shown: a\\n.toml:7\nlisten = [\"a\", \"b\"]  # flag\n"),
            "{toml}"
        );
        let json: Json = serde_json::from_str(&as_json(&found)).unwrap();
        assert_eq!((&json["token"]["value"], &json["token"]["secret"]), (&Json::Null, &true.into()));
        assert_eq!(json["listen"]["value"], json!(["a", "b"]));
        assert!(!as_json(&found).contains("hidden"));
    }
}
