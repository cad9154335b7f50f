//! Layers of settings: flag, then variable, then settings file, then default.
//!
//! Values of the file become the defaults of the flags, so that clap itself applies this order. All
//! errors in the file and the variables are reported together.

use std::{ffi::OsString, fs, iter::successors, path::PathBuf};

use clap::{Arg, ArgMatches, Command, parser::ValueSource};
use toml::{Table, Value};

use super::secrets;
use crate::config::{ConfigError, database::DatabaseUrl};

/// The flag that names the settings file; the only setting that the file cannot contain.
pub const CONFIG_FLAG: &str = "config";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSource {
    Flag,
    Variable,
    File,
    Default,
}

/// A parsed command line, completed from variables and file.
pub struct ParsedSettings {
    pub matches: ArgMatches,
    /// Errors in the file and the variables. Invalid values are ignored, to check the rest too.
    pub errors: Vec<ConfigError>,
    /// Keys that the file sets.
    in_file: Vec<String>,
}

impl ParsedSettings {
    /// Returns the source of a setting's value in the given command.
    pub fn source(&self, key: &str) -> SettingSource {
        let given = innermost_matches(&self.matches);
        let known = given.try_contains_id(key).is_ok();
        match known.then(|| given.value_source(key)).flatten() {
            Some(ValueSource::CommandLine) => SettingSource::Flag,
            Some(ValueSource::EnvVariable) => SettingSource::Variable,
            _ if self.in_file.iter().any(|set| set == key) => SettingSource::File,
            _ => SettingSource::Default,
        }
    }

    /// Refuses a flag that shows a password in the process list, and setting both `database` and
    /// `database_file`.
    fn database_error(&self) -> Option<ConfigError> {
        let url: Option<DatabaseUrl> = self.raw_value("database")?.parse().ok();
        let given = self.source("database");
        let fault = if given == SettingSource::Flag && url.is_some_and(|url| url.has_password()) {
            "--database would show its password in the process list: set TOLLHOUSE_DATABASE to the URL, or database_file to a file that contains it"
        } else if given != SettingSource::Default
            && self.source("database_file") != SettingSource::Default
        {
            "database and database_file are both set: set only one of them"
        } else {
            return None;
        };
        Some(ConfigError(fault.to_owned()))
    }

    /// Returns an error for each secret that both a file and a variable set, because it would be
    /// unclear which one applies. A file that is named by a flag overrides the variable.
    fn conflicting_secrets(&self) -> Vec<ConfigError> {
        let twice = secrets::SECRET_SOURCES.iter().filter_map(|(setting, variable)| {
            let set = std::env::var_os(variable).is_some_and(|value| !value.is_empty());
            self.raw_value(setting).filter(|_| set)?;
            let place = match self.source(setting) {
                SettingSource::Flag | SettingSource::Default => return None,
                SettingSource::Variable => format!("{variable}_FILE"),
                SettingSource::File => {
                    format!("{setting} in {}", settings_file(&self.matches)?.display())
                }
            };
            let text = format!("{place} and {variable} are both set: remove one of them");
            Some(ConfigError(text))
        });
        twice.collect()
    }

    /// Returns the raw value of a setting, if the command accepts it and it has one.
    pub fn raw_value(&self, key: &str) -> Option<String> {
        let values = innermost_matches(&self.matches).try_get_raw(key).ok()??;
        Some(values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(","))
    }
}

/// Parses `arguments`, the first of which is the program name. `settings` has every setting as a
/// flag. Fails if the arguments are invalid or request help.
pub fn parse(
    command: Command,
    settings: &Command,
    arguments: Vec<OsString>,
) -> Result<ParsedSettings, clap::Error> {
    let command = map_arguments(command, &|arg| match env_value(&arg) {
        None if arg.get_id() == CONFIG_FLAG => arg.env(None::<&str>),
        _ => arg,
    });
    let flags = map_settings(command.clone(), &|arg| arg.env(None::<&str>));
    let flags = flags.try_get_matches_from(&arguments)?;
    let mut wrong = Vec::new();
    // A command without settings, such as the one that creates the file, works without it.
    let given = given_commands(&command, &flags);
    let file = settings_file(&flags)
        .filter(|_| given.iter().any(|one| one.get_arguments().any(is_setting)));
    let file = file.map_or_else(Vec::new, |path| read_file(path, settings, &mut wrong));
    check_variables(&given, settings, &mut wrong);
    let complete = map_settings(command, &|arg| {
        let key = arg.get_id().to_string();
        let is_usable = |value| value_error(settings, &key, &[value]).is_none();
        let has_variable = env_value(&arg).is_some_and(is_usable);
        let arg = if has_variable { arg } else { arg.env(None::<&str>) };
        match file.iter().find(|(set, _)| *set == key) {
            Some((_, values)) => arg.default_values(values.clone()),
            None => arg,
        }
    });
    let matches = complete.try_get_matches_from(&arguments)?;
    let in_file = file.into_iter().map(|(key, _)| key).collect();
    let mut parsed = ParsedSettings { matches, errors: wrong, in_file };
    parsed.errors.extend(parsed.database_error());
    parsed.errors.extend(parsed.conflicting_secrets());
    Ok(parsed)
}

/// Returns the matches of the innermost command.
fn innermost_matches(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    matches
}

/// Returns the path of the settings file, if one is given.
fn settings_file(matches: &ArgMatches) -> Option<&PathBuf> {
    innermost_matches(matches).try_get_one(CONFIG_FLAG).ok().flatten()
}

fn is_setting(arg: &Arg) -> bool {
    arg.get_env().is_some() && arg.get_id() != CONFIG_FLAG
}

fn map_settings(command: Command, change: &impl Fn(Arg) -> Arg) -> Command {
    map_arguments(command, &|arg| if is_setting(&arg) { change(arg) } else { arg })
}

fn map_arguments(command: Command, change: &impl Fn(Arg) -> Arg) -> Command {
    command.mut_args(change).mut_subcommands(|inner| map_arguments(inner, change))
}

/// Returns the commands that the arguments name, the outermost first.
fn given_commands<'c>(command: &'c Command, given: &'c ArgMatches) -> Vec<&'c Command> {
    let inner = |&(command, given): &(&'c Command, &'c ArgMatches)| {
        let (name, given) = given.subcommand()?;
        Some((command.find_subcommand(name)?, given))
    };
    successors(Some((command, given)), inner).map(|(command, _)| command).collect()
}

/// Returns the value of a setting's variable. An empty one counts as unset.
fn env_value(arg: &Arg) -> Option<String> {
    let value = std::env::var_os(arg.get_env()?).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

/// Checks the variables of the given commands only: others may be set for other commands.
fn check_variables(given: &[&Command], settings: &Command, wrong: &mut Vec<ConfigError>) {
    let args = given.iter().rev().flat_map(|command| command.get_arguments());
    for arg in args.filter(|arg| is_setting(arg)) {
        let (Some(value), Some(name)) = (env_value(arg), arg.get_env()) else { continue };
        if let Some(what) = value_error(settings, arg.get_id().as_str(), &[value]) {
            wrong.push(ConfigError(format!("{}: {what}", name.to_string_lossy())));
        }
    }
}

/// Returns the keys and values of a settings file, the values in the form of flag arguments.
fn read_file(
    path: &PathBuf,
    known: &Command,
    wrong: &mut Vec<ConfigError>,
) -> Vec<(String, Vec<String>)> {
    let mut refuse = |what: String| wrong.push(ConfigError(format!("{}: {what}", path.display())));
    let table = parse_file(path).unwrap_or_else(|what| {
        refuse(what);
        Table::new()
    });
    let mut settings = Vec::new();
    for (key, value) in table {
        match to_flag_values(&value) {
            None => refuse(format!(
                "{key}: it must be a string, a number, true, false or a list of them"
            )),
            Some(values) => match value_error(known, &key, &values) {
                Some(what) => refuse(format!("{key}: {what}")),
                None => settings.push((key, values)),
            },
        }
    }
    settings
}

fn parse_file(path: &PathBuf) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    text.parse().map_err(|error: toml::de::Error| {
        // Omits the line itself: it may contain a password.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map_or(1, |before| before.matches('\n').count() + 1);
        format!("line {line}: {}", error.message())
    })
}

fn to_flag_values(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Integer(_) | Value::Boolean(_) => Some(vec![value.to_string()]),
        Value::Float(number) => Some(vec![number.to_string()]),
        Value::Array(values) => {
            let values: Option<Vec<_>> = values.iter().map(to_flag_values).collect();
            values
                .filter(|values| values.iter().all(|one| one.len() == 1))
                .map(|values| values.concat())
        }
        Value::Datetime(_) | Value::Table(_) => None,
    }
}

/// Returns clap's error for the values of a setting, if they are invalid.
fn value_error(settings: &Command, key: &str, values: &[String]) -> Option<String> {
    let settings = map_settings(settings.clone(), &|arg| arg.env(None::<&str>));
    if key.contains('-') || settings.get_arguments().all(|arg| arg.get_id() != key) {
        return Some(format!("unknown setting{}", suggestion(settings, key)));
    }
    let flag = |value: &String| format!("--{}={value}", key.replace('_', "-"));
    let arguments = std::iter::once("settings".to_owned()).chain(values.iter().map(flag));
    let error = settings.try_get_matches_from(arguments).err()?;
    if error.kind() == clap::error::ErrorKind::ArgumentConflict {
        return Some("it takes one value, not several".to_owned());
    }
    let mut message = error.to_string();
    // Such values may contain a password.
    let may_hold = |value: &&String| value.contains('@') || value.contains("password");
    for value in values.iter().filter(may_hold) {
        message = message.replace(value.as_str(), "…");
    }
    let lines: Vec<&str> =
        message.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    Some(lines.join(" ").trim_start_matches("error: ").to_owned())
}

/// Returns the end of the error for an unknown key: the most similar setting, if there is one.
fn suggestion(settings: Command, key: &str) -> String {
    let flag = format!("--{}=", key.replace('_', "-"));
    let error = settings.try_get_matches_from(["settings", &flag]).err();
    let meant = error.as_ref().and_then(|error| error.get(clap::error::ContextKind::SuggestedArg));
    match meant {
        Some(meant) => {
            let meant = meant.to_string();
            format!("; did you mean {}?", meant.trim_start_matches('-').replace('-', "_"))
        }
        None if key.contains('-') => format!("; did you mean {}?", key.replace('-', "_")),
        None => "; `tollhouse config example` lists all settings".to_owned(),
    }
}
