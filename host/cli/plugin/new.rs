//! `tollhouse plugin new`.

use std::io::{BufRead, IsTerminal, stderr, stdin};

use tollhouse_tools::new::{Language, Project, TemplateKind};

use crate::prelude::*;

#[derive(Args)]
#[command(after_help = "\
At a terminal, the command prompts for missing arguments.

Example:
  tollhouse plugin new acme --kind provider --lang rust")]
pub struct New {
    /// Plugin name: starts with a-z; may contain a-z, 0-9, _ and -
    name: Option<String>,
    /// Kind of plugin
    #[arg(long)]
    kind: Option<TemplateKind>,
    /// Programming language
    #[arg(long)]
    lang: Option<Language>,
    /// Target folder, which must be empty or not exist. Default: a folder with the plugin's name
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl New {
    pub fn run(self) -> Result {
        let New { name, kind, lang, dir } = self;
        let project = Project {
            name: name.map_or_else(|| ask("NAME", "Name of the plugin"), Ok)?,
            kind: kind.map_or_else(|| choose("--kind", "Kind"), Ok)?,
            language: lang.map_or_else(|| choose("--lang", "Programming language"), Ok)?,
        };
        let folder = dir.unwrap_or_else(|| PathBuf::from(&project.name));
        project.write_to(&folder).map_err(Failure::usage)?;
        let message = format!(
            "created {} in {}; its README.md explains how to build, test and check it",
            project.name,
            folder.display()
        );
        Ok(Report::new(json!({ "name": project.name, "folder": folder }), message))
    }
}

/// Reads an answer from the terminal.
fn ask(argument: &str, question: &str) -> Result<String> {
    if !stdin().is_terminal() {
        return Err(Failure::usage(format!("{argument} is required")));
    }
    let mut answer = String::new();
    let asked =
        write!(stderr(), "{question}: ").and_then(|()| stdin().lock().read_line(&mut answer));
    match asked.is_ok() && !answer.trim().is_empty() {
        true => Ok(answer.trim().to_owned()),
        false => Err(Failure::usage(format!("{argument} is required"))),
    }
}

/// Reads one of the values of an option from the terminal.
fn choose<T: ValueEnum>(option: &str, question: &str) -> Result<T> {
    let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let values: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
    let values = values.join(", ");
    let answer = ask(&format!("{option} ({values})"), &format!("{question} ({values})"))?;
    T::from_str(&answer, true)
        .map_err(|_| Failure::usage(format!("{option} must be one of {values}")))
}
