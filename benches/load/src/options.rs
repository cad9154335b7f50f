//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::Parser;

use crate::{Mix, Operation, Result, schedule::Arrivals};

/// Sends the requests of a lending platform to running hosts, on a schedule that never waits for
/// responses
#[derive(Clone, Debug, Parser)]
#[command(name = "tollhouse-load")]
pub struct Options {
    /// Folder of a running `cargo sandbox`; `sandbox.json` has the addresses and the operator token
    #[arg(long, value_name = "folder", default_value = "target/sandbox")]
    pub sandbox: PathBuf,
    /// API of another host on the same database; requests are spread over all. Repeatable
    #[arg(long = "api", value_name = "URL")]
    pub apis: Vec<String>,
    /// Internal API of another host, to read its metrics. Repeatable
    #[arg(long = "internal", value_name = "URL")]
    pub internals: Vec<String>,
    /// Operations started per second; with --search, the first rate
    #[arg(long, value_name = "operations", default_value_t = 50.0)]
    pub rate: f64,
    /// Seconds of the measurement, after the warm-up
    #[arg(long, value_name = "s", default_value_t = 20)]
    pub duration_s: u64,
    /// Seconds of load before each measurement
    #[arg(long, value_name = "s", default_value_t = 5)]
    pub warm_up_s: u64,
    /// Distribution of the start times
    #[arg(long, value_enum, default_value_t = Arrivals::Poisson)]
    pub arrivals: Arrivals,
    /// Seed of the schedule and of the choice of operations
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Operations with their weights
    #[arg(long, value_name = "operation=weight,…", default_value_t = Mix::default())]
    pub mix: Mix,
    /// Run only this operation
    #[arg(long, value_name = "operation", conflicts_with = "mix")]
    pub only: Option<Operation>,
    /// Number of companies, which take turns
    #[arg(long, value_name = "companies", default_value_t = 8)]
    pub companies: usize,
    /// Number of borrowers per company; card charges of one borrower run one after the other
    #[arg(long, value_name = "borrowers", default_value_t = 10)]
    pub borrowers: usize,
    /// Number of companies whose webhook endpoint never responds
    #[arg(long, value_name = "companies", default_value_t = 0)]
    pub hanging: usize,
    /// Number of companies whose webhook endpoint responds with 500
    #[arg(long, value_name = "companies", default_value_t = 0)]
    pub failing: usize,
    /// Maximum number of operations in flight; further ones are dropped, which is an error
    #[arg(long, value_name = "operations", default_value_t = 512)]
    pub in_flight: usize,
    /// Timeout of a request
    #[arg(long, value_name = "s", default_value_t = 30)]
    pub timeout_s: u64,
    /// Seconds to wait for outstanding events after the last operation; missing ones are errors
    #[arg(long, value_name = "s", default_value_t = 30)]
    pub drain_s: u64,
    /// Find the highest sustainable rate, then measure at half of it
    #[arg(long)]
    pub search: bool,
    /// Maximum p99 of a sustainable rate, from the intended start; settlements and events may take
    /// ten times as long
    #[arg(long, value_name = "ms", default_value_t = 100.0)]
    pub limit_ms: f64,
    /// Seconds of each step of --search
    #[arg(long, value_name = "s", default_value_t = 10)]
    pub step_s: u64,
    /// File for the measurements as JSON
    #[arg(long, value_name = "file")]
    pub json: Option<PathBuf>,
    /// File for a plot (SVG) of latency percentiles by rate
    #[arg(long, value_name = "file")]
    pub plot: Option<PathBuf>,
}

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        if !(self.rate.is_finite() && self.rate > 0.0) {
            return Err("--rate must be greater than 0".into());
        }
        for (flag, value) in [
            ("--companies", self.companies as u64),
            ("--borrowers", self.borrowers as u64),
            ("--in-flight", self.in_flight as u64),
            ("--duration-s", self.duration_s),
            ("--step-s", self.step_s),
            ("--timeout-s", self.timeout_s),
        ] {
            if value == 0 {
                return Err(format!("{flag} must be greater than 0").into());
            }
        }
        if self.hanging + self.failing > self.companies {
            return Err("--hanging and --failing exceed --companies".into());
        }
        Ok(())
    }

    pub(crate) fn mix(&self) -> Mix {
        self.only.map_or_else(|| self.mix.clone(), Mix::only)
    }

    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.duration_s)
    }

    pub(crate) fn warm_up(&self) -> Duration {
        Duration::from_secs(self.warm_up_s)
    }

    pub(crate) fn step(&self) -> Duration {
        Duration::from_secs(self.step_s)
    }
}
