//! What is known of one setting: all of it is what its option of the command line says.

use std::error::Error as _;
use std::ffi::{OsStr, OsString};

use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args as _, Command, Error};

use crate::arguments::why_no_value;
use crate::serve::settings::{FLAGS_ONLY, Settings};

/// What a switch takes: `--read-only`, or `--read-only=false` where the file says that it is on.
const BOOL: &str = "BOOL";

/// What stands for values that are written as numbers, too.
const NUMBERS: [&str; 4] = ["N", "SIZE", "TIME", "SIZE|TIME"];

/// What variables begin with.
pub(crate) const PREFIX: &str = "BOLTKV_";

/// A variable that many programs know, and the setting that it is for where ours says nothing.
const USUAL: (&str, &str) = ("log", "RUST_LOG");

/// One thing that a server can be told.
#[derive(Debug, Clone)]
pub(crate) struct Setting(Arg);

/// All settings in the order of the help, those that are only flags among them.
pub(super) fn all() -> Vec<Setting> {
    let command = Settings::augment_args(Command::new("serve"));
    command.get_arguments().cloned().map(|arg| Setting(as_switch(arg))).collect()
}

/// A flag without a value takes one, so that it can also be turned off.
fn as_switch(arg: Arg) -> Arg {
    if !matches!(arg.get_action(), ArgAction::SetTrue) {
        return arg;
    }
    let arg = arg.action(ArgAction::Set).num_args(0..=1).require_equals(true).value_parser(BoolishValueParser::new());
    let arg = arg.default_value("false").default_missing_value("true").value_name(BOOL);
    arg.hide_default_value(true).hide_possible_values(true)
}

impl Setting {
    #[cfg(test)]
    pub(crate) const fn of(option: Arg) -> Self {
        Self(option)
    }

    /// Its name: the flag's without the dashes, and the key's in the file.
    pub(crate) fn name(&self) -> &str {
        self.0.get_long().unwrap_or_else(|| self.id())
    }

    pub(super) fn id(&self) -> &str {
        self.0.get_id().as_str()
    }

    pub(super) const fn option(&self) -> &Arg {
        &self.0
    }

    /// The table of the file that it is in: its heading in the help. `None`: at the top, before all tables.
    pub(crate) fn section(&self) -> Option<String> {
        self.0.get_help_heading().map(str::to_lowercase)
    }

    /// Why it is a flag and nothing else, where it is.
    pub(super) fn flag_only(&self) -> Option<&'static str> {
        FLAGS_ONLY.iter().find(|(name, _)| *name == self.name()).map(|(_, why)| *why)
    }

    /// Whether this is a former name of it, or one that flags may have besides.
    pub(super) fn is_also(&self, name: &str) -> bool {
        self.0.get_all_aliases().is_some_and(|names| names.contains(&name))
    }

    /// The variables that set it, the first one before the others.
    pub(super) fn variables(&self) -> Vec<String> {
        let ours = format!("{PREFIX}{}", self.name().to_uppercase().replace('-', "_"));
        let usual = (self.name() == USUAL.0).then(|| USUAL.1.to_owned());
        [ours].into_iter().chain(usual).collect()
    }

    /// Whether its value must not be seen: it is never printed, and what its parser says of it must not repeat it.
    pub(crate) fn is_secret(&self) -> bool {
        self.0.is_hide_env_values_set()
    }

    pub(crate) fn is_switch(&self) -> bool {
        self.value_name() == BOOL
    }

    /// Whether it has any number of values: an array in the file, commas between them in a variable.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.0.get_action(), ArgAction::Append)
    }

    /// Whether the file may have a number.
    pub(crate) fn takes_numbers(&self) -> bool {
        NUMBERS.contains(&self.value_name())
    }

    /// What stands for its value in the help.
    pub(crate) fn value_name(&self) -> &str {
        self.0.get_value_names().and_then(|names| names.first()).map_or("VALUE", |name| name.as_str())
    }

    /// What it is unless told otherwise; nothing where it is then not set.
    pub(super) fn default(&self) -> Vec<OsString> {
        self.0.get_default_values().iter().map(|value| value.as_os_str().to_owned()).collect()
    }

    /// What it does.
    pub(crate) fn help(&self) -> String {
        let help = self.0.get_long_help().or_else(|| self.0.get_help());
        help.map(ToString::to_string).unwrap_or_default()
    }

    /// As it is written on the command line.
    pub(super) fn flag(&self, value: &OsStr) -> OsString {
        let mut flag = OsString::from(format!("--{}=", self.name()));
        flag.push(value);
        flag
    }

    /// Whether its parser takes this.
    pub(super) fn check(&self, value: &OsStr) -> Result<(), String> {
        let command = Command::new("check").no_binary_name(true).arg(self.0.clone());
        command.try_get_matches_from([self.flag(value)]).map(drop).map_err(|error| why(&error))
    }
}

/// What a parser says of a value, without the flag's name and the value around it.
fn why(error: &Error) -> String {
    if let Some(source) = error.source() {
        return why_no_value(source);
    }
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => format!("it can be {}", values.join(", ")),
        _ => "there is no value".to_owned(),
    }
}
