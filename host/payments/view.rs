//! Payments as companies see them.

use serde_json::{Value, json};

use super::Payment;
use crate::{clock::Timestamp, users::User};

impl Payment {
    /// With `user` as an id, as on creation, or as an object.
    pub fn view(&self, user: Value) -> Value {
        let mut view = self.view_without_response(user);
        view["payment_response"] = self.payment_response.clone().into();
        view
    }

    /// As in lists.
    pub fn view_without_response(&self, user: Value) -> Value {
        json!({
            "id": self.id,
            "user": user,
            "user_id": self.user_id,
            "email": self.email,
            "payment_service": self.payment_service,
            "amount": self.amount,
            "fees": self.fees,
            "currency": self.currency,
            "reference": self.reference,
            "status": self.status,
            "narration": self.narration,
            "metadata": self.metadata,
            "service_ref": self.service_ref,
            "message": self.message,
            "callback_url": self.callback_url,
            "checkout": {
                "success_url": self.success_url,
                "cancel_url": self.cancel_url,
                "url": self.checkout_url,
            },
            "channels": self.channels,
            "paid_at": self.paid_at,
            "payment_channel": self.payment_channel,
            "charge": 0,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        })
    }

    /// As in events.
    pub fn event_data(&self) -> Value {
        json!({
            "id": self.id,
            "user": self.user_key,
            "user_id": self.user_id,
            "email": self.email,
            "payment_service": self.payment_service,
            "amount": self.amount,
            "fees": self.fees,
            "currency": self.currency,
            "reference": self.reference,
            "status": self.status,
            "narration": self.narration,
            "metadata": self.metadata,
            "paid_at": self.paid_at,
            "payment_channel": self.payment_channel,
        })
    }

    /// The populated user, `null` when the payment has none.
    pub fn populated(&self, users: &[User], now: Timestamp) -> Value {
        let user = users.iter().find(|user| Some(&user.id) == self.user_key.as_ref());
        user.map_or(Value::Null, |user| user.view(now))
    }
}
