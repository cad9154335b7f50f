//! Three weeks of example data, made by requests to the host while its clock advances from the past.

use reqwest::Method;
use serde_json::{Value, json};
use tollhouse_platform::clock::{Clock, Timestamp};
use tollhouse_sandbox::{
    Simulators,
    faults::{Fault, FaultKind},
};

use crate::{
    Failure,
    setup::{Caller, text},
};

/// Number of days before the present at which the clock starts.
pub const DAYS: i64 = 21;
const DAY_SECONDS: i64 = 24 * 3600;

/// First name, last name, phone number.
const CUSTOMERS: [(&str, &str, &str); 10] = [
    ("Amaka", "Okafor", "+2348031000001"),
    ("Tunde", "Bakare", "+2348031000002"),
    ("Zainab", "Bello", "+2348031000003"),
    ("Chidi", "Eze", "+2348031000004"),
    ("Funke", "Adeyemi", "+2348031000005"),
    ("Ibrahim", "Musa", "+2348031000006"),
    ("Ngozi", "Nwosu", "+2348031000007"),
    ("Segun", "Ojo", "+2348031000008"),
    ("Halima", "Yusuf", "+2348031000009"),
    ("Emeka", "Obi", "+2348031000010"),
];
/// The customers with loans and saved cards.
const BORROWERS: usize = 5;
const AMOUNTS: [f64; 5] = [2_500.50, 4_999.0, 12_000.0, 800.0, 35_000.0];
const PROVIDERS: [&str; 4] = ["provider_a", "provider_a", "provider_b", "provider_c"];

/// Creates the example data and advances the clock.
pub struct Examples<'s> {
    pub company: Caller,
    pub company_id: &'s str,
    pub operator: &'s Caller,
    pub simulators: &'s Simulators,
    pub clock: &'s Clock,
    /// The time at which the examples end.
    pub now: Timestamp,
}

impl Examples<'_> {
    pub async fn create(&self) -> Result<(), Failure> {
        self.create_customers().await?;
        let mut number = 0;
        for day in 0..DAYS - 1 {
            let payments = 1 + day * 5 % 3;
            for _ in 0..payments {
                self.pay(number).await?;
                number += 1;
                self.advance(DAY_SECONDS * 9 / 10 / payments).await?;
            }
            self.send_code(usize::try_from(day)? % CUSTOMERS.len()).await?;
            self.advance(DAY_SECONDS / 10).await?;
        }
        self.advance(DAY_SECONDS / 2).await?;
        self.support_cases().await?;
        self.advance((self.now.0 - self.clock.now().0).max(0) / 1_000).await
    }

    async fn create_customers(&self) -> Result<(), Failure> {
        for (n, (first, last, phone)) in CUSTOMERS.iter().enumerate() {
            let user = json!({
                "user_id": user_id(n), "first_name": first, "last_name": last,
                "email": email(n), "phone": phone, "country": "Nigeria",
            });
            self.company.json(Method::POST, "/user/create", &user).await?;
        }
        for n in 0..BORROWERS {
            let card = json!({
                "user_id": user_id(n), "currency": "NGN",
                "checkout": { "success_url": self.simulators.url() },
            });
            let card = self.company.json(Method::POST, "/card/create", &card).await?;
            self.complete(&card, "success").await?;
            self.create_loan(n).await?;
        }
        self.advance(60).await
    }

    /// Creates a loan with an installment a week, the first of which is due after six days.
    async fn create_loan(&self, customer: usize) -> Result<(), Failure> {
        let due = |week: i64| {
            let at = self.clock.now().plus_seconds((6 + 7 * week) * DAY_SECONDS);
            json!({ "due_date": at.to_datetime().format("%Y-%m-%d").to_string(), "amount": 5_000 })
        };
        let loan = json!({
            "user_id": user_id(customer), "amount": 20_000, "currency": "NGN", "disbursed": true,
            "schedule": (0..4).map(due).collect::<Vec<_>>(),
        });
        let path = format!("/companies/{}/loans/loan-{}", self.company_id, customer + 1);
        self.operator.json(Method::PUT, &path, &loan).await.map(drop)
    }

    /// Makes a payment: eight of ten succeed, one fails, and one is not completed.
    async fn pay(&self, number: usize) -> Result<(), Failure> {
        let (customer, amount) = (number * 7 % CUSTOMERS.len(), AMOUNTS[number % AMOUNTS.len()]);
        let reference = format!("order-{:03}", number + 1);
        let provider = PROVIDERS[number % PROVIDERS.len()];
        let payment = self.initialize(&reference, customer, amount, provider).await?;
        match number % 10 {
            3 => self.complete(&payment, "failed").await,
            6 => Ok(()),
            _ => self.complete(&payment, "success").await,
        }
    }

    async fn initialize(
        &self,
        reference: &str,
        customer: usize,
        amount: f64,
        provider: &str,
    ) -> Result<Value, Failure> {
        let order = json!({
            "user_id": user_id(customer), "amount": amount, "currency": "NGN",
            "reference": reference, "payment_service": provider,
            "checkout": { "success_url": self.simulators.url() },
        });
        self.company.json(Method::POST, "/payment/initialize", &order).await
    }

    /// Completes a checkout as the payer.
    async fn complete(&self, created: &Value, outcome: &str) -> Result<(), Failure> {
        let url = text(&created["checkout"], "url")?;
        let body = json!({ "outcome": outcome });
        self.company.client.post(format!("{url}/complete")).json(&body).send().await?;
        Ok(())
    }

    async fn send_code(&self, customer: usize) -> Result<(), Failure> {
        let (.., phone) = CUSTOMERS[customer];
        let code = json!({
            "identifier": user_id(customer), "channels": ["email", "sms"],
            "email": email(customer), "phone": phone,
        });
        self.company.json(Method::POST, "/otp/send", &code).await.map(drop)
    }

    /// Creates cases for support: a customer who was charged twice, a refund, a disputed payment, a
    /// payment whose webhook was lost, and a text message that the gateway refused.
    async fn support_cases(&self) -> Result<(), Failure> {
        for reference in ["charged-twice-1", "charged-twice-2"] {
            let payment = self.initialize(reference, 3, 12_000.0, PROVIDERS[0]).await?;
            self.complete(&payment, "success").await?;
            self.advance(60).await?;
        }
        let refunded = self.initialize("returned-goods", 4, 4_999.0, PROVIDERS[0]).await?;
        self.complete(&refunded, "success").await?;
        self.advance(600).await?;
        let id = text(&refunded, "id")?;
        let refund = format!("/companies/{}/payments/{id}/refund", self.company_id);
        self.operator.json(Method::POST, &refund, &json!({})).await?;
        let disputed = self.initialize("disputed", 2, 35_000.0, PROVIDERS[0]).await?;
        self.complete(&disputed, "success").await?;
        self.advance(600).await?;
        self.simulators.paystack().open_dispute("disputed", None);
        self.simulators.faults().push(Fault::new("termii", FaultKind::Decline));
        self.send_code(8).await?;
        self.advance(60).await?;
        let lost = self.initialize("paid-but-pending", 6, 2_500.50, PROVIDERS[0]).await?;
        self.simulators.faults().push(Fault::new("notification", FaultKind::Cut));
        self.complete(&lost, "success").await
    }

    /// Advances the clock and runs what becomes due, but not beyond the end.
    async fn advance(&self, seconds: i64) -> Result<(), Failure> {
        let left = (self.now.0 - self.clock.now().0) / 1_000;
        let seconds = seconds.min(left);
        if seconds > 0 {
            let body = json!({ "seconds": seconds });
            self.operator.json(Method::POST, "/clock/advance", &body).await?;
        }
        Ok(())
    }
}

fn user_id(customer: usize) -> String {
    CUSTOMERS[customer].0.to_lowercase()
}

fn email(customer: usize) -> String {
    let (first, last, _) = CUSTOMERS[customer];
    format!("{}.{}@example.com", first.to_lowercase(), last.to_lowercase())
}
