//! `tollhouse payment`.

use serde_json::Number;

use crate::prelude::*;

#[derive(Subcommand)]
pub enum Action {
    /// List a company's payments, newest first
    #[command(after_help = "\
Example:
  tollhouse payment list 6b018eed9f8a1c2b3d4e5f60 --status pending --created 21-11-2026")]
    List {
        /// The company's id
        company: String,
        #[command(flatten)]
        filter: PaymentFilter,
    },
    /// Show a payment and its refund
    Show(PaymentArgs),
    /// Verify a payment with the provider now, and record the outcome
    Verify(PaymentArgs),
    /// Refund the remaining amount of a successful payment, or a part of it
    Refund {
        #[command(flatten)]
        named: PaymentArgs,
        /// Refund this amount only, in the payment's currency
        #[arg(long)]
        amount: Option<Number>,
        /// Allow a negative wallet balance
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        yes: Confirmation,
    },
}

/// A payment, by its id or by its reference.
#[derive(Args)]
pub struct PaymentArgs {
    /// The company's id
    company: String,
    /// The payment's id
    #[arg(required_unless_present = "reference")]
    payment: Option<String>,
    /// The payment's reference, instead of its id
    #[arg(long, conflicts_with = "payment")]
    reference: Option<String>,
}

#[derive(Args, Serialize)]
pub struct PaymentFilter {
    /// Status: pending, success, failed or refunded
    #[arg(long)]
    status: Option<String>,
    /// Provider of the payment
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The user's `user_id`
    #[arg(long, value_name = "USER")]
    user_id: Option<String>,
    /// Date of creation in UTC, DD-MM-YYYY, or a range DD-MM-YYYY/DD-MM-YYYY
    #[arg(long, value_name = "DATES")]
    #[serde(rename = "created_at")]
    created: Option<String>,
    /// Date of payment in UTC, DD-MM-YYYY, or a range DD-MM-YYYY/DD-MM-YYYY
    #[arg(long, value_name = "DATES")]
    #[serde(rename = "paid_at")]
    paid: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    page: PageArgs,
}

const COLUMNS: &str = "payment: id, reference, status, amount as money, email, \
    provider: payment_service, created: created_at, paid: paid_at";
const FIELDS: &str = "payment: id, reference, status, message, amount as money, fees as money, \
    refunded as money, email, user: user_id, provider: payment_service, provider's reference: service_ref, \
    channel: payment_channel, checkout: checkout/url, created: created_at, paid: paid_at, \
    refund: refund/status";

impl HostAction for Action {
    async fn run(self, host: &HostClient) -> Result {
        let payment = match self {
            Action::List { company, filter } => {
                return host.list(&["companies", &company, "payments"], &filter, COLUMNS).await;
            }
            Action::Show(named) => {
                let mut payment = named.fetch(host).await?;
                payment["refund"] = match host.get(&named.path(&payment, "refund"), &()).await {
                    Err(failure) if failure.status == Some(404) => Value::Null,
                    refund => refund?,
                };
                payment
            }
            Action::Verify(named) => {
                let payment = named.fetch(host).await?;
                host.change(Method::POST, &named.path(&payment, "verify"), &json!({})).await?
            }
            Action::Refund { named, amount, force, yes } => {
                let payment = named.fetch(host).await?;
                let whole = money(&payment["amount"], &payment["currency"]);
                let what = match &amount {
                    Some(part) => {
                        format!("{} of {whole}", money(&json!(part), &payment["currency"]))
                    }
                    None if payment["refunded"].is_null() => whole,
                    None => format!("what is left of {whole}"),
                };
                let whose = format!("{}, {}", text(&payment["reference"]), text(&payment["email"]));
                yes.confirm(&format!("Refund {what} ({whose})?"))?;
                let path = named.path(&payment, "refund");
                let body = json!({ "amount": amount, "force": force });
                host.change(Method::POST, &path, &body).await?
            }
        };
        Ok(Report::record(payment, FIELDS))
    }
}

impl PaymentArgs {
    async fn fetch(&self, host: &HostClient) -> Result<Value> {
        let mut path = vec!["companies", &self.company, "payments"];
        match (&self.reference, &self.payment) {
            (Some(reference), _) => path.extend(["reference", reference]),
            (None, payment) => path.push(payment.as_deref().unwrap_or_default()),
        }
        host.get(&path, &()).await
    }

    fn path<'p>(&'p self, payment: &'p Value, resource: &'p str) -> [&'p str; 5] {
        let id = payment["id"].as_str().unwrap_or_default();
        ["companies", &self.company, "payments", id, resource]
    }
}
