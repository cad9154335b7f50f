//! Describes the settings: as a commented settings file and as the table of `docs/OPERATING.md`.

use clap::{Arg, ArgAction, Args, Command};

use super::{Config, Remote};

/// Returns a command with every setting as a flag.
pub fn command() -> Command {
    Remote::augment_args(Config::augment_args(Command::new("settings")))
}

#[derive(Clone, Debug)]
pub struct Setting {
    /// The key in the settings file; with dashes, the flag.
    pub key: String,
    pub variable: String,
    pub topic: String,
    /// The unit of the value, or its kind.
    pub unit: String,
    pub default: Option<String>,
    pub is_list: bool,
    pub help: String,
}

pub fn settings() -> Vec<Setting> {
    let command = command();
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter(|arg| arg.get_long() != Some("help")).map(setting).collect()
}

fn setting(arg: &Arg) -> Setting {
    let default: Vec<_> = arg.get_default_values().iter().map(|v| v.to_string_lossy()).collect();
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string);
    let choices: Vec<_> = match arg.get_value_parser().possible_values() {
        Some(choices) => choices.map(|choice| choice.get_name().to_owned()).collect(),
        None => Vec::new(),
    };
    let named = arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    Setting {
        key: arg.get_id().to_string(),
        variable: arg.get_env().unwrap_or_default().to_string_lossy().into_owned(),
        topic: arg.get_help_heading().unwrap_or_default().to_owned(),
        unit: if choices.is_empty() { named.unwrap_or_default() } else { choices.join(" or ") },
        default: (!default.is_empty()).then(|| default.join(",")),
        is_list: matches!(arg.get_action(), ArgAction::Append),
        help: help.unwrap_or_default().replace('\n', " "),
    }
}

impl Setting {
    pub fn flag(&self) -> String {
        format!("--{}", self.key.replace('_', "-"))
    }

    /// Returns the default as TOML, or an empty value of its type.
    fn in_toml(&self) -> String {
        match &self.default {
            Some(default) if self.is_list => {
                toml::Value::from(default.split(',').collect::<Vec<_>>()).to_string()
            }
            None if self.is_list => "[]".to_owned(),
            Some(default) if default.parse::<i64>().is_ok() || default.parse::<bool>().is_ok() => {
                default.clone()
            }
            default => toml::Value::from(default.clone().unwrap_or_default()).to_string(),
        }
    }
}

/// Returns a settings file in which every setting is commented out.
pub fn example() -> String {
    let head = "\
        # Settings of Tollhouse. Commented lines show the default, or \"\" if there is none.\n\
        # A variable (TOLLHOUSE_…) overrides this file, and a flag overrides the variable.\n\
        # `tollhouse config check --config FILE` prints errors and the effective values.\n";
    let topics = by_topic(
        |topic| format!("\n# ---- {topic} ----\n"),
        |setting| {
            let Setting { key, unit, help, .. } = setting;
            format!("\n# {help} ({unit})\n#{key} = {}\n", setting.in_toml())
        },
    );
    head.to_owned() + &topics
}

/// Returns the table of all settings in Markdown.
pub fn table() -> String {
    let head = "| Flag | Variable | Unit | Default | Description |\n|---|---|---|---|---|";
    by_topic(
        |topic| format!("\n**{topic}**\n\n{head}\n"),
        |setting| {
            let default = setting.default.as_ref().map_or("–".to_owned(), |d| format!("`{d}`"));
            let Setting { variable, unit, help, .. } = &setting;
            format!("| `{}` | `{variable}` | {unit} | {default} | {help} |\n", setting.flag())
        },
    )
}

fn by_topic(head: impl Fn(&str) -> String, line: impl Fn(&Setting) -> String) -> String {
    let settings = settings();
    let topics = settings.chunk_by(|a, b| a.topic == b.topic);
    let topic = |settings: &[Setting]| -> String {
        let lines: String = settings.iter().map(&line).collect();
        head(&settings[0].topic) + &lines
    };
    topics.map(topic).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_variable_and_key_of_a_setting_share_a_name() {
        for arg in command().get_arguments() {
            let key = arg.get_id().as_str();
            assert_eq!(arg.get_long().map(|flag| flag.replace('-', "_")).as_deref(), Some(key));
            let variable = arg.get_env().unwrap_or_default().to_string_lossy().into_owned();
            assert_eq!(variable, format!("TOLLHOUSE_{}", key.to_uppercase()));
        }
        for setting in settings() {
            let Setting { key, unit, help, topic, .. } = &setting;
            assert!(![unit, help, topic].iter().any(|text| text.is_empty()), "{key} lacks some");
            assert_ne!(unit, key, "the unit of {key} is only its name");
        }
    }
}
