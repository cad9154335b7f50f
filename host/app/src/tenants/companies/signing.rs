//! Secrets that sign events, in the format of Standard Webhooks, and their rotation.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

use crate::state::{prelude::*, storage::SealedColumn};
use tollhouse_platform::random::Random;

/// Time for which the previous secret also signs events.
const OVERLAP_SECONDS: i64 = 24 * 3600;

pub fn new_event_secret(random: &Random) -> String {
    format!("whsec_{}", BASE64.encode(random.bytes::<32>()))
}

/// The sealed secrets in a row.
pub struct SigningSecret<'r> {
    /// The columns of the current and the previous secret.
    pub columns: [&'static SealedColumn; 2],
    /// The company and the id of the row.
    pub row: [&'r str; 2],
    pub current: &'r str,
    pub previous: Option<&'r str>,
    pub previous_until: Option<Timestamp>,
}

/// The sealed secrets after a rotation.
pub struct RotatedSecret {
    pub current: String,
    pub previous: Option<String>,
    pub previous_until: Timestamp,
}

impl SigningSecret<'_> {
    /// Returns the secrets that sign, the current one first. A previous secret that cannot be
    /// opened is omitted: receivers that know the current one still accept the events.
    pub fn open(&self, app: &App) -> Result<Vec<String>> {
        let [current, previous] = self.columns;
        let mut secrets = vec![current.open(&app.sealer, self.row, self.current)?];
        let signs = self.previous_until.is_some_and(|until| until > app.clock.now());
        if let Some(sealed) = self.previous.filter(|_| signs) {
            match previous.open(&app.sealer, self.row, sealed) {
                Ok(secret) => secrets.push(secret),
                Err(error) => tracing::warn!(
                    company = self.row[0],
                    %error,
                    "previous event secret cannot be opened; events are signed without it"
                ),
            }
        }
        Ok(secrets)
    }

    /// Replaces the secret. The old one becomes the previous one, unless it cannot be opened.
    pub fn rotate(&self, app: &App, new: &str) -> RotatedSecret {
        let [current, previous] = self.columns;
        let [company, id] = self.row;
        let former = current.open(&app.sealer, self.row, self.current).inspect_err(|error| {
            tracing::warn!(
                company,
                %error,
                "event secret cannot be opened; events are signed with the new one only"
            );
        });
        let seal_previous =
            |former: String| app.sealer.seal(&(previous.context)(company, id), &former);
        RotatedSecret {
            current: app.sealer.seal(&(current.context)(company, id), new),
            previous: former.ok().map(seal_previous),
            previous_until: app.clock.now().plus_seconds(OVERLAP_SECONDS),
        }
    }
}
