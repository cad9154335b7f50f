//! `tollhouse config`.

use tollhouse_app::state::config::{Config, Remote, check, describe};
use tollhouse_platform::{
    config::{
        database::{DatabaseUrl, hide_passwords},
        layers::{ParsedSettings, SettingSource},
    },
    store,
};
use url::Url;

use super::init::init;
use crate::prelude::*;

#[derive(Subcommand)]
pub enum Command {
    /// Show the effective settings with their sources, and all problems
    #[command(after_help = "\
Accepts the settings of `serve`, reads the same files, and starts nothing.

Examples:
  tollhouse config check --config /etc/tollhouse/tollhouse.toml
  tollhouse config check --json | jq '.settings[] | select(.source != \"default\")'")]
    Check {
        #[command(flatten)]
        config: Box<Config>,
        #[command(flatten)]
        remote: Remote,
    },
    /// Create a folder with a settings file, a master key and an operator token
    #[command(after_help = "Example:\n  tollhouse config init /etc/tollhouse")]
    Init {
        /// Folder, created if it does not exist; no file in it is overwritten
        folder: PathBuf,
    },
    /// Print a settings file with all settings and their defaults
    #[command(after_help = "Example:\n  tollhouse config example > tollhouse.toml")]
    Example,
}

impl Command {
    pub async fn run(self, parsed: &ParsedSettings) -> Result {
        match self {
            Command::Check { config, remote } => Ok(report(&config, &remote, parsed).await),
            Command::Init { folder } => init(&folder),
            Command::Example => {
                let example = describe::example();
                Ok(Report::new(json!({ "example": example }), example))
            }
        }
    }
}

async fn report(config: &Config, remote: &Remote, parsed: &ParsedSettings) -> Report {
    let mut problems = parsed.errors.clone();
    problems.extend(check::problems(config));
    problems.extend(remote.url().err());
    let mut problems: Vec<String> = problems.into_iter().map(|problem| problem.0).collect();
    let mut warnings = check::warnings(config);
    if let Ok(url) = config.database.url() {
        match database(config, &url).await {
            Ok(0) => {}
            Ok(n) => warnings.push(format!("migrations not applied yet: {n}; serve applies them")),
            Err(error) => problems.push(format!("database {url}: {}", chain(&error))),
        }
    }
    let settings = settings(config, parsed);
    let text = table(&settings, "setting, from: source, value");
    let json = json!({ "settings": settings, "problems": problems, "warnings": warnings });
    let mut report = Report::new(json, text);
    for warning in warnings {
        report = report.with_note(&format!("Warning: {warning}."));
    }
    match problems.is_empty() {
        true => report.with_note("No problems found."),
        false => report.with_failure(Failure::refused(problems.join("\n"))),
    }
}

/// Returns the number of migrations that `serve` would apply. Fails if `serve` would not start.
async fn database(config: &Config, url: &DatabaseUrl) -> store::Result<usize> {
    if url.is_sqlite() || config.service.development {
        return store::missing_migrations(url.expose()).await;
    }
    store::check_server(url.expose(), config.database.role_policy()).await.map(|()| 0)
}

/// Returns the effective settings, without secrets.
fn settings(config: &Config, parsed: &ParsedSettings) -> Value {
    let each = describe::settings().into_iter().map(|setting| {
        let source = match parsed.source(&setting.key) {
            SettingSource::Flag => "flag",
            SettingSource::Variable => "variable",
            SettingSource::File => "file",
            SettingSource::Default => "default",
        };
        let value = match &*setting.key {
            "database" => Some(config.database.database.to_string()),
            // Any setting may be a URL with a password.
            key => parsed.raw_value(key).map(|text| {
                let hidden = Url::parse(&text).ok().and_then(hide_passwords);
                hidden.map_or(text, String::from)
            }),
        };
        json!({ "setting": setting.key, "value": value, "source": source })
    });
    Value::from_iter(each)
}
