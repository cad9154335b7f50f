use std::{fs, process::ExitCode};

use clap::Parser;
use tollhouse_load::{Options, Report, Result};

#[tokio::main]
async fn main() -> ExitCode {
    match measure(&Options::parse()).await {
        Ok(report) if report.errors() == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tollhouse-load: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn measure(options: &Options) -> Result<Report> {
    let report = tollhouse_load::run(options).await?;
    print!("{}", report.text());
    if let Some(file) = &options.json {
        fs::write(file, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    if let Some(file) = &options.plot {
        fs::write(file, report.plot())?;
    }
    Ok(report)
}
