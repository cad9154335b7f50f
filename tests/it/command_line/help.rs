//! `--help` of all commands.

use super::{program, program_output};

#[test]
fn every_command_has_help() {
    let help = |arguments: &[&str]| {
        let ended = program_output(program(&[arguments, &["--help"]].concat()).output().unwrap());
        ended.success_output().to_owned()
    };
    let commands = |help: &str| -> Vec<String> {
        let listed = help.split("Commands:\n").nth(1).unwrap_or_default().split("\n\n").next();
        let lines = listed.unwrap_or_default().lines().filter(|line| !line.starts_with("   "));
        let names = lines.filter_map(|line| line.split_whitespace().next());
        names.filter(|name| *name != "help").map(str::to_owned).collect()
    };
    let (mut seen, mut waiting) = (0, vec![Vec::new()]);
    while let Some(path) = waiting.pop() {
        let text = help(&path.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(text.lines().next().is_some_and(|line| line.len() > 10), "{path:?} has no help");
        seen += 1;
        for name in commands(&text) {
            waiting.push([path.clone(), vec![name]].concat());
        }
    }
    assert!(seen > 40, "only {seen} commands were found");
}

#[test]
fn commands_without_a_host_do_not_list_its_options() {
    let lists = |command: &[&str], option: &str| {
        let ended = program_output(
            program(&[&["plugin"], command, &["--help"]].concat()).output().unwrap(),
        );
        ended.success_output().contains(option)
    };
    for command in ["bench", "check", "new", "run", "sign"] {
        for option in ["--plugin-cpu-ms", "--internal-url", "--operator-token-file"] {
            assert!(!lists(&[command], option), "{command} {option}");
        }
    }
    assert!(lists(&["replay"], "--internal-url") && lists(&["list"], "--internal-url"));
    assert!(lists(&["bench"], "--database"));
}
