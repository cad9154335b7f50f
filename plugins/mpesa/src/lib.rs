//! M-Pesa (Daraja by Safaricom): a payment by STK push, its status, and its reversal.
//!
//! The payer receives a prompt on the phone and confirms with a PIN. Safaricom identifies a push
//! only by the `CheckoutRequestID` of its response, and reports amount and receipt only in the
//! callback, which is not signed: the host's notification URL authenticates it. The status query
//! decides the outcome; the callback adds the receipt, by which a payment is reversed. The result
//! of a reversal arrives by callback only.

mod api;
mod callback;
mod push;
mod reversal;
mod status;
mod time;

use tollhouse_plugin::payments::{KnownSession, Payment};
use tollhouse_plugin::session_refunds::{self, KnownRefund, SessionRefund, SessionRefundOrder};
use tollhouse_plugin::sessions::{self, Session, SessionOrder};
use tollhouse_plugin::types::Fault;

/// The plugin.
#[derive(Debug)]
pub struct Mpesa;

tollhouse_plugin::export!(Mpesa: sessions, session_refunds);

impl sessions::Guest for Mpesa {
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

impl session_refunds::Guest for Mpesa {
    fn start(order: SessionRefundOrder) -> Result<SessionRefund, Fault> {
        reversal::start(order)
    }

    fn check(refund: KnownRefund) -> Result<SessionRefund, Fault> {
        Ok(reversal::check(refund))
    }

    fn receive(
        _refund: KnownRefund,
        _headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, Fault> {
        reversal::receive(&body)
    }
}

#[cfg(test)]
mod tests;
