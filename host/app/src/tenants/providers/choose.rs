//! The choice of a provider for a request.

use crate::{state::App, tenants::companies::Company};
use tollhouse_http::request::body::Fields;
use tollhouse_platform::error::Result;
use tollhouse_plugins::PluginKind;

/// Specified values of `payment_service`. Those not installed are rejected as not configured.
const SPECIFIED_PROVIDERS: [&str; 3] = ["provider_a", "provider_b", "provider_c"];

/// Returns the requested provider, else the company's default, else the default of the service. 400
/// if the requested one is unknown or deactivated; 503 if it is not ready on this host.
pub fn choose_provider(
    app: &App,
    company: &Company,
    sent: Option<&str>,
    fields: &Fields,
) -> Result<String> {
    if let Some((name, absence)) =
        sent.and_then(|name| Some((name, app.plugins.unavailability(name)?)))
    {
        return Err(absence.to_error(name));
    }
    let installed = app.plugins.names(PluginKind::Provider);
    let mut known: Vec<&str> = installed.iter().map(String::as_str).collect();
    known.extend(SPECIFIED_PROVIDERS.iter().filter(|name| !installed.iter().any(|i| i == *name)));
    sent.iter().try_for_each(|name| fields.require_one_of("payment_service", name, &known))?;
    Ok(sent.map_or_else(|| default_provider(app, company), str::to_owned))
}

/// Returns the provider that is used if a request names none.
pub fn default_provider(app: &App, company: &Company) -> String {
    company.payment_service.clone().unwrap_or_else(|| app.settings.default_provider.clone())
}
