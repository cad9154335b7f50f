//! Input of commands from files and standard input.

use std::process::Stdio;

use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::{ProgramOutput, field, file, program, program_output, rows, run};
use crate::app::{OPERATOR_TOKEN, TestApp};

/// Runs a command against a host with this standard input.
pub async fn run_with_stdin(app: &TestApp, arguments: &[&str], input: &str) -> ProgramOutput {
    let mut command = tokio::process::Command::from(program(arguments));
    command
        .env("TOLLHOUSE_INTERNAL_URL", &app.internal)
        .env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a piped standard input");
    stdin.write_all(input.as_bytes()).await.expect("a command that reads its input");
    drop(stdin);
    program_output(child.wait_with_output().await.expect("an exit status"))
}

both! {
    async fn credentials_are_read_from_a_file_or_standard_input(app: TestApp) {
        let id = &*app.company.id;
        let credentials = json!({ "secret_key": "sk_test_own", "base_url": format!("{}/paystack", app.simulators.url()) });
        let file_name = file(app, "credentials.json", credentials.to_string().as_bytes());
        let set = run(app, &["provider", "set", "provider_a", "--credentials-file", &file_name, "--company", id]).await;
        assert_eq!((field(set.success_output(), "has credentials"), field(&set.out, "active")), ("yes", "yes"));
        let url = field(&set.out, "notification URL").to_owned();
        let list = run(app, &["provider", "list", "--company", id]).await;
        assert_eq!(rows(list.success_output()), [["provider_a", "test", "yes", "yes", &url]]);
        app.initialize("order-1").await;

        let arguments = ["provider", "set", "provider_a", "--credentials-file", "-", "--json"];
        let refused = run_with_stdin(app, &arguments, "{\"secret_key\": \"sk_test_piped").await;
        assert_eq!(refused.failure().0, 2);
        assert!(!refused.err.contains("piped"), "{}", refused.err);
        let off = run(app, &["provider", "set", "provider_a", "--active", "false", "--company", id]).await;
        assert_eq!((field(off.success_output(), "active"), field(&off.out, "has credentials")), ("no", "yes"));
        let gone = ["provider", "set", "provider_a", "--no-credentials", "--company", id];
        assert_eq!(run(app, &gone).await.failure().0, 2);
        let gone = run(app, &[&gone[..], &["--yes"]].concat()).await;
        assert_eq!(field(gone.success_output(), "has credentials"), "no");
    }
}
