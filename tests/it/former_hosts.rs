//! Hosts of the previous version beside this one: they change no record with charges and request
//! nothing twice, and this version adopts what they began.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tollhouse_app::{
    money::charges,
    tenants::wallet::{self, LedgerAccount, LedgerTransaction, Overdraft},
};
use tollhouse_platform::{
    background::jobs,
    error::Error,
    store::{self, Record, Tx},
    values::{
        id::CompanyId,
        money::{Minor, Money},
    },
};
use tollhouse_sandbox::{Fault, FaultKind, Outcome};

use crate::{
    app::{Engine, TestApp, postgres},
    charge_rules::requests,
    charges::{
        alarms, by_card, by_checkout, recollection, refund_at_paystack, refund_payment, run,
    },
    lending::{
        SUCCESS_CARD, charge_instrument, create_loan, create_recollection, create_user, get_loan,
        saved_card,
    },
};

const DAY: i64 = 86_400;
const CHARGE: &str = "/transaction/charge_authorization";

async fn select<T: Record>(app: &TestApp, sql: &'static str) -> Vec<T> {
    app.app.store.read(async |tx: &mut Tx| tx.sql(sql).all().await).await.expect("rows")
}

/// Returns the fees of refunds and reversals, which the previous version did not book.
async fn forget_fees(app: &TestApp) {
    type Fees = (String, String, String, i64);
    const FEES: &str =
        "SELECT l.company_id, l.currency, t.kind, CAST(SUM(l.amount_minor) AS BIGINT)
        FROM ledger_entries l
        JOIN ledger_transactions t ON t.company_id = l.company_id AND t.id = l.transaction_id
        WHERE l.account = 'fees' GROUP BY l.company_id, l.currency, t.kind";
    for (company, currency, kind, minor) in select::<Fees>(app, FEES).await {
        let (company, app) = (CompanyId::from(company), app.app.clone());
        let returned = LedgerTransaction {
            key: format!("test:{kind}:{currency}"),
            kind: kind.into(),
            from: LedgerAccount::Operator,
            to: LedgerAccount::Fees,
            money: Money { minor: Minor(-minor), currency: currency.into() },
        };
        let db = app.store.clone();
        let post = async move |tx: &mut Tx| {
            wallet::post(tx, &app, &company, &returned, Overdraft::Allowed).await.map(drop)
        };
        let posted: Result<(), Error> = db.write(post).await;
        posted.expect("a ledger transaction");
    }
}

/// Makes all records those of the previous version, as they were before their adoption.
async fn forget_charges(app: &TestApp) {
    forget_fees(app).await;
    for sql in [
        "DELETE FROM charge_refunds",
        "DELETE FROM charges",
        "DELETE FROM jobs WHERE kind LIKE 'charge.%'",
        "UPDATE service_refs SET charge_id = NULL",
        "UPDATE payments SET charge_id = NULL",
        "UPDATE cards SET charge_id = NULL",
        "UPDATE recollections SET charge_id = NULL",
    ] {
        run(app, sql).await.expect(sql);
    }
}

/// Two charges of 300 and 400 that the previous version made at once for a loan of 1,000, and that
/// the bank is processing. Returns their references at the provider.
async fn two_charges(app: &TestApp) -> [String; 2] {
    create_user(app, "ada").await;
    saved_card(app, "ada", SUCCESS_CARD).await;
    app.simulators.faults().push(Fault::new("charge", FaultKind::Pending).times(2));
    for (loan, reference, amount) in [("loan-1", "r-1", 300), ("loan-2", "r-2", 400)] {
        create_loan(app, loan, "ada", &[(1, 1_000.0)]).await;
        let order = by_card(reference, json!({ "loan": loan, "amount": amount }));
        charge_instrument(app, order).await;
    }
    run(app, "DELETE FROM collections").await.expect("no collections");
    run(app, "DELETE FROM jobs WHERE subject = 'loan-2'").await.expect("no job");
    run(app, "UPDATE recollections SET loan_id = 'loan-1'").await.expect("one loan");
    forget_charges(app).await;
    let references = "SELECT service_ref FROM recollections ORDER BY reference";
    let references: Vec<(String,)> = select(app, references).await;
    [references[0].0.clone(), references[1].0.clone()]
}

both! {
    async fn the_previous_version_cannot_charge_what_this_one_queued(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(10, 1_000.0)]).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Pending));
        charge_instrument(app, by_card("r-1", json!({ "amount": 10 }))).await;
        create_recollection(app, by_card("r-2", json!({ "amount": 10 }))).await.data();
        app.run_until_idle().await;
        // The previous version opens the credentials of the account before it writes or requests
        // anything: without an account, it fails.
        let accounts: Vec<(String,)> = select(app, "SELECT account_id FROM recollections").await;
        assert_eq!(accounts, [(String::new(),), (String::new(),)]);
    }

    async fn charges_of_the_previous_version_hold_up_their_loan_one_after_the_other(app: TestApp) {
        let [first, second] = two_charges(app).await;
        app.advance(1).await;
        create_recollection(app, by_card("r-3", json!({ "amount": 1_000 }))).await.data();
        app.advance(300).await;
        assert_eq!(requests(app, "POST", CHARGE), 2);
        for reference in [&second, &first] {
            assert!(app.simulators.paystack().resolve(reference, Outcome::Success), "{reference}");
            app.advance(3_600).await;
        }
        app.advance(3_600).await;
        // Only what is left is charged, and the previous version cannot charge any more.
        let accounts: BTreeSet<(String,)> =
            select(app, "SELECT account_id FROM recollections").await.into_iter().collect();
        assert_eq!(accounts, BTreeSet::from([(String::new(),)]));
        let made = recollection(app, "r-3").await;
        assert_eq!((&made["status"], &made["amount"]), (&json!("success"), &json!(300)));
        assert_eq!(get_loan(app, "loan-1").await["amount_paid"], json!(1_000));
    }

    async fn a_charge_that_the_previous_version_no_longer_verified_holds_up_no_others(app: TestApp) {
        let [first, second] = two_charges(app).await;
        run(app, "UPDATE recollections SET created_at = created_at - 3456000000").await.expect("old rows");
        create_recollection(app, by_card("r-3", json!({ "amount": 100 }))).await.data();
        for _ in 0..3 {
            app.advance(60).await;
        }
        assert_eq!(recollection(app, "r-3").await["status"], "success");
        let raised = "SELECT c.service_ref FROM exceptions e JOIN charges c ON c.id = e.charge_id WHERE e.kind = 'unverified_charge'";
        let raised: BTreeSet<(String,)> = select(app, raised).await.into_iter().collect();
        assert_eq!(raised, BTreeSet::from([(first.clone(),), (second,)]));
        // One alarm each, however often it is verified.
        app.post("/recollection/verify/r-1", json!({})).await;
        app.advance(60).await;
        assert_eq!(alarms(app, "unverified charge").await, Some(2.0));
        assert!(app.simulators.paystack().resolve(&first, Outcome::Success));
        app.run_until_idle().await;
        assert_eq!(recollection(app, "r-1").await["status"], "success");
    }

    async fn a_declined_charge_of_the_previous_version_is_not_repeated(app: TestApp) {
        let [first, second] = two_charges(app).await;
        charges::sweep(app.app.clone()).await.expect("a sweep");
        for reference in [&first, &second] {
            assert!(app.simulators.paystack().resolve(reference, Outcome::Failed), "{reference}");
        }
        app.advance(60).await;
        for reference in ["r-1", "r-2"] {
            assert_eq!(recollection(app, reference).await["status"], "failed", "{reference}");
        }
        assert_eq!(requests(app, "POST", CHARGE), 2);
    }

    async fn a_charge_with_an_unknown_outcome_is_not_repeated_for_a_paid_loan(app: TestApp) {
        create_user(app, "ada").await;
        create_loan(app, "loan-1", "ada", &[(60, 100.0)]).await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        app.simulators.faults().push(Fault::new("charge", FaultKind::Cut));
        charge_instrument(app, by_card("r-1", json!({ "amount": 100 }))).await;
        let cash = json!({ "loan": "loan-1", "with_provider": false, "amount": 100 });
        create_recollection(app, cash).await.data();
        app.advance(3_600).await;
        app.advance(3_600).await;
        assert_eq!(recollection(app, "r-1").await["status"], "failed");
        assert_eq!((requests(app, "POST", CHARGE), get_loan(app, "loan-1").await["amount_paid"].clone()), (1, json!(100)));
    }

    async fn a_collection_covers_only_what_the_previous_version_has_not_charged(app: TestApp) {
        two_charges(app).await;
        app.advance(DAY).await;
        let of_fee = "SELECT r.amount_minor FROM recollections r JOIN collections c ON c.recollection_id = r.id";
        assert_eq!(select::<(i64,)>(app, of_fee).await, [(30_000,)]);
    }

    async fn a_refund_that_the_previous_version_may_be_requesting_waits_for_its_call(app: TestApp) {
        app.paid_payment("order-1").await;
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        let made = requests(app, "POST", "/refund");
        forget_charges(app).await;
        for sql in [
            "INSERT INTO refunds (company_id, payment_id, id, status, amount_minor, provider_id, message, created_at, updated_at)
             SELECT company_id, id, 'refund', 'requested', amount_minor, '', '', 0, 0 FROM payments",
            "INSERT INTO card_refunds (company_id, id, card_id, status, payment_service, account_id, service_ref, transaction_id,
                 amount_minor, currency, provider_id, tries, message, refund_ref, created_at, updated_at)
             SELECT company_id, 'card-refund', id, 'requested', payment_service, account_id, service_ref, '', amount_minor, currency, '',
                 1, '', 'card-refund', 0, 0 FROM cards",
        ] {
            run(app, sql).await.expect(sql);
        }
        charges::sweep(app.app.clone()).await.expect("a sweep");
        // The call takes at most 30 s, and the provider may still be processing its request then.
        app.advance(69).await;
        assert_eq!(requests(app, "POST", "/refund"), made);
        app.advance(1).await;
        // The verification charge is refunded already.
        assert_eq!(requests(app, "POST", "/refund"), made + 1);
        // Without an account, the previous version does not request the refund of the card.
        let accounts: Vec<(String,)> = select(app, "SELECT account_id FROM card_refunds").await;
        assert_eq!(accounts, [(String::new(),)]);
        run(app, "DELETE FROM charge_refunds").await.expect("refunds without entries");
        run(app, "UPDATE charges SET refunded_minor = 0").await.expect("charges that are not refunded");
    }

    async fn a_payment_that_the_previous_version_refunded_in_vain_may_be_reversed(app: TestApp) {
        let payment = app.paid_payment("order-1").await;
        refund_at_paystack(app, json!({ "transaction": "order-1" })).await;
        app.simulators.run_until_idle().await;
        app.advance(DAY).await;
        let (wallet, events) = (app.wallet().await, app.events());
        assert_eq!(app.fetch("order-1").await["status"], "refunded");
        forget_charges(app).await;
        let refused = "INSERT INTO refunds (company_id, payment_id, id, status, amount_minor, provider_id, message, created_at, updated_at)
             SELECT company_id, id, 'refund', 'failed', amount_minor, '', 'Refused', 0, 0 FROM payments";
        run(app, refused).await.expect(refused);
        charges::sweep(app.app.clone()).await.expect("a sweep");
        let adopted = "SELECT c.state, r.state, c.credited_minor + r.held_minor FROM charges c
             JOIN charge_refunds r ON r.charge_id = c.id";
        let adopted: Vec<(String, String, i64)> = select(app, adopted).await;
        assert_eq!(adopted, [("reversed".to_owned(), "refused".to_owned(), 0)]);
        assert_eq!(refund_payment(app, &payment).await.failure().0, 400);
        app.advance(DAY).await;
        assert_eq!((app.wallet().await, app.events()), (wallet, events));
    }

    async fn a_card_is_verified_at_the_account_where_it_was_charged(app: TestApp) {
        create_user(app, "ada").await;
        saved_card(app, "ada", SUCCESS_CARD).await;
        forget_charges(app).await;
        run(app, "UPDATE cards SET account_id = 'of-the-present-token'").await.expect("a moved card");
        charges::sweep(app.app.clone()).await.expect("a sweep");
        let sql = "SELECT c.account_id, r.account_id FROM charges c JOIN service_refs r ON r.service_ref = c.service_ref";
        let accounts: BTreeSet<(String, String)> = select(app, sql).await.into_iter().collect();
        assert!(accounts.iter().all(|(charged, reserved)| charged == reserved), "{accounts:?}");
    }
}

/// A trigger of PostgreSQL, on which two versions can run.
#[tokio::test]
async fn hosts_of_the_previous_version_cannot_change_records_with_charges() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    create_user(&app, "ada").await;
    create_loan(&app, "loan-1", "ada", &[(10, 1_000.0)]).await;
    saved_card(&app, "ada", SUCCESS_CARD).await;
    let paid: Value = app.paid_payment("paid").await;
    app.initialize("open").await;
    create_recollection(&app, by_checkout("page", json!({}))).await.data();
    let before = (app.wallet().await, app.events());
    // Statements of the previous version: to open a page, to settle, to refund.
    for sql in [
        "UPDATE payments SET starting_until = 1 WHERE status = 'pending'",
        "UPDATE payments SET status = 'success' WHERE status = 'pending'",
        "UPDATE payments SET status = 'refunded' WHERE status = 'success'",
        "UPDATE payments SET service_ref = 'another'",
        "UPDATE cards SET status = 'failed'",
        "UPDATE recollections SET status = 'success'",
        "UPDATE recollections SET starting_until = 1",
        "INSERT INTO refunds (company_id, payment_id, id, status, amount_minor, provider_id, message, created_at, updated_at)
         SELECT company_id, id, 'refund', 'requested', amount_minor, '', '', 0, 0 FROM payments WHERE status = 'success'",
        "INSERT INTO card_refunds (company_id, id, card_id, status, payment_service, account_id, service_ref, transaction_id,
             amount_minor, currency, provider_id, tries, message, created_at, updated_at)
         SELECT company_id, 'refund', id, 'requested', payment_service, account_id, service_ref, '', 100, 'NGN', '', 1, '', 0, 0 FROM cards",
    ] {
        let refused = run(&app, sql).await;
        assert!(refused.is_err_and(|error| error.contains("charges")), "{sql}");
    }
    // It may make changes that affect no outcome.
    run(&app, "UPDATE cards SET is_default = FALSE").await.expect("a default card that is changed");
    // A job that it enqueues after a webhook reaches the charges.
    let (company, id) = (app.company.id.clone(), paid["id"].as_str().unwrap().to_owned());
    let now = app.app.clock.now();
    let enqueue = async move |tx: &mut Tx| -> store::Result<()> {
        tx.sql("UPDATE jobs SET run_at = 9000000000000000").run().await?;
        jobs::enqueue(tx, &company, "payment.settle", &id, now).await
    };
    app.app.store.write(enqueue).await.expect("a job");
    app.run_until_idle().await;
    assert_eq!((app.wallet().await, app.events()), before);
    app.finish().await;
}
