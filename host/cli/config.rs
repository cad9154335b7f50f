//! `tollhouse config`.

use clap::Subcommand;
use serde_json::json;
use tollhouse::config::{
    Config, check, describe,
    layers::{Parsed, Source},
};

use super::{
    failure::Failure,
    output::{Report, left, text},
};

#[derive(Subcommand)]
pub enum Command {
    /// Say which settings count and where they come from, and all that is wrong with them
    #[command(after_help = "\
It takes what `serve` takes, and starts nothing.

Examples:
  tollhouse config check --config /etc/tollhouse/tollhouse.toml
  tollhouse config check --json | jq -r '.settings[] | select(.source != \"default\")'")]
    Check {
        #[command(flatten)]
        config: Box<Config>,
    },
    /// Print a settings file with every setting and its default
    #[command(after_help = "Example:\n  tollhouse config example > tollhouse.toml")]
    Example,
}

impl Command {
    pub async fn run(self, parsed: &Parsed) -> Result<Report, Failure> {
        match self {
            Command::Check { config } => check(&config, parsed).await,
            Command::Example => {
                let example = describe::example();
                Ok(Report::new(json!({ "example": example }), example))
            }
        }
    }
}

async fn check(config: &Config, parsed: &Parsed) -> Result<Report, Failure> {
    let wrong = check::problems(config);
    if !wrong.is_empty() {
        return Err(Failure::settings(wrong));
    }
    let settings = describe::settings().into_iter().map(|setting| {
        let source = match parsed.source(&setting.key) {
            Source::Flag => "flag",
            Source::Variable => "variable",
            Source::File => "file",
            Source::Default => "default",
        };
        let value = match &*setting.key {
            "database" => Some(config.database.database.to_string()),
            key => parsed.text(key),
        };
        json!({ "setting": setting.key, "value": value, "source": source })
    });
    let settings = serde_json::Value::from_iter(settings);
    let columns = [
        left("SETTING", |v| text(&v["setting"])),
        left("SOURCE", |v| text(&v["source"])),
        left("VALUE", |v| text(&v["value"])),
    ];
    Ok(Report::table(json!({ "settings": settings }), &settings, &columns))
}
