//! Creates the companies, with all that their operations need.

use std::{sync::Arc, time::Duration};

use hyper::Method;
use serde_json::{Value, json};

use crate::{
    Mix, Operation, Options, Result,
    operations::{CODE, payment},
    receiver::Endpoint,
    target::{Company, Target},
};

/// In the major unit.
const WALLET: u64 = 1_000_000_000;
const LOAN: u64 = 1_000_000_000;
/// Payments of each company that can be fetched before others are initialized.
const FIRST_PAYMENTS: usize = 3;
const CARD_PATIENCE: Duration = Duration::from_secs(60);
const CARD_POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Target {
    pub async fn set_up(options: &Options, mix: &Mix) -> Result<Arc<Target>> {
        let mut target = Target::connect(options).await?;
        for n in 0..options.companies {
            let endpoint = match n {
                n if n < options.hanging => Endpoint::Hanging,
                n if n < options.hanging + options.failing => Endpoint::Failing,
                _ => Endpoint::Healthy,
            };
            let mut company = target.create_company(n, endpoint).await?;
            if mix.has(&[Operation::Repayment, Operation::Record]) {
                for borrower in 0..options.borrowers {
                    company.loans.push(target.create_borrower(&company, borrower).await?);
                }
            }
            if mix.has(&[Operation::Repayment]) {
                target.save_cards(&company, options.borrowers).await?;
            }
            if mix.has(&[Operation::Fetch, Operation::List]) {
                for first in 0..FIRST_PAYMENTS {
                    let order = payment(&format!("first-{first}"));
                    let path = "/payment/initialize";
                    target.call(Method::POST, path, &company, &order).await?;
                    target.remember(n, format!("first-{first}"));
                }
            }
            if mix.has(&[Operation::List]) {
                target.create_user(&company, "first").await?;
            }
            target.companies.push(company);
        }
        Ok(Arc::new(target))
    }

    async fn create_company(&self, n: usize, endpoint: Endpoint) -> Result<Company> {
        let new = json!({
            "name": format!("Load {n}"), "server": "test", "event_url": self.receiver.url(endpoint),
        });
        let created = self.operator(Method::POST, "/companies", &new).await?;
        let (id, key) = (text(&created, "id")?, text(&created, "api_key")?);
        let path = format!("/companies/{id}");
        self.operator(Method::PATCH, &path, &json!({ "fixed_otp": CODE })).await?;
        let credit = json!({ "amount": WALLET, "currency": "NGN", "key": "load" });
        self.operator(Method::POST, &format!("{path}/wallet/credit"), &credit).await?;
        let is_healthy = endpoint == Endpoint::Healthy;
        Ok(Company { id, key, loans: Vec::new(), is_healthy })
    }

    async fn create_user(&self, company: &Company, user_id: &str) -> Result<()> {
        let user = json!({
            "user_id": user_id, "first_name": "Ada", "last_name": "Obi",
            "email": format!("{user_id}@example.com"),
        });
        self.call(Method::POST, "/user/create", company, &user).await?;
        Ok(())
    }

    /// Creates a user with a loan. Returns the loan's id.
    async fn create_borrower(&self, company: &Company, n: usize) -> Result<String> {
        let (user_id, loan_id) = (format!("borrower-{n}"), format!("loan-{n}"));
        self.create_user(company, &user_id).await?;
        let loan = json!({
            "user_id": user_id, "amount": LOAN, "currency": "NGN", "disbursed": true,
            "schedule": [{ "due_date": "2099-01-31", "amount": LOAN }],
        });
        let path = format!("/companies/{}/loans/{loan_id}", company.id);
        self.operator(Method::PUT, &path, &loan).await?;
        Ok(loan_id)
    }

    /// Saves a card of each borrower, concurrently at the host.
    async fn save_cards(&self, company: &Company, borrowers: usize) -> Result<()> {
        let mut cards = Vec::new();
        for n in 0..borrowers {
            let card = json!({
                "user_id": format!("borrower-{n}"), "currency": "NGN",
                "checkout": { "success_url": "https://lender.example/saved" },
            });
            let card = self.call(Method::POST, "/card/create", company, &card).await?;
            self.pay(&card).await?;
            cards.push(text(&card, "id")?);
        }
        let saved = async {
            for card in cards {
                let path = format!("/card/fetch/{card}");
                while self.call(Method::GET, &path, company, &Value::Null).await?["valid"] != true {
                    tokio::time::sleep(CARD_POLL_INTERVAL).await;
                }
            }
            Ok(())
        };
        let waited = tokio::time::timeout(CARD_PATIENCE, saved).await;
        waited.map_err(|_| "cards were not saved: do the hosts run jobs?")?
    }
}

fn text(value: &Value, name: &str) -> Result<String> {
    let text = value[name].as_str().map(str::to_owned);
    text.ok_or_else(|| format!("the host's response has no {name}").into())
}
