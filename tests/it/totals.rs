//! Totals of lists: whatever happens to rows, each total is the number of the rows.

use std::sync::{Arc, LazyLock, Mutex};

use tollhouse_app::state::{App, totals};
use tollhouse_platform::{
    error::{Error, Result},
    random::Random,
    store::{self, FromRow, Tx},
};

use crate::{
    app::{Engine, NOW, TestApp, postgres},
    ledger_concurrency::{Worker, kill},
};

const DAY: i64 = 86_400_000;
const STEPS: i64 = 250;

/// Totals that differ from the numbers of rows; `day(…)` is the first millisecond of a time's day.
const WRONG: &str = "SELECT list, company_id, CAST(SUM(number) AS BIGINT) FROM (
        SELECT company_id, list, day, paid_day, status, payment_service, payment_channel, country,
            active, email_verified, phone_verified, number
        FROM list_totals
        UNION ALL SELECT company_id, 'payments', day(created_at),
            COALESCE(day(paid_at), -9000000000000000), status, payment_service, payment_channel, '',
            FALSE, FALSE, FALSE, -1
        FROM payments
        UNION ALL SELECT company_id, 'users', day(created_at), -9000000000000000, '', '', '',
            COALESCE(country, ''), active, email_verified, phone_verified, -1
        FROM users
        UNION ALL SELECT company_id, 'recollections', day(created_at), -9000000000000000, '', '', '',
            '', FALSE, FALSE, FALSE, -1
        FROM recollections
        UNION ALL SELECT company_id, 'events', day(created_at), -9000000000000000, '', '', '', '',
            FALSE, FALSE, FALSE, -1
        FROM events) parts
    GROUP BY company_id, list, day, paid_day, status, payment_service, payment_channel, country,
        active, email_verified, phone_verified
    HAVING SUM(number) <> 0";
static WRONG_TOTALS: LazyLock<String> = LazyLock::new(|| {
    ["created_at", "paid_at"].iter().fold(WRONG.to_owned(), |sql, at| {
        let day =
            format!("(({at} - (CASE WHEN {at} < 0 THEN {DAY} - 1 ELSE 0 END)) / {DAY} * {DAY})");
        sql.replace(&format!("day({at})"), &day)
    })
});

/// Checks that every total is the number of its rows, before and after folding.
pub async fn check(app: &App) {
    for _ in 0..2 {
        let wrong = async |tx: &mut Tx| tx.sql(WRONG_TOTALS.as_str()).all().await;
        let wrong: store::Result<Vec<(String, String, i64)>> = app.store.read(wrong).await;
        let wrong = wrong.expect("the totals");
        assert!(wrong.is_empty(), "totals that are not the number of rows: {wrong:?}");
        totals::fold(app).await.expect("folded totals");
    }
}

/// Returns a random element.
fn one<T: Copy>(random: &Random, all: &[T]) -> T {
    all[usize::try_from(random.up_to(all.len() as i64 - 1)).expect("an index")]
}

/// Returns a random time: within some days, often the first or last millisecond of one.
fn time(random: &Random) -> i64 {
    let day = (NOW.0 / DAY - random.up_to(5)) * DAY;
    day + one(random, &[0, DAY - 1, random.up_to(DAY - 1)])
}

/// Returns a random time that a provider may report.
fn paid_at(random: &Random) -> Option<i64> {
    match random.up_to(5) {
        0 => None,
        1 => Some(-random.up_to(3 * DAY)),
        _ => Some(time(random)),
    }
}

const STATUSES: [&str; 4] = ["pending", "success", "failed", "refunded"];
const PROVIDERS: [&str; 2] = ["provider_a", "provider_b"];
const CHANNELS: [&str; 3] = ["", "card", "bank"];
const TABLES: [&str; 4] = ["payments", "users", "recollections", "events"];

/// Random values of the counted columns, as SQL.
struct Values {
    at: i64,
    paid_at: String,
    status: String,
    provider: String,
    channel: String,
    country: &'static str,
    flags: [&'static str; 3],
}

impl Values {
    fn new(random: &Random) -> Values {
        let [status, provider, channel] =
            [&STATUSES[..], &PROVIDERS, &CHANNELS].map(|texts| format!("'{}'", one(random, texts)));
        Values {
            at: time(random),
            paid_at: paid_at(random).map_or("NULL".to_owned(), |at| at.to_string()),
            status,
            provider,
            channel,
            country: one(random, &["NULL", "'ghana'", "'kenya'"]),
            flags: [(); 3].map(|()| one(random, &["TRUE", "FALSE"])),
        }
    }

    /// Returns a statement that inserts a row.
    fn insert(&self, table: &str, company: &str, step: i64) -> String {
        let Values { at, paid_at, status, provider, channel, country, flags: [a, b, c] } = self;
        match table {
            "payments" => format!(
                "INSERT INTO payments (company_id, id, email, payment_service, account_id,
                     credits_wallet, amount_minor, fees_minor, currency, reference, status, narration,
                     payment_response, metadata, service_ref, transaction_id, message, success_url,
                     channels, paid_at, payment_channel, created_at, updated_at)
                 VALUES ('{company}', '{step:024}', '', {provider}, '', TRUE, 1, 0, 'NGN',
                     'p-{step}', {status}, '', 'raw', '{{}}', '', '', '', '', '[]', {paid_at},
                     {channel}, {at}, {at})"
            ),
            "users" => format!(
                "INSERT INTO users (company_id, id, user_id, first_name, last_name, email_verified,
                     phone_verified, active, country, metadata, created_at, updated_at)
                 VALUES ('{company}', '{step:024}', 'u-{step}', 'Ada', 'Obi', {a}, {b}, {c},
                     {country}, '{{}}', {at}, {at})"
            ),
            "recollections" => format!(
                "INSERT INTO recollections (company_id, id, loan_id, user_key, user_id, status,
                     amount_minor, fees_minor, currency, with_provider, payment_service,
                     payment_channel, account_id, credits_wallet, reference, service_ref,
                     transaction_id, message, metadata, created_at, updated_at)
                 VALUES ('{company}', '{step:024}', 'l', 'u', 'u', 'failed', 1, 0, 'NGN', FALSE, '',
                     '', '', FALSE, 'r-{step}', '', '', '', '{{}}', {at}, {at})"
            ),
            _ => format!(
                "INSERT INTO events (company_id, id, kind, subject_id, body, created_at)
                 VALUES ('{company}', '{step:024}', 'payment.success', '', '{{}}', {at})"
            ),
        }
    }

    /// Returns assignments to the counted columns of a table that can change.
    fn assignments(&self, table: &str) -> Vec<String> {
        let Values { paid_at, status, provider, channel, country, flags: [a, b, c], .. } = self;
        match table {
            "payments" => vec![
                format!("status = {status}"),
                format!("payment_service = {provider}"),
                format!("payment_channel = {channel}"),
                format!("paid_at = {paid_at}"),
            ],
            "users" => vec![
                format!("country = {country}"),
                format!("active = {a}"),
                format!("email_verified = {b}"),
                format!("phone_verified = {c}"),
            ],
            _ => vec![format!("created_at = {}", self.at)],
        }
    }
}

/// Returns a random change of random rows.
fn change(random: &Random, companies: &[&str], step: i64) -> String {
    let (company, values, table) =
        (one(random, companies), Values::new(random), one(random, &TABLES));
    let (at, assignments) = (values.at, values.assignments(table));
    let row = format!(
        "(company_id, id) IN (SELECT company_id, id FROM {table} ORDER BY id LIMIT 1 OFFSET {})",
        random.up_to(20)
    );
    match random.up_to(13) {
        0..=5 => values.insert(table, company, step),
        // A settlement, or a reopening.
        6 => format!("UPDATE {table} SET {} WHERE {row}", assignments.join(", ")),
        7 => {
            let column = usize::try_from(random.up_to(assignments.len() as i64 - 1));
            format!("UPDATE {table} SET {}", assignments[column.expect("an index")])
        }
        8 => format!("UPDATE {table} SET created_at = {at} WHERE {row}"),
        9 => format!("UPDATE {table} SET company_id = '{company}' WHERE {row}"),
        10 => format!("UPDATE {table} SET created_at = created_at"),
        11 => format!("DELETE FROM {table} WHERE {row}"),
        // A sweep.
        12 => format!("DELETE FROM {table} WHERE created_at < {}", at - 4 * DAY),
        // The deletion of a company.
        _ if random.up_to(5) == 0 => format!("DELETE FROM {table} WHERE company_id = '{company}'"),
        _ => format!("UPDATE {table} SET {} WHERE {row}", assignments[0]),
    }
}

/// The filtered columns of a payment.
#[derive(Clone, FromRow)]
struct Row {
    id: String,
    status: String,
    payment_service: String,
    payment_channel: String,
    created_at: i64,
    paid_at: Option<i64>,
}

/// A query parameter, and whether a payment has its value.
type Filter<'f> = (String, &'f dyn Fn(&Row) -> bool);

/// Checks the list of payments for random filters.
async fn check_lists(app: &TestApp, random: &Random) {
    let company = &app.company.id;
    let read = async |tx: &mut Tx| {
        tx.sql("SELECT * FROM payments WHERE company_id = $1 ORDER BY created_at DESC, id DESC")
            .bind(company)
            .all()
            .await
    };
    let rows: Vec<Row> = app.app.store.read(read).await.expect("the payments");
    let day = |at: i64| store_date(at.div_euclid(DAY) * DAY);
    for _ in 0..12 {
        let (first, status) = (time(random).div_euclid(DAY) * DAY, one(random, &STATUSES));
        let (provider, channel) = (one(random, &PROVIDERS), one(random, &CHANNELS[1..]));
        let last = first + random.up_to(2) * DAY;
        let days = format!("{}/{}", day(first), day(last));
        let within = move |at: i64| (first..last + DAY).contains(&at);
        let filters: [Filter; 5] = [
            (format!("status={status}"), &|row| row.status == status),
            (format!("provider={provider}"), &|row| row.payment_service == provider),
            // A failed payment has no channel for companies.
            (format!("payment_channel={channel}"), &|row| {
                row.payment_channel == channel && row.status != "failed"
            }),
            (format!("created_at={days}"), &|row| within(row.created_at)),
            (format!("paid_at={days}"), &|row| row.paid_at.is_some_and(within)),
        ];
        let chosen: Vec<_> = filters.iter().filter(|_| random.up_to(2) == 0).collect();
        let mut expected = rows.clone();
        expected.retain(|row| chosen.iter().all(|(_, fits)| fits(row)));
        let query: Vec<&str> = chosen.iter().map(|(query, _)| &**query).collect();
        let query = query.join("&");
        let listed = app.get(&format!("/payment/list?limit=3&page=2&{query}")).await;
        let docs = listed.data()["docs"].as_array().expect("a list");
        let ids: Vec<&str> = docs.iter().map(|doc| doc["id"].as_str().expect("an id")).collect();
        let page = expected.iter().skip(3).take(3).map(|row| &*row.id);
        assert_eq!(listed.data()["total"], expected.len(), "{query}");
        assert_eq!(ids, page.collect::<Vec<_>>(), "{query}");
    }
}

fn store_date(at: i64) -> String {
    tollhouse_platform::clock::Timestamp(at).to_datetime().format("%d-%m-%Y").to_string()
}

both! {
    async fn totals_are_the_numbers_of_rows_whatever_happens(app: TestApp) {
        let seed = Random::system().up_to(i64::MAX).unsigned_abs();
        println!("seed {seed}");
        let random = Random::seeded(seed);
        let beta = app.new_company("Beta Lending").await;
        let companies = [app.company.id.as_str(), beta.id.as_str()];
        for step in 0..STEPS {
            let sql: &'static str = String::leak(change(&random, &companies, step));
            let is_kept = random.up_to(9) > 0;
            let write = async move |tx: &mut Tx| -> Result<()> {
                tx.sql(sql).execute().await?;
                if is_kept { Ok(()) } else { Err(Error::invalid("rolled back")) }
            };
            match app.app.store.write(write).await {
                Ok(()) | Err(Error::Invalid(_)) => {}
                Err(error) => panic!("{sql}: {error}"),
            }
            if step % 10 == 0 {
                check(&app.app).await;
                check_lists(app, &random).await;
            }
        }
    }
}

const WORKERS: usize = 6;
const WORKER_STEPS: i64 = 60;

/// Changes a company's rows, folds, and checks that totals are exact in every snapshot.
async fn work(mut worker: Worker, random: Random) {
    for step in 0..WORKER_STEPS {
        let number = worker.number as i64 * WORKER_STEPS + step;
        let sql = match random.up_to(9) {
            0 | 1 => format!("SELECT fold_list_deltas({})", 1 + random.up_to(20)),
            2 => format!("DO $$ BEGIN ASSERT NOT EXISTS ({}), 'wrong'; END $$", *WRONG_TOTALS),
            _ => change(&random, &[&worker.company], number),
        };
        let sql = match random.up_to(1) {
            0 => sql,
            _ => format!("BEGIN; {sql}; SELECT pg_sleep(0.002); COMMIT"),
        };
        if let Err(error) = worker.run(&sql).await {
            assert!(!error.to_string().contains("wrong"), "{error}");
            if worker.run("ROLLBACK").await.is_err() {
                worker.connection = None;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_are_exact_beside_concurrent_writers_and_folds_on_killed_connections() {
    let Some(server) = postgres() else { return };
    let app = TestApp::start(Engine::Postgres(server)).await;
    let seed = Random::system().up_to(i64::MAX).unsigned_abs();
    println!("seed {seed}");
    let pids = Arc::new(Mutex::new(vec![0; WORKERS]));
    let workers = (0..WORKERS).map(|number| {
        let (url, company) = (app.database.url.clone(), app.company.id.to_string());
        let worker = Worker { url, company, number, connection: None, pids: pids.clone() };
        tokio::spawn(work(worker, Random::seeded(seed.wrapping_add(number as u64))))
    });
    let workers: Vec<_> = workers.collect();
    let killed = kill(app.database.url.clone(), pids, Random::seeded(seed)).await;
    for worker in workers {
        worker.await.expect("a worker that ends");
    }
    assert!(killed > 0, "no connection was killed");
    check(&app.app).await;
    app.finish().await;
}
