//! The effects of the outcomes of charges on a payment.

use super::{Payment, PaymentId, Status, flow, store};
use crate::money::{
    charges::{ChargeOwner, Failure, Order, Outcome, OwnerKind, choice::Routed, without_token},
    prelude::*,
    routing::{self, Payer},
};

impl ChargeOwner for Payment {
    const KIND: OwnerKind = OwnerKind::Payment;

    async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Payment>> {
        Ok(store::lock(tx, company_id, &PaymentId::from(id)).await?)
    }

    fn is_pending(&self) -> bool {
        self.status == Status::Pending
    }

    async fn reroute(
        &self,
        app: &App,
        charge: &Charge,
        amount: Minor,
        tried: &[String],
    ) -> Result<Option<Routed>> {
        let payer = Payer { user: self.user_key.clone(), has_phone: self.phone.is_some() };
        routing::choose_other(app, charge, amount, payer, tried).await
    }

    async fn order(&self, _: &App, charge: &Charge) -> Result<Order> {
        let mut metadata = self.metadata.0.clone();
        metadata.insert(METADATA_KEY.to_owned(), self.id.as_str().into());
        Ok(Order::Checkout(CheckoutOrder {
            service_ref: charge.service_ref.clone(),
            amount: charge.money(),
            email: self.email.clone(),
            phone: self.phone.clone(),
            notification_url: String::new(),
            customer_name: None,
            narration: self.narration.clone(),
            channels: self.channels.0.clone(),
            success_url: self.checkout.success_url.clone(),
            cancel_url: self.checkout.cancel_url.clone(),
            metadata: Value::Object(metadata).to_string(),
            save_instrument: false,
        }))
    }

    fn return_urls(&self) -> (&str, Option<&str>) {
        (&self.checkout.success_url, self.checkout.cancel_url.as_deref())
    }

    async fn apply(
        self,
        tx: &mut Tx,
        app: &App,
        charge: &Charge,
        outcome: Outcome<'_>,
    ) -> Result<Payment> {
        let now = app.clock.now();
        let provider = charge.provider.clone();
        let (payment, event) = match outcome {
            Outcome::Moved => {
                let channels = Json(flow::channels_of(app, charge)?);
                (Payment { service_ref: charge.service_ref.clone(), channels, ..self }, None)
            }
            Outcome::Session(session) => {
                let mut payment = self;
                payment.checkout.url.clone_from(&charge.session_url);
                payment.checkout.prompt.clone_from(&session.prompt);
                // A webhook may have settled the payment before this response.
                if payment.is_pending() {
                    payment.payment_response.clone_from(&session.raw);
                }
                (Payment { service_ref: charge.service_ref.clone(), ..payment }, None)
            }
            Outcome::Succeeded(seen) => (succeed(self, app, charge, seen), Some("payment.success")),
            Outcome::Failed(failure) => (fail(self, failure), Some("payment.failed")),
            Outcome::Mismatched(what) => (Payment { message: what.to_owned(), ..self }, None),
            Outcome::Reversed(seen) => {
                // The refund of what a lost dispute had left has already been reported.
                let is_known = self.status == Status::Refunded;
                let payment = Payment { status: Status::Refunded, ..self };
                let event = (!is_known).then_some("payment.refunded");
                (with_provider_result(payment, seen), event)
            }
            Outcome::Refunded if self.status == Status::Success => {
                (Payment { status: Status::Refunded, ..self }, Some("payment.refunded"))
            }
            Outcome::PartlyRefunded if self.status == Status::Success => {
                (Payment { refunded: charge.refunded, ..self }, Some("payment.partly_refunded"))
            }
            Outcome::RefundFailed if self.status == Status::Success => {
                (Payment { refunded: charge.refunded, ..self }, None)
            }
            Outcome::Forgotten => {
                store::delete(tx, &self).await?;
                return Ok(self);
            }
            Outcome::Refunded
            | Outcome::PartlyRefunded
            | Outcome::RefundFailed
            | Outcome::Pending(_)
            | Outcome::Surplus
            | Outcome::Abandoned => return Ok(self),
        };
        let payment = Payment { payment_service: provider, updated_at: now, ..payment };
        store::update(tx, &payment, charge).await?;
        if let Some(kind) = event {
            emit(tx, app, &payment, kind).await?;
        }
        Ok(payment)
    }
}

fn succeed(payment: Payment, app: &App, charge: &Charge, seen: &ProviderPayment) -> Payment {
    if payment.status == Status::Failed {
        let id = payment.id.as_str();
        tracing::warn!(payment = id, "payment succeeded after it was recorded as failed");
    }
    Payment {
        status: Status::Success,
        fees: charges::fees(seen),
        paid_at: Some(seen.paid_at.unwrap_or_else(|| app.clock.now())),
        payment_channel: seen.channel.clone(),
        service_ref: charge.service_ref.clone(),
        ..with_provider_result(payment, seen)
    }
}

fn fail(payment: Payment, failure: Failure<'_>) -> Payment {
    let payment = Payment { status: Status::Failed, ..payment };
    match failure {
        Failure::Seen(seen) => {
            // Success rates need the channel; providers name it if there was a failed attempt.
            let payment = Payment { payment_channel: seen.channel.clone(), ..payment };
            with_provider_result(payment, seen)
        }
        Failure::Message(message) | Failure::Declined(message, _) => {
            Payment { message: message.to_owned(), ..payment }
        }
    }
}

/// Copies the provider fields that every outcome records.
fn with_provider_result(payment: Payment, seen: &ProviderPayment) -> Payment {
    Payment { message: seen.message.clone(), payment_response: without_token(seen), ..payment }
}

async fn emit(tx: &mut Tx, app: &App, payment: &Payment, kind: &'static str) -> Result<()> {
    let event = events::Event {
        kind,
        subject_id: payment.id.to_string(),
        data: json!(payment.event_data()),
        callback_url: payment.callback_url.clone(),
    };
    events::emit(tx, app, &payment.company_id, event).await
}
