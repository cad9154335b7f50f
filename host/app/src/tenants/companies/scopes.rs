//! Scopes of API keys: what a key may do.

use std::net::IpAddr;

use ipnet::IpNet;
use tollhouse_http::Permission;

use crate::state::{prelude::*, storage::FromRow};

macro_rules! scopes {
    ($($constant:ident $name:literal $allows:literal;)*) => {
        $(#[doc = $allows] pub const $constant: Permission = $name;)*

        /// The names of all scopes.
        pub const SCOPES: &[&str] = &[$($name),*];
    };
}

scopes! {
    USERS_READ "users.read" "Fetch, list and export users";
    USERS_WRITE "users.write" "Create, edit and verify users";
    OTP_SEND "otp.send" "Send and verify one-time passwords";
    IDENTITIES_READ "identities.read" "List identity types and identity records";
    IDENTITIES_WRITE "identities.write" "Look up and verify identities";
    CARDS_READ "cards.read" "Fetch and list saved cards";
    CARDS_WRITE "cards.write" "Save, verify and delete cards";
    RECOLLECTIONS_READ "recollections.read" "Fetch and list recollections";
    RECOLLECTIONS_WRITE "recollections.write" "Create and verify recollections";
    MANDATES_READ "direct_debits.read" "Fetch and list direct debit mandates";
    MANDATES_WRITE "direct_debits.write" "Create and delete direct debit mandates";
    PAYMENTS_READ "payments.read" "Fetch and list payments";
    PAYMENTS_WRITE "payments.write" "Initialize and verify payments";
    EVENTS_READ "events.read" "List events";
    EVENTS_WRITE "events.write" "Trigger events with example data";
    ACCOUNTS_READ "accounts.read" "Fetch virtual accounts, and resolve bank accounts";
    ACCOUNTS_WRITE "accounts.write" "Open and close virtual accounts";
}

/// The limits of an API key, which never change.
#[derive(Clone, Debug, Default, FromRow, Serialize, JsonSchema)]
pub struct KeyLimits {
    /// The scopes of the key; `null`: all.
    #[schemars(with = "Option<Vec<String>>")]
    pub scopes: Option<Json<Vec<String>>>,
    /// Networks from which the key may be used, for example `203.0.113.0/24`; `null`: all.
    #[schemars(with = "Option<Vec<String>>")]
    pub addresses: Option<Json<Vec<IpNet>>>,
}

impl KeyLimits {
    /// Returns 403 if the key lacks the scope, or may not be used from the address.
    pub fn check(&self, scope: Permission, address: Option<IpAddr>) -> Result<()> {
        if self.scopes.as_ref().is_some_and(|Json(scopes)| !scopes.iter().any(|own| own == scope)) {
            return Err(Error::Forbidden(format!("the API key lacks the scope {scope}")));
        }
        let Some(Json(networks)) = &self.addresses else { return Ok(()) };
        let address = address.map(|address| address.to_canonical());
        match address.is_some_and(|address| networks.iter().any(|net| net.contains(&address))) {
            true => Ok(()),
            false => {
                Err(Error::Forbidden("the API key may not be used from this address".to_owned()))
            }
        }
    }
}

/// Reads networks. A single address is a network of its own.
pub fn read_networks(body: &Fields, texts: &[String]) -> Result<Vec<IpNet>> {
    let network = |text: &String| {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse::<IpNet>().or_else(|_| address()).ok()
    };
    let networks: Option<Vec<IpNet>> = texts.iter().map(network).collect();
    let networks = networks.ok_or_else(|| {
        body.must_be("addresses", "IP addresses or networks such as 203.0.113.0/24")
    });
    Ok(networks?.iter().map(IpNet::trunc).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(scopes: Option<&[&str]>, addresses: Option<&[&str]>) -> KeyLimits {
        let scopes = scopes.map(|all| Json(all.iter().map(|scope| (*scope).to_owned()).collect()));
        let network = |text: &&str| text.parse().expect("a network");
        let addresses = addresses.map(|all| Json(all.iter().map(network).collect()));
        KeyLimits { scopes, addresses }
    }

    #[test]
    fn a_key_is_limited_to_its_scopes_and_networks() {
        let v4: IpAddr = "203.0.113.7".parse().expect("an address");
        let mapped: IpAddr = "::ffff:203.0.113.7".parse().expect("an address");
        let v6: IpAddr = "2001:db8::1".parse().expect("an address");
        for (scopes, addresses, address, allowed) in [
            (None, None, None, true),
            (Some(&[PAYMENTS_READ][..]), None, Some(v4), true),
            (Some(&[PAYMENTS_WRITE, "payments"]), None, Some(v4), false),
            (Some(&[]), None, Some(v4), false),
            (None, Some(&["203.0.113.0/24"][..]), Some(v4), true),
            (None, Some(&["203.0.113.0/24"]), Some(mapped), true),
            (None, Some(&["203.0.113.8/32", "2001:db8::/32"]), Some(v4), false),
            (None, Some(&["203.0.113.8/32", "2001:db8::/32"]), Some(v6), true),
            (None, Some(&["203.0.113.0/24"]), None, false),
        ] {
            let checked = limits(scopes, addresses).check(PAYMENTS_READ, address);
            assert_eq!(checked.is_ok(), allowed, "{scopes:?} {addresses:?} {address:?}");
        }
    }
}
