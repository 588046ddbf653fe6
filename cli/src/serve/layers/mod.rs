//! Where the settings of a server come from. Each is what the highest of these says that says anything: a flag, a variable of
//! the environment, the configuration file, its default.
//!
//! Of each setting the text is found first, by the same rules for all of them, and then all are read as if they stood on a
//! command line: a value means the same wherever it is written. clap's own reading of the environment is not used: its errors
//! name the flag, and an empty variable, which says nothing here, is a value to it.

mod environment;
mod file;
mod setting;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use boltkv_server::Config;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

use super::settings::Settings;
use crate::failure::{Failure, Outcome};

pub(crate) use setting::Setting;

/// The variable that names the file.
const FILE_VARIABLE: &str = "BOLTKV_CONFIG";

/// So many mistakes are told one by one: a file that has more of them is not meant to be a configuration.
const MOST_TOLD: usize = 100;

/// All settings as flags, and which of them are given.
#[derive(Debug, Clone)]
pub(crate) struct Flags(ArgMatches);

/// What a server is told, all layers together.
#[derive(Debug)]
pub(crate) struct Effective {
    /// Every setting that a file can have, in the order of the help.
    pub(crate) values: Vec<Found>,
    pub(crate) settings: Settings,
    pub(crate) config: Config,
    /// The configuration file, where there is one.
    pub(crate) file: Option<PathBuf>,
    /// What looks like a mistake and is none for sure.
    pub(crate) warnings: Vec<String>,
}

/// A setting and what it is.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) setting: Setting,
    pub(crate) value: Value,
}

/// What a layer says of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Value {
    /// As it would be written on the command line; nothing: it is not set.
    pub(crate) texts: Vec<OsString>,
    pub(crate) origin: Origin,
}

/// Where a value stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Variable(String),
    Flag,
}

/// What one layer says.
#[derive(Debug, Default)]
struct Layer {
    /// By the settings' names.
    values: BTreeMap<String, Value>,
    /// What is wrong with it.
    mistakes: Vec<Mistake>,
    /// The settings that this is about.
    mistaken: BTreeSet<String>,
}

/// Something that a server cannot be told. Those of the file come first, in the order of their lines.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Mistake {
    /// `usize::MAX`: not in the file.
    line: usize,
    said: String,
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        command.args(setting::all().iter().map(Setting::option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self(matches.clone());
        Ok(())
    }
}

impl Flags {
    /// All layers as they are now.
    ///
    /// # Errors
    /// The file cannot be read, or a layer has mistakes: all of them.
    pub(crate) fn read(&self) -> Outcome<Effective> {
        let settings = setting::all();
        let path = self.file();
        let mut file = match &path {
            Some(path) => file::read(path, &file::load(path)?, &settings),
            None => Layer::default(),
        };
        let flags = self.given(&settings);
        let mut environment = environment::read(&settings, &flags);
        let unusable: BTreeSet<_> = file.mistaken.iter().chain(&environment.mistaken).cloned().collect();
        let mut mistakes: Vec<_> = file.mistakes.drain(..).chain(environment.mistakes.drain(..)).collect();
        let found = merged(settings, [flags, environment, file]);
        let warnings = environment::misspelt();
        let (settings, config) = match understood(&found) {
            Ok(understood) if mistakes.is_empty() => understood,
            Ok(_) => return Err(failure(mistakes, &warnings)),
            Err(more) => {
                // What is said of a value that stands in for one that cannot be read is of no use.
                mistakes.extend(more.into_iter().filter(|(name, _)| !unusable.contains(name)).map(|(_, said)| said));
                return Err(failure(mistakes, &warnings));
            }
        };
        let values = found.into_iter().filter(|found| found.setting.flag_only().is_none()).collect();
        Ok(Effective { values, settings, config, file: path, warnings })
    }

    /// The configuration file, where there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let flag = self.texts("config").and_then(|texts| texts.into_iter().next());
        flag.or_else(|| environment::variable(FILE_VARIABLE)).map(PathBuf::from)
    }

    fn given(&self, settings: &[Setting]) -> Layer {
        let given = |setting: &Setting| Some((setting.name().to_owned(), self.texts(setting.id())?));
        let value = |(name, texts)| (name, Value { texts, origin: Origin::Flag });
        Layer { values: settings.iter().filter_map(given).map(value).collect(), ..Layer::default() }
    }

    /// What was typed.
    fn texts(&self, id: &str) -> Option<Vec<OsString>> {
        let is_typed = self.0.value_source(id) == Some(ValueSource::CommandLine);
        is_typed.then(|| self.0.get_raw(id).into_iter().flatten().map(ToOwned::to_owned).collect())
    }
}

/// All that is wrong, and what may be, for a misspelt variable can be the reason. What is said twice of a line is told once:
/// the parser says of every bracket that one is missing.
fn failure(mut mistakes: Vec<Mistake>, warnings: &[String]) -> Failure {
    mistakes.sort();
    mistakes.dedup();
    let more = mistakes.len().saturating_sub(MOST_TOLD);
    let rest = (more > 0).then(|| format!("and {more} more mistakes"));
    let said = mistakes.into_iter().take(MOST_TOLD).map(|mistake| mistake.said).chain(rest);
    Failure::Mistakes(said.chain(warnings.iter().map(|warning| format!("warning: {warning}"))).collect())
}

/// Every setting as it is unless told otherwise.
pub(crate) fn defaults() -> Vec<Found> {
    let settings = setting::all().into_iter().filter(|setting| setting.flag_only().is_none());
    merged(settings.collect(), [])
}

/// Each setting's value in the first layer that has one.
fn merged<const N: usize>(settings: Vec<Setting>, mut layers: [Layer; N]) -> Vec<Found> {
    let value = |setting: &Setting| {
        let said = layers.iter_mut().find_map(|layer| layer.values.remove(setting.name()));
        said.unwrap_or_else(|| Value { texts: setting.default(), origin: Origin::Default })
    };
    let values: Vec<_> = settings.iter().map(value).collect();
    settings.into_iter().zip(values).map(|(setting, value)| Found { setting, value }).collect()
}

/// What the values mean.
///
/// # Errors
/// What cannot be used, with the names of the settings.
fn understood(found: &[Found]) -> Result<(Settings, Config), Vec<(String, Mistake)>> {
    let args = found.iter().flat_map(|Found { setting, value }| value.texts.iter().map(|text| setting.flag(text)));
    let command = Flags::augment_args(Command::new("serve").no_binary_name(true));
    // Each value was tried by itself, so that this fails only for what several of them say together.
    let matches = command.try_get_matches_from(args);
    let settings = matches.and_then(|matches| Settings::from_arg_matches(&matches));
    let whole = |error: Error| vec![(String::new(), Mistake { line: usize::MAX, said: error.to_string() })];
    let settings = settings.map_err(whole)?;
    let config = settings.config().map_err(|wrong| {
        let said = wrong.into_iter().map(|wrong| {
            let origin = found.iter().find(|found| found.setting.name() == wrong.setting);
            let origin = origin.map_or(&Origin::Default, |found| &found.value.origin);
            let said = format!("{} {}", origin.naming(&wrong.setting), wrong.why);
            (wrong.setting, Mistake { line: origin.line(), said })
        });
        said.collect::<Vec<_>>()
    })?;
    Ok((settings, config))
}

impl Origin {
    const fn line(&self) -> usize {
        match self {
            Self::File { line, .. } => *line,
            Self::Default | Self::Variable(_) | Self::Flag => usize::MAX,
        }
    }

    /// The name of a setting there, as people find it.
    fn naming(&self, name: &str) -> String {
        match self {
            Self::Default | Self::Flag => format!("--{name}"),
            Self::File { path, line } => format!("{}: {name}", place(path, *line)),
            Self::Variable(variable) => variable.clone(),
        }
    }
}

impl Layer {
    /// Takes a value, or says what is wrong with it.
    fn take(&mut self, setting: &Setting, value: Value) {
        let name = setting.name();
        let wrong = value.texts.iter().find_map(|text| Some((text, setting.check(text).err()?)));
        let Some((text, why)) = wrong else {
            // An empty list says nothing.
            if !value.texts.is_empty() {
                self.values.insert(name.to_owned(), value);
            }
            return;
        };
        let shown = if setting.is_secret() { String::new() } else { format!("{:?} ", text.to_string_lossy()) };
        let said = match &value.origin {
            Origin::File { path, line } => format!("{}: invalid value {shown}for {name}: {why}", place(path, *line)),
            Origin::Variable(variable) => format!("invalid value {shown}for {variable}: {why}"),
            Origin::Default | Origin::Flag => format!("invalid value {shown}for --{name}: {why}"),
        };
        self.mistaken.insert(name.to_owned());
        self.mistakes.push(Mistake { line: value.origin.line(), said });
    }
}

/// A line of a file, as compilers write it.
fn place(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.display())
}
