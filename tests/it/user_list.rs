//! Listing users: each filter alone, and combinations against a simple model in memory.

use chrono::{Datelike, NaiveDate};
use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::{random::Random, values::listing};

use crate::app::{Engine, NOW, Reply, TestApp, postgres};

async fn list(app: &TestApp, parameters: &[(&str, &str)]) -> Reply {
    let url = reqwest::Url::parse_with_params(&format!("{}/api/v1/user/list", app.api), parameters);
    let path = url.expect("a URL");
    let path = &path.as_str()[format!("{}/api/v1", app.api).len()..];
    app.get(path).await
}

/// The `user_id`s of a page.
async fn found(app: &TestApp, parameters: &[(&str, &str)]) -> Vec<String> {
    let listed = list(app, parameters).await.data().clone();
    let ids = listed["docs"].as_array().expect("a list").iter();
    let ids: Vec<String> =
        ids.map(|user| user["user_id"].as_str().expect("a text").to_owned()).collect();
    assert_eq!(listed["total"], ids.len(), "{parameters:?}");
    ids
}

async fn create(app: &TestApp, user_id: &str, more: Value) {
    let mut user = json!({ "user_id": user_id, "first_name": "Ada", "last_name": "Obi", "email": format!("{user_id}@example.com") });
    for (field, value) in more.as_object().expect("an object") {
        user[field] = value.clone();
    }
    app.post("/user/create", user).await.data();
}

both! {
    async fn a_list_is_paged_newest_first(app: TestApp) {
        for n in 0..7 {
            create(app, &format!("user-{n}"), json!({})).await;
            app.advance(1).await;
        }
        for (page, expected, prev, next) in [
            ("1", vec!["user-6", "user-5", "user-4"], 0, 2),
            ("3", vec!["user-0"], 2, 0),
            ("4", vec![], 3, 0),
        ] {
            let response = list(app, &[("limit", "3"), ("page", page)]).await;
            let data = response.data();
            let ids: Vec<&str> = data["docs"].as_array().unwrap().iter().map(|user| user["user_id"].as_str().unwrap()).collect();
            assert_eq!(ids, expected);
            let arithmetic = ["total", "page", "per_page", "prev", "next", "total_page"].map(|name| data[name].as_i64().unwrap());
            assert_eq!(arithmetic, [7, page.parse().unwrap(), 3, prev, next, 3]);
            assert_eq!(response.body["message"], "Users fetched successfully");
        }
        let one = list(app, &[("limit", "1")]).await.data()["docs"][0].clone();
        assert_eq!(&one, app.get("/user/fetch/user-6").await.data(), "a listed user equals the fetched one");
    }

    async fn every_word_of_a_search_must_match_a_field(app: TestApp) {
        create(app, "cust_7%x", json!({ "first_name": "Adaeze", "last_name": "Öbi-Ünal", "middle_name": "N!", "phone": "+2348012345678" })).await;
        create(app, "other", json!({ "first_name": "Bola", "email": "bola.ade@Beta.example" })).await;
        for (search, expected) in [
            ("adaeze", true),
            ("ADAEZE öBI", true),
            ("dae bi-ü", true),
            ("ada", true),
            ("zz", false),
            ("ad 80", true), // short words, in two fields
            ("a", true),
            ("adaeze bola", false),
            ("aezeöbi", false), // no match across two fields
            ("+2348012", true),
            ("7%x", true),
            ("t_7%", true),
            ("t_8%", false),
            ("t%7", false),
            ("cust.7", false),
            ("n!", true),
            ("!", true),
            ("\\", false),
            ("cust_7%x@example", true),
            ("  adaeze   ", true),
        ] {
            let ids = found(app, &[("search", search)]).await;
            assert_eq!(ids.contains(&"cust_7%x".to_owned()), expected, "{search}: {ids:?}");
        }
        assert_eq!(found(app, &[("search", "beta")]).await, ["other"]);
        // An edited user is found by its current values.
        app.request(&app.company, Method::PUT, "/user/edit/other", Some(json!({ "first_name": "Chioma", "email": null }))).await.data();
        assert_eq!(found(app, &[("search", "chioma")]).await, ["other"]);
        for gone in ["bola", "beta"] {
            assert_eq!(found(app, &[("search", gone)]).await, Vec::<String>::new());
        }
        // Users of another company are not found.
        let beta = app.new_company("Beta Lending").await;
        let theirs = app.request(&beta, Method::GET, "/user/list?search=chioma&metadata.x=1", None).await;
        assert_eq!(theirs.data()["total"], 0);
    }

    async fn filters_out_of_range_are_no_error(app: TestApp) {
        create(app, "ada", json!({ "date_of_birth": "10/12/1990", "years_of_employment": 7 })).await;
        create(app, "methuselah", json!({ "first_name": "Seth", "date_of_birth": "01/01/0900" })).await;
        let alphabet = "a d o b i x p l e c m @ . a d o b i ada obi example com";
        let many: String = (0..250).filter_map(|n| char::from_u32(0x4e00 + n)).flat_map(|c| [c, ' ']).collect();
        for (parameters, expected) in [
            (&[("search", alphabet)][..], vec!["ada"]),
            (&[("search", &*many)], vec![]),
            (&[("age", "30/200")], vec!["ada"]),
            (&[("age", "151")], vec![]),
            (&[("age", "900/99999999999999999999")], vec!["methuselah"]),
            (&[("age", "99999999999999999999")], vec![]),
            (&[("years_of_employment", "5/99999999999999999999")], vec!["ada"]),
            (&[("years_of_employment", "101")], vec![]),
            (&[("created_at", "never"), ("date_by", "today"), ("search", "ada")], vec!["ada"]),
            (&[("created_at", "never"), ("date_by", "yesterday")], vec![]),
        ] {
            assert_eq!(found(app, parameters).await, expected, "{parameters:?}");
        }
        let both = [("created_at", "never"), ("date_by", "")];
        assert_eq!(list(app, &both).await.failure().0, 400);
    }

    async fn metadata_is_matched_by_its_json_text(app: TestApp) {
        let metadata = json!({ "tier": "gold", "n": 1, "x": 1.50, "yes": true, "none": null, "in": { "a": 1 }, "a.b": "dot", "empty": "", "text": "1" });
        create(app, "ada", json!({ "metadata": metadata })).await;
        create(app, "bola", json!({ "metadata": { "tier": "silver", "n": "1" } })).await;
        for (key, value, expected) in [
            ("tier", "gold", vec!["ada"]),
            ("tier", "Gold", vec![]),
            ("tier", "gol", vec![]),
            ("n", "1", vec!["ada", "bola"]),
            ("n", "1.0", vec!["ada"]),
            ("x", "1.5", vec!["ada"]),
            ("x", "1.50", vec!["ada"]),
            ("x", "15e-1", vec!["ada"]),
            ("yes", "true", vec!["ada"]),
            ("yes", "1", vec![]),
            ("none", "null", vec![]),
            ("in", "{\"a\":1}", vec![]),
            ("in.a", "1", vec![]),
            ("a.b", "dot", vec!["ada"]),
            ("empty", "", vec!["ada"]),
            ("text", "1", vec!["ada"]),
            ("text", "1.0", vec![]),
            ("other", "1", vec![]),
        ] {
            let mut ids = found(app, &[(&format!("metadata.{key}"), value)]).await;
            ids.sort();
            assert_eq!(ids, expected, "{key}={value}");
        }
        assert_eq!(found(app, &[("metadata.tier", "gold"), ("metadata.n", "1")]).await, ["ada"]);
        assert_eq!(found(app, &[("metadata.tier", "gold"), ("metadata.n", "2")]).await, Vec::<String>::new());
        let edit = json!({ "metadata": { "tier": "silver" } });
        app.request(&app.company, Method::PUT, "/user/edit/ada", Some(edit)).await.data();
        assert_eq!(found(app, &[("metadata.tier", "gold")]).await, Vec::<String>::new());
        assert_eq!(found(app, &[("metadata.tier", "silver")]).await.len(), 2);
    }

    async fn an_invalid_parameter_gets_400_with_its_name(app: TestApp) {
        let range = || "must be a whole number, or two as min/max".to_owned();
        let long = &*"x".repeat(501);
        for (name, value, problem) in [
            ("page", "0", "must be a whole number from 1 to 1000000000".to_owned()),
            ("limit", "1001", "must be a whole number from 1 to 1000".to_owned()),
            ("search", long, "must be at most 500 characters".to_owned()),
            ("active", "yes", "must be one of true, false".to_owned()),
            ("email_verified", "1", "must be one of true, false".to_owned()),
            ("phone_verified", "TRUE", "must be one of true, false".to_owned()),
            ("age", "x", range()),
            ("age", "30/18", range()),
            ("age", "18/30/40", range()),
            ("years_of_employment", "-1", range()),
            ("years_of_employment", "1.5", range()),
            ("created_at", "2026-01-01", "must be DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY".to_owned()),
            ("created_at", "02-01-2026/01-01-2026", "must be DD-MM-YYYY or DD-MM-YYYY/DD-MM-YYYY".to_owned()),
            ("date_by", "tomorrow", "must be one of today, yesterday, this_week, last_week, this_month, last_month, this_year, last_year".to_owned()),
        ] {
            let refused = list(app, &[(name, value)]).await;
            assert_eq!(refused.failure(), (400, &*format!("the {name} field {problem}")), "{value}");
        }
        // An invalid period does not override `created_at`.
        let both = [("created_at", "never"), ("date_by", "tomorrow")];
        assert!(list(app, &both).await.failure().1.starts_with("the created_at field"));
        // Empty parameters are ignored.
        let names = ["page", "limit", "search", "id", "active", "role", "country", "age", "created_at", "date_by", "sort-created_at"];
        let empty: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
        assert_eq!(found(app, &empty).await, Vec::<String>::new());
    }
}

// ---- against a model ----------------------------------------------------------------------------

const USERS: usize = 120;
const LISTS: usize = 150;

/// Returns a random element.
fn one<'v, T>(random: &Random, all: &'v [T]) -> &'v T {
    let n = random.up_to(i64::try_from(all.len()).unwrap() - 1);
    &all[usize::try_from(n).unwrap()]
}

fn one_in(random: &Random, n: i64) -> bool {
    random.up_to(n - 1) == 0
}

const FIRST: [&str; 5] = ["Ada", "ada", "Bola", "Çelik", "Zoë"];
const LAST: [&str; 4] = ["Obi", "Ünal", "de Souza", "O'Neil"];
const COUNTRIES: [&str; 3] = ["nigeria", "ghana", "kenya"];
const BORN: [&str; 7] = [
    "01/01/1990", "29/02/2000", "28/02/2000", "01/03/2000", "31/12/1959", "15/06/2007",
    "16/06/2007",
];

fn random_user(random: &Random, n: usize) -> Value {
    let mut user = json!({
        "user_id": format!("u{n:02}"),
        "first_name": one(random, &FIRST),
        "last_name": one(random, &LAST),
        "email": format!("{}{n}@{}.example", one(random, &FIRST[..3]), one(random, &["alpha", "beta"])),
        "active": one_in(random, 2),
        "email_verified": one_in(random, 2),
        "phone_verified": one_in(random, 3),
        "metadata": { "tier": one(random, &[json!("gold"), json!(1), json!("1"), json!(true), json!(1.5), Value::Null]) },
    });
    for (field, value) in [
        ("phone", json!(format!("+23480{n:08}"))),
        ("country", json!(one(random, &COUNTRIES))),
        ("date_of_birth", json!(one(random, &BORN))),
        ("years_of_employment", json!(random.up_to(5))),
        ("middle_name", json!(one(random, &["N", "Bo", "Ada"]))),
    ] {
        if !one_in(random, 3) {
            user[field] = value;
        }
    }
    user
}

/// Random parameters.
fn random_parameters(random: &Random) -> Vec<(&'static str, String)> {
    let range = |values: [i64; 3]| {
        let (a, b) = (*one(random, &values), *one(random, &values));
        if one_in(random, 2) { a.to_string() } else { format!("{}/{}", a.min(b), a.max(b)) }
    };
    let days = ["14-11-2026", "15-11-2026", "10-11-2026/15-11-2026", "01-01-2026/14-11-2026"];
    let searched = [
        "ada", "ADA", "o", "ada obi", "un", "ünal al", "alpha ada", "bet", "+2348", "u1", "zoë",
        "'n", "x",
    ];
    let all = [
        ("search", (*one(random, &searched)).to_owned()),
        ("user_id", format!("u{:02}", random.up_to(70))),
        ("active", one_in(random, 2).to_string()),
        ("email_verified", one_in(random, 2).to_string()),
        ("phone_verified", one_in(random, 2).to_string()),
        ("role", (*one(random, &["customer", "customer", "admin"])).to_owned()),
        ("country", (*one(random, &["nigeria", "Ghana", "togo"])).to_owned()),
        ("age", range([18, 26, 66])),
        ("years_of_employment", range([0, 2, 4])),
        ("metadata.tier", (*one(random, &["gold", "1", "1.0", "true", "1.5", "null"])).to_owned()),
        ("created_at", (*one(random, &days)).to_owned()),
        ("date_by", (*one(random, &listing::PERIODS)).to_owned()),
        (
            *one(
                random,
                &["sort-created_at", "sort-updated_at", "sort-first_name", "sort-last_name"],
            ),
            (*one(random, &["asc", "desc", "down"])).to_owned(),
        ),
    ];
    let rarely = ["user_id", "role"];
    all.into_iter()
        .filter(|(name, _)| one_in(random, if rarely.contains(name) { 12 } else { 4 }))
        .collect()
}

fn day(at: &Value) -> NaiveDate {
    at.as_str().unwrap()[..10].parse().unwrap()
}

/// Returns whether a user in the API's form matches a parameter, implemented independently from
/// the specification.
fn fits(user: &Value, name: &str, filter: &str, today: NaiveDate) -> bool {
    let text = |field: &str| user[field].as_str().unwrap_or_default();
    let within = |field: &str| {
        let ends: Vec<i64> = filter.split('/').map(|end| end.parse().unwrap()).collect();
        user[field].as_i64().is_some_and(|value| ends[0] <= value && value <= *ends.last().unwrap())
    };
    let date = |text: &str| NaiveDate::parse_from_str(text, "%d-%m-%Y").unwrap();
    match name {
        "search" => filter.to_lowercase().split_whitespace().all(|word| {
            ["user_id", "first_name", "last_name", "middle_name", "email", "phone"]
                .iter()
                .any(|field| text(field).to_lowercase().contains(word))
        }),
        "active" | "email_verified" | "phone_verified" => user[name] == (filter == "true"),
        "country" => text("country") == filter.to_lowercase(),
        "age" | "years_of_employment" => within(name),
        "metadata.tier" => match &user["metadata"]["tier"] {
            Value::String(tier) => tier == filter,
            Value::Number(tier) => {
                filter.parse::<f64>().is_ok_and(|filter| tier.as_f64() == Some(filter))
            }
            Value::Bool(tier) => tier.to_string() == filter,
            _ => false,
        },
        "created_at" => {
            let mut ends = filter.split('/').map(date);
            let first = ends.next().unwrap();
            (first..=ends.next().unwrap_or(first)).contains(&day(&user["created_at"]))
        }
        "date_by" => {
            let made = day(&user["created_at"]);
            let monday = |day: NaiveDate| {
                day - chrono::Days::new(day.weekday().num_days_from_monday().into())
            };
            match filter {
                "today" => made == today,
                "yesterday" => made.succ_opt() == Some(today),
                "this_week" => monday(made) == monday(today),
                "last_week" => monday(made) + chrono::Days::new(7) == monday(today),
                "this_month" => (made.year(), made.month()) == (today.year(), today.month()),
                "last_month" => {
                    made.with_day(1).unwrap() + chrono::Months::new(1) == today.with_day(1).unwrap()
                }
                "this_year" => made.year() == today.year(),
                _ => made.year() + 1 == today.year(),
            }
        }
        "user_id" | "role" => text(name) == filter,
        _ => panic!("{name} is not in the model"),
    }
}

/// The expected list.
fn expected(users: &[Value], parameters: &[(&str, String)], today: NaiveDate) -> Vec<String> {
    let sorts = |name: &str| parameters.iter().find(|(sort, _)| *sort == format!("sort-{name}"));
    let by_date = parameters.iter().any(|(name, _)| *name == "date_by");
    let mut all: Vec<&Value> = users
        .iter()
        .filter(|user| {
            let filters = parameters.iter().filter(|(name, _)| !name.starts_with("sort-"));
            // `date_by` overrides `created_at`.
            let filters = filters.filter(|(name, _)| !(by_date && *name == "created_at"));
            filters.into_iter().all(|(name, value)| fits(user, name, value, today))
        })
        .collect();
    let fields = ["created_at", "updated_at", "first_name", "last_name"];
    let field = fields.into_iter().find(|field| sorts(field).is_some()).unwrap_or("created_at");
    let key = |user: &Value| {
        (user[field].as_str().unwrap().to_owned(), user["id"].as_str().unwrap().to_owned())
    };
    all.sort_by_key(|user| key(user));
    if sorts(field).is_none_or(|(_, direction)| direction != "asc") {
        all.reverse();
    }
    all.iter().map(|user| user["user_id"].as_str().unwrap().to_owned()).collect()
}

async fn check_lists_against_the_model(engine: Engine) {
    let seed: u64 = Random::system().up_to(i64::MAX).unsigned_abs();
    println!("seed {seed}");
    let random = Random::seeded(seed);
    let app = TestApp::start(engine).await;
    // Users of another company must not be listed.
    let other = app.new_company("Beta Lending").await;
    for n in 0..USERS {
        let user = random_user(&random, n);
        if one_in(&random, 4) {
            app.request(&other, Method::POST, "/user/create", Some(user.clone())).await.data();
        }
        app.post("/user/create", user.clone()).await.data();
        let flags = json!({ "email_verified": user["email_verified"], "phone_verified": user["phone_verified"] });
        app.request(&app.company, Method::PUT, &format!("/user/edit/u{n:02}"), Some(flags))
            .await
            .data();
        let days = *one(&random, &[0, 0, 0, 1, 2, 9]);
        app.app.clock.advance_to(app.app.clock.now().plus_seconds(days * 86_400 + random.up_to(2)));
        if one_in(&random, 5) {
            let change = random_user(&random, n);
            let path = format!("/user/edit/u{:02}", random.up_to(i64::try_from(n).unwrap()));
            let mut change: serde_json::Map<_, _> = change.as_object().unwrap().clone();
            change.retain(|field, _| !["user_id", "email"].contains(&&**field));
            app.request(&app.company, Method::PUT, &path, Some(change.into())).await.data();
        }
    }
    let mut users = Vec::new();
    for n in 0..USERS {
        users.push(app.get(&format!("/user/fetch/u{n:02}")).await.data().clone());
    }
    let today = app.app.clock.now().to_datetime().date_naive();
    assert!(app.app.clock.now() > NOW.plus_seconds(86_400));
    for _ in 0..LISTS {
        let parameters = random_parameters(&random);
        let wanted = expected(&users, &parameters, today);
        let query: Vec<(&str, &str)> =
            parameters.iter().map(|(name, value)| (*name, &**value)).collect();
        let all = [&[("limit", "1000")], &query[..]].concat();
        assert_eq!(found(&app, &all).await, wanted, "seed {seed}, {parameters:?}");
        // With many more matches than items on a page, they are found in order.
        let first = list(&app, &[&[("limit", "1")], &query[..]].concat()).await;
        assert_eq!(first.data()["total"], wanted.len(), "seed {seed}, {parameters:?}");
        assert_eq!(first.data()["docs"][0]["user_id"].as_str(), wanted.first().map(|id| &**id));
        // The pages together are the list.
        let mut paged = Vec::new();
        for page in 1..=wanted.len().div_ceil(7) {
            let page = page.to_string();
            let part =
                list(&app, &[&[("limit", "7"), ("page", &*page)], &query[..]].concat()).await;
            let docs = part.data()["docs"].as_array().unwrap().clone();
            paged.extend(docs.iter().map(|user| user["user_id"].as_str().unwrap().to_owned()));
        }
        assert_eq!(paged, wanted, "seed {seed}, {parameters:?} in pages");
    }
    app.finish().await;
}

#[tokio::test]
async fn lists_match_the_model_on_sqlite() {
    check_lists_against_the_model(Engine::Sqlite).await;
}

#[tokio::test]
async fn lists_match_the_model_on_postgres() {
    let Some(server) = postgres() else { return };
    check_lists_against_the_model(Engine::Postgres(server)).await;
}
