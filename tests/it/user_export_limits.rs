//! How many export files there may be, and how large they may be, of one company and of all.

use std::{io::ErrorKind, path::PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::watch;
use tollhouse_platform::store;

use crate::app::{Company, Engine, Reply, TestApp};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// A file goes 16 minutes after it was made.
const LASTS_S: i64 = 16 * 60;

/// Users of about ten kilobytes each in an export.
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

/// Number and bytes of the files in the folder, whole or not.
fn stored(app: &TestApp) -> (usize, usize) {
    let Ok(folder) = std::fs::read_dir(app.database.dir.path().join("files")) else {
        return (0, 0);
    };
    let sizes = folder.map(|file| file.expect("a file").metadata().expect("a file").len());
    let sizes: Vec<usize> = sizes.map(|size| usize::try_from(size).expect("a size")).collect();
    (sizes.len(), sizes.iter().sum())
}

/// Files and bytes that count.
async fn counted(app: &TestApp) -> (usize, usize) {
    let count = app.app.store.select(async |tx| -> store::Result<(i64, i64)> {
        let sum = "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM user_exports WHERE company_id <> ''";
        tx.sql(sum).one().await
    });
    let (files, bytes) = count.await.expect("a count");
    (files.try_into().expect("a number"), bytes.try_into().expect("a number"))
}

#[track_caller]
fn refused(answer: &Reply, status: u16, message: &str, seconds: i64) {
    let message = format!("{message}, try again in {seconds} seconds");
    assert_eq!(answer.failure(), (status, &*message));
    assert_eq!(answer.headers["retry-after"], seconds.to_string());
}

const OF_COMPANY: &str = "the company's export quota is exhausted";
const OF_ALL: &str = "export storage is full";
const NOT_STORED: (u16, &str) = (502, "file storage is unavailable, try again later");

/// The reservation of a file that another host has just begun to write.
async fn begin_elsewhere(app: &TestApp, company: &Company) {
    let (company, removed_at) = (company.id.clone(), app.app.clock.now().plus_seconds(76 * 60));
    let begun = app.app.store.write(async move |tx| {
        let insert = "INSERT INTO user_exports (company_id, name, bytes, removed_at) VALUES ($1, 'elsewhere.csv', 0, $2)";
        tx.sql(insert).bind(&company).bind(removed_at).run().await
    });
    begun.await.expect("a reservation");
}

both! {
    async fn a_file_that_cannot_be_begun_reserves_nothing(app: TestApp, "--max-company-exports=1") {
        let place = app.database.dir.path().join("files");
        std::fs::write(&place, "no folder").expect("a file");
        assert_eq!(export(app, &app.company, 1).await.failure(), NOT_STORED);
        assert_eq!(counted(app).await, (0, 0));
        std::fs::remove_file(&place).expect("the file");
        export(app, &app.company, 1).await.data();
    }

    // Nobody can make a file there, whatever their rights.
    async fn a_file_that_cannot_be_finished_reserves_nothing(app: TestApp, "--files=/sys/kernel") {
        let absent = std::fs::remove_file("/sys/kernel/tollhouse.csv").expect_err("no such file");
        if absent.kind() != ErrorKind::NotFound {
            return; // mounted read-only, as in some containers: removal fails there, too
        }
        assert_eq!(export(app, &app.company, 1).await.failure(), NOT_STORED);
        assert_eq!(counted(app).await, (0, 0));
    }

    async fn a_file_that_is_being_written_is_waited_for_a_minute(app: TestApp, "--max-company-exports=1", "--max-exports=2") {
        let beta = app.new_company("Beta Lending").await;
        let gamma = app.new_company("Gamma Lending").await;
        begin_elsewhere(app, &app.company).await;
        refused(&export(app, &app.company, 1).await, 429, OF_COMPANY, 60);
        begin_elsewhere(app, &beta).await;
        refused(&export(app, &gamma, 1).await, 503, OF_ALL, 60);
        // When less is left than a whole file lasts, it counts as one.
        app.advance(3_600).await;
        refused(&export(app, &gamma, 1).await, 503, OF_ALL, LASTS_S + 1);
    }

    async fn a_company_has_so_many_files_until_they_are_removed(app: TestApp, "--max-company-exports=2") {
        create(app, &app.company, 1).await;
        let beta = app.new_company("Beta Lending").await;
        export(app, &app.company, 1).await.data();
        app.advance(60).await;
        export(app, &app.company, 1).await.data();
        refused(&export(app, &app.company, 1).await, 429, OF_COMPANY, LASTS_S - 60 + 1);
        assert_eq!((stored(app).0, counted(app).await), (2, (2, stored(app).1)));
        export(app, &beta, 1).await.data();
        app.get("/user/sample-csv").await.data(); // is no file of its own
        app.advance(LASTS_S - 60).await;
        export(app, &app.company, 1).await.data();
        refused(&export(app, &app.company, 1).await, 429, OF_COMPANY, 61);
        app.advance(LASTS_S).await;
        assert_eq!((stored(app), counted(app).await), ((0, 0), (0, 0)));
    }

    async fn all_companies_have_so_many_files_together(app: TestApp, "--max-exports=2") {
        let beta = app.new_company("Beta Lending").await;
        let gamma = app.new_company("Gamma Lending").await;
        export(app, &app.company, 1).await.data();
        export(app, &beta, 1).await.data();
        refused(&export(app, &gamma, 1).await, 503, OF_ALL, LASTS_S + 1);
        assert_eq!(stored(app).0, 2);
        app.advance(LASTS_S).await;
        export(app, &gamma, 1).await.data();
    }

    async fn a_file_is_given_up_when_it_becomes_too_large(app: TestApp, "--max-company-export-mib=1", "--max-export-mib=2") {
        create(app, &app.company, 300).await;
        let large = export(app, &app.company, 300).await;
        let message = "the limit field must be lower, or the filters narrower: an export has at most 1 MiB";
        assert_eq!(large.failure(), (400, message));
        assert_eq!((stored(app), counted(app).await), ((0, 0), (0, 0)));
        export(app, &app.company, 60).await.data();
        let (files, bytes) = stored(app);
        assert!(files == 1 && (600 * KIB..640 * KIB).contains(&bytes), "{bytes}");
        assert_eq!(counted(app).await, (files, bytes), "what was reserved and not written is given back");
        refused(&export(app, &app.company, 60).await, 429, OF_COMPANY, LASTS_S + 1);
        assert_eq!((stored(app), counted(app).await), ((1, bytes), (1, bytes)));
        export(app, &app.company, 30).await.data();

        let (beta, gamma) = (app.new_company("Beta Lending").await, app.new_company("Gamma Lending").await);
        for company in [&beta, &gamma] {
            create(app, company, 90).await;
        }
        export(app, &beta, 90).await.data();
        refused(&export(app, &gamma, 90).await, 503, OF_ALL, LASTS_S + 1);
        app.advance(LASTS_S).await;
        export(app, &gamma, 90).await.data();
        app.advance(LASTS_S).await;
        assert_eq!((stored(app), counted(app).await), ((0, 0), (0, 0)));
    }

    async fn exports_at_once_do_not_pass_the_bounds_together(app: TestApp, "--max-company-exports=3", "--max-company-export-mib=1") {
        create(app, &app.company, 45).await;
        let all = (0..10).map(|_| export(app, &app.company, 45));
        let all = futures::future::join_all(all).await;
        // Each has about 460 KiB; one that writes holds all that is left for a while.
        let made = all.iter().filter(|answer| answer.status == 200).count();
        assert!((1..=2).contains(&made), "{made}");
        assert!(all.iter().all(|answer| [200, 429].contains(&answer.status.as_u16())));
        let (files, bytes) = stored(app);
        assert!(files == made && bytes <= MIB, "{files} files of {bytes} bytes");
        assert_eq!(counted(app).await, (files, bytes));
        app.advance(LASTS_S).await;
        let all = (0..10).map(|_| export(app, &app.company, 1));
        let made = futures::future::join_all(all).await.iter().filter(|answer| answer.status == 200).count();
        assert!((1..=3).contains(&made), "{made}");
        assert_eq!((stored(app).0, counted(app).await.0), (made, made));
    }

    async fn nothing_is_left_of_an_export_whose_caller_stopped_waiting(app: TestApp, "--request-timeout-s=1") {
        create(app, &app.company, 1).await;
        let (release, released) = watch::channel(false);
        let (holds, mut held) = watch::channel(false);
        let host = app.app.clone();
        // Reservations of all hosts wait for this row.
        let hold = tokio::spawn(async move {
            host.store
                .write(async move |tx| -> store::Result<()> {
                    tx.sql("UPDATE user_exports SET bytes = 0 WHERE company_id = ''").run().await?;
                    holds.send_replace(true);
                    let mut released = released.clone();
                    released.wait_for(|released| *released).await.expect("its sender is here");
                    Ok(())
                })
                .await
        });
        held.wait_for(|held| *held).await.expect("a row that is held");
        let late = export(app, &app.company, 1).await;
        assert_eq!(late.failure(), (503, "the request took too long"));
        release.send_replace(true);
        hold.await.expect("no panic").expect("a transaction");
        app.app.tasks.wait_until_idle().await;
        assert_eq!((stored(app), counted(app).await), ((0, 0), (0, 0)));
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_removed_stays_reserved_until_its_job_removes_it() {
    // A folder whose path is as long as paths may be: no file in it can be named.
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
    assert_eq!(due.await.expect("a count"), (1,), "the job that removes it is due at once");
    app.settle().await;
    assert_eq!(counted(&app).await.0, 1);
    refused(&export(&app, &app.company, 1).await, 429, OF_COMPANY, 60);
    app.finish().await;
}
