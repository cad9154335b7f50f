//! The load generator against `cargo sandbox`: keeps its operations and the API in step.

use std::process::Stdio;

use clap::Parser;
use tollhouse_load::Options;

use crate::program::{Folder, Running, program, ready};

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_load_generator_succeeds() {
    let folder = Folder::new("load");
    let _running = Running(program(&folder.0).stdout(Stdio::null()).spawn().unwrap());
    ready(&folder.0).await;
    let options = Options::parse_from([
        "load",
        &format!("--sandbox={}", folder.0.display()),
        "--mix=payment=2,initialize=1,otp=1,lookup=1,user=1,fetch=1,list=2,repayment=2,record=1",
        "--rate=20",
        "--warm-up-s=0",
        "--duration-s=4",
        "--drain-s=60",
        "--companies=2",
        "--borrowers=2",
        "--hanging=1",
    ]);
    let report = tollhouse_load::run(&options).await.unwrap();
    let text = report.text();
    assert_eq!(report.errors(), 0, "{text}");
    let phase = &report.phases[0];
    let steps: Vec<&str> = phase.steps.iter().map(|step| step.name).collect();
    let expected = [
        "payment initialize", "payment page (simulator)", "payment settled", "OTP send",
        "OTP verify", "identity lookup", "user create", "user fetch", "payment fetch",
        "payment list", "user list", "repayment by card", "repayment settled", "repayment in cash",
        "repayment reported",
    ];
    assert_eq!(steps, expected, "{text}");
    assert!(phase.events_per_s > 0.0, "{text}");
    assert!(phase.host.cores > 0.0, "the host's metrics are read\n{text}");
    assert!(phase.host.initialize_own_p99_ms.is_some(), "{text}");
}
