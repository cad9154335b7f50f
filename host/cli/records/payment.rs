//! `tollhouse payment`.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    client::host::{HostAccess, HostClient, PageArgs},
    terminal::{
        confirmation::Confirmation,
        failure::Failure,
        output::{Column, Report, left, money, right, text},
    },
};

#[derive(Args)]
pub struct Payment {
    #[command(flatten)]
    access: HostAccess,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List a company's payments, newest first
    #[command(
        after_help = "Example:\n  tollhouse payment list 6b018eed9f8a1c2b3d4e5f60 --status pending --created 21-11-2026"
    )]
    List {
        /// The company's id
        company: String,
        #[command(flatten)]
        filter: PaymentFilter,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show a payment and its refund
    Show(PaymentArgs),
    /// Verify a payment with the provider now, and record the outcome
    Verify(PaymentArgs),
    /// Refund a successful payment in full
    Refund {
        #[command(flatten)]
        named: PaymentArgs,
        /// Allow a negative wallet balance
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        yes: Confirmation,
    },
}

/// A payment, by its id or by its reference.
#[derive(Args)]
struct PaymentArgs {
    /// The company's id
    company: String,
    /// The payment's id
    #[arg(required_unless_present = "reference")]
    payment: Option<String>,
    /// The payment's reference, instead of its id
    #[arg(long, conflicts_with = "payment")]
    reference: Option<String>,
}

#[derive(Args)]
struct PaymentFilter {
    /// Status: pending, success, failed or refunded
    #[arg(long)]
    status: Option<String>,
    /// Provider of the payment
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The user's `user_id`
    #[arg(long, value_name = "USER")]
    user_id: Option<String>,
    /// Day of creation in UTC, DD-MM-YYYY, or first and last day with a slash between
    #[arg(long, value_name = "DAYS")]
    created: Option<String>,
    /// Day of payment, or first and last day, in the same format
    #[arg(long, value_name = "DAYS")]
    paid: Option<String>,
}

impl Payment {
    pub async fn run(self) -> Result<Report, Failure> {
        let host = HostClient::new(&self.access)?;
        match self.action {
            Action::List { company, filter, page } => list(&host, &company, filter, &page).await,
            Action::Show(named) => show(&host, &named).await,
            Action::Verify(named) => {
                let payment = named.fetch(&host).await?;
                let path = ["companies", &*named.company, "payments", id(&payment), "verify"];
                let verified = host.send_json(Method::POST, &path, &json!({})).await?;
                Ok(Report::record(verified, &FIELDS))
            }
            Action::Refund { named, force, yes } => {
                let payment = named.fetch(&host).await?;
                let amount = money(&payment["amount"], &payment["currency"]);
                let whose = format!("{}, {}", text(&payment["reference"]), text(&payment["email"]));
                yes.confirm(&format!("Refund {amount} ({whose})?"))?;
                let path = ["companies", &*named.company, "payments", id(&payment), "refund"];
                let body = json!({ "force": force });
                let refunded = host.send_json(Method::POST, &path, &body).await?;
                Ok(Report::record(refunded, &FIELDS))
            }
        }
    }
}

fn id(payment: &Value) -> &str {
    payment["id"].as_str().unwrap_or_default()
}

impl PaymentArgs {
    async fn fetch(&self, host: &HostClient) -> Result<Value, Failure> {
        match (&self.payment, &self.reference) {
            (_, Some(reference)) => {
                host.get(&["companies", &self.company, "payments", "reference", reference], &[])
                    .await
            }
            (payment, None) => {
                let payment = payment.as_deref().unwrap_or_default();
                host.get(&["companies", &self.company, "payments", payment], &[]).await
            }
        }
    }
}

const FIELDS: [Column; 15] = [
    left("payment", |v| text(&v["id"])),
    left("reference", |v| text(&v["reference"])),
    left("status", |v| text(&v["status"])),
    left("message", |v| text(&v["message"])),
    left("amount", |v| money(&v["amount"], &v["currency"])),
    left("fees", |v| money(&v["fees"], &v["currency"])),
    left("email", |v| text(&v["email"])),
    left("user", |v| text(&v["user_id"])),
    left("provider", |v| text(&v["payment_service"])),
    left("provider's reference", |v| text(&v["service_ref"])),
    left("channel", |v| text(&v["payment_channel"])),
    left("checkout", |v| text(&v["checkout"]["url"])),
    left("created", |v| text(&v["created_at"])),
    left("paid", |v| text(&v["paid_at"])),
    left("refund", |v| text(&v["refund"]["status"])),
];

async fn show(host: &HostClient, named: &PaymentArgs) -> Result<Report, Failure> {
    let mut payment = named.fetch(host).await?;
    let path = ["companies", &*named.company, "payments", id(&payment), "refund"];
    payment["refund"] = match host.get(&path, &[]).await {
        Ok(refund) => refund,
        Err(Failure::Refused { status: Some(404), .. }) => Value::Null,
        Err(failure) => return Err(failure),
    };
    Ok(Report::record(payment, &FIELDS))
}

async fn list(
    host: &HostClient,
    company: &str,
    filter: PaymentFilter,
    page: &PageArgs,
) -> Result<Report, Failure> {
    let filter = [
        ("status", filter.status),
        ("provider", filter.provider),
        ("user_id", filter.user_id),
        ("created_at", filter.created),
        ("paid_at", filter.paid),
    ];
    let filter = filter.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let query: Vec<_> = page.query().into_iter().chain(filter).collect();
    let payments = host.get(&["companies", company, "payments"], &query).await?;
    let columns = [
        left("PAYMENT", |v| text(&v["id"])),
        left("REFERENCE", |v| text(&v["reference"])),
        left("STATUS", |v| text(&v["status"])),
        right("AMOUNT", |v| money(&v["amount"], &v["currency"])),
        left("EMAIL", |v| text(&v["email"])),
        left("PROVIDER", |v| text(&v["payment_service"])),
        left("CREATED", |v| text(&v["created_at"])),
        left("PAID", |v| text(&v["paid_at"])),
    ];
    Ok(Report::page(payments, &columns))
}
