//! A register of citizens.

use serde::Deserialize;
use serde_json::json;
use tollhouse_plugin::http::{self, Request, Response};
use tollhouse_plugin::identity::{Entry, Question};
use tollhouse_plugin::types::Fault;
use tollhouse_plugin::{identity_lookup, log, settings, vault};

#[cfg(test)]
mod tests;

/// The plugin.
#[derive(Debug)]
pub struct Plugin;

tollhouse_plugin::export!(Plugin: identity_lookup);

#[derive(Deserialize)]
struct Citizen {
    first_name: String,
    last_name: String,
    /// YYYY-MM-DD.
    born: String,
    phone: Option<String>,
}

/// An error from the register.
#[derive(Deserialize)]
struct Problem {
    code: String,
}

impl identity_lookup::Guest for Plugin {
    fn lookup(question: Question) -> Result<Entry, Fault> {
        let path = format!("/citizens/{}", http::encode(&question.identifier));
        let request = Request::get(settings::url("base_url", &path)?);
        let response = request.bearer(&vault::secret("api_key")?).send()?;
        let Citizen { first_name, last_name, born, phone } = read(&response)?.json()?;
        let details = json!({
            "first_name": first_name,
            "last_name": last_name,
            "date_of_birth": day_first(&born),
            "phone_number": phone,
        });
        Ok(Entry { details: details.to_string(), email: None, phone })
    }
}

/// Maps a status other than 200 to a fault. Only the register itself can refuse: an error page from
/// an intermediary counts as an outage.
fn read(response: &Response) -> Result<&Response, Fault> {
    match response.status {
        200 => return Ok(response),
        401 | 403 => return Err(Fault::misconfigured("the register does not accept the key")),
        400 | 402 | 404 | 422 => {}
        status => {
            return Err(Fault::unavailable(format!("the register returned {status}")));
        }
    }
    let Problem { code } = response.json()?;
    Err(match code.as_str() {
        "no_such_citizen" => Fault::not_found("no such citizen"),
        "bad_number" => Fault::invalid("number", "the register rejected the number"),
        "sealed" => Fault::refused("sealed", "the entry is sealed"),
        "no_credit" => {
            log::error("the account at the register has no credit");
            Fault::unavailable("no credit").with_code("no-credit")
        }
        _ => Fault::other("the register refused the lookup").with_code(&code),
    })
}

/// Converts 1990-12-10 to 10/12/1990, and text in another format to `None`.
fn day_first(date: &str) -> Option<String> {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else {
        return None;
    };
    let is_date = [(year, 4), (month, 2), (day, 2)].iter().all(|(part, digits)| {
        part.len() == *digits && part.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_date.then(|| format!("{day}/{month}/{year}"))
}
