//! `tollhouse collections`.

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// Show the collection policy of a company
    Show {
        /// The company's id
        company: String,
    },
    /// Set the collection policy of a company, as a new version
    #[command(after_help = "\
A policy is a JSON object:
  {\"instruments\": [\"default_card\", \"other_cards\", \"mandates\"], \"days\": [0, 1, 3, 7],
   \"hours\": {\"from\": 8, \"to\": 20}, \"utc_offset\": \"+01:00\", \"max_attempts\": 6}

Example:
  tollhouse collections set 6b018eed9f8a1c2b3d4e5f60 --file policy.json")]
    Set {
        /// The company's id
        company: String,
        #[command(flatten)]
        input: Input,
    },
    /// Simulate a policy on the installments that were due in recent days
    #[command(after_help = "\
Nothing is changed or charged.

Example:
  tollhouse collections simulate 6b018eed9f8a1c2b3d4e5f60 --policy policy.json --days 30")]
    Simulate {
        /// The company's id
        company: String,
        /// File with the policy, a JSON object
        #[arg(long, value_name = "FILE")]
        policy: PathBuf,
        /// Number of past days whose due installments are simulated, at most 90
        #[arg(long, default_value_t = 30)]
        days: u32,
    },
}

const EXAMPLE: &str = "{\"instruments\": [\"default_card\"], \"days\": [0, 3], …}";
const FIELDS: &str = "version, active: policy/active, instruments: policy/instruments, \
    days: policy/days, from hour: policy/hours/from, to hour: policy/hours/to, \
    UTC offset: policy/utc_offset, maximum attempts: policy/max_attempts, \
    maximum fees: policy/max_fees as money, changed by: changed_by, created: created_at";
const TOTALS: &str = "result, installments as number, amount as money, collected as number, \
    attempts as number, recovered as money, fees: fees/amount as money";
const RATES: &str = "channel: payment_channel, retry, attempts as number, \
    succeeded as number, partial as number";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        match self {
            Action::Show { company } => {
                let found = host.get(&["companies", &company, "collection-policy"], &()).await?;
                match found.is_null() {
                    true => Ok(Report::new(found, "no policy: each installment is collected once")),
                    false => Ok(Report::record(found, FIELDS)),
                }
            }
            Action::Set { company, input } => {
                let policy = read_object(&input.file, EXAMPLE)?;
                let path = ["companies", &company, "collection-policy"];
                Ok(Report::record(host.change(Method::PUT, &path, &policy).await?, FIELDS))
            }
            Action::Simulate { company, policy, days } => {
                let policy = read_object(&policy, EXAMPLE)?;
                let path = ["companies", &company, "collection-policy", "simulate"];
                let body = json!({ "policy": policy, "days": days });
                Ok(report(host.change(Method::POST, &path, &body).await?))
            }
        }
    }
}

fn report(simulation: Value) -> Report {
    let mut rows = Vec::new();
    let results = simulation["results"].as_array().into_iter().flatten();
    let estimated: i64 = results.clone().filter_map(|one| one["estimated_attempts"].as_i64()).sum();
    let attempts = results.clone().filter_map(|one| one["simulated"]["attempts"].as_i64());
    let attempts: i64 = attempts.sum();
    for one in results {
        for (name, totals) in [("actual", &one["actual"]), ("with the policy", &one["simulated"])] {
            let mut row = totals.clone();
            row["result"] = json!(name);
            row["installments"] = one["installments"].clone();
            row["amount"] = one["amount"].clone();
            row["currency"] = one["currency"].clone();
            row["fees"] = json!({ "amount": totals["fees"], "currency": "NGN" });
            rows.push(row);
        }
    }
    let text = table(&json!(rows), TOTALS);
    let known = attempts - estimated;
    let estimate = format!(
        "Of {attempts} attempts with the policy, {known} match a real attempt and have its \
         outcome. The other {estimated} are estimates: they succeed at the rates below, with the \
         cards and direct debits that the users have today."
    );
    let rates = table(&simulation["rates"], RATES);
    let truncated = simulation["truncated"] == true;
    let report = Report::new(simulation, text).with_note(&estimate).with_note(&rates);
    match truncated {
        true => report.with_note("Only the latest 10,000 installments are simulated."),
        false => report,
    }
}
