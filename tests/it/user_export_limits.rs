//! Limits on number and size of export files, per company and in total.

use std::{io::ErrorKind, path::PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tollhouse_platform::store;

use crate::app::{Company, Engine, Reply, TestApp};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Seconds until an export file is removed.
const FILE_LIFETIME_S: i64 = 16 * 60;

/// Creates users of about ten kilobytes each in an export.
async fn create(app: &TestApp, company: &Company, count: usize) {
    let filler = "x".repeat(10 * KIB);
    let users: Value = (0..count)
        .map(|n| {
            json!({
                "first_name": "Ada", "last_name": "Obi", "email": format!("{n}@example.com"), "metadata": { "filler": filler },
            })
        })
        .collect();
    let made = Some(json!({ "users": users }));
    let made = app.request(company, Method::POST, "/user/bulk/create", made).await;
    assert_eq!(made.status, 200, "{}", made.body);
}

async fn export(app: &TestApp, company: &Company, limit: usize) -> Reply {
    let path = format!("/user/export?limit={limit}");
    app.request(company, Method::GET, &path, None).await
}

/// Number and bytes of all files in the folder.
fn stored(app: &TestApp) -> (usize, usize) {
    let Ok(folder) = std::fs::read_dir(app.database.dir.path().join("files")) else {
        return (0, 0);
    };
    let sizes = folder.map(|file| file.expect("a file").metadata().expect("a file").len());
    let sizes: Vec<usize> = sizes.map(|size| usize::try_from(size).expect("a size")).collect();
    (sizes.len(), sizes.iter().sum())
}

/// Reserved number of files and bytes.
async fn reserved(app: &TestApp) -> (usize, usize) {
    let count = app.app.store.select(async |tx| -> store::Result<(i64, i64)> {
        let sum = "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM user_exports WHERE company_id <> ''";
        tx.sql(sum).one().await
    });
    let (files, bytes) = count.await.expect("a count");
    (files.try_into().expect("a number"), bytes.try_into().expect("a number"))
}

#[track_caller]
fn check_refused(response: &Reply, status: u16, message: &str, seconds: i64) {
    let message = format!("{message}, try again in {seconds} seconds");
    assert_eq!(response.failure(), (status, &*message));
    assert_eq!(response.headers["retry-after"], seconds.to_string());
}

const OF_COMPANY: &str = "the company's export quota is exhausted";
const OF_ALL: &str = "export storage is full";
const NOT_STORED: (u16, &str) = (502, "file storage is unavailable, try again later");

/// Inserts the reservation of a file that another host has just begun to write.
async fn begin_elsewhere(app: &TestApp, company: &Company) {
    let (company, removed_at) = (company.id.clone(), app.app.clock.now().plus_seconds(76 * 60));
    let begun = app.app.store.write(async move |tx| {
        let insert = "INSERT INTO user_exports (company_id, name, bytes, removed_at) VALUES ($1, 'elsewhere.csv', 0, $2)";
        tx.sql(insert).bind(&company).bind(removed_at).run().await
    });
    begun.await.expect("a reservation");
}

both! {
    async fn a_file_that_cannot_be_created_reserves_nothing(app: TestApp, "--max-company-exports=1") {
        let place = app.database.dir.path().join("files");
        std::fs::write(&place, "no folder").expect("a file");
        assert_eq!(export(app, &app.company, 1).await.failure(), NOT_STORED);
        assert_eq!(reserved(app).await, (0, 0));
        std::fs::remove_file(&place).expect("the file");
        export(app, &app.company, 1).await.data();
    }

    // No file can be created in that folder, even as root.
    async fn a_file_that_cannot_be_finished_reserves_nothing(app: TestApp, "--files=/sys/kernel") {
        let absent = std::fs::remove_file("/sys/kernel/tollhouse.csv").expect_err("no such file");
        if absent.kind() != ErrorKind::NotFound {
            return; // mounted read-only, as in some containers: removal fails there, too
        }
        assert_eq!(export(app, &app.company, 1).await.failure(), NOT_STORED);
        assert_eq!(reserved(app).await, (0, 0));
    }

    async fn an_export_in_progress_rejects_others_with_a_retry_after_a_minute(app: TestApp, "--max-company-exports=1", "--max-exports=2") {
        let beta = app.new_company("Beta Lending").await;
        let gamma = app.new_company("Gamma Lending").await;
        begin_elsewhere(app, &app.company).await;
        check_refused(&export(app, &app.company, 1).await, 429, OF_COMPANY, 60);
        begin_elsewhere(app, &beta).await;
        check_refused(&export(app, &gamma, 1).await, 503, OF_ALL, 60);
        // Closer to the end of the reservation, the seconds are those of a complete file.
        app.advance(3_600).await;
        check_refused(&export(app, &gamma, 1).await, 503, OF_ALL, FILE_LIFETIME_S + 1);
    }

    async fn a_company_is_limited_in_files_until_they_are_removed(app: TestApp, "--max-company-exports=2") {
        create(app, &app.company, 1).await;
        let beta = app.new_company("Beta Lending").await;
        export(app, &app.company, 1).await.data();
        app.advance(60).await;
        export(app, &app.company, 1).await.data();
        check_refused(&export(app, &app.company, 1).await, 429, OF_COMPANY, FILE_LIFETIME_S - 60 + 1);
        assert_eq!((stored(app).0, reserved(app).await), (2, (2, stored(app).1)));
        export(app, &beta, 1).await.data();
        app.get("/user/sample-csv").await.data(); // not an export file
        app.advance(FILE_LIFETIME_S - 60).await;
        export(app, &app.company, 1).await.data();
        check_refused(&export(app, &app.company, 1).await, 429, OF_COMPANY, 61);
        app.advance(FILE_LIFETIME_S).await;
        assert_eq!((stored(app), reserved(app).await), ((0, 0), (0, 0)));
    }

    async fn all_companies_together_are_limited_in_files(app: TestApp, "--max-exports=2") {
        let beta = app.new_company("Beta Lending").await;
        let gamma = app.new_company("Gamma Lending").await;
        export(app, &app.company, 1).await.data();
        export(app, &beta, 1).await.data();
        check_refused(&export(app, &gamma, 1).await, 503, OF_ALL, FILE_LIFETIME_S + 1);
        assert_eq!(stored(app).0, 2);
        app.advance(FILE_LIFETIME_S).await;
        export(app, &gamma, 1).await.data();
    }

    async fn an_export_that_becomes_too_large_is_abandoned(app: TestApp, "--max-company-export-mib=1", "--max-export-mib=2") {
        create(app, &app.company, 300).await;
        let large = export(app, &app.company, 300).await;
        let message = "the limit field must be lower, or the filters narrower: an export has at most 1 MiB";
        assert_eq!(large.failure(), (400, message));
        assert_eq!((stored(app), reserved(app).await), ((0, 0), (0, 0)));
        export(app, &app.company, 60).await.data();
        let (files, bytes) = stored(app);
        assert!(files == 1 && (600 * KIB..640 * KIB).contains(&bytes), "{bytes}");
        assert_eq!(reserved(app).await, (files, bytes), "bytes reserved and not written are released");
        check_refused(&export(app, &app.company, 60).await, 429, OF_COMPANY, FILE_LIFETIME_S + 1);
        assert_eq!((stored(app), reserved(app).await), ((1, bytes), (1, bytes)));
        export(app, &app.company, 30).await.data();

        let (beta, gamma) = (app.new_company("Beta Lending").await, app.new_company("Gamma Lending").await);
        for company in [&beta, &gamma] {
            create(app, company, 90).await;
        }
        export(app, &beta, 90).await.data();
        check_refused(&export(app, &gamma, 90).await, 503, OF_ALL, FILE_LIFETIME_S + 1);
        app.advance(FILE_LIFETIME_S).await;
        export(app, &gamma, 90).await.data();
        app.advance(FILE_LIFETIME_S).await;
        assert_eq!((stored(app), reserved(app).await), ((0, 0), (0, 0)));
    }

    async fn concurrent_exports_do_not_exceed_the_limits_together(app: TestApp, "--max-company-exports=3", "--max-company-export-mib=1") {
        create(app, &app.company, 45).await;
        let all = (0..10).map(|_| export(app, &app.company, 45));
        let all = futures::future::join_all(all).await;
        // Each has about 460 KiB; while one is written, it reserves all that is left.
        let made = all.iter().filter(|response| response.status == 200).count();
        assert!((1..=2).contains(&made), "{made}");
        assert!(all.iter().all(|response| [200, 429].contains(&response.status.as_u16())));
        let (files, bytes) = stored(app);
        assert!(files == made && bytes <= MIB, "{files} files of {bytes} bytes");
        assert_eq!(reserved(app).await, (files, bytes));
        app.advance(FILE_LIFETIME_S).await;
        let all = (0..10).map(|_| export(app, &app.company, 1));
        let made = futures::future::join_all(all).await.iter().filter(|response| response.status == 200).count();
        assert!((1..=3).contains(&made), "{made}");
        assert_eq!((stored(app).0, reserved(app).await.0), (made, made));
    }

    async fn an_export_that_timed_out_leaves_nothing(app: TestApp, "--request-timeout-s=1") {
        create(app, &app.company, 1).await;
        let (release, released) = watch::channel(false);
        let (holds, mut held) = watch::channel(false);
        let host = app.app.clone();
        // Reservations of all hosts wait for the lock on this row.
        let hold = tokio::spawn(async move {
            host.store
                .write(async move |tx| -> store::Result<()> {
                    tx.sql("UPDATE user_exports SET bytes = 0 WHERE company_id = ''").run().await?;
                    holds.send_replace(true);
                    let mut released = released.clone();
                    released.wait_for(|released| *released).await.expect("a sender");
                    Ok(())
                })
                .await
        });
        held.wait_for(|held| *held).await.expect("a locked row");
        let late = export(app, &app.company, 1).await;
        assert_eq!(late.failure(), (503, "the request took too long"));
        release.send_replace(true);
        hold.await.expect("no panic").expect("a transaction");
        app.app.tasks.wait_until_idle().await;
        assert_eq!((stored(app), reserved(app).await), ((0, 0), (0, 0)));
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_stays_reserved_until_its_job_removes_it() {
    // A folder with a path of the maximum length: no path of a file in it is valid.
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut place: PathBuf = dir.path().to_owned();
    while place.as_os_str().len() < 4_070 {
        place.push("x".repeat(200.min(4_071 - place.as_os_str().len())));
    }
    let flags = [&*format!("--files={}", place.display()), "--max-company-exports=1"];
    let app = TestApp::start_with(Engine::Sqlite, &flags).await;
    assert_eq!(export(&app, &app.company, 1).await.failure(), NOT_STORED);
    let due = app.app.store.read(async |tx| -> store::Result<(i64,)> {
        let due = "SELECT COUNT(*) FROM jobs WHERE kind = 'export.remove' AND run_at <= $1";
        tx.sql(due).bind(app.app.clock.now()).one().await
    });
    assert_eq!(due.await.expect("a count"), (1,), "the job that removes it is due immediately");
    app.run_until_idle().await;
    assert_eq!(reserved(&app).await.0, 1);
    check_refused(&export(&app, &app.company, 1).await, 429, OF_COMPANY, 60);
    app.finish().await;
}
