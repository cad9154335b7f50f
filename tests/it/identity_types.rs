//! Identity types: their ids, the spelling of identifiers, and the contents of records.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use tollhouse_platform::{
    random::Random,
    store::{self, Store, Tx},
};

use crate::{
    app::NOW,
    identity::{BVN, count_uids, look_up_bvn, set_up},
};

both! {
    async fn an_identity_type_has_the_same_id_everywhere(app: TestApp) {
        set_up(app).await;
        let id = json!("ee32e75ba74d26eef156c5f7");
        assert_eq!(look_up_bvn(app, BVN).await.data()["identity"], id);
        let of_company = format!("/companies/{}/identities", app.company.id);
        for list in [
            app.get("/kyc/identity/list").await,
            app.operator(Method::GET, "/identities", Value::Null).await,
            app.operator(Method::GET, &of_company, Value::Null).await,
        ] {
            let types = list.data().as_array().expect("a list").clone();
            let named: Vec<&Value> = types.iter().filter(|kind| kind["id"] == id).collect();
            assert_eq!((named.len(), &named[0]["identity_name"], &named[0]["name"]), (1, &json!("nigeria.bvn"), &json!("BVN")));
            let ids: BTreeSet<&str> = types.iter().map(|kind| kind["id"].as_str().expect("an id")).collect();
            assert!(ids.len() == 8 && ids.iter().all(|id| id.len() == 24 && id.bytes().all(|b| b.is_ascii_hexdigit())), "{ids:?}");
        }
    }

    async fn spaces_and_hyphens_in_an_identifier_are_ignored(app: TestApp) {
        set_up(app).await;
        for (path, field, plain, spellings) in [
            ("bvn", "bvn", BVN, ["123 4567 8901", "123-4567-8901", " 12345678901 "]),
            ("nin/virtual", "virtual_nin", "AB12345678901234", ["ab12 3456 7890 1234", "AB12-3456-7890-1234", "AB12\u{2011}3456\u{a0}78901234"]),
            ("cac", "number", "RC1234567", ["RC-1234567", "rc 1234567", "RC 123-4567"]),
            ("phone-number", "number", "+2348031234567", ["+234 803 123 4567", "+234-803-123-4567", "+234 803-1234567"]),
        ] {
            let path = format!("/kyc/nigeria/{path}/lookup");
            let known = app.post(&path, json!({ field: plain })).await.data().clone();
            for spelling in spellings {
                let found = app.post(&path, json!({ field: spelling })).await;
                assert_eq!(found.data()["id"], known["id"], "{spelling}");
            }
        }
        assert_eq!(count_uids(app).await, 4);
    }

    async fn the_record_of_a_firm_has_its_email_and_cannot_be_verified_by_otp(app: TestApp) {
        set_up(app).await;
        let firm = app.post("/kyc/nigeria/cac/lookup", json!({ "number": "1234567" })).await.data().clone();
        assert!(firm["details"]["email"].as_str().is_some_and(|email| email.contains('@')), "{firm}");
        assert_eq!((&firm["email"], &firm["phone_number"]), (&firm["details"]["email"], &Value::Null));
        assert_eq!(firm["can_be_verified_by"], json!([]));
    }

    async fn a_migration_expires_extended_records_30_days_after_their_creation(app: TestApp) {
        set_up(app).await;
        look_up_bvn(app, BVN).await.data();
        let extended = async |tx: &mut Tx| -> store::Result<u64> {
            tx.sql("UPDATE uids SET expires_at = expires_at + 86400000").run().await?;
            tx.sql("DELETE FROM _sqlx_migrations WHERE version = 17").run().await
        };
        app.app.store.write(extended).await.expect("statements");
        Store::open(&app.database.url, store::StoreLimits::default(), Random::system()).await.expect("a migration");
        let found = look_up_bvn(app, BVN).await;
        assert_eq!(found.data()["expires_at"], json!(NOW.plus_seconds(30 * 24 * 3600)));
    }
}
