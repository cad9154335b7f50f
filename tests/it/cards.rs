//! Saved cards: verification, duplicates, the default card, deletion, and refunds of verification
//! charges.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::store;
use tollhouse_sandbox::{Fault, FaultKind};

use crate::{
    app::{TestApp, reply},
    lending::{
        OTHER_CARD, SUCCESS_CARD, charge_instrument, complete_page, create_card, create_loan,
        create_user, fetch_card, saved_card,
    },
};

const DECLINED_CARD: &str = "4084080000005408";
const DAY: i64 = 86_400;

async fn list(app: &TestApp, query: &str) -> Vec<Value> {
    let listed = app.get(&format!("/card/list/ada{query}")).await;
    assert_eq!(listed.body["message"], "Cards retrieved successfully");
    listed.data().as_array().expect("a list").clone()
}

async fn delete(app: &TestApp, id: &Value, query: &str) -> crate::app::Reply {
    let path = format!("/card/delete/{}{query}", id.as_str().unwrap());
    app.request(&app.company, Method::DELETE, &path, None).await
}

async fn set_default(app: &TestApp, id: &Value) -> crate::app::Reply {
    let path = format!("/card/default/set/{}", id.as_str().unwrap());
    app.request(&app.company, Method::PUT, &path, None).await
}

async fn verify(app: &TestApp, id: &Value) -> crate::app::Reply {
    app.post(&format!("/card/verify/{}", id.as_str().unwrap()), json!({})).await
}

async fn refunds(app: &TestApp, query: &str) -> Vec<Value> {
    let found = app.operator(Method::GET, &format!("/card-refunds{query}"), Value::Null).await;
    found.data()["refunds"].as_array().expect("a list").clone()
}

/// Copies the signature of `other` to `card`.
pub async fn copy_signature(app: &TestApp, card: &Value, other: &Value) {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let (id, signature) = (text(&card["id"]), text(&other["signature"]));
    let sign = async move |tx: &mut store::Tx| -> store::Result<_> {
        let sql = tx.sql("UPDATE cards SET signature = $1 WHERE id = $2");
        sql.bind(signature).bind(id).run().await
    };
    assert_eq!(app.app.store.write(sign).await.expect("a card"), 1);
}

both! {
    async fn a_card_is_verified_by_a_charge_that_is_refunded(app: TestApp) {
        create_user(app, "ada").await;
        let created = app.post("/card/create", json!({
            "user_id": "ada", "currency": "NGN",
            "checkout": { "success_url": "https://lender.example/saved", "cancel_url": "https://lender.example/no" },
        })).await;
        assert_eq!(created.body["message"], "Card created successfully");
        let card = created.data().clone();
        assert_eq!((&card["valid"], &card["default"], &card["message"]), (&json!(false), &json!(false), &Value::Null));
        assert_eq!(card["card"]["card_holder_name"], "");
        assert_eq!(card["checkout"]["cancel_url"], "https://lender.example/no");
        complete_page(app, &card, "success", SUCCESS_CARD).await;
        let fetched = app.get(&format!("/card/fetch/{}", card["id"].as_str().unwrap())).await;
        assert_eq!(fetched.body["message"], "Card fetched successfully");
        let card = fetched.data().clone();
        assert_eq!((&card["valid"], &card["default"]), (&json!(true), &json!(true)));
        let details = json!({
            "last_4_digits": "4081", "bin": "408408", "card_type": "visa", "bank": "TEST BANK", "country_code": "NG",
            "email": "ada@example.com",
        });
        for (name, value) in details.as_object().unwrap() {
            assert_eq!(&card["card"][name], value, "{name}");
        }
        assert!(card.get("checkout").is_none() && card.get("token").is_none());
        assert_eq!(app.events(), ["card.validation.success"]);
        let refund = refunds(app, "").await.remove(0);
        assert_eq!((&refund["card"], &refund["amount"]), (&card["id"], &json!(100)));
        app.advance(3_600).await;
        app.advance(3_600).await;
        assert_eq!(refunds(app, "?status=done").await.len(), 1);
        // The verification charge does not change the wallet.
        assert_eq!(crate::codes::balance(app).await, json!(0));
        assert_eq!(list(app, "").await, [card]);
    }

    async fn invalid_requests_get_the_specified_errors(app: TestApp) {
        create_user(app, "ada").await;
        let order = |change: Value| {
            let order = json!({ "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://a.example/" } });
            crate::codes::merged(order, change)
        };
        for (change, status, message) in [
            (json!({ "user_id": null }), 400, "the user_id field is required"),
            (json!({ "user_id": "nobody" }), 404, "user not found"),
            (json!({ "currency": null }), 400, "the currency field is required"),
            (json!({ "currency": "EUR" }), 400, "the currency field must be one of NGN, USD"),
            (json!({ "checkout": null }), 400, "the checkout.success_url field is required"),
            (json!({ "payment_service": "provider_z" }), 400, "the payment_service field must be one of provider_a, provider_b, provider_c"),
        ] {
            let refused = app.post("/card/create", order(change.clone())).await;
            assert_eq!(refused.failure(), (status, message), "{change}");
        }
        let missing = json!("000000000000000000000000");
        for response in [
            app.get("/card/fetch/000000000000000000000000").await,
            set_default(app, &missing).await,
            delete(app, &missing, "").await,
            verify(app, &missing).await,
        ] {
            assert_eq!(response.failure(), (404, "card not found"));
        }
        assert_eq!(app.get("/card/list/nobody").await.failure(), (404, "user not found"));
        let pending = create_card(app, "ada").await;
        assert_eq!(set_default(app, &pending["id"]).await.failure(), (400, "only validated card can be set as default"));
        assert_eq!(verify(app, &pending["id"]).await.failure(), (400, "payment still pending"));
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        assert_eq!(verify(app, &card["id"]).await.failure(), (400, "card already verified"));
        assert_eq!(delete(app, &card["id"], "").await.failure(), (400, "default card cannot be deleted"));
        let other = app.new_company("Beta Lending").await;
        let path = format!("/card/fetch/{}", card["id"].as_str().unwrap());
        assert_eq!(app.request(&other, Method::GET, &path, None).await.failure(), (404, "card not found"));
    }

    async fn a_failed_verification_emits_an_event_and_its_card_is_deleted(app: TestApp) {
        create_user(app, "ada").await;
        let card = create_card(app, "ada").await;
        complete_page(app, &card, "failed", DECLINED_CARD).await;
        // Paystack sends no webhook for a failure.
        app.advance(60).await;
        let failed = fetch_card(app, &card["id"]).await;
        assert_eq!((&failed["valid"], &failed["message"]), (&json!(false), &json!("Declined")));
        assert_eq!(app.events(), ["card.validation.failed"]);
        assert_eq!(verify(app, &card["id"]).await.failure(), (400, "Declined"));
        let abandoned = create_card(app, "ada").await;
        app.advance(DAY - 61).await;
        assert_eq!(list(app, "?valid=false").await.len(), 2);
        app.advance(61).await;
        assert_eq!(list(app, "").await.len(), 0);
        // The checkout page of the deleted card still works; a payment on it is refunded.
        complete_page(app, &abandoned, "success", SUCCESS_CARD).await;
        app.advance(3_600).await;
        app.advance(3_600).await;
        assert_eq!((list(app, "").await.len(), refunds(app, "?status=done").await.len()), (0, 1));
        assert_eq!(app.events(), ["card.validation.failed"]);
        app.advance(40 * DAY).await;
        app.operator(Method::POST, "/clock/advance", json!({ "seconds": 0 })).await.data();
        let count = async |tx: &mut store::Tx| tx.sql("SELECT COUNT(*) FROM cards").one().await;
        let (left,): (i64,) = app.app.store.read(count).await.unwrap();
        assert_eq!(left, 0);
    }

    async fn a_saved_card_is_not_saved_again(app: TestApp) {
        create_user(app, "ada").await;
        let first = saved_card(app, "ada", SUCCESS_CARD).await;
        let again = create_card(app, "ada").await;
        complete_page(app, &again, "success", SUCCESS_CARD).await;
        let again = fetch_card(app, &again["id"]).await;
        assert_eq!((&again["valid"], &again["message"]), (&json!(false), &json!("card already exists")));
        // No event: the verification charge did not fail.
        assert_eq!(app.events(), ["card.validation.success"]);
        assert_eq!(verify(app, &again["id"]).await.failure(), (400, "card already exists"));
        assert_eq!(refunds(app, "").await.len(), 2);
        assert_eq!(list(app, "?valid=true").await.len(), 1);
        assert_eq!(fetch_card(app, &first["id"]).await["default"], true);
        // Another user can save the same card.
        create_user(app, "bola").await;
        assert_eq!(saved_card(app, "bola", SUCCESS_CARD).await["default"], true);
    }

    async fn verifying_a_failed_or_duplicate_card_sends_no_request_to_the_provider(app: TestApp) {
        create_user(app, "ada").await;
        let failed = create_card(app, "ada").await;
        complete_page(app, &failed, "failed", DECLINED_CARD).await;
        app.advance(60).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        let duplicate = create_card(app, "ada").await;
        complete_page(app, &duplicate, "success", SUCCESS_CARD).await;
        let before = app.simulators.paystack().requests().len();
        for (card, message) in [(&failed, "Declined"), (&duplicate, "card already exists")] {
            assert_eq!(verify(app, &card["id"]).await.failure(), (400, message));
        }
        assert_eq!(app.simulators.paystack().requests().len(), before);
    }

    async fn a_duplicate_found_by_verify_is_rejected_immediately(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        let again = create_card(app, "ada").await;
        app.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
        let url = format!("{}/complete", again["checkout"]["url"].as_str().unwrap());
        let paid = json!({ "outcome": "success", "card": SUCCESS_CARD });
        app.client.post(url).json(&paid).send().await.unwrap();
        assert_eq!(verify(app, &again["id"]).await.failure(), (400, "card already exists"));
        app.run_until_idle().await;
        assert_eq!(app.events(), ["card.validation.success"]);
    }

    async fn a_card_shows_the_users_email_and_is_charged_under_the_providers(app: TestApp) {
        create_user(app, "ada").await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        let edit = json!({ "email": "ada.obi@example.com" });
        app.request(&app.company, Method::PUT, "/user/edit/ada", Some(edit)).await.data();
        assert_eq!(fetch_card(app, &card["id"]).await["card"]["email"], "ada.obi@example.com");
        // The simulator charges a card only under the e-mail address of its first charge.
        create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
        let charge = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card" });
        assert_eq!(charge_instrument(app, charge).await["status"], "success");
        // An e-mail address that only the provider has for the customer.
        let change = async move |tx: &mut store::Tx| tx.sql("UPDATE cards SET email = 'a@provider.example'").run().await;
        app.app.store.write(change).await.expect("a card");
        assert_eq!(list(app, "").await[0]["card"]["email"], "ada.obi@example.com");
    }

    async fn a_verification_that_fails_twice_emits_one_event(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        let again = create_card(app, "ada").await;
        complete_page(app, &again, "failed", SUCCESS_CARD).await;
        app.advance(60).await;
        assert_eq!(fetch_card(app, &again["id"]).await["valid"], false);
        complete_page(app, &again, "success", SUCCESS_CARD).await;
        app.advance(3_600).await;
        assert_eq!(fetch_card(app, &again["id"]).await["message"], "card already exists");
        assert_eq!(app.events(), ["card.validation.success", "card.validation.failed"]);
        assert_eq!(refunds(app, "").await.len(), 2);
    }

    async fn a_card_saved_again_at_another_account_is_charged_there(app: TestApp) {
        create_user(app, "ada").await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        let path = format!("/companies/{}/providers/provider_a", app.company.id);
        app.use_paystack(&path, "sk_test_the_companys_own").await;
        // Simulates a provider whose signature of a card is the same at every account.
        create_user(app, "bola").await;
        let same = saved_card(app, "bola", SUCCESS_CARD).await;
        copy_signature(app, &card, &same).await;
        let again = create_card(app, "ada").await;
        complete_page(app, &again, "success", SUCCESS_CARD).await;
        assert_eq!(fetch_card(app, &again["id"]).await["message"], "card already exists");
        create_loan(app, "loan-1", "ada", &[(10, 100.0)]).await;
        let charge = json!({ "loan": "loan-1", "with_provider": true, "payment_channel": "card", "card": card["id"] });
        assert_eq!(charge_instrument(app, charge).await["status"], "success");
        // The company's own account received the money.
        assert_eq!(app.wallet().await["balance"], 0);
    }

    async fn a_pending_refund_survives_an_outage_of_the_provider(app: TestApp) {
        create_user(app, "ada").await;
        let card = create_card(app, "ada").await;
        let url = format!("{}/complete", card["checkout"]["url"].as_str().unwrap());
        let paid = json!({ "outcome": "success", "card": SUCCESS_CARD });
        app.client.post(url).json(&paid).send().await.unwrap();
        app.post(&format!("/card/verify/{}", card["id"].as_str().unwrap()), json!({})).await.data();
        app.simulators.faults().push(Fault::new("refund_status", FaultKind::Error500).times(200));
        app.advance(12 * 3_600).await;
        let waits = refunds(app, "?status=pending").await;
        assert_eq!(waits.len(), 1, "{:?}", refunds(app, "").await);
        assert_ne!(waits[0]["provider_id"], "");
        app.simulators.faults().clear();
        app.advance(DAY).await;
        assert_eq!(refunds(app, "?status=done").await.len(), 1);
    }

    async fn one_valid_card_is_the_default(app: TestApp) {
        create_user(app, "ada").await;
        let defaults = async || -> Vec<Value> {
            list(app, "").await.into_iter().filter(|card| card["default"] == true).map(|card| card["id"].clone()).collect()
        };
        let first = saved_card(app, "ada", SUCCESS_CARD).await;
        app.advance(1).await;
        let second = saved_card(app, "ada", OTHER_CARD).await;
        assert_eq!(defaults().await, [first["id"].clone()]);
        let set = set_default(app, &second["id"]).await;
        assert_eq!((&set.body["message"], &set.data()["default"]), (&json!("Default card set successfully"), &json!(true)));
        assert_eq!(defaults().await, [second["id"].clone()]);
        let deleted = delete(app, &second["id"], "?delete_default=true").await;
        assert_eq!(deleted.body, json!({ "error": false, "message": "Card deleted successfully" }));
        assert_eq!(defaults().await, [first["id"].clone()]);
        app.run_until_idle().await;
        let requests = app.simulators.paystack().requests();
        assert!(requests.contains(&("POST".to_owned(), "/customer/authorization/deactivate".to_owned())));
        let tokens = async |tx: &mut store::Tx| tx.sql("SELECT COUNT(*) FROM cards WHERE token IS NOT NULL").one().await;
        let (left,): (i64,) = app.app.store.read(tokens).await.unwrap();
        assert_eq!(left, 1);
        delete(app, &first["id"], "?delete_default=true").await;
        assert_eq!(list(app, "").await.len(), 0);
        app.run_until_idle().await;
    }

    async fn a_plugin_cannot_be_removed_before_its_deleted_cards_are_deauthorized(app: TestApp) {
        create_user(app, "ada").await;
        let card = saved_card(app, "ada", SUCCESS_CARD).await;
        app.run_until_idle().await;
        delete(app, &card["id"], "?delete_default=true").await;
        let change = async |what: &str| {
            let path = format!("/plugins/provider_a/{what}");
            app.operator(Method::POST, &path, json!({})).await.data()[0]["digest"].clone()
        };
        let digest = change("deactivate").await;
        let remove = async || {
            let path = format!("/plugins/provider_a/{}", digest.as_str().expect("a digest"));
            app.operator(Method::DELETE, &path, Value::Null).await.failure().1.to_owned()
        };
        let needed = remove().await;
        assert!(needed.contains("1 deleted cards with unrevoked tokens"), "{needed}");
        change("activate").await;
        app.advance(3_600).await;
        change("deactivate").await;
        let needed = remove().await;
        assert!(needed.contains("accounts") && !needed.contains("cards"), "{needed}");
    }

    async fn a_failed_refund_is_reported_to_operators_and_can_be_retried(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", "4084080000671803").await;
        for _ in 0..30 {
            app.advance(3_600).await;
        }
        let failed = refunds(app, "?status=failed").await;
        assert_eq!(failed.len(), 1, "{:?}", refunds(app, "").await);
        app.advance(60).await;
        let events = app.operator(Method::GET, "/events?kind=card.refund_failed", Value::Null).await;
        assert_eq!(events.data()["events"][0]["data"]["refund"], failed[0]["id"]);
        let path = format!("/companies/{}/card-refunds/{}/retry", app.company.id, failed[0]["id"].as_str().unwrap());
        let retried = app.operator(Method::POST, &path, json!({})).await;
        assert_eq!((&retried.data()["status"], &retried.data()["tries"]), (&json!("requested"), &json!(2)));
        assert_eq!(app.operator(Method::POST, &path, json!({})).await.failure(), (400, "only a failed refund can be retried"));
        for _ in 0..30 {
            app.advance(3_600).await;
        }
    }

    async fn a_refund_that_the_provider_never_accepts_fails_and_can_be_retried(app: TestApp) {
        create_user(app, "ada").await;
        app.simulators.faults().push(Fault::new("refund", FaultKind::Error500).times(10_000));
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.advance(3_600).await;
        assert_eq!(refunds(app, "?status=requested").await.len(), 1);
        for _ in 0..24 {
            app.advance(3_600).await;
        }
        let given_up = refunds(app, "?status=failed").await.remove(0);
        app.simulators.faults().clear();
        let path = format!("/companies/{}/card-refunds/{}/retry", app.company.id, given_up["id"].as_str().unwrap());
        app.operator(Method::POST, &path, json!({})).await.data();
        app.advance(3_600).await;
        app.advance(3_600).await;
        assert_eq!(refunds(app, "?status=done").await.len(), 1);
    }

    async fn a_lost_checkout_session_is_opened_again_under_the_same_key(app: TestApp) {
        create_user(app, "ada").await;
        let order = json!({ "user_id": "ada", "currency": "NGN", "checkout": { "success_url": "https://a.example/" } });
        let send = async || {
            let request = app.client.post(format!("{}/api/v1/card/create", app.api)).bearer_auth(&app.company.key);
            reply(request.header("idempotency-key", "one").json(&order)).await
        };
        app.simulators.faults().push(Fault::new("initialize", FaultKind::CutAfter));
        assert_eq!(send().await.failure().0, 502);
        // New cards cannot be saved, but this one is recorded at its account.
        app.operator(Method::PUT, "/providers/provider_a", json!({ "active": false })).await.data();
        let card = send().await.data().clone();
        assert_eq!((list(app, "").await.len(), send().await.data()), (1, &card));
        complete_page(app, &card, "success", SUCCESS_CARD).await;
        assert_eq!(fetch_card(app, &card["id"]).await["valid"], true);
    }
}
