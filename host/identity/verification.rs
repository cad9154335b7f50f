//! Whether somebody is the person of a record: a code goes to the address on record, and comes back.

use super::{Identity, Method, Record, Uid, catalog, store};
use crate::{
    app::App,
    companies::Company,
    error::{Error, Result},
    messages::{self, Channel, Destination, Wording, wording},
    otp::{self, Checked, Key, Order},
    store::Tx,
};

const DIGITS: usize = 6;
const MINUTES: i64 = 10;
/// What operators see that a message is for.
const PURPOSE: &str = "identity";

/// Whether codes can verify it: if its type allows it, and there is an address on record.
#[must_use]
pub fn is_possible(identity: Option<&Identity>, record: &Record) -> bool {
    identity.is_some_and(|identity| identity.kind().otp)
        && (record.email.is_some() || record.phone.is_some())
}

/// Sends a code to the addresses on record that can be reached. Fails like every send.
pub async fn send(
    app: &App,
    company: &Company,
    uid: &Uid,
    record: &Record,
    run: Option<String>,
) -> Result<()> {
    let key = key(uid, record);
    let to = |channel, to: &Option<String>| Some(Destination { channel, to: to.clone()? });
    let addresses: Vec<Destination> =
        [to(Channel::Email, &record.email), to(Channel::Sms, &record.phone)]
            .into_iter()
            .flatten()
            .collect();
    let order = async move |tx: &mut Tx, app: &App, company: &Company| {
        let destinations = reachable(tx, app, company, addresses).await?;
        Ok(order(company, key, destinations, run))
    };
    otp::send(app, company, order).await
}

/// Fails with the reason of the first when none of them can be reached.
async fn reachable(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    addresses: Vec<Destination>,
) -> Result<Vec<Destination>> {
    let (mut reachable, mut reason) = (Vec::new(), None);
    for address in addresses {
        match messages::check(tx, app, company, &address).await {
            Ok(()) => reachable.push(address),
            Err(error @ (Error::Invalid(_) | Error::Unavailable(_))) => {
                reason.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match reason {
        Some(reason) if reachable.is_empty() => Err(reason),
        _ => Ok(reachable),
    }
}

fn order(
    company: &Company,
    key: Key,
    destinations: Vec<Destination>,
    run: Option<String>,
) -> Order {
    let header = Some("Verify your identity".to_owned());
    let said = Wording { name: None, header, body: None };
    let (header, body, greeting) = wording(&company.name, Some(&said));
    Order {
        key,
        destinations,
        digits: DIGITS,
        minutes: MINUTES,
        header,
        body,
        greeting,
        purpose: PURPOSE,
        run,
    }
}

/// Tries a code; the identity is verified when it passes. Must be committed whatever came of it. 400 when a code cannot verify it.
pub async fn verify(
    tx: &mut Tx,
    app: &App,
    mut uid: Uid,
    token: &str,
    run: Option<&str>,
) -> Result<Checked> {
    let record = Record::open(app, &uid)?;
    check_possible(app, &uid, &record)?;
    let checked = otp::check(tx, app, &uid.company_id, &key(&uid, &record), token, run).await?;
    if checked == Checked::Passed && !uid.verified_by.0.contains(&Method::Otp) {
        uid.verify(Method::Otp, app.clock.now());
        store::update(tx, &uid).await?;
    }
    Ok(checked)
}

pub fn check_possible(app: &App, uid: &Uid, record: &Record) -> Result<()> {
    catalog::must_be_ready(&app.plugins, &uid.identity)?;
    let identity = catalog::by_name(&app.plugins, &uid.identity);
    match is_possible(identity.as_ref(), record) {
        true => Ok(()),
        false => Err(Error::invalid("uid cannot be verified by otp")),
    }
}

/// Bound to the addresses: a code that went to former ones is none for these.
fn key(uid: &Uid, record: &Record) -> Key {
    let part = |address: &Option<String>| address.clone().unwrap_or_default();
    let address = format!("{}\n{}", part(&record.email), part(&record.phone));
    Key { scope: "uid", identifier: uid.id.clone(), kind: "identity".to_owned(), address }
}
