//! `tollhouse plugin bench`.

use std::fs::File;

use clap::ArgGroup;
use tollhouse_platform::{
    config::database::DatabaseSettings,
    error::Error,
    store::{self, RolePolicy, Store},
};
use tollhouse_plugins::{SignedComponent, registry};
use tollhouse_tools::bench::{self, BenchSubject, Effort};

use crate::prelude::*;

#[derive(Args)]
#[command(group = ArgGroup::new("subjects").args(["file", "installed"]).required(true).multiple(true))]
#[command(after_help = "Examples:
  tollhouse plugin bench provider_a.wasm provider_b.wasm --html compared.html
  tollhouse plugin bench target/new.wasm --installed provider_a --iterations 20000 --json")]
pub struct Bench {
    /// Components to measure
    #[arg(value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Measure the active version of this plugin in the database; may be repeated
    #[arg(long, value_name = "NAME")]
    installed: Vec<String>,
    /// Also write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show all measurements, not one line per function
    #[arg(long)]
    detail: bool,
    /// Number of calls per function and mode
    #[arg(long, value_name = "CALLS", default_value_t = 5_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    iterations: u32,
    /// Number of cold starts per component, once without and once with cached machine code
    #[arg(long, value_name = "STARTS", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    cold_starts: u32,
    #[command(flatten)]
    database: DatabaseSettings,
    #[command(flatten)]
    plugins: PluginSettings,
}

impl Bench {
    pub async fn run(self) -> Result {
        let mut subjects = Vec::new();
        for (name, wasm) in self.components().await? {
            let subject = BenchSubject::load(wasm, self.plugins.limits()).await;
            subjects.push(subject.map_err(|why| Failure::refused(format!("{name}: {why}")))?);
        }
        let create = |path: &PathBuf| File::create(path).map_err(|error| file_failure(path, error));
        // Before the measurement, which takes minutes: fails if the file cannot be written.
        let page = self.html.as_ref().map(create).transpose()?;
        let effort = Effort { iterations: self.iterations, cold_starts: self.cold_starts };
        let report = bench::compare(subjects, effort).await.map_err(Failure::refused)?;
        if let (Some(path), Some(mut page)) = (&self.html, page) {
            let written = page.write_all(report.page().as_bytes());
            written.map_err(|error| file_failure(path, error))?;
        }
        let text = if self.detail { report.detailed() } else { report.to_string() };
        Ok(Report::new(json!(report), text))
    }

    /// Returns the components to measure, each with its name on the command line.
    async fn components(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut components = Vec::new();
        for file in &self.file {
            let wasm = SignedComponent::strip_signature(read_bytes(file)?);
            components.push((file.display().to_string(), wasm));
        }
        if !self.installed.is_empty() {
            let store = self.open().await?;
            for name in &self.installed {
                let found = registry::serving(&store, name, &self.plugins.trust()).await;
                let wasm = found.map_err(|error| match error {
                    Error::Invalid(reason) => Failure::refused(format!("{name}: {reason}")),
                    error => Failure::unreachable(error.chain()),
                })?;
                let missing = || Failure::refused(format!("no plugin {name} is installed"));
                components.push((name.clone(), wasm.ok_or_else(missing)?));
            }
        }
        Ok(components)
    }

    /// Opens the database without creating or migrating it.
    async fn open(&self) -> Result<Store> {
        let (url, limits) = (self.database.url()?, self.database.limits());
        let file = url.expose().strip_prefix("sqlite://").and_then(|file| file.split('?').next());
        if file.is_some_and(|file| !Path::new(file).exists()) {
            return Err(Failure::unreachable(format!("there is no database at {url}")));
        }
        if store::missing_migrations(url.expose()).await? > 0 {
            let what = "the database schema is outdated: run `tollhouse migrate`";
            return Err(Failure::refused(what));
        }
        Ok(Store::open_migrated(url.expose(), limits, Random::system(), RolePolicy::Any).await?)
    }
}
