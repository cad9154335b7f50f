//! Settings: precedence, validation and documentation.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;
use tollhouse_app::state::config::describe;

use crate::{
    app::{MASTER_KEY, OPERATOR_TOKEN},
    command_line::{ProgramOutput, program, program_output},
};

/// Environment variable that makes the test update the list of settings in `docs/OPERATING.md`.
const UPDATE_DOCS: &str = "TOLLHOUSE_WRITE_DOCS";

#[test]
fn the_documentation_lists_every_setting() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/OPERATING.md");
    let document = fs::read_to_string(&file).expect("a document");
    let (begin, end) = ("<!-- settings -->\n", "\n<!-- end of settings -->");
    let (before, rest) = document.split_once(begin).expect("the start of the list");
    let (listed, after) = rest.split_once(end).expect("the end of the list");
    let table = describe::table();
    if std::env::var_os(UPDATE_DOCS).is_some() {
        let document = format!("{before}{begin}{table}{end}{after}");
        return fs::write(&file, document).expect("a document that can be written");
    }
    let hint = format!("docs/OPERATING.md is out of date: run this test with {UPDATE_DOCS}=1");
    assert_eq!(listed, table, "{hint}");
}

/// `tollhouse config check` in a folder with a settings file.
struct Check {
    dir: TempDir,
}

impl Check {
    /// Writes this settings file, and the secrets that every host needs.
    fn of(settings: &str) -> Check {
        let check = Check { dir: tempfile::tempdir().unwrap() };
        for (name, text) in [
            ("token", OPERATOR_TOKEN),
            ("key", MASTER_KEY),
            ("url", "sqlite://y.db"),
            ("settings.toml", settings),
        ] {
            let file = check.dir.path().join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        }
        check
    }

    fn run(&self, flags: &[&str], variables: &[(&str, &str)]) -> ProgramOutput {
        let mut command = program(&["config", "check", "--json"]);
        command.args(flags).current_dir(self.dir.path()).env("TOLLHOUSE_CONFIG", "settings.toml");
        command
            .env("TOLLHOUSE_OPERATOR_TOKEN_FILE", "token")
            .env("TOLLHOUSE_MASTER_KEY_FILE", "key");
        command.envs(variables.iter().copied());
        program_output(command.output().expect("the program starts"))
    }

    /// Returns the effective value and the source of a setting.
    fn effective(&self, key: &str, flags: &[&str], variables: &[(&str, &str)]) -> (Value, String) {
        let report = self.run(flags, variables).json();
        let mut all = report["settings"].as_array().unwrap().iter();
        let found = all.find(|setting| setting["setting"] == key).expect("the setting");
        (found["value"].clone(), found["source"].as_str().unwrap().to_owned())
    }

    /// Returns all reported problems.
    fn problems(&self, flags: &[&str], variables: &[(&str, &str)]) -> Vec<String> {
        let ended = self.run(flags, variables);
        assert_eq!(ended.code, 1, "{}", ended.out);
        let report: Value = serde_json::from_str(&ended.out).expect("JSON");
        let texts = report["problems"].as_array().unwrap().iter();
        texts.map(|text| text.as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_flag_overrides_its_variable_and_that_overrides_the_file() {
    let check = Check::of(
        "plugin_requests = 3\nallow_private_events = ['a.example', 'b.example']\ndevelopment = true\nservice = 'toll'\n",
    );
    let requests = [("TOLLHOUSE_PLUGIN_REQUESTS", "5")];
    let expected = |value: &str, source: &str| (json!(value), source.to_owned());
    assert_eq!(
        check.effective("plugin_requests", &["--plugin-requests=7"], &requests),
        expected("7", "flag")
    );
    assert_eq!(check.effective("plugin_requests", &[], &requests), expected("5", "variable"));
    assert_eq!(
        check.effective("plugin_requests", &[], &[("TOLLHOUSE_PLUGIN_REQUESTS", "")]),
        expected("3", "file")
    );
    assert_eq!(check.effective("plugin_cpu_ms", &[], &[]), expected("1000", "default"));

    let list = "allow_private_events";
    assert_eq!(check.effective(list, &[], &[]), expected("a.example,b.example", "file"));
    let one = [("TOLLHOUSE_ALLOW_PRIVATE_EVENTS", "c.example")];
    assert_eq!(check.effective(list, &[], &one), expected("c.example", "variable"));
    let two = ["--allow-private-events=d.example", "--allow-private-events=e.example"];
    assert_eq!(check.effective(list, &two, &one), expected("d.example,e.example", "flag"));

    let switch = "development";
    assert_eq!(check.effective(switch, &[], &[]), expected("true", "file"));
    assert_eq!(
        check.effective(switch, &[], &[("TOLLHOUSE_DEVELOPMENT", "false")]),
        expected("false", "variable")
    );
    assert_eq!(
        check.effective(switch, &["--development=false"], &[("TOLLHOUSE_DEVELOPMENT", "true")]),
        expected("false", "flag")
    );
    assert_eq!(check.effective(switch, &["--development"], &[]), expected("true", "flag"));
    assert_eq!(check.effective("public_url", &[], &[]), (Value::Null, "default".to_owned()));
}

#[test]
fn all_invalid_settings_are_reported_at_once() {
    let check = Check::of(
        "plugin_cpu = 5\nlisten = 'here'\nplugin-cache = 'x'\nservice = ['a', 'b']\nplugin_requests = {}\nlog_format = 'xml'\n",
    );
    let variables =
        [("TOLLHOUSE_PLUGIN_CALL_TIMEOUT_S", "31"), ("TOLLHOUSE_PUBLIC_URL", "ftp://x")];
    let problems = check.problems(&["--master-key-file=none"], &variables);
    let expected = [
        "settings.toml: listen: invalid value 'here' for '--listen <address>'",
        "settings.toml: log_format: invalid value 'xml' for '--log-format <format>' [possible values: human, json]",
        "settings.toml: plugin-cache: unknown setting; did you mean plugin_cache?",
        "settings.toml: plugin_cpu: unknown setting; did you mean plugin_cpu_ms?",
        "settings.toml: plugin_requests: it must be a string, a number, true, false or a list of them",
        "settings.toml: service: it takes one value, not several",
        "TOLLHOUSE_PLUGIN_CALL_TIMEOUT_S: invalid value '31' for '--plugin-call-timeout-s <s>': 31 is not in 1..=30",
        "master_key_file none: ",
        "public_url must be an http or https URL without a query",
    ];
    for text in expected {
        let found = problems.iter().filter(|problem| problem.starts_with(text)).count();
        assert_eq!(found, 1, "{text} in {problems:#?}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    let serve =
        program(&["serve", "--config", "settings.toml"]).current_dir(check.dir.path()).output();
    let serve = program_output(serve.unwrap());
    assert_eq!(serve.failure().0, 2);
    assert!(serve.err.lines().count() > 4, "{}", serve.err);
    let mut no_file = program(&["config", "example"]);
    program_output(no_file.env("TOLLHOUSE_CONFIG", "").output().unwrap()).success_output();
    assert!(Check::of("listen = ").problems(&[], &[])[0].contains("settings.toml: line 1"));
}

#[test]
fn unusable_or_conflicting_settings_get_a_specific_message() {
    let check = Check::of("");
    for (flags, sentence) in [
        (
            &["--development", "--listen=0.0.0.0:8080", "--plain-http", "--public-url=http://x"][..],
            "development is for loopback only",
        ),
        (&["--listen=0.0.0.0:8080", "--plain-http"], "public_url is required"),
        (&["--portal", "--public-url=http://a.example"], "public_url must begin with https"),
        (&["--portal", "--public-url=https://a.example/b"], "public_url must have no path"),
        (&["--tls-certificate=none.pem", "--tls-key=key"], "none.pem: "),
        (
            &["--database-file=url", "--database=sqlite://x.db"],
            "database and database_file are both set",
        ),
        (&["--database-file=key"], "database_file key: it must be sqlite://FILE"),
        (&["--plugin-cache=key"], "plugin_cache: key is not a folder"),
        (
            &[
                "--plugin-unsigned",
                "--plugin-publishers=acme=MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
            ],
            "plugin_unsigned also accepts plugins that none of plugin_publishers has signed",
        ),
        (
            &["--database=sqlite:///no/such/folder/x.db"],
            "database sqlite:///no/such/folder/x.db: the database cannot be opened",
        ),
        (&["--database=sqlite://token"], "database sqlite://token: "),
        (
            &["--database=postgres://ada@127.0.0.1:1/t"],
            "database postgres://ada@127.0.0.1:1/t: the database does not respond",
        ),
        (&["--operator-token-file=settings.toml"], "operator_token_file settings.toml: the file"),
        (&["--master-key-file=token"], "a master key must be 64 hexadecimal characters"),
        (&["--otlp-endpoint=collector:4318"], "otlp_endpoint must be an http or https URL"),
        (&["--otlp-endpoint=http://"], "otlp_endpoint must be an http or https URL"),
        (&["--otlp-endpoint=http:collector"], "otlp_endpoint must be an http or https URL"),
        (&["--otlp-endpoint=https://collector/?a=b"], "otlp_endpoint must be an http or https URL"),
        (&["--internal-url=http://10.0.0.5:8081"], "internal_url would send the operator token"),
        (&["--smtp-host=mail.example.com"], "smtp_host requires email_from"),
        (&["--smtp-host=localhost", "--email-from=nobody"], "email_from must be an e-mail address"),
        (
            &["--smtp-host=10.0.0.5", "--email-from=a@b.example", "--smtp-security=none"],
            "smtp_security none would send e-mail to 10.0.0.5 in the clear",
        ),
        (
            &["--smtp-host=localhost", "--email-from=a@b.example", "--smtp-username=ada"],
            "smtp_username and its password must be set together",
        ),
        (
            &["--smtp-host=localhost", "--email-from=a@b.example", "--smtp-password-file=token"],
            "smtp_username and its password must be set together",
        ),
        (
            &["--smtp-host=localhost", "--email-from=a@b.example", "--smtp-ca-file=none.pem"],
            "smtp_ca_file none.pem: ",
        ),
        (
            &["--smtp-host=localhost", "--email-from=a@b.example", "--smtp-ca-file=token"],
            "smtp_ca_file contains no usable certificate",
        ),
    ] {
        let problems = check.problems(flags, &[]);
        assert!(problems.len() == 1 && problems[0].starts_with(sentence), "{problems:?}");
    }
}

#[test]
fn unusable_settings_of_sign_ins_get_a_specific_message() {
    let check = Check::of("");
    for (flags, sentence) in [
        (&["--console-url=https://x.example/base"][..], "console_url must be an http or https URL"),
        (&["--oidc-issuer=https://x.example"], "oidc_issuer requires oidc_client_id"),
        (&["--oidc-client-id=tollhouse"], "oidc_client_id and its secret require oidc_issuer"),
        (
            &[
                "--oidc-issuer=http://x.example",
                "--oidc-client-id=tollhouse",
                "--oidc-client-secret-file=token",
            ],
            "oidc_issuer must be an absolute https URL",
        ),
        (
            &[
                "--oidc-issuer=https://x.example",
                "--oidc-client-id=tollhouse",
                "--oidc-client-secret-file=token",
                "--internal-listen=0.0.0.0:8081",
                "--internal-plain-http",
            ],
            "console_url is required with oidc_issuer",
        ),
    ] {
        let problems = check.problems(flags, &[]);
        assert!(problems.len() == 1 && problems[0].starts_with(sentence), "{problems:?}");
    }
}

#[test]
fn the_standard_otlp_variable_is_checked_unless_overridden() {
    let check = Check::of("");
    let standard = [("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")];
    let problems = check.problems(&[], &standard);
    assert!(problems[0].starts_with("OTEL_EXPORTER_OTLP_ENDPOINT must be"), "{problems:?}");
    let own = ["--otlp-endpoint=http://[::1]:4318/base"];
    assert_eq!(check.run(&own, &standard).code, 0, "the standard variable is overridden");
}

#[test]
fn a_removed_setting_is_rejected_with_its_replacements() {
    let replaced = "it was replaced by one setting per purpose: allow_private_plugins, allow_private_events, allow_private_images";
    let in_file = Check::of("allow_private = ['a.example', 'b.example']\n").problems(&[], &[]);
    let variable = [("TOLLHOUSE_ALLOW_PRIVATE", "a.example")];
    let in_variable = Check::of("").problems(&[], &variable);
    for problems in [in_file, in_variable] {
        assert!(problems.len() == 1 && problems[0].ends_with(replaced), "{problems:?}");
    }
    let flag = Check::of("").run(&["--allow-private=a.example"], &[]);
    assert!(flag.code == 2 && flag.err.contains(replaced), "{}", flag.err);
    let example = program_output(program(&["config", "example"]).output().unwrap());
    assert!(!example.success_output().contains("#allow_private ="), "{}", example.out);
    let pin = Check::of("plugin_publishers = ['acme=hello']\n").problems(&[], &[]);
    assert!(pin[0].contains("the key must be an Ed25519 key"), "{pin:?}");
}

#[test]
fn a_remote_database_without_certificate_verification_is_rejected_before_connecting() {
    let check = Check::of("");
    for (url, host) in [
        ("postgres://ada@10.0.0.5/t", "10.0.0.5"),
        ("postgres://ada@db.example/t?sslmode=require", "db.example"),
    ] {
        let sentence = format!("database would reach {host} without verifying its certificate");
        let problems = check.problems(&[&format!("--database={url}")], &[]);
        assert!(problems.len() == 1 && problems[0].starts_with(&sentence), "{problems:?}");
        for command in ["serve", "migrate"] {
            let mut command = program(&[command, "--database", url]);
            command.env("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN);
            let refused =
                program_output(command.env("TOLLHOUSE_MASTER_KEY", MASTER_KEY).output().unwrap());
            assert!(refused.failure().0 == 2 && refused.err.contains(&sentence), "{}", refused.err);
        }
    }
}

#[test]
fn a_secret_from_two_sources_is_rejected_with_both_sources() {
    let check = Check::of("operator_token_file = 'token'\nmaster_key_file = 'key'\n");
    let by_variables =
        [("TOLLHOUSE_OPERATOR_TOKEN", OPERATOR_TOKEN), ("TOLLHOUSE_MASTER_KEY", MASTER_KEY)];
    let no_files = [("TOLLHOUSE_OPERATOR_TOKEN_FILE", ""), ("TOLLHOUSE_MASTER_KEY_FILE", "")];
    let twice = [&by_variables[..], &no_files].concat();
    for (variables, places) in [
        (&by_variables[..], ["TOLLHOUSE_OPERATOR_TOKEN_FILE", "TOLLHOUSE_MASTER_KEY_FILE"]),
        (&twice, ["operator_token_file in settings.toml", "master_key_file in settings.toml"]),
    ] {
        let problems = check.problems(&[], variables);
        let expected = places.iter().zip(&by_variables).map(|(place, (variable, _))| {
            format!("{place} and {variable} are both set: remove one of them")
        });
        assert_eq!(problems, expected.collect::<Vec<_>>());
    }
    // A flag overrides the conflict, and commands that need no secret ignore it.
    let flags = ["--operator-token-file=token", "--master-key-file=key"];
    assert_eq!(check.run(&flags, &by_variables).code, 0);
    let run = |arguments: &[&str]| {
        let mut command = program(arguments);
        command.envs(by_variables).current_dir(check.dir.path());
        program_output(command.args(["--config", "settings.toml"]).output().unwrap())
    };
    let serve = run(&["serve"]);
    assert!(serve.failure().0 == 2 && serve.err.lines().count() == 2, "{}", serve.err);
    assert_eq!(run(&["plugin", "list"]).failure().0, 2);
    run(&["migrate"]).success_output();
}

#[test]
fn commands_that_create_settings_need_no_settings_file() {
    let dir = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = program(arguments);
        command.current_dir(dir.path()).env("TOLLHOUSE_CONFIG", "new/tollhouse.toml");
        program_output(command.output().unwrap())
    };
    run(&["config", "example"]).success_output();
    run(&["master-key", "new"]).success_output();
    let missing = run(&["config", "check"]);
    assert!(missing.err.contains("new/tollhouse.toml: No such file"), "{}", missing.err);
    run(&["config", "init", "new"]).success_output();
    run(&["config", "check"]).success_output();
}

#[test]
fn secrets_are_read_from_files_and_never_printed() {
    let url = "postgres://ada:s3cret@127.0.0.1:1/t";
    let check = Check::of(&format!("database = '{url}'\n"));
    let by_flag = check.problems(&[&format!("--database={url}")], &[]);
    assert!(by_flag[0].starts_with("--database would show its password"), "{by_flag:?}");
    let shown = check.run(&[], &[]);
    let no_url = ("TOLLHOUSE_DATABASE", "'postgres://ada:s3cret@127.0.0.1:1/t");
    let by_variable = check.problems(&[], &[no_url]);
    let collector = ("TOLLHOUSE_OTLP_ENDPOINT", "https://ada:s3cret@127.0.0.1:1");
    let collector = check.run(&[], &[collector]).out;
    assert!(collector.contains("ada:hidden@"), "{collector}");
    let no_file = Check::of("database = 'postgres://ada:s3cret@127.0.0.1:1/t\n").problems(&[], &[]);
    assert!(no_file[0].contains("line 1"), "{no_file:?}");
    let text =
        format!("{}{}{by_flag:?}{by_variable:?}{no_file:?}{collector}", shown.out, shown.err);
    assert!(text.contains("ada:hidden@127.0.0.1"), "{text}");
    assert!(
        ![OPERATOR_TOKEN, MASTER_KEY, "s3cret"].iter().any(|secret| text.contains(secret)),
        "{text}"
    );
    for name in ["token", "key"] {
        fs::set_permissions(check.dir.path().join(name), fs::Permissions::from_mode(0o644))
            .unwrap();
    }
    let shown =
        Check { dir: check.dir }.run(&[], &[("TOLLHOUSE_DATABASE", "sqlite://x.db")]).json();
    let warnings = shown["warnings"].as_array().unwrap().iter();
    let open =
        warnings.filter(|text| text.as_str().unwrap().contains("is accessible to other users"));
    assert_eq!(open.count(), 2, "{shown}");
}

#[test]
fn the_example_settings_equal_the_defaults() {
    let example = program_output(program(&["config", "example"]).output().unwrap());
    let has_default =
        |line: &&str| line.starts_with('#') && !line.starts_with("# ") && !line.ends_with("= \"\"");
    let settings: Vec<&str> =
        example.success_output().lines().filter(has_default).map(|line| &line[1..]).collect();
    assert!(settings.len() > 10, "{}", example.out);
    let check = Check::of(&settings.join("\n"));
    let report = check.run(&[], &[]).json();
    let standard = Check::of("").run(&[], &[]).json();
    for (set, default) in
        report["settings"].as_array().unwrap().iter().zip(standard["settings"].as_array().unwrap())
    {
        let value = |setting: &Value| setting["value"].as_str().unwrap_or_default().to_owned();
        assert_eq!(value(set), value(default), "{}", set["setting"]);
    }
}

#[test]
fn an_initialized_folder_is_ready_to_serve() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("new");
    let folder = folder.to_str().unwrap();
    let made = program_output(program(&["config", "init", folder]).output().unwrap());
    assert!(made.success_output().contains("tollhouse serve --config"), "{}", made.out);
    let settings = format!("{folder}/tollhouse.toml");
    let checked =
        program_output(program(&["config", "check", "--config", &settings]).output().unwrap());
    assert!(checked.success_output().ends_with("No problems found.\n"), "{}", checked.out);
    assert!(checked.out.contains("\nWarning: migrations not applied yet: "), "{}", checked.out);
    let migrate =
        || program_output(program(&["migrate", "--config", &settings, "--json"]).output().unwrap());
    assert!(migrate().json()["applied"].as_i64().unwrap() > 0);
    assert_eq!(migrate().json()["applied"], 0);
    let checked =
        program_output(program(&["config", "check", "--config", &settings]).output().unwrap());
    assert!(!checked.success_output().contains("Warning:"), "{}", checked.out);
    for secret in ["master-key", "operator-token"] {
        let mode = fs::metadata(format!("{folder}/{secret}")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let before = fs::read(format!("{folder}/master-key")).unwrap();
    fs::remove_file(&settings).unwrap();
    let again = program_output(program(&["config", "init", folder]).output().unwrap());
    assert!(again.failure().0 == 1 && again.err.contains("nothing was created"), "{}", again.err);
    assert_eq!(fs::read(format!("{folder}/master-key")).unwrap(), before);
    assert!(!Path::new(&settings).exists());
}
