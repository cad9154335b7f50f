//! `tollhouse plugin new`.

use tollhouse_tools::new::{Language, Project, TemplateKind};

use crate::prelude::*;

#[derive(Args)]
#[command(after_help = "Example:\n  tollhouse plugin new acme --kind provider --lang rust")]
pub struct New {
    /// Plugin name: starts with a-z; may contain a-z, 0-9, _ and -
    name: String,
    /// Kind of plugin
    #[arg(long)]
    kind: TemplateKind,
    /// Programming language
    #[arg(long)]
    lang: Language,
    /// Target folder, empty or not existing. Default: a folder with the plugin's name
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

impl New {
    pub fn run(self) -> Result {
        let New { name, kind, lang: language, dir } = self;
        let folder = dir.unwrap_or_else(|| PathBuf::from(&name));
        let project = Project { name, kind, language };
        project.write_to(&folder).map_err(Failure::usage)?;
        let message = format!(
            "created {} in {}; its README.md explains how to build, test and check it",
            project.name,
            folder.display()
        );
        Ok(Report::new(json!({ "name": project.name, "folder": folder }), message))
    }
}
