//! `tollhouse audit`.

use std::collections::BTreeMap;

use serde::Deserialize;
use tollhouse_app::operations::audit::{
    AuditEntry,
    chain::{self, ChainEnd},
};

use crate::prelude::*;

/// Maximum number of entries that a host returns at a time.
const MAX_ENTRIES: usize = 1_000;

/// List, export and verify the audit log
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Audit {
    /// The company's id; without it, entries of the service as a whole
    company: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
pub enum Action {
    /// Print a log as JSON lines, oldest entry first
    Export {
        /// The company's id; without it, entries of the service as a whole
        company: Option<String>,
    },
    /// Verify the hash chains of all logs: no entry was changed, removed or reordered
    #[command(after_help = "\
The result names the last number and hash of each log. Keep it elsewhere, and compare with it later:
only this reveals that the last entries of a log were removed or that all of it was rewritten.

Example:
  tollhouse audit verify --json > audit-2026-11.json
  tollhouse audit verify --since audit-2026-11.json")]
    Verify {
        /// JSON result of an earlier verification, whose entries must still exist
        #[arg(long, value_name = "FILE")]
        since: Option<PathBuf>,
        /// Exported log in JSON lines to verify, in place of the logs on the host
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

impl Audit {
    pub async fn run(self) -> Result {
        let Audit { company, page, access, action } = self;
        match action {
            None => {
                let columns = "number, at: created_at, actor, action, detail as json";
                let path = scope(company.as_deref(), "audit");
                HostClient::new(&access)?.list(&path, &page, columns).await
            }
            Some(Action::Export { company }) => {
                export(&HostClient::new(&access)?, &company.unwrap_or_default()).await
            }
            Some(Action::Verify { since, file }) => {
                let known = since.as_deref().map(read_known).transpose()?.unwrap_or_default();
                match file {
                    // A file need not contain all logs.
                    Some(file) => report(&verify_file(&file, &known)?, &KnownLogs::new()),
                    None => report(&verify_host(&HostClient::new(&access)?, &known).await?, &known),
                }
            }
        }
    }
}

/// A line of an exported log.
#[derive(Serialize, Deserialize)]
struct ExportedEntry {
    /// Empty for the service.
    company: String,
    #[serde(flatten)]
    entry: AuditEntry,
}

/// A part of a log, as the host returns it.
#[derive(Deserialize)]
struct ChainPart {
    entries: Vec<AuditEntry>,
    end: ChainEnd,
    unnumbered: u64,
}

#[derive(Serialize)]
struct ChainRange {
    after: i64,
    limit: usize,
}

#[derive(Serialize)]
struct CompanyPage {
    page: u64,
    limit: usize,
}

/// The result of the verification of one log.
#[derive(Serialize, Deserialize)]
struct VerifiedLog {
    /// Empty for the service.
    company: String,
    #[serde(flatten)]
    end: ChainEnd,
    /// Number of unnumbered entries, written by earlier versions; they cannot be verified.
    unnumbered: u64,
    /// The first problem; `null` if the log is intact.
    problem: Option<String>,
}

/// Logs as they were verified earlier, by company.
type KnownLogs = BTreeMap<String, VerifiedLog>;

async fn read_part(host: &HostClient, company: &str, after: i64) -> Result<ChainPart> {
    let mut path = scope(Some(company).filter(|company| !company.is_empty()), "audit");
    path.push("chain");
    let part = host.get(&path, &ChainRange { after, limit: MAX_ENTRIES }).await?;
    serde_json::from_value(part).map_err(Failure::unreachable)
}

async fn export(host: &HostClient, company: &str) -> Result {
    let mut out = std::io::stdout().lock();
    let mut after = 0;
    loop {
        let part = read_part(host, company, after).await?;
        for entry in &part.entries {
            let line = json!(ExportedEntry { company: company.to_owned(), entry: entry.clone() });
            // The reader may have closed the pipe.
            if writeln!(out, "{line}").is_err() {
                return Ok(Report::new(Value::Null, ""));
            }
        }
        match part.entries.last().and_then(|entry| entry.number) {
            Some(last) if part.entries.len() == MAX_ENTRIES => after = last,
            _ => return Ok(Report::new(Value::Null, "")),
        }
    }
}

fn read_known(file: &Path) -> Result<KnownLogs> {
    let text = read_text(file)?;
    let logs: Vec<VerifiedLog> = serde_json::from_str(&text).map_err(|_| {
        file_failure(file, "it must be the result of `tollhouse audit verify --json`")
    })?;
    Ok(logs.into_iter().map(|log| (log.company.clone(), log)).collect())
}

/// A log during its verification.
struct Verification {
    company: String,
    end: ChainEnd,
    problem: Option<String>,
}

impl Verification {
    fn new(company: &str) -> Verification {
        Verification { company: company.to_owned(), end: ChainEnd::default(), problem: None }
    }

    /// Verifies the next entries, and compares them with the known ends of the chain.
    fn add(&mut self, entries: &[AuditEntry], ends: &[&ChainEnd]) {
        if self.problem.is_some() {
            return;
        }
        match chain::verify(&self.company, self.end.clone(), entries) {
            Ok(end) => self.end = end,
            Err(problem) => return self.problem = Some(problem),
        }
        for known in ends {
            let entry = entries.iter().find(|entry| entry.number == Some(known.number));
            if entry.is_some_and(|entry| entry.hash.as_deref() != Some(&*known.hash)) {
                self.problem =
                    Some(format!("entry {} was changed: it had another hash", known.number));
            }
        }
    }

    fn finish(mut self, ends: &[&ChainEnd], unnumbered: u64) -> VerifiedLog {
        let last = ends.iter().map(|known| known.number).max().unwrap_or_default();
        if self.problem.is_none() && last > self.end.number {
            self.problem =
                Some(format!("entry {last} is missing: the log ends at {}", self.end.number));
        }
        let Verification { company, end, problem } = self;
        VerifiedLog { company, end, unnumbered, problem }
    }
}

async fn verify_host(host: &HostClient, known: &KnownLogs) -> Result<Vec<VerifiedLog>> {
    let mut companies: Vec<String> = vec![String::new()];
    for page in 1_u64.. {
        let list = host.get(&["companies"], &CompanyPage { page, limit: MAX_ENTRIES }).await?;
        let ids = list["docs"].as_array().into_iter().flatten();
        companies.extend(ids.filter_map(|company| company["id"].as_str().map(str::to_owned)));
        if list["total_page"].as_u64().is_none_or(|pages| pages <= page) {
            break;
        }
    }
    let mut logs = Vec::new();
    for company in companies {
        logs.push(verify_log(host, &company, known.get(&company)).await?);
    }
    Ok(logs)
}

async fn verify_log(
    host: &HostClient,
    company: &str,
    known: Option<&VerifiedLog>,
) -> Result<VerifiedLog> {
    let mut log = Verification::new(company);
    loop {
        let part = read_part(host, company, log.end.number).await?;
        let ends = known.map(|known| &known.end);
        let ends: Vec<&ChainEnd> = ends.into_iter().chain([&part.end]).collect();
        log.add(&part.entries, &ends);
        if part.entries.len() < MAX_ENTRIES || log.problem.is_some() {
            let mut log = log.finish(&ends, part.unnumbered);
            if log.problem.is_none()
                && known.is_some_and(|known| known.unnumbered < part.unnumbered)
            {
                log.problem = Some("entries without a number were added".to_owned());
            }
            return Ok(log);
        }
    }
}

fn verify_file(file: &Path, known: &KnownLogs) -> Result<Vec<VerifiedLog>> {
    let mut logs: BTreeMap<String, Verification> = BTreeMap::new();
    for (n, line) in read_text(file)?.lines().enumerate() {
        // serde cannot read numbers of arbitrary precision from text into a flattened struct.
        let read = |line| serde_json::from_value(serde_json::from_str(line)?);
        let ExportedEntry { company, entry } =
            read(line).map_err(|error| file_failure(file, format!("line {}: {error}", n + 1)))?;
        let ends: Vec<&ChainEnd> =
            known.get(&company).map(|known| &known.end).into_iter().collect();
        let log = logs.entry(company.clone()).or_insert_with(|| Verification::new(&company));
        log.add(&[entry], &ends);
    }
    let finish = |(company, log): (String, Verification)| {
        let ends: Vec<&ChainEnd> =
            known.get(&company).map(|known| &known.end).into_iter().collect();
        log.finish(&ends, 0)
    };
    Ok(logs.into_iter().map(finish).collect())
}

fn report(logs: &[VerifiedLog], known: &KnownLogs) -> Result {
    let lines = logs.iter().map(|log| {
        json!({
            "log": if log.company.is_empty() { "service" } else { &log.company },
            "entries": log.end.number,
            "hash": log.end.hash,
            "problem": log.problem.as_deref().unwrap_or("intact"),
        })
    });
    let columns = "log, entries as number, last hash: hash, result: problem";
    let text = table(&lines.collect(), columns);
    let mut report = Report::new(json!(logs), text);
    let unnumbered: u64 = logs.iter().map(|log| log.unnumbered).sum();
    if unnumbered > 0 {
        let note = "entries are from versions that did not number them, and were not verified.";
        report = report.with_note(&format!("{unnumbered} {note}"));
    }
    let absent = known.keys().find(|company| logs.iter().all(|log| log.company != **company));
    let damaged = logs.iter().filter(|log| log.problem.is_some()).count();
    Ok(match absent {
        Some(company) => {
            let name = if company.is_empty() { "the service" } else { company.as_str() };
            report.with_failure(Failure::refused(format!("the log of {name} is missing")))
        }
        None => report
            .refused_if(damaged > 0, format!("{damaged} of {} logs are not intact", logs.len())),
    })
}
