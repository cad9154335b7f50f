//! `tollhouse plugin bench`.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args};
use serde_json::json;
use tollhouse_platform::{
    config::database::DatabaseSettings,
    error::Error,
    random::Random,
    store::{self, RolePolicy, Store},
};
use tollhouse_plugins::{SignedComponent, registry, settings::PluginSettings};
use tollhouse_tools::bench::{self, BenchSubject, Effort};

use crate::terminal::{failure::Failure, output::Report};

#[derive(Args)]
#[command(group = ArgGroup::new("subjects").args(["file", "installed"]).required(true).multiple(true))]
#[command(after_help = "Examples:
  tollhouse plugin bench provider_a.wasm provider_b.wasm --html compared.html
  tollhouse plugin bench target/new.wasm --installed provider_a --iterations 20000 --json")]
pub struct Bench {
    /// Components
    #[arg(value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Active version of a plugin in the database; may be repeated
    #[arg(long, value_name = "NAME")]
    installed: Vec<String>,
    /// Also write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Calls of each function in each mode
    #[arg(long, value_name = "calls", default_value_t = 5_000,
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    iterations: u32,
    /// Cold starts of each component without cached machine code, and as many with it
    #[arg(long, value_name = "starts", default_value_t = 5,
          value_parser = clap::value_parser!(u32).range(1..=1_000))]
    cold_starts: u32,
    #[command(flatten)]
    database: DatabaseSettings,
    #[command(flatten)]
    plugins: PluginSettings,
}

impl Bench {
    pub async fn run(self) -> Result<Report, Failure> {
        let mut subjects = Vec::new();
        for (name, wasm) in self.components().await? {
            let subject = BenchSubject::load(wasm, self.plugins.limits()).await;
            subjects.push(subject.map_err(|why| Failure::refused(format!("{name}: {why}")))?);
        }
        // Before the measurement, which takes minutes: fails if the file cannot be written.
        let page = self.html.as_deref().map(HtmlFile::create).transpose()?;
        let effort = Effort { iterations: self.iterations, cold_starts: self.cold_starts };
        let report = bench::compare(subjects, effort).await.map_err(Failure::refused)?;
        if let Some(page) = page {
            page.write(&report.page())?;
        }
        Ok(Report::new(json!(report), report.to_string()))
    }

    /// Returns the components to measure, each with its name on the command line.
    async fn components(&self) -> Result<Vec<(String, Vec<u8>)>, Failure> {
        let mut components = Vec::new();
        for file in &self.file {
            let name = file.display().to_string();
            let wasm = fs::read(file);
            let wasm = wasm.map_err(|error| Failure::Usage(format!("{name}: {error}")))?;
            components.push((name, SignedComponent::strip_signature(wasm)));
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
    async fn open(&self) -> Result<Store, Failure> {
        let (url, limits) = (self.database.url()?, self.database.limits());
        let file = url.expose().strip_prefix("sqlite://").and_then(|file| file.split('?').next());
        if file.is_some_and(|file| !Path::new(file).exists()) {
            return Err(Failure::unreachable(format!("there is no database at {url}")));
        }
        if store::missing_migrations(url.expose()).await? > 0 {
            let what = "the database schema is outdated: run `tollhouse migrate`";
            return Err(Failure::refused(what.to_owned()));
        }
        Ok(Store::open_migrated(url.expose(), limits, Random::system(), RolePolicy::Any).await?)
    }
}

struct HtmlFile<'p> {
    path: &'p Path,
    file: File,
}

impl HtmlFile<'_> {
    fn create(path: &Path) -> Result<HtmlFile<'_>, Failure> {
        let file = File::create(path);
        let file = file.map_err(|error| write_failure(path, &error))?;
        Ok(HtmlFile { path, file })
    }

    fn write(mut self, page: &str) -> Result<(), Failure> {
        self.file.write_all(page.as_bytes()).map_err(|error| write_failure(self.path, &error))
    }
}

fn write_failure(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{}: {error}", path.display()))
}
