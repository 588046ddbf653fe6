//! Settings from variables of the environment. One that is empty says nothing: scripts and compose files leave such behind.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use clap::{Command, CommandFactory as _};

use super::setting::{self, PREFIX, Setting};
use super::{FILE_VARIABLE, Layer, Origin, Value};
use crate::remote::{TOKEN, TOKEN_FILE};

/// What a variable says, if anything.
pub(super) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// What variables say of the settings. Of those that flags set already, only our own variables are looked at: others may be
/// meant for another program.
pub(super) fn read(settings: &[Setting], flags: &Layer) -> Layer {
    let mut layer = Layer::default();
    for setting in settings.iter().filter(|setting| setting.flag_only().is_none()) {
        let is_given = flags.values.contains_key(setting.name());
        let usual = if is_given { 1 } else { usize::MAX };
        let said = setting.variables().into_iter().take(usual).find_map(|name| Some((variable(&name)?, name)));
        if let Some((text, name)) = said {
            let texts = if setting.is_list() { separated(&text) } else { vec![text] };
            layer.take(setting, Value { texts, origin: Origin::Variable(name) });
        }
    }
    layer
}

/// What commas stand between.
fn separated(text: &OsStr) -> Vec<OsString> {
    let parts = text.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    parts.filter(|part| !part.is_empty()).map(|part| OsString::from_vec(part.to_vec())).collect()
}

/// Warnings of variables that look like a setting's and are none: nobody reads them. Names that are not like any are others'
/// matter, such as what Kubernetes sets for a service called `boltkv`.
pub(super) fn misspelt() -> Vec<String> {
    let set = env::vars_os().filter(|(_, value)| !value.is_empty());
    let names = set.filter_map(|(name, _)| name.into_string().ok()).filter(|name| name.starts_with(PREFIX));
    let names: Vec<_> = names.collect();
    if names.is_empty() {
        return Vec::new();
    }
    let settings: Vec<_> = setting::all().iter().flat_map(Setting::variables).chain([FILE_VARIABLE.into()]).collect();
    let mut known: BTreeSet<_> = settings.iter().cloned().collect();
    of_commands(&crate::Cli::command(), &mut known);
    known.extend([TOKEN, TOKEN_FILE].map(str::to_owned));
    let unknown = names.iter().filter(|name| !known.contains(*name));
    let misspelt = unknown.filter_map(|name| {
        let meant = closest(name, &settings)?;
        Some(format!("the variable {name} is not known; is {meant} meant?"))
    });
    misspelt.chain(only_flags(&names)).collect()
}

/// Warnings of variables whose settings are flags and nothing else.
fn only_flags(names: &[String]) -> Vec<String> {
    let warning = |setting: &Setting| {
        let (flag, why) = (setting.name(), setting.flag_only()?);
        let name = setting.variables().into_iter().find(|name| *name != FILE_VARIABLE && names.contains(name))?;
        Some(format!("the variable {name} says nothing: --{flag} is only a flag, because {why}"))
    };
    setting::all().iter().filter_map(warning).collect()
}

/// The variables that this command and those within it read.
fn of_commands(command: &Command, known: &mut BTreeSet<String>) {
    let variables = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str());
    known.extend(variables.map(ToOwned::to_owned));
    command.get_subcommands().for_each(|inner| of_commands(inner, known));
}

/// The setting's variable that a name was meant for, where it is one letter in four apart at most.
fn closest<'a>(name: &str, settings: &'a [String]) -> Option<&'a str> {
    let most = (name.len() - PREFIX.len()) / 4;
    let apart = |other: &String| strsim::damerau_levenshtein(name, other);
    settings.iter().filter(|other| apart(other) <= most).min_by_key(|other| apart(other)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_a_variable_has_commas_between_its_parts() {
        assert_eq!(separated(OsStr::new("a, b,,c")), ["a", "b", "c"]);
        assert_eq!(separated(OsStr::new("a")), ["a"]);
    }

    #[test]
    fn a_misspelt_name_is_told_from_others_matters() {
        let settings: Vec<_> = setting::all().iter().flat_map(Setting::variables).collect();
        for (name, meant) in [
            ("BOLTKV_MAX_FRAMES", "BOLTKV_MAX_FRAME"),
            ("BOLTKV_LISTN", "BOLTKV_LISTEN"),
            ("BOLTKV_JOURNALSIZE", "BOLTKV_JOURNAL_SIZE"),
        ] {
            assert_eq!(closest(name, &settings), Some(meant));
        }
        let others = ["PORT", "SERVICE_HOST", "SERVICE_PORT", "PORT_7878_TCP_ADDR", "SEED", "REQUIRE_TOOLS", "X", ""];
        for other in others {
            assert_eq!(closest(&format!("{PREFIX}{other}"), &settings), None, "{other}");
        }
    }
}
