//! `tollhouse plugin …`, as operators use it.

use tokio::process::Command;

use crate::{
    app::{OPERATOR_TOKEN, TestApp},
    plugins::next_sprout,
};

/// Runs `tollhouse plugin …` against the host: whether it went well, and what it said.
async fn plugin_command(app: &TestApp, arguments: &[&str], token: &str) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollhouse"));
    command.arg("plugin").args(arguments).env("TOLLHOUSE_OPERATOR_TOKEN", token);
    command
        .env_remove("TOLLHOUSE_OPERATOR_TOKEN_FILE")
        .env("TOLLHOUSE_INTERNAL_URL", &app.internal);
    let ended = command.output().await.expect("the program starts");
    let said = [ended.stdout, ended.stderr].concat();
    (ended.status.success(), String::from_utf8(said).expect("text"))
}

both! {
    async fn the_command_line_installs_upgrades_and_lists(app: TestApp) {
        let file = |name: &str, wasm: &[u8]| {
            let file = app.database.dir.path().join(name);
            std::fs::write(&file, wasm).expect("a file in a temporary folder");
            file.display().to_string()
        };
        let (old, new) = (file("old.wasm", artifacts::SPROUT), file("new.wasm", &next_sprout()));
        let garbage = file("garbage.wasm", b"once upon a time");
        let run = async |arguments: &[&str]| plugin_command(app, arguments, OPERATOR_TOKEN).await;

        let (ok, said) = run(&["install", &old]).await;
        assert!(ok && said.starts_with("sprout 1.0.0 is serving (") && said.lines().count() == 1, "{said}");
        let (ok, said) = run(&["install", &new]).await;
        assert!(ok && said.starts_with("sprout 1.1.0 is serving (") && said.ends_with("it replaces 1.0.0\n"), "{said}");
        for (file, reason) in [(&*garbage, "tollhouse: the file is no WebAssembly"), ("/no/such.wasm", "tollhouse: /no/such.wasm: ")] {
            let (ok, said) = run(&["install", file]).await;
            assert!(!ok && said.starts_with(reason), "{said}");
        }
        let (ok, said) = plugin_command(app, &["install", &old], "op_another").await;
        assert_eq!((ok, &*said), (false, "tollhouse: the operator token is not valid\n"));
        let (ok, said) = plugin_command(app, &["list"], "").await;
        assert!(!ok && said.starts_with("tollhouse: set operator_token_file"), "{said}");

        let (ok, said) = run(&["list"]).await;
        let mut listed: Vec<Vec<&str>> =
            said.lines().skip(1).map(|line| line.split_whitespace().take(3).collect()).collect();
        listed.sort();
        let sprouts = [["sprout", "1.0.0", "retired"], ["sprout", "1.1.0", "active"]];
        assert_eq!((ok, &listed[1..]), (true, &sprouts.map(|line| line.to_vec())[..]));
    }
}
