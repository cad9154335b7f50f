//! The console's page of a customer, and lists as files.

use serde_json::{Value, json};

use super::Browser;
use crate::{
    codes::{
        EMAIL, PHONE, credit, email_request, send, send_ok, set_prices, sms_request, use_gateways,
    },
    identity, lending,
    principals::entries,
};

both! {
    async fn a_customer_shows_payments_loans_cards_and_messages(app: TestApp) {
        let user = lending::create_user(app, "ada").await;
        let id = user["id"].as_str().expect("an id");
        let mut order = app.order("order-1");
        order["user_id"] = json!("ada");
        app.post("/payment/initialize", order.clone()).await.data();
        order["reference"] = json!("order-2");
        app.post("/payment/initialize", order).await.data();
        lending::saved_card(app, "ada", lending::SUCCESS_CARD).await;
        lending::create_loan(app, "loan-1", "ada", &[(30, 100.0)]).await;
        let repaid = json!({ "loan": "loan-1", "with_provider": false, "amount": 40, "payment_channel": "cash", "reference": "cash-1" });
        lending::create_recollection(app, repaid).await.data();
        app.run_until_idle().await;
        lending::insert_virtual_account(app, &app.company.id, &user).await;

        let browser = Browser::signed_in(app, "ada", "support-act").await;
        let page = format!("/console/companies/{}/users/{id}", app.company.id);
        for q in ["ada", "4081", "ada@example.com"] {
            let found = browser.get(&format!("/console?q={q}")).await;
            let is_found = found.location == page || found.html.contains(&page);
            assert!(is_found, "{q}: {} {}", found.location, found.html);
        }
        browser.get("/console?q=4082").await.shows(&["No matches"]);
        let shown = browser.get(&page).await;
        shown.shows(&["order-1", "order-2", "loan-1", "•••• ", "cash-1", "60.00", "Virtual accounts"]);
        let customers = format!("/console/companies/{}/users", app.company.id);
        browser.get(&format!("{customers}?search=ada")).await.shows(&[id]);
        browser.get(&format!("{customers}?search=nobody")).await.shows(&["There are no such customers"]);
        let list = format!("/console/companies/{}/recollections", app.company.id);
        browser.get(&format!("{list}?loan=loan-1")).await.shows(&["cash-1", "40.00"]);
        let (_, rest) = shown.html.split_once("/recollections/").expect("a link");
        let recollection = rest.split('"').next().expect("an id");
        browser.get(&format!("{list}/{recollection}")).await.shows(&["cash-1", "loan-1", "cash"]);
        // Without the permissions, the page is refused.
        let finance = Browser::signed_in(app, "eve", "finance-read").await;
        assert_eq!(finance.get(&page).await.status, 403);
    }

    async fn messages_are_found_by_the_complete_address_of_the_recipient(app: TestApp) {
        use_gateways(app, &["termii"]).await;
        set_prices(app).await;
        credit(app, 100, "first").await;
        send_ok(app, sms_request(json!({}))).await;
        send_ok(app, email_request(json!({}))).await;
        app.run_until_idle().await;
        let refused = send(app, sms_request(json!({ "phone": "+15005550006", "identifier": "other" }))).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
        let browser = Browser::signed_in(app, "ada", "support-read").await;
        let find = async |to: &str| {
            let to: String = url::form_urlencoded::byte_serialize(to.as_bytes()).collect();
            browser.get(&format!("/console/companies/{}/messages?to={to}", app.company.id)).await.html
        };
        for (to, found, other) in [(PHONE, "sms", "email"), (EMAIL, "email", "sms"), ("Ada@Example.com", "email", "sms")] {
            let html = find(to).await;
            let has = |channel: &str| html.contains(&format!("<td>{channel}</td>"));
            assert!(has(found) && !has(other), "{to}: {html}");
        }
        for to in ["+2348031234568", "bob@example.com", "+234803"] {
            let html = find(to).await;
            assert!(html.contains("There are no such messages"), "{to}: {html}");
        }
    }

    async fn identity_records_are_revealed_to_those_who_may_and_recorded(app: TestApp) {
        let user = lending::create_user(app, "ada").await;
        identity::free_uid(app, &app.company, json!({ "user_id": "ada" })).await;
        let page = format!("/console/companies/{}/users/{}", app.company.id, user["id"].as_str().expect("an id"));
        let reader = Browser::signed_in(app, "eve", "support-read").await;
        let shown = reader.get(&page).await;
        assert!(shown.status == 200 && !shown.html.contains("Reveal"), "{}", shown.html);
        assert_eq!(reader.get(&format!("{page}/identities")).await.status, 403);
        let log = format!("/companies/{}/audit", app.company.id);
        let reads = async || {
            let reads = entries(app, &log, "personal_data.read").await;
            let is_identity = |entry: &&Value| entry["detail"].to_string().contains("/identities");
            reads.iter().filter(is_identity).map(|entry| entry["actor"].clone()).collect::<Vec<_>>()
        };
        assert!(reads().await.is_empty());
        let browser = Browser::signed_in(app, "ada", "support-act").await;
        browser.get(&page).await.shows(&["Reveal identity records"]);
        browser.get(&format!("{page}/identities")).await.shows(&["nigeria.bvn"]);
        assert_eq!(reads().await, ["ada"]);
    }

    async fn a_list_is_downloaded_completely_as_csv(app: TestApp) {
        for n in 0..30 {
            let mut order = app.order(&format!("order-{n}"));
            order["email"] = json!(if n == 7 { "=cmd@example.com" } else { "ada@example.com" });
            app.post("/payment/initialize", order).await.data();
        }
        let browser = Browser::signed_in(app, "ada", "support-read").await;
        let list = format!("/console/companies/{}/payments", app.company.id);
        browser.get(&list).await.shows(&["Page 1 of 2, 30 in total", "Download as CSV", "?page=2"]);
        let file = browser.get(&format!("{list}?format=csv&status=pending")).await;
        let mut csv = csv::Reader::from_reader(file.html.as_bytes());
        let headings: Vec<String> = csv.headers().expect("headings").iter().map(str::to_owned).collect();
        assert_eq!(headings, ["Reference", "Payer", "Amount", "Amount currency", "State", "Provider", "Created", "Paid"]);
        let rows: Vec<_> = csv.records().map(|row| row.expect("a row")).collect();
        assert_eq!(rows.len(), 30);
        assert!(rows.iter().all(|row| row[2] == *"2500.5" && row[3] == *"NGN"), "{rows:?}");
        assert_eq!(rows.iter().filter(|row| row[1].starts_with("'=")).count(), 1);
        let empty = browser.get(&format!("{list}?format=csv&status=failed")).await;
        assert_eq!(empty.html.lines().count(), 1, "{}", empty.html);
    }
}
