//! Settings from a TOML file. All that is wrong with it is found at once, each with its line.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

use super::setting::Setting;
use super::{Layer, Mistake, Origin, Value, place};
use crate::failure::{Failure, Outcome};

/// A larger file is no configuration.
const MOST_BYTES: u64 = 1 << 20;

/// How alike two names are of which one may be meant for the other: 1 is the same.
const ALIKE: f64 = 0.8;

/// The file's text.
///
/// # Errors
/// It cannot be read, or is none.
pub(super) fn load(path: &Path) -> Outcome<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        Failure::unreachable(format!("could not read the configuration file {}: {error}", path.display()))
    })?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Failure::usage(format!("{}: a configuration file has at most 1 MiB", path.display())));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].split(|byte| *byte == b'\n').count();
        Failure::usage(format!("{}: not UTF-8, which TOML is written in", place(path, line)))
    })
}

/// What the text of the file says of the settings.
pub(super) fn read(path: &Path, text: &str, settings: &[Setting]) -> Layer {
    let (table, errors) = DeTable::parse_recoverable(text);
    let mut reading = Reading { path, text, settings, layer: Layer::default() };
    for error in errors {
        reading.wrong(error.span().map_or(0, |span| span.start), error.message());
    }
    reading.table(None, table.get_ref());
    reading.layer
}

struct Reading<'a> {
    path: &'a Path,
    text: &'a str,
    settings: &'a [Setting],
    layer: Layer,
}

impl Reading<'_> {
    /// The keys of a section, or those before all sections.
    fn table(&mut self, section: Option<&str>, table: &DeTable<'_>) {
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let settings = self.settings;
            let setting = settings.iter().find(|setting| setting.name() == name);
            match (setting, value.get_ref()) {
                (Some(setting), value) if setting.flag_only().is_none() && setting.section().as_deref() == section => {
                    self.value(setting, at, value);
                }
                (_, DeValue::Table(inner)) if section.is_none() && self.is_section(name) => {
                    self.table(Some(name), inner);
                }
                _ => {
                    let why = self.unknown(section, name, value);
                    self.wrong(at, &why);
                }
            }
        }
    }

    fn is_section(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| setting.section().as_deref() == Some(name))
    }

    fn value(&mut self, setting: &Setting, at: usize, value: &DeValue<'_>) {
        let origin = Origin::File { path: self.path.into(), line: self.line(at) };
        let texts = match value {
            DeValue::Array(values) if setting.is_list() => {
                values.iter().map(|value| text_of(setting, value.get_ref())).collect::<Result<Vec<_>, _>>()
            }
            value => text_of(setting, value).map(|text| vec![text]),
        };
        match texts {
            Ok(texts) => self.layer.take(setting, Value { texts, origin }),
            Err(found) => {
                self.layer.mistaken.insert(setting.name().to_owned());
                self.wrong(at, &format!("{} is {found}, but must be {}", setting.name(), wanted(setting)));
            }
        }
    }

    /// What is wrong with a key that is no setting's where it stands.
    fn unknown(&self, section: Option<&str>, name: &str, value: &Spanned<DeValue<'_>>) -> String {
        // Also where a setting is called so: `[timeout]`, `[journal]`.
        if section.is_none() && matches!(value.get_ref(), DeValue::Table(_)) {
            let sections = self.settings.iter().filter_map(Setting::section);
            return format!("there is no section [{name}]{}", meant(name, sections, |name| format!("[{name}]")));
        }
        let known = |name: &str| self.settings.iter().find(|setting| setting.name() == name || setting.is_also(name));
        let dashed = name.replace('_', "-");
        if let Some(setting) = known(&dashed) {
            if let Some(why) = setting.flag_only() {
                return format!("{} is only a flag: {why}", setting.name());
            }
            if setting.section().as_deref() != section {
                return format!("the setting {} belongs {}", setting.name(), belongs(setting));
            }
            return format!("{name} is not known; is {} meant?", setting.name());
        }
        if section.is_none() && self.is_section(name) {
            return format!("{name} is a section: [{name}]");
        }
        let settings = self.settings.iter().filter(|setting| setting.flag_only().is_none());
        let names = settings.map(|setting| setting.name().to_owned());
        let within = |name: &str| match known(name) {
            Some(setting) if setting.section().as_deref() != section => format!("{name} {}", belongs(setting)),
            _ => name.to_owned(),
        };
        format!("{name} is not known{}", meant(name, names, within))
    }

    fn wrong(&mut self, at: usize, why: &str) {
        let line = self.line(at);
        self.layer.mistakes.push(Mistake { line, said: format!("{}: {why}", place(self.path, line)) });
    }

    fn line(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }
}

/// The name that may be meant, as a question.
fn meant(name: &str, known: impl Iterator<Item = String>, shown: impl Fn(&str) -> String) -> String {
    let like = known.map(|known| (strsim::jaro_winkler(name, &known), known)).filter(|(alike, _)| *alike > ALIKE);
    let best = like.max_by(|one, other| one.0.total_cmp(&other.0));
    best.map_or_else(String::new, |(_, best)| format!("; is {} meant?", shown(&best)))
}

fn belongs(setting: &Setting) -> String {
    setting.section().map_or_else(|| "at the top, before all sections".to_owned(), |section| format!("in [{section}]"))
}

/// A value as it is written on the command line; otherwise what it is.
fn text_of(setting: &Setting, value: &DeValue<'_>) -> Result<OsString, &'static str> {
    match value {
        DeValue::String(text) => Ok(DeString::as_ref(text).into()),
        DeValue::Integer(number) if setting.takes_numbers() => Ok(decimal(number).into()),
        DeValue::Float(number) if setting.takes_numbers() => Ok(number.as_str().into()),
        DeValue::Boolean(is) if setting.is_switch() => Ok(is.to_string().into()),
        DeValue::Integer(_) | DeValue::Float(_) => Err("a number"),
        DeValue::Boolean(_) => Err("a boolean"),
        DeValue::Datetime(_) => Err("a date"),
        DeValue::Array(_) => Err("an array"),
        DeValue::Table(_) => Err("a table"),
    }
}

/// TOML has numbers to other bases, too. One that is larger than any setting stays as it is, and is refused as that.
fn decimal(number: &DeInteger<'_>) -> String {
    i128::from_str_radix(number.as_str(), number.radix())
        .map_or_else(|_| number.to_string(), |number| number.to_string())
}

/// What a value of a setting looks like.
fn wanted(setting: &Setting) -> String {
    let name = setting.value_name();
    let one = match name {
        _ if setting.is_switch() => "true or false".to_owned(),
        "N" => "a number".to_owned(),
        _ if setting.takes_numbers() => format!("{name}, a number or a string with a unit"),
        _ => format!("{name}, a string"),
    };
    if setting.is_list() { format!("an array, each of {one}") } else { one }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;
    use crate::arguments::address;

    fn settings() -> Vec<Setting> {
        let listen = Arg::new("listen").long("listen").action(ArgAction::Append).value_parser(address);
        let token = Arg::new("token").long("token").value_parser(address).hide_env_values(true).help_heading("Access");
        [listen, token].map(Setting::of).to_vec()
    }

    fn said(layer: &mut Layer) -> Vec<&str> {
        layer.mistakes.sort();
        layer.mistakes.iter().map(|mistake| &*mistake.said).collect()
    }

    #[test]
    fn a_setting_with_several_values_is_an_array_or_one_of_them() {
        for (text, values) in [
            ("listen = ['a', 'b:1']", &["a", "b:1"][..]),
            ("listen = [\n  'a', # the first\n]", &["a"]),
            ("listen = 'a'", &["a"]),
        ] {
            let layer = read(Path::new("f"), text, &settings());
            assert_eq!(layer.mistakes, []);
            assert_eq!(layer.values["listen"].texts, values, "{text}");
        }
        let none = read(Path::new("f"), "listen = []", &settings());
        assert!(none.values.is_empty() && none.mistakes.is_empty(), "that says nothing");
        let mut layer = read(Path::new("f"), "listen = ['a', 3]\n[access]\ntoken = ['a']", &settings());
        let array = "f:1: listen is a number, but must be an array, each of VALUE, a string";
        assert_eq!(said(&mut layer), [array, "f:3: token is an array, but must be VALUE, a string"]);
        assert!(layer.values.is_empty());
    }

    #[test]
    fn a_secret_is_not_repeated_where_it_is_wrong() {
        let mut layer = read(Path::new("f"), "listen = ':hidden'\n[access]\ntoken = ':hidden'", &settings());
        let why = "no host before the port";
        let secret = format!("f:3: invalid value for token: {why}");
        assert_eq!(said(&mut layer), [format!("f:1: invalid value \":hidden\" for listen: {why}"), secret]);
    }

    #[test]
    fn numbers_are_what_toml_says_they_are() {
        let number = Setting::of(Arg::new("n").long("n").value_name("N").value_parser(clap::value_parser!(u64)));
        for (text, value) in [("n = 0x1F", "31"), ("n = 1_000", "1000"), ("n = +7", "7"), ("n = '7'", "7")] {
            let layer = read(Path::new("f"), text, std::slice::from_ref(&number));
            assert_eq!(layer.values["n"].texts, [value], "{text}");
        }
        for text in
            ["n = -1", "n = 1.5", "n = 99999999999999999999999999999999999999999", "n = 1e3", "n = inf", "n = ''"]
        {
            let layer = read(Path::new("f"), text, std::slice::from_ref(&number));
            assert!(layer.values.is_empty() && layer.mistakes.len() == 1, "{text}: {:?}", layer.mistakes);
        }
    }
}
