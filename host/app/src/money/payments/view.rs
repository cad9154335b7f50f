//! Payments in API responses and events.

use super::{Payment, PaymentId, Status, store::Checkout};
use crate::money::prelude::*;

/// A payment in a list.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListedPayment")]
pub struct Listed<Payer> {
    #[serde(flatten)]
    order: OrderView<Payer>,
    #[serde(flatten)]
    course: CourseView,
}

/// The fields of a payment up to `narration`.
#[derive(Debug, Serialize, JsonSchema)]
struct OrderView<Payer> {
    id: PaymentId,
    user: Option<Payer>,
    user_id: Option<String>,
    email: String,
    /// The provider.
    payment_service: String,
    amount: Minor,
    /// The provider fees; 0 until the payment succeeds.
    fees: Minor,
    /// The refunded amount; present only for a successful payment that was refunded in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    refunded: Option<Minor>,
    currency: Currency,
    /// The reference from the request, or a generated one with the prefix `pay-`, or `trf-` for a
    /// transfer to a virtual account.
    reference: String,
    status: Status,
    narration: String,
}

/// The fields of a payment after `payment_response`, which lists omit.
#[derive(Debug, Serialize, JsonSchema)]
struct CourseView {
    /// The metadata from the request, plus `company`, `server` and `event`. For a transfer to a
    /// virtual account, also the id of that account as `virtual_account`.
    metadata: Map<String, Value>,
    /// The provider's reference of the payment.
    service_ref: String,
    /// The provider's status message.
    message: String,
    callback_url: Option<String>,
    checkout: Checkout,
    /// The payment channels that the checkout page offers.
    channels: Vec<String>,
    paid_at: Option<Timestamp>,
    /// The payment channel that the customer used; empty until the payment succeeds.
    payment_channel: String,
    /// Always 0.
    charge: Minor,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// A payment. `user` is an id in the response to creation and an object elsewhere.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PaymentWith{Payer}")]
pub struct View<Payer> {
    #[serde(flatten)]
    order: OrderView<Payer>,
    /// The provider's raw response as JSON text; empty until there is one.
    payment_response: String,
    #[serde(flatten)]
    course: CourseView,
}

/// A payment in events.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Payment")]
pub struct EventData {
    id: PaymentId,
    /// The internal id of the user.
    user: Option<UserKey>,
    user_id: Option<String>,
    email: String,
    payment_service: String,
    amount: Minor,
    fees: Minor,
    /// The refunded amount; present only for a successful payment that was refunded in part.
    #[serde(skip_serializing_if = "Option::is_none")]
    refunded: Option<Minor>,
    currency: Currency,
    reference: String,
    status: Status,
    narration: String,
    metadata: Map<String, Value>,
    paid_at: Option<Timestamp>,
    payment_channel: String,
}

/// The internal id of a user.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct UserId(String);

impl Payment {
    /// Returns the view for the response to creation.
    pub fn created(self) -> View<UserId> {
        let user = self.user_key.as_ref().map(|key| UserId(key.to_string()));
        self.view(user)
    }

    /// Returns the channel for companies: it is empty until success.
    fn shown_channel(&self) -> String {
        match self.status {
            Status::Failed => String::new(),
            _ => self.payment_channel.clone(),
        }
    }

    fn partly_refunded(&self) -> Option<Minor> {
        let is_in_part = self.status == Status::Success && self.refunded > Minor(0);
        is_in_part.then_some(self.refunded)
    }

    pub fn listed<Payer>(self, user: Option<Payer>) -> Listed<Payer> {
        let View { order, course, .. } = self.view(user);
        Listed { order, course }
    }

    pub fn view<Payer>(self, user: Option<Payer>) -> View<Payer> {
        let (payment_channel, refunded) = (self.shown_channel(), self.partly_refunded());
        let order = OrderView {
            id: self.id,
            user,
            user_id: self.user_id,
            email: self.email,
            payment_service: self.payment_service,
            amount: self.amount,
            fees: self.fees,
            refunded,
            currency: self.currency,
            reference: self.reference,
            status: self.status,
            narration: self.narration,
        };
        let course = CourseView {
            metadata: self.metadata.0,
            service_ref: self.service_ref,
            message: self.message,
            callback_url: self.callback_url,
            checkout: self.checkout,
            channels: self.channels.0,
            paid_at: self.paid_at,
            payment_channel,
            charge: Minor(0),
            created_at: self.created_at,
            updated_at: self.updated_at,
        };
        View { order, payment_response: self.payment_response, course }
    }

    pub fn event_data(&self) -> EventData {
        EventData {
            id: self.id.clone(),
            user: self.user_key.clone(),
            user_id: self.user_id.clone(),
            email: self.email.clone(),
            payment_service: self.payment_service.clone(),
            amount: self.amount,
            fees: self.fees,
            refunded: self.partly_refunded(),
            currency: self.currency.clone(),
            reference: self.reference.clone(),
            status: self.status,
            narration: self.narration.clone(),
            metadata: self.metadata.0.clone(),
            paid_at: self.paid_at,
            payment_channel: self.shown_channel(),
        }
    }
}
