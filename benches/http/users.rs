//! Lists, searches, imports and exports of a company with many users.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::http::Method;
use bytes::Bytes;
use serde_json::{Value, json};

use super::{Host, Load, request};
use crate::database::Database;

/// Variable with the number of users. Without it, this slow benchmark is skipped.
const USERS_VARIABLE: &str = "TOLLHOUSE_BENCH_USERS";
/// Users per import.
const AT_ONCE: usize = 1_000;
const REPETITIONS: usize = 7;

const FIRST: [&str; 8] = ["Ada", "Bola", "Chidi", "Dayo", "Efe", "Funmi", "Gbenga", "Hauwa"];
const LAST: [&str; 7] = ["Obi", "Ade", "Okafor", "Bello", "Mensah", "Eze", "Danjuma"];
const COUNTRIES: [&str; 4] = ["nigeria", "ghana", "kenya", "rwanda"];

/// Label and query of each list.
const LISTS: [(&str, &str); 13] = [
    ("the first page", ""),
    ("a page far behind", "?page=10000"),
    ("by first name", "?sort-first_name=asc"),
    ("one by user_id", "?user_id=customer-4711"),
    ("a country, a fourth of all", "?country=ghana"),
    ("a flag and an age, some thousandths", "?active=false&age=30"),
    ("metadata, one of all", "?metadata.number=4711"),
    ("metadata, a tenth of all", "?metadata.tier=3"),
    ("a word that finds one", "?search=customer-4711@"),
    ("two words that find some hundredths", "?search=ada%20okafor"),
    ("a word that finds an eighth", "?search=hauwa"),
    ("a word of two letters", "?search=ez"),
    ("a word without a match", "?search=unmatched"),
];

pub async fn measure(host: &Host, database: &Database) {
    let engine = database.engine;
    let Some(count) =
        std::env::var(USERS_VARIABLE).ok().and_then(|count| count.parse::<usize>().ok())
    else {
        return;
    };
    let began = Instant::now();
    for first in (0..count).step_by(AT_ONCE) {
        let users: Vec<Value> = (first..count.min(first + AT_ONCE)).map(user).collect();
        let body = json!({ "users": users }).to_string();
        host.request_json(Method::POST, "/user/bulk/create", body.into()).await;
    }
    let each = began.elapsed() / u32::try_from(count.div_ceil(AT_ONCE)).expect("a small number");
    println!("users/{engine}: {count} users, {each:.0?} for each import of {AT_ONCE}");
    database.vacuum().await;
    for (what, query) in LISTS {
        let path = format!("/user/list{query}");
        let total =
            host.request_json(Method::GET, &path, Bytes::new()).await["data"]["total"].clone();
        let mut times = Vec::new();
        for _ in 0..REPETITIONS {
            let began = Instant::now();
            host.request_json(Method::GET, &path, Bytes::new()).await;
            times.push(began.elapsed());
        }
        times.sort_unstable();
        println!("users/{engine}: {:.1} ms, {what} ({total})", ms(times[REPETITIONS / 2]));
    }
    let began = Instant::now();
    let link = host.request_json(Method::GET, "/user/export", Bytes::new()).await;
    println!("users/{engine}: {:.0} ms, export of all", ms(began.elapsed()));
    assert!(link["data"]["path"].is_string(), "{link}");
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn user(n: usize) -> Value {
    json!({
        "user_id": format!("customer-{n}"),
        "first_name": FIRST[n % FIRST.len()],
        "last_name": LAST[n % LAST.len()],
        "email": format!("customer-{n}@example.com"),
        "phone": format!("+23480{n:08}"),
        "date_of_birth": format!("{:02}/{:02}/{}", n % 28 + 1, n % 12 + 1, 1950 + n % 55),
        "country": COUNTRIES[n % COUNTRIES.len()],
        "active": !n.is_multiple_of(10),
        "metadata": { "tier": n % 10, "number": n },
    })
}

impl Host {
    /// Returns the response of the API, which must be a success.
    async fn request_json(&self, method: Method, path: &str, body: Bytes) -> Value {
        let request = request(method, &format!("/api/v1{path}"), &self.companies[0].api_key, body);
        let load = Load { to: self.public, request: Arc::new(move || request.clone()) };
        serde_json::from_slice(&load.send_once().await).expect("JSON")
    }
}
