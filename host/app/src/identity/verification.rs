//! Verification of UID records by a code that is sent to the addresses on record.

use super::{Identity, Method, Record, Uid, catalog, store};
use crate::{
    messaging::{
        messages::{self, Channel, Destination, Wording},
        otp::{self, CheckOutcome, CodeKey, CodeRequest},
    },
    tenants::prelude::*,
};

/// Purpose of the messages, shown to operators.
const PURPOSE: &str = "identity";

/// Returns whether a code can verify the record: its type allows it, and it has an address.
#[must_use]
pub fn can_be_verified_by_code(identity: Option<&Identity>, record: &Record) -> bool {
    identity.is_some_and(|identity| identity.identity_type().otp)
        && (record.email.is_some() || record.phone.is_some())
}

/// Sends a code to the reachable addresses on record, with the errors of [`otp::send`].
pub async fn send(
    app: &App,
    company: &Company,
    uid: &Uid,
    record: &Record,
    run: Option<String>,
) -> Result<()> {
    let key = code_key(uid, record);
    let addresses = [(Channel::Email, record.email.clone()), (Channel::Sms, record.phone.clone())];
    let order = async move |tx: &mut Tx, app: &App, company: &Company| {
        let destinations = reachable(tx, app, company, addresses).await?;
        let header = Some("Verify your identity".to_owned());
        let wording = Wording { name: None, header, body: None };
        let request = CodeRequest::verification(key, destinations, wording, PURPOSE);
        Ok(CodeRequest { run, ..request })
    };
    otp::send(app, company, order).await
}

/// Returns the reachable addresses; the first error if there are none.
async fn reachable(
    tx: &mut Tx,
    app: &App,
    company: &Company,
    addresses: [(Channel, Option<String>); 2],
) -> Result<Vec<Destination>> {
    let (mut reachable, mut reason) = (Vec::new(), None);
    for (channel, to) in addresses {
        let Some(to) = to else { continue };
        let address = Destination { channel, to };
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

/// Checks a code and verifies the record. The caller must always commit, because wrong attempts are
/// counted. 400 if codes cannot verify the record.
pub async fn verify(
    tx: &mut Tx,
    app: &App,
    mut uid: Uid,
    token: &str,
    run: Option<&str>,
) -> Result<CheckOutcome> {
    let record = Record::open(app, &uid)?;
    check_verifiable_by_code(app, &uid, &record)?;
    let key = code_key(&uid, &record);
    let checked = otp::check(tx, app, &uid.company_id, &key, token, run).await?;
    if checked == CheckOutcome::Passed && !uid.verified_by.0.contains(&Method::Otp) {
        uid.verify(Method::Otp, app.clock.now());
        store::update(tx, &uid).await?;
    }
    Ok(checked)
}

pub fn check_verifiable_by_code(app: &App, uid: &Uid, record: &Record) -> Result<()> {
    let identity = catalog::find_by_name(&app.plugins, &uid.identity)?;
    match can_be_verified_by_code(identity.as_ref(), record) {
        true => Ok(()),
        false => Err(Error::invalid("uid cannot be verified by otp")),
    }
}

/// Bound to the addresses: a code sent to previous ones is invalid.
fn code_key(uid: &Uid, record: &Record) -> CodeKey {
    let part = |address: &Option<String>| address.clone().unwrap_or_default();
    let address = format!("{}\n{}", part(&record.email), part(&record.phone));
    CodeKey { scope: "uid", identifier: uid.id.clone(), kind: "identity".to_owned(), address }
}
