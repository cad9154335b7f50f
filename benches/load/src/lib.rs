//! A load generator with an open model, and a mix of the operations of a lending platform.
//!
//! Operations start on a schedule, whether or not earlier ones have ended, and latencies count from
//! the intended start. A host that stalls is therefore charged with every request that it delays
//! (no coordinated omission). Operations beyond the limit of those in flight are dropped and
//! counted as errors.

mod client;
mod driver;
mod host_metrics;
mod mix;
mod operations;
mod options;
mod phase;
mod plot;
mod receiver;
mod recorder;
mod report;
mod schedule;
mod search;
mod setup;
mod target;

pub use mix::{Mix, Operation};
pub use options::Options;
pub use report::Report;

use phase::Load;
use report::Found;
use search::Search;
use target::Target;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Sets up companies at the host, runs the load, and returns the measurements.
///
/// # Errors
/// If the options are contradictory, or the host cannot be set up.
pub async fn run(options: &Options) -> Result<Report> {
    options.check()?;
    let mix = options.mix();
    let target = Target::set_up(options, &mix).await?;
    let load = Load { target: target.clone(), mix, options: options.clone() };
    let mut report = Report::new(options, target.hosts());
    if !options.search {
        report.phases.push(load.run(options.rate, options.duration()).await?);
        return Ok(report);
    }
    let mut search = Search::starting_at(options.rate);
    let mut next = Some(options.rate);
    while let Some(rate) = next {
        let mut phase = load.run(rate, options.step()).await?;
        let sustained = phase.is_within(options.limit_ms);
        phase.sustained = Some(sustained);
        eprintln!("{}", phase.summary());
        report.phases.push(phase);
        next = search.next(sustained);
        target.wait_until_idle().await?;
    }
    let greatest = search.greatest().ok_or("no rate is sustainable: start with a lower --rate")?;
    report.found = Some(Found { greatest_rate_per_s: greatest, limit_ms: options.limit_ms });
    report.phases.push(load.run(greatest / 2.0, options.duration()).await?);
    Ok(report)
}
