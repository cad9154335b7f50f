//! What of the settings cannot go together, or cannot be used.

use url::Url;

use super::{Config, ConfigError};
use crate::{random::Random, seal::Sealer};

/// So short a token can be guessed.
const LEAST_TOKEN_CHARACTERS: usize = 20;

/// Everything that is wrong, without asking anybody: only files are read.
#[must_use]
pub fn problems(config: &Config) -> Vec<ConfigError> {
    let found = [
        database(config),
        config.listeners.public().map(drop),
        config.listeners.internal().map(drop),
        operator_token(config),
        master_key(config),
        public_url(config),
        development(config),
    ];
    found.into_iter().filter_map(Result::err).collect()
}

fn refuse(what: impl Into<String>) -> Result<(), ConfigError> {
    Err(ConfigError(what.into()))
}

fn database(config: &Config) -> Result<(), ConfigError> {
    config.database.url().map(drop)
}

fn operator_token(config: &Config) -> Result<(), ConfigError> {
    let token = config.operator_token.read()?;
    if !token.bytes().all(|b| b.is_ascii_graphic()) || token.len() < LEAST_TOKEN_CHARACTERS {
        return refuse(format!(
            "the operator's token must be at least {LEAST_TOKEN_CHARACTERS} visible characters without blanks"
        ));
    }
    Ok(())
}

fn master_key(config: &Config) -> Result<(), ConfigError> {
    let keys = config.master_key.read()?;
    Sealer::new(&keys, Random::seeded(0)).map(drop).map_err(|error| ConfigError(error.to_string()))
}

fn public_url(config: &Config) -> Result<(), ConfigError> {
    let listeners = &config.listeners;
    match &listeners.public_url {
        None if listeners.listen.ip().is_unspecified() => refuse(
            "public_url is needed: listen names no address that providers could send notifications to",
        ),
        None => Ok(()),
        Some(url) => match Url::parse(url) {
            Ok(parsed)
                if ["http", "https"].contains(&parsed.scheme()) && parsed.query().is_none() =>
            {
                Ok(())
            }
            _ => refuse("public_url must be an http or https URL without a query"),
        },
    }
}

fn development(config: &Config) -> Result<(), ConfigError> {
    let listeners = [config.listeners.listen, config.listeners.internal_listen];
    if config.service.development && listeners.iter().any(|address| !address.ip().is_loopback()) {
        return refuse(
            "development is for loopback only: it lets the clock be moved. Take it away, or listen on 127.0.0.1",
        );
    }
    Ok(())
}
