//! Operators: tokens, roles, limits to companies, and the hash-chained audit log of what they did.

use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_app::{
    operations::operators::permissions::{self, MEMBER_ROLES, ROLES},
    routes::{Route, internal_routes},
};
use tollhouse_http::Access;

use crate::{
    app::{OPERATOR_TOKEN, Reply, TestApp, reply},
    command_line::run_against,
    ledger::{is_sqlite, run_as_host},
};

/// An operator and its token.
pub struct TestOperator {
    pub id: String,
    pub token: String,
    pub token_id: String,
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// Calls the internal interface with a token.
pub async fn call(app: &TestApp, token: &str, method: Method, path: &str, body: Value) -> Reply {
    let request = app.client.request(method, format!("{}/internal/v1{path}", app.internal));
    let request = request.bearer_auth(token);
    match body {
        Value::Null => reply(request).await,
        body => reply(request.json(&body)).await,
    }
}

async fn get(app: &TestApp, token: &str, path: &str) -> Reply {
    call(app, token, Method::GET, path, Value::Null).await
}

/// Creates an operator with these fields and a token, as the caller with `by`.
pub async fn create_by(app: &TestApp, by: &str, fields: Value) -> TestOperator {
    let created = call(app, by, Method::POST, "/operators", fields).await.data().clone();
    let id = text(&created, "id").to_owned();
    let path = format!("/operators/{id}/tokens");
    let token = call(app, by, Method::POST, &path, json!({})).await.data().clone();
    TestOperator {
        id,
        token: text(&token, "operator_token").to_owned(),
        token_id: text(&token, "id").to_owned(),
    }
}

pub async fn create(app: &TestApp, name: &str, roles: &[&str]) -> TestOperator {
    create_by(app, OPERATOR_TOKEN, json!({ "name": name, "roles": roles })).await
}

/// Returns the routes for operators with the permission that each requires.
fn operator_routes() -> Vec<(Route, &'static str)> {
    let permission = |route: Route| match route.access {
        Access::Operator(permission) => Some((route, permission)),
        _ => None,
    };
    internal_routes().into_iter().filter_map(permission).collect()
}

/// Calls a route with a body that cannot be read, so that it has no effect.
async fn probe(app: &TestApp, token: &str, route: &Route, company: &str) -> Reply {
    let path = route.path.strip_prefix("/internal/v1").expect("the prefix");
    let fill = |segment: &str| match segment {
        "{company}" => company.to_owned(),
        segment => segment.replace(['{', '}'], ""),
    };
    let path = path.split('/').map(fill).collect::<Vec<_>>().join("/");
    let method: Method = route.method.to_uppercase().parse().expect("a method");
    let url = format!("{}/internal/v1{path}", app.internal);
    let request = app.client.request(method, url).bearer_auth(token);
    reply(request.header("content-type", "text/plain").body("{ not json")).await
}

/// Returns the entries of a log with this action, newest first.
pub async fn entries(app: &TestApp, path: &str, action: &str) -> Vec<Value> {
    let log = app.operator(Method::GET, &format!("{path}?limit=1000"), Value::Null).await;
    let all = log.data()["docs"].as_array().expect("a list").clone();
    all.into_iter().filter(|entry| entry["action"] == action).collect()
}

fn company_log(app: &TestApp) -> String {
    format!("/companies/{}/audit", app.company.id)
}

both! {
    async fn each_role_may_call_only_the_routes_of_its_permissions(app: TestApp) {
        // The administrator's token is revoked after use, because it disables the configured token.
        for role in ROLES.iter().filter(|role| !MEMBER_ROLES.contains(&role.name)) {
            let operator = create(app, role.name, &[role.name]).await;
            for (route, permission) in operator_routes() {
                let what = format!("{}: {} {}", role.name, route.method, route.path);
                let response = probe(app, &operator.token, &route, &app.company.id).await;
                match permission.is_empty() || role.permissions.contains(&permission) {
                    true => assert!(![401, 403].contains(&response.status.as_u16()), "{what}: {}", response.body),
                    false => {
                        let message = format!("you lack the permission {permission}");
                        assert_eq!(response.failure(), (403, &*message), "{what}");
                    }
                }
            }
            if role.name == permissions::ADMINISTRATOR {
                let path = format!("/operators/{}/tokens/{}", operator.id, operator.token_id);
                call(app, &operator.token, Method::DELETE, &path, Value::Null).await;
            }
        }
    }

    async fn an_operator_limited_to_companies_sees_no_other(app: TestApp) {
        let other = app.new_company("Beta Lending").await;
        let fields = json!({
            "name": "ada", "roles": ["administrator"], "companies": [app.company.id],
        });
        let ada = create_by(app, OPERATOR_TOKEN, fields).await;
        for (route, permission) in operator_routes() {
            let what = format!("{} {}", route.method, route.path);
            if route.path.contains("{company}") {
                let own = probe(app, &ada.token, &route, &app.company.id).await;
                assert!(![401, 403].contains(&own.status.as_u16()), "{what}: {}", own.body);
                for company in [&*other.id, "unknown"] {
                    let refused = probe(app, &ada.token, &route, company).await;
                    assert_eq!(refused.failure(), (403, "you do not have access to this company"), "{what}");
                }
            } else if !permission.is_empty() {
                let refused = probe(app, &ada.token, &route, "").await;
                let message = "this route requires access to all companies";
                assert_eq!(refused.failure(), (403, message), "{what}");
            }
        }
        // An administrator limited to companies does not disable the configured token.
        assert_eq!(get(app, OPERATOR_TOKEN, "/companies").await.data()["total"], 2);
    }

    async fn the_configured_token_is_rejected_while_an_administrator_has_a_token(app: TestApp) {
        const REJECTED: (u16, &str) = (
            401, "the configured operator token is disabled because an administrator can authenticate",
        );
        create(app, "clerk", &["support-read"]).await;
        assert_eq!(get(app, OPERATOR_TOKEN, "/operators").await.status, 200);
        let root = create(app, "root", &["administrator"]).await;
        assert_eq!(get(app, OPERATOR_TOKEN, "/operators").await.failure(), REJECTED);
        let path = format!("/operators/{}", root.id);
        let active = |active: bool| json!({ "active": active });
        call(app, &root.token, Method::PATCH, &path, active(false)).await.data();
        assert_eq!(get(app, &root.token, "/operators").await.failure(), (401, "the operator token is not valid"));
        call(app, OPERATOR_TOKEN, Method::PATCH, &path, active(true)).await.data();
        assert_eq!(get(app, OPERATOR_TOKEN, "/operators").await.failure(), REJECTED);
        let soon = json!({ "expires_at": app.app.clock.now().plus_seconds(60) });
        let tokens = format!("{path}/tokens");
        call(app, &root.token, Method::POST, &tokens, soon).await.data();
        let revoke = format!("{tokens}/{}", root.token_id);
        assert_eq!(call(app, &root.token, Method::DELETE, &revoke, Value::Null).await.status, 200);
        assert_eq!(get(app, OPERATOR_TOKEN, "/operators").await.failure(), REJECTED);
        app.advance(60).await;
        assert_eq!(get(app, OPERATOR_TOKEN, "/operators").await.status, 200);
    }

    async fn tokens_are_shown_once_and_end(app: TestApp) {
        let clerk = create(app, "clerk", &["support-read"]).await;
        let path = format!("/operators/{}/tokens", clerk.id);
        let soon = json!({ "label": "laptop", "expires_at": app.app.clock.now().plus_seconds(60) });
        let short = app.operator(Method::POST, &path, soon).await.data().clone();
        let companies = async |token: &str| get(app, token, "/companies").await.status.as_u16();
        assert_eq!([companies(&clerk.token).await, companies(text(&short, "operator_token")).await], [200, 200]);
        app.advance(60).await;
        assert_eq!(companies(text(&short, "operator_token")).await, 401);
        app.app.tasks.wait_until_idle().await; // uses are recorded in the background
        let listed = app.operator(Method::GET, &path, Value::Null).await.data().clone();
        let find = |id: &Value| listed.as_array().expect("a list").iter().find(|token| token["id"] == *id).expect("it");
        let (first, second) = (find(&json!(clerk.token_id)), find(&short["id"]));
        assert_eq!((&second["label"], first["prefix"].as_str()), (&json!("laptop"), clerk.token.get(..10)));
        assert!(first["last_used_at"].is_string(), "{listed}");
        let log = app.operator(Method::GET, "/audit", Value::Null).await.body;
        for seen in [&listed, &log, &app.operator(Method::GET, "/operators", Value::Null).await.body] {
            for secret in [&*clerk.token, text(&short, "operator_token")] {
                assert!(!seen.to_string().contains(secret), "{seen}");
            }
        }
        let revoke = format!("{path}/{}", clerk.token_id);
        assert_eq!(app.operator(Method::DELETE, &revoke, Value::Null).await.status, 200);
        assert_eq!(companies(&clerk.token).await, 401);
        let unknown = app.operator(Method::DELETE, &format!("{path}/none"), Value::Null).await;
        assert_eq!(unknown.failure(), (404, "token not found"));
    }

    async fn operators_cannot_grant_permissions_that_they_lack(app: TestApp) {
        let role = json!({ "permissions": ["operators.read", "operators.write", "companies.read"] });
        app.operator(Method::PUT, "/roles/delegate", role).await.data();
        let delegate = create(app, "delegate", &["delegate"]).await;
        let strong = create(app, "strong", &["finance-act"]).await;
        let lacks = |response: Reply, permission: &str| {
            let message = format!("you lack the permission {permission}, so you cannot grant it");
            assert_eq!(response.failure(), (403, &*message));
        };
        let by = async |method: Method, path: &str, body: Value| call(app, &delegate.token, method, path, body).await;
        let new = |role: &str| json!({ "name": "new", "roles": [role] });
        lacks(by(Method::POST, "/operators", new("security")).await, "approvals.read");
        let own = format!("/operators/{}", delegate.id);
        lacks(by(Method::PATCH, &own, json!({ "roles": ["delegate", "finance-read"] })).await, "lending.read");
        lacks(by(Method::PUT, "/roles/delegate", json!({ "permissions": ["wallet.write"] })).await, "wallet.write");
        let other = format!("/operators/{}", strong.id);
        lacks(by(Method::PATCH, &other, json!({ "active": false })).await, "approvals.decide");
        lacks(by(Method::POST, &format!("{other}/tokens"), json!({})).await, "approvals.decide");
        let token = format!("{other}/tokens/{}", strong.token_id);
        lacks(by(Method::DELETE, &token, Value::Null).await, "approvals.decide");
        by(Method::POST, "/operators", new("delegate")).await.data();
    }

    async fn operators_and_roles_are_validated(app: TestApp) {
        let clerk = create(app, "clerk", &["support-read"]).await;
        let taken = "another account has this name or e-mail address";
        for (body, failure) in [
            (json!({}), (400, "the name field is required")),
            (json!({ "name": "eve" }), (400, "the roles field is required")),
            (json!({ "name": "eve", "roles": ["king"] }), (400, "the roles field must not contain king: no such role")),
            (json!({ "name": "eve", "roles": [], "email": "eve" }), (400, "the email field must be a valid email address")),
            (json!({ "name": "eve", "roles": [], "companies": ["x"] }), (400, "the companies field must not contain x: no such company")),
            (json!({ "name": "clerk", "roles": [] }), (409, taken)),
        ] {
            assert_eq!(app.operator(Method::POST, "/operators", body).await.failure(), failure);
        }
        let all = app.operator(Method::GET, "/operators", Value::Null).await;
        assert_eq!(all.data().as_array().map(Vec::len), Some(1));
        let unknown = json!({ "permissions": ["everything"] });
        assert_eq!(
            app.operator(Method::PUT, "/roles/king", unknown).await.failure(),
            (400, "the permissions field must be a list of permissions: there is no everything"),
        );
        let read = json!({ "permissions": ["wallet.read"] });
        assert_eq!(
            app.operator(Method::PUT, "/roles/security", read.clone()).await.failure(),
            (409, "security is a built-in role, which cannot be changed"),
        );
        app.operator(Method::PUT, "/roles/teller", read).await.data();
        let path = format!("/operators/{}", clerk.id);
        let wallet = format!("/companies/{}/wallet", app.company.id);
        assert_eq!(get(app, &clerk.token, &wallet).await.status, 403);
        app.operator(Method::PATCH, &path, json!({ "roles": ["teller"] })).await.data();
        assert_eq!(get(app, &clerk.token, &wallet).await.status, 200);
        let used = app.operator(Method::DELETE, "/roles/teller", Value::Null).await;
        assert_eq!(used.failure(), (409, "the operator clerk has this role"));
        app.operator(Method::PATCH, &path, json!({ "roles": [] })).await.data();
        assert_eq!(app.operator(Method::DELETE, "/roles/teller", Value::Null).await.status, 200);
        assert_eq!(get(app, &clerk.token, &wallet).await.status, 403);
    }

    async fn the_audit_log_names_who_did_what_from_where(app: TestApp) {
        let admin = create(app, "cleo", &["company-admin"]).await;
        let path = format!("/companies/{}", app.company.id);
        let url = format!("{}/internal/v1{path}", app.internal);
        let edit = app.client.patch(url).bearer_auth(&admin.token).header("x-request-id", "req-1");
        reply(edit.json(&json!({ "name": "Acme Credit" }))).await.data();
        let edited = entries(app, &company_log(app), "company.edit").await;
        assert_eq!(
            json!([
                edited[0]["actor"], edited[0]["actor_id"], edited[0]["credential"],
                edited[0]["address"], edited[0]["request_id"], edited[0]["detail"],
            ]),
            json!([
                "cleo", admin.id, admin.token_id, "127.0.0.1", "req-1",
                { "name": { "before": "Acme Lending", "after": "Acme Credit" } },
            ])
        );
        let by_configuration = &entries(app, "/audit", "operator.create").await[0];
        assert_eq!((&by_configuration["actor"], &by_configuration["actor_id"]), (&json!("operator"), &Value::Null));
    }

    async fn refusals_and_reads_of_personal_data_are_recorded(app: TestApp) {
        let clerk = create(app, "clerk", &["support-read"]).await;
        let payments = format!("/companies/{}/payments", app.company.id);
        get(app, &clerk.token, &payments).await.data();
        get(app, &clerk.token, &format!("{payments}/reference/order-1")).await.failure();
        let read = entries(app, &company_log(app), "personal_data.read").await;
        let of_company = "GET /internal/v1/companies/{company}/payments";
        assert_eq!(read[1]["detail"], json!({ "operation": of_company, "record": {} }));
        assert_eq!(read[0]["detail"]["record"], json!({ "reference": "order-1" }));
        assert_eq!([&read[0]["actor"], &read[1]["actor"]], ["clerk", "clerk"]);
        assert_eq!(get(app, &clerk.token, "/operators").await.status, 403);
        assert_eq!(get(app, &clerk.token, "/companies/none/wallet").await.status, 403);
        let refused = entries(app, "/audit", "access.refuse").await;
        assert_eq!(refused.len(), 2);
        assert_eq!(refused[1]["detail"], json!({ "operation": "GET /internal/v1/operators", "record": {} }));
        // Other reads are not recorded.
        get(app, &clerk.token, "/companies").await.data();
        assert_eq!(entries(app, &company_log(app), "personal_data.read").await.len(), 2);
    }

    async fn concurrent_actions_form_one_chain(app: TestApp) {
        let path = format!("/companies/{}/keys", app.company.id);
        let keys = (0..24).map(|_| app.operator(Method::POST, &path, json!({})));
        for created in join_all(keys).await {
            created.data();
        }
        let log = app.operator(Method::GET, &format!("{}/chain", company_log(app)), Value::Null).await;
        let log = log.data();
        let numbers: Vec<_> = log["entries"].as_array().expect("a list").iter().map(|entry| entry["number"].as_i64()).collect();
        assert_eq!(numbers, (1..=25).map(Some).collect::<Vec<_>>());
        assert_eq!((&log["end"]["number"], &log["end"]["hash"]), (&json!(25), &log["entries"][24]["hash"]));
        let verified = run_against(&app.internal, OPERATOR_TOKEN, &["audit", "verify"]).await;
        assert!(verified.success_output().contains("intact"), "{}", verified.out);
    }

    async fn verification_finds_changed_missing_and_reordered_entries(app: TestApp) {
        let path = format!("/companies/{}/keys", app.company.id);
        for label in ["one", "two", "three", "four"] {
            app.operator(Method::POST, &path, json!({ "label": label })).await.data();
        }
        let verify = async |more: &[&str]| {
            run_against(&app.internal, OPERATOR_TOKEN, &[&["audit", "verify"], more].concat()).await
        };
        let before = verify(&["--json"]).await;
        let file = app.database.dir.path().join("before.json");
        std::fs::write(&file, before.success_output()).expect("a file");
        let since = ["--since", file.to_str().expect("a path")];
        assert_eq!(verify(&since).await.code, 0);

        let exported = run_against(&app.internal, OPERATOR_TOKEN, &["audit", "export", &app.company.id]).await;
        let lines: Vec<&str> = exported.success_output().lines().collect();
        assert_eq!(lines.len(), 5);
        for (lines, problem) in [
            (lines.clone(), "intact"),
            ([&lines[..2], &lines[3..]].concat(), "entry 3 is missing: entry 4 follows"),
            ([&lines[1..2], &lines[..1]].concat(), "entry 1 is missing: entry 2 follows"),
        ] {
            let file = app.database.dir.path().join("log.jsonl");
            std::fs::write(&file, lines.join("\n")).expect("a file");
            let result = verify(&["--file", file.to_str().expect("a path")]).await;
            assert!(result.out.contains(problem), "{}", result.out);
            assert_eq!(result.code, i32::from(problem != "intact"));
        }

        // The tables refuse changes, so an attacker must own them.
        let unguard: &[&str] = match is_sqlite(app) {
            true => &["DROP TRIGGER audit_log_keeps", "DROP TRIGGER audit_log_holds"],
            false => &["DROP TRIGGER audit_log_keeps ON audit_log"],
        };
        for sql in unguard {
            run_as_host(app, sql).await.expect("a change of the schema");
        }
        let of_company = format!("company_id = '{}'", app.company.id);
        for (sql, problem) in [
            (format!("UPDATE audit_log SET actor = 'nobody' WHERE number = 5 AND {of_company}"), "entry 5 was changed"),
            (format!("DELETE FROM audit_log WHERE number = 5 AND {of_company}"), "entry 5 is missing: the log ends at 4"),
            (format!("UPDATE audit_chains SET number = 4, hash = (SELECT hash FROM audit_log WHERE number = 4 AND {of_company}) WHERE {of_company}"), ""),
        ] {
            run_as_host(app, &sql).await.expect("a change");
            let result = verify(&[]).await;
            assert_eq!(result.code, i32::from(!problem.is_empty()), "{}", result.out);
            assert!(result.out.contains(problem), "{}", result.out);
        }
        // Only the note reveals that the last entry was removed with the end of the chain.
        let result = verify(&since).await;
        assert_eq!((result.code, &*result.err), (1, "tollhouse: 1 of 2 logs are not intact\n"));
        assert!(result.out.contains("entry 5 is missing: the log ends at 4"), "{}", result.out);
    }
}
