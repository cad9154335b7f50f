//! An event endpoint, whose secret is rotated, and an event that is triggered.

use serde_json::json;

use super::Lab;

pub const CREATE: &str = "POST /internal/v1/companies/{company}/event-endpoints";
pub const ROTATE: &str =
    "POST /internal/v1/companies/{company}/event-endpoints/{endpoint}/secret/rotate";
pub const DELETE: &str = "DELETE /internal/v1/companies/{company}/event-endpoints/{endpoint}";
const EDIT: &str = "PATCH /internal/v1/companies/{company}/event-endpoints/{endpoint}";

pub async fn create(lab: &Lab) {
    let books = json!({ "url": "https://books.example/events", "active": false });
    let books = lab.call(CREATE, books).await;
    lab.name("endpoint", &books["id"]);
    lab.name("endpoint_secret", &books["secret"]);
    lab.call(EDIT, json!({ "description": "books" })).await;
    let rotated = lab.call(ROTATE, json!({})).await;
    lab.name("second_endpoint_secret", &rotated["secret"]);
    lab.call("POST /api/v1/event/trigger", json!({ "type": "payment.failed" })).await;
}
