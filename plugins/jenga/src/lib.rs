//! Jenga (Equity Bank and Finserve Africa), JengaAPI v3: payments in Kenya by STK or USSD push,
//! settled to the merchant's bank account.
//!
//! The payer receives a prompt on the phone and confirms with a PIN. Each request has an RSA
//! signature over some of its fields, computed in the vault. Callbacks are not signed: the host's
//! notification URL authenticates them. The query by reference decides the outcome; the callback
//! adds the receipt and the amount debited, and decides for pushes that the query does not find.
//! Jenga documents no refunds of pushes.

mod api;
mod callback;
mod push;
mod status;

use tollhouse_plugin::payments::{KnownSession, Payment};
use tollhouse_plugin::sessions::{self, Session, SessionOrder};
use tollhouse_plugin::types::Fault;

/// The plugin.
#[derive(Debug)]
pub struct Jenga;

tollhouse_plugin::export!(Jenga: sessions);

impl sessions::Guest for Jenga {
    fn start(order: SessionOrder) -> Result<Session, Fault> {
        push::start(order)
    }

    fn verify(session: KnownSession) -> Result<Payment, Fault> {
        status::verify(session)
    }

    fn receive(
        session: KnownSession,
        _headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        callback::receive(&session, &body)
    }
}

#[cfg(test)]
mod tests;
