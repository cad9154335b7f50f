//! Routing of checkouts over two providers.

use reqwest::Method;
use serde_json::json;

use crate::{
    app::{Company, TestApp},
    conformance::set_up_flutterwave,
};

/// Sets up the second provider, at which both companies use the service account.
pub async fn set_up(app: &TestApp) {
    set_up_flutterwave(app).await;
}

/// Routes the checkouts of a company to the first provider, and to the second if that is down or
/// certainly opened no session.
pub async fn route(app: &TestApp, company: &Company) {
    let policy = json!({ "route": {
        "choose_by": "order",
        "providers": [{ "provider": "provider_a" }, { "provider": "provider_b" }],
    } });
    app.operator(Method::PUT, &format!("/companies/{}/routing", company.id), policy).await.data();
}
