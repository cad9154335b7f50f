//! Example data of each type of event, for `trigger`. A test checks it against the documented
//! schemas.

use crate::tenants::prelude::*;

/// Fields of the data that a request can set, if the type has them.
const SETTABLE: [&str; 12] = [
    "amount", "currency", "email", "fees", "loan", "message", "metadata", "narration",
    "payment_channel", "payment_service", "reference", "user_id",
];

/// Returns example data for a type of event. `id` is the id of the record, and its reference.
pub fn data(kind: &str, id: &str, now: Timestamp) -> Map<String, Value> {
    let (noun, outcome) = kind.rsplit_once('.').expect("a type is `noun.verb`");
    let data = match (noun, outcome) {
        (_, "disputed") => dispute(id, false, now),
        (_, "dispute_closed") => dispute(id, true, now),
        ("payment", "partly_refunded") => {
            let mut payment = payment(id, "success", now);
            payment["refunded"] = json!(1000);
            payment
        }
        ("payment", _) => payment(id, outcome, now),
        ("installment", _) => installment(id, outcome, now),
        ("direct_debit", _) => mandate(id, outcome, now),
        ("card.validation", _) => card(id, outcome == "success", now),
        _ => recollection(id, outcome, now),
    };
    match data {
        Value::Object(data) => data,
        _ => unreachable!("examples are objects"),
    }
}

/// Replaces values of the data. Each must have the JSON type of the example's value.
pub fn set(body: &Fields, data: &mut Map<String, Value>, new: Map<String, Value>) -> Result<()> {
    for (name, value) in new {
        let Some(example) = data.get_mut(&name).filter(|_| SETTABLE.contains(&&*name)) else {
            let known: Vec<&str> =
                data.keys().map(String::as_str).filter(|name| SETTABLE.contains(name)).collect();
            return Err(body.must_be("data", &format!("an object of any of {}", known.join(", "))));
        };
        let (is_same, what) = match &*example {
            Value::Number(_) => (value.is_number(), "a number"),
            Value::Object(_) => (value.is_object(), "an object"),
            _ => (value.is_string(), "a string"),
        };
        if !is_same {
            return Err(body.must_be(&format!("data.{name}"), what));
        }
        *example = value;
    }
    Ok(())
}

fn mandate(id: &str, status: &str, now: Timestamp) -> Value {
    let is_waiting = status == "created";
    json!({
        "id": id,
        "user": "6565a0000000000000000002",
        "user_id": "test-user",
        "default": status == "ready",
        "status": status,
        "active": status == "ready",
        "payment_service": "provider_a",
        "currency": "NGN",
        "email": "ada@example.com",
        "bank": if is_waiting { "" } else { "Test Bank" },
        "last_4_digits": if is_waiting { "" } else { "6789" },
        "max_amount": 50000,
        "ends_at": null,
        "service_ref": id,
        "message": "",
        "checkout": {
            "success_url": "https://lender.example/authorized",
            "url": is_waiting.then_some("https://checkout.example/mandate"),
            "instruction": null,
        },
        "created_at": now,
        "updated_at": now,
    })
}

fn payment(id: &str, outcome: &str, now: Timestamp) -> Value {
    let is_paid = outcome != "failed";
    json!({
        "id": id,
        "user": null,
        "user_id": "test-user",
        "email": "ada@example.com",
        "payment_service": "provider_a",
        "amount": 2500.5,
        "fees": if is_paid { json!(137.51) } else { json!(0) },
        "currency": "NGN",
        "reference": id,
        "status": outcome,
        "narration": "Example payment",
        "metadata": {},
        "paid_at": is_paid.then_some(now),
        "payment_channel": if is_paid { "card" } else { "" },
    })
}

/// An installment that is due in three days, today, or three days ago.
fn installment(id: &str, outcome: &str, now: Timestamp) -> Value {
    let days = match outcome {
        "upcoming" => 3,
        "due" => 0,
        _ => -3,
    };
    json!({
        "loan": id,
        "user": null,
        "user_id": "test-user",
        "due_date": now.plus_seconds(days * 24 * 3600),
        "amount": 2500.5,
        "amount_remaining": 2500.5,
        "currency": "NGN",
    })
}

/// A dispute that can be answered for two days, or that the company won.
fn dispute(id: &str, is_closed: bool, now: Timestamp) -> Value {
    json!({
        "id": id,
        "owner_id": id,
        "reference": id,
        "payment_service": "provider_a",
        "service_ref": id,
        "amount": 2500.5,
        "currency": "NGN",
        "reason": "chargeback",
        "state": if is_closed { "won" } else { "open" },
        "due_at": now.plus_seconds(2 * 86_400),
        "opened_at": now,
        "closed_at": is_closed.then_some(now),
    })
}

fn card(id: &str, is_valid: bool, now: Timestamp) -> Value {
    json!({
        "id": id,
        "user": "test-user",
        "user_id": "test-user",
        "default": is_valid,
        "payment_service": "provider_a",
        "valid": is_valid,
        "currency": "NGN",
        "card": {
            "last_4_digits": if is_valid { "4081" } else { "" },
            "card_holder_name": if is_valid { "Ada Obi" } else { "" },
            "bin": if is_valid { "408408" } else { "" },
            "card_type": if is_valid { "visa" } else { "" },
            "bank": if is_valid { "Test Bank" } else { "" },
            "country_code": if is_valid { "NG" } else { "" },
            "exp_month": if is_valid { "12" } else { "" },
            "exp_year": if is_valid { "2030" } else { "" },
            "email": "ada@example.com",
        },
        "signature": if is_valid { "SIG_test" } else { "" },
        "service_ref": id,
        "message": if is_valid { "Approved" } else { "Declined" },
        "created_at": now,
        "updated_at": now,
    })
}

fn recollection(id: &str, outcome: &str, now: Timestamp) -> Value {
    let is_paid = outcome == "success";
    json!({
        "id": id,
        "user": null,
        "user_id": "test-user",
        "loan": "test-loan",
        "status": if is_paid { "success" } else { "failed" },
        "amount": 2500.5,
        "currency": "NGN",
        "payment_service": "provider_a",
        "payment_channel": "card",
        "reference": id,
        "message": match outcome {
            "success" => "Approved",
            "failed" => "Declined",
            _ => "the provider returned the money",
        },
        "with_provider": true,
        "callback_url": null,
        "repaid_at": (outcome != "failed").then_some(now),
        "card": "test-card",
        "metadata": {},
        "created_at": now,
        "updated_at": now,
    })
}
