//! Places and encodings in which a secret could be found.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use tollhouse_platform::store;

use crate::app::Database;

/// A secret in clear and in its possible encodings.
pub fn encodings(secret: &str) -> Vec<String> {
    let mut all = vec![secret.to_owned(), BASE64.encode(secret), hex::encode(secret)];
    if let Some(base64) = secret.strip_prefix("whsec_") {
        let raw = BASE64.decode(base64).expect("base64");
        all.extend([base64.to_owned(), hex::encode(raw)]);
    }
    all
}

/// The content of a backup; on PostgreSQL every row.
pub async fn backup_contents(database: &Database) -> String {
    if database.url.starts_with("postgres") {
        return database_contents(database).await;
    }
    let file = database.dir.path().join("backup");
    store::backup(&database.url, &file).await.expect("a backup");
    String::from_utf8_lossy(&std::fs::read(&file).expect("the backup")).into_owned()
}

/// Every row of every table; on SQLite the database files, including deleted data.
pub async fn database_contents(database: &Database) -> String {
    if !database.url.starts_with("postgres") {
        let file =
            |name: &str| std::fs::read(database.dir.path().join(name)).expect("a database file");
        return String::from_utf8_lossy(&[file("test.db"), file("test.db-wal")].concat())
            .into_owned();
    }
    use sqlx::{AssertSqlSafe, Connection};
    use sqlx_postgres::PgConnection;
    let mut connection = PgConnection::connect(&database.url).await.expect("the server");
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'plugin_components'";
    let tables: Vec<(String,)> =
        sqlx::query_as(tables).fetch_all(&mut connection).await.expect("tables");
    assert!(tables.len() > 15, "{tables:?}");
    let mut all = String::new();
    for (table,) in tables {
        let rows = AssertSqlSafe(format!("SELECT row_to_json(t)::text FROM {table} t"));
        let rows: Vec<(String,)> =
            sqlx::query_as(rows).fetch_all(&mut connection).await.expect("rows");
        all.extend(rows.into_iter().map(|(row,)| row + "\n"));
    }
    all
}

/// Checks that the logs have the alarms for operators, and no personal data.
pub fn check_logs(logs: &str, telemetry: &str) {
    // Text logs have `name=value`, JSON logs `"name":value`.
    let plain = logs.replace("\":", "=");
    let alarm = plain.lines().find(|line| line.contains("alarm=\"amount mismatch\""));
    let alarm = alarm.expect("an alarm");
    for part in ["ERROR", "asked_minor=250050", "seen_minor=100", "company=", "subject=\"payment\""]
    {
        assert!(alarm.contains(part), "{part} in {alarm}");
    }
    let refused = "was not sent: the secret secret_key is in the URL";
    assert!(plain.lines().any(|line| line.contains("alarm=\"plugin\"") && line.contains(refused)));
    for personal in ["ada.obi", "Adaeze", "Obiwanne", "8031234567", "order-1", "lender.example"] {
        let line = logs.lines().find(|line| line.contains(personal));
        assert_eq!(line, None, "{personal} in the logs");
        assert!(!telemetry.contains(personal), "{personal} in the telemetry");
    }
}
