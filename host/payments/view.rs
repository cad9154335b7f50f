//! Payments as companies see them.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Payment, Status};
use crate::{
    clock::Timestamp,
    money::Minor,
    users::{self, User},
};

/// A payment, as in lists.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ListedPayment")]
pub struct Listed<Payer> {
    #[serde(flatten)]
    order: OrderView<Payer>,
    #[serde(flatten)]
    course: CourseView,
}

/// What a payment is for: its fields up to `narration`.
#[derive(Debug, Serialize, JsonSchema)]
struct OrderView<Payer> {
    id: String,
    user: Option<Payer>,
    user_id: Option<String>,
    email: String,
    /// The provider.
    payment_service: String,
    amount: Minor,
    /// The provider's; 0 until the payment has succeeded.
    fees: Minor,
    currency: String,
    /// Yours, or one with the prefix `pay-`.
    reference: String,
    status: Status,
    narration: String,
}

/// The fields behind `payment_response`, which lists leave out.
#[derive(Debug, Serialize, JsonSchema)]
struct CourseView {
    /// Yours, with `company`, `server` and `event`.
    metadata: Map<String, Value>,
    /// What the provider knows it by.
    service_ref: String,
    /// What the provider says of it.
    message: String,
    callback_url: Option<String>,
    checkout: CheckoutView,
    /// The ways to pay that the customer is offered.
    channels: Vec<String>,
    paid_at: Option<Timestamp>,
    /// The way in which it was paid; empty until the payment has succeeded.
    payment_channel: String,
    /// Always 0.
    charge: Minor,
    created_at: Timestamp,
    updated_at: Timestamp,
}

/// Where the customer pays, and goes from there.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "CheckoutOfPayment")]
struct CheckoutView {
    success_url: String,
    cancel_url: Option<String>,
    /// The page on which the customer pays; `null` while the provider has given none.
    url: Option<String>,
}

/// A payment. Its user is an id when it is created, and the user itself later.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "PaymentWith{Payer}")]
pub struct View<Payer> {
    #[serde(flatten)]
    order: OrderView<Payer>,
    /// What the provider answered, as JSON text; empty until it was asked.
    payment_response: String,
    #[serde(flatten)]
    course: CourseView,
}

/// A payment, as in events.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Payment")]
pub struct EventData {
    id: String,
    /// The internal id of its user.
    user: Option<String>,
    user_id: Option<String>,
    email: String,
    payment_service: String,
    amount: Minor,
    fees: Minor,
    currency: String,
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
    /// As when it is created.
    pub fn view(mut self) -> View<UserId> {
        let user = self.user_key.take().map(UserId);
        self.show(user)
    }

    /// With its user, if that is among `users`.
    pub fn populated(self, users: &[User], now: Timestamp) -> View<users::View> {
        let user = self.user_among(users, now);
        self.show(user)
    }

    pub fn listed(self, users: &[User], now: Timestamp) -> Listed<users::View> {
        let user = self.user_among(users, now);
        let View { order, course, .. } = self.show(user);
        Listed { order, course }
    }

    fn user_among(&self, users: &[User], now: Timestamp) -> Option<users::View> {
        let user = users.iter().find(|user| Some(&user.id) == self.user_key.as_ref());
        user.cloned().map(|user| user.view(now))
    }

    fn show<Payer>(self, user: Option<Payer>) -> View<Payer> {
        let order = OrderView {
            id: self.id,
            user,
            user_id: self.user_id,
            email: self.email,
            payment_service: self.payment_service,
            amount: self.amount,
            fees: self.fees,
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
            checkout: CheckoutView {
                success_url: self.success_url,
                cancel_url: self.cancel_url,
                url: self.checkout_url,
            },
            channels: self.channels.0,
            paid_at: self.paid_at,
            payment_channel: self.payment_channel,
            charge: Minor(0),
            created_at: self.created_at,
            updated_at: self.updated_at,
        };
        View { order, payment_response: self.payment_response, course }
    }

    /// As in events.
    pub fn event_data(&self) -> EventData {
        EventData {
            id: self.id.clone(),
            user: self.user_key.clone(),
            user_id: self.user_id.clone(),
            email: self.email.clone(),
            payment_service: self.payment_service.clone(),
            amount: self.amount,
            fees: self.fees,
            currency: self.currency.clone(),
            reference: self.reference.clone(),
            status: self.status,
            narration: self.narration.clone(),
            metadata: self.metadata.0.clone(),
            paid_at: self.paid_at,
            payment_channel: self.payment_channel.clone(),
        }
    }
}
