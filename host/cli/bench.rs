//! `tollhouse bench`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args};
use serde_json::json;
use tollhouse::{
    bench::{self, Effort, Subject},
    config::{Database, Plugins},
    plugins,
    random::Random,
    store::{self, Store},
};

use super::{failure::Failure, output::Report};

#[derive(Args)]
#[command(group = ArgGroup::new("subjects").args(["plugin", "file"]).required(true).multiple(true))]
#[command(after_help = "Examples:
  tollhouse bench --file provider_a.wasm --file provider_b.wasm
  tollhouse bench --plugin provider_a --file target/new.wasm --iterations 20000 --json")]
pub struct Bench {
    /// A plugin as it serves now, taken from the database; may be repeated
    #[arg(long, value_name = "NAME")]
    plugin: Vec<String>,
    /// A component; may be repeated
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Calls of each function
    #[arg(long, value_name = "calls", default_value_t = 5_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    iterations: u32,
    /// Calls at once
    #[arg(long, value_name = "calls", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    concurrency: u32,
    #[command(flatten)]
    database: Database,
    #[command(flatten)]
    plugins: Plugins,
}

impl Bench {
    pub async fn run(self) -> Result<Report, Failure> {
        let mut subjects = Vec::new();
        for (name, wasm) in self.components().await? {
            let subject = Subject::load(wasm, self.plugins.limits()).await;
            subjects.push(subject.map_err(|why| Failure::refused(format!("{name}: {why}")))?);
        }
        let effort = Effort { iterations: self.iterations, concurrency: self.concurrency };
        let report = bench::compare(subjects, effort).await.map_err(Failure::refused)?;
        Ok(Report::new(json!(report), report.to_string()))
    }

    /// What is to be measured, and how the command line calls it.
    async fn components(&self) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let mut components = Vec::new();
        if !self.plugin.is_empty() {
            let (url, limits) = (self.database.url()?, self.database.limits());
            let file =
                url.expose().strip_prefix("sqlite://").and_then(|file| file.split('?').next());
            if file.is_some_and(|file| !Path::new(file).exists()) {
                return Err(Failure::unreachable(format!("there is no database at {url}")));
            }
            if store::missing_migrations(url.expose()).await? > 0 {
                let what = "the database is of an earlier version; `tollhouse migrate` brings it up to date";
                return Err(Failure::refused(what.to_owned()));
            }
            let store = Store::open(url.expose(), limits, Random::system()).await?;
            for name in &self.plugin {
                let found = plugins::serving(&store, name).await;
                let wasm = found.map_err(|error| Failure::unreachable(error.chain()))?;
                let missing = || Failure::refused(format!("no plugin {name} is installed"));
                components.push((name.clone(), wasm.ok_or_else(missing)?));
            }
        }
        for file in &self.file {
            let name = file.display().to_string();
            let wasm = fs::read(file);
            let wasm = wasm.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
            components.push((name, wasm));
        }
        Ok(components)
    }
}
