//! The steps of each operation. Every response is checked.

use std::{sync::Arc, time::Instant};

use hyper::Method;
use serde_json::{Value, json};

use crate::{
    Operation,
    client::Failure,
    receiver::Expected,
    recorder::{Recorder, Step},
    target::{Company, Target},
};

/// The one-time password of every company.
pub const CODE: &str = "123456";

/// Returns the request for a payment.
pub fn payment(reference: &str) -> Value {
    json!({
        "email": "ada@example.com", "amount": 5000, "currency": "NGN", "reference": reference,
        "checkout": { "success_url": "https://shop.example/done" },
    })
}

impl Operation {
    /// Returns the step that starts on the schedule.
    pub fn first_step(self, number: u64) -> Step {
        match self {
            Operation::Payment | Operation::Initialize => Step::Initialize,
            Operation::Otp => Step::OtpSend,
            Operation::Lookup => Step::Lookup,
            Operation::User => Step::UserCreate,
            Operation::Fetch => Step::PaymentFetch,
            // Not the lowest bit, which may determine the company.
            Operation::List if number & 32 == 0 => Step::PaymentList,
            Operation::List => Step::UserList,
            Operation::Repayment => Step::Repayment,
            Operation::Record => Step::Record,
        }
    }
}

/// One operation, as started by the schedule.
pub struct Run {
    pub operation: Operation,
    pub number: u64,
    pub intended: Instant,
    pub recorder: Arc<Recorder>,
    pub target: Arc<Target>,
}

/// Whether a response is as expected.
type Check<'c> = &'c (dyn Fn(&Value) -> bool + Sync);

impl Run {
    /// Runs all steps. A failure is recorded, and ends the operation.
    pub async fn run(self) {
        self.recorder.record_start(self.intended);
        let _ = match self.operation {
            Operation::Payment => self.pay().await,
            Operation::Initialize => self.initialize().await.map(drop),
            Operation::Otp => self.verify_code().await,
            Operation::Lookup => self.look_up().await,
            Operation::User => self.create_user().await,
            Operation::Fetch => self.fetch().await,
            Operation::List => self.list().await,
            Operation::Repayment => self.repay(Step::Repaid).await,
            Operation::Record => self.repay(Step::Recorded).await,
        };
    }

    /// Records that the operation did not start.
    pub fn drop_unsent(self) {
        let dropped = Err::<(), _>(Failure::Dropped);
        self.recorder.record(self.operation.first_step(self.number), self.intended, &dropped);
    }

    fn company_number(&self) -> usize {
        usize::try_from(self.number).unwrap_or_default() % self.target.companies.len()
    }

    fn company(&self) -> &Company {
        &self.target.companies[self.company_number()]
    }

    fn name(&self) -> String {
        format!("load-{}", self.number)
    }

    /// The first request of the operation.
    async fn first(
        &self,
        method: Method,
        path: &str,
        body: Value,
        check: Check<'_>,
    ) -> Result<Value, Failure> {
        let step = self.operation.first_step(self.number);
        self.request(step, self.intended, (method, path), &body, check).await
    }

    /// A request that follows from the response to another one, and is due now.
    async fn then(
        &self,
        step: Step,
        request: (Method, &str),
        body: Value,
        check: Check<'_>,
    ) -> Result<Value, Failure> {
        self.request(step, Instant::now(), request, &body, check).await
    }

    async fn request(
        &self,
        step: Step,
        intended: Instant,
        (method, path): (Method, &str),
        body: &Value,
        check: Check<'_>,
    ) -> Result<Value, Failure> {
        let response = self.target.call(method, path, self.company(), body).await;
        let checked = response.and_then(|data| match check(&data) {
            true => Ok(data),
            false => Err(unexpected(&data)),
        });
        self.recorder.record(step, intended, &checked);
        checked
    }

    async fn initialize(&self) -> Result<Value, Failure> {
        let (reference, path) = (self.name(), "/payment/initialize");
        let is_open = |data: &Value| data["checkout"]["url"].is_string();
        let body = payment(&reference);
        let begun = self.first(Method::POST, path, body, &is_open).await?;
        self.target.remember(self.company_number(), reference);
        Ok(begun)
    }

    async fn pay(&self) -> Result<(), Failure> {
        let begun = self.initialize().await?;
        let (now, reference) = (Instant::now(), self.name());
        self.expect(&reference, Step::Settled, now);
        let paid = self.target.pay(&begun).await;
        self.recorder.record(Step::Page, now, &paid);
        self.forget_after_failure(&reference, paid)
    }

    async fn verify_code(&self) -> Result<(), Failure> {
        let identifier = self.name();
        let order = json!({
            "identifier": identifier, "channels": ["email"],
            "email": format!("{identifier}@example.com"),
        });
        self.first(Method::POST, "/otp/send", order, &|_| true).await?;
        let code = json!({ "identifier": identifier, "token": CODE });
        self.then(Step::OtpVerify, (Method::POST, "/otp/verify"), code, &|_| true).await?;
        Ok(())
    }

    /// Each lookup is for another person, until all numbers have been used.
    async fn look_up(&self) -> Result<(), Failure> {
        let body = json!({ "bvn": format!("{:06}12345", self.number % 1_000_000) });
        let has_id = |data: &Value| data["id"].is_string();
        self.first(Method::POST, "/kyc/nigeria/bvn/lookup", body, &has_id).await?;
        Ok(())
    }

    async fn create_user(&self) -> Result<(), Failure> {
        let user_id = self.name();
        let email = format!("{user_id}@example.com");
        let is_same = |data: &Value| data["user_id"] == user_id && data["email"] == email;
        let user = json!({
            "user_id": user_id, "first_name": "Ada", "last_name": "Obi", "email": email,
        });
        self.first(Method::POST, "/user/create", user, &is_same).await?;
        let path = format!("/user/fetch/{user_id}");
        self.then(Step::UserFetch, (Method::GET, &path), Value::Null, &is_same).await?;
        Ok(())
    }

    async fn fetch(&self) -> Result<(), Failure> {
        let fetched = self.fetch_recent().await;
        self.recorder.record(Step::PaymentFetch, self.intended, &fetched);
        fetched
    }

    /// Fetches a payment, of whichever company.
    async fn fetch_recent(&self) -> Result<(), Failure> {
        let none = || Failure::Unexpected("there is no payment to fetch".to_owned());
        let (company, reference) = self.target.recall(self.number).ok_or_else(none)?;
        let (path, company) =
            (format!("/payment/fetch/reference/{reference}"), &self.target.companies[company]);
        let data = self.target.call(Method::GET, &path, company, &Value::Null).await?;
        match data["reference"] == reference {
            true => Ok(()),
            false => Err(unexpected(&data)),
        }
    }

    async fn list(&self) -> Result<(), Failure> {
        let path = match self.operation.first_step(self.number) {
            Step::PaymentList => "/payment/list?limit=20",
            _ => "/user/list?limit=20",
        };
        let has_rows = |data: &Value| data["docs"].as_array().is_some_and(|rows| !rows.is_empty());
        self.first(Method::GET, path, Value::Null, &has_rows).await?;
        Ok(())
    }

    /// Repays a loan, by card or in cash.
    async fn repay(&self, effect: Step) -> Result<(), Failure> {
        let by_card = effect == Step::Repaid;
        let (reference, loans) = (self.name(), &self.company().loans);
        // Companies take turns by the number too.
        let turn = usize::try_from(self.number).unwrap_or_default() / self.target.companies.len();
        let loan = &loans[turn % loans.len()];
        let order = json!({
            "loan": loan, "amount": 100, "with_provider": by_card, "reference": reference,
            "payment_channel": if by_card { "card" } else { "cash" },
        });
        self.expect(&reference, effect, self.intended);
        let is_same = |data: &Value| data["reference"] == reference;
        let path = "/recollection/create";
        let created = self.first(Method::POST, path, order, &is_same).await;
        self.forget_after_failure(&reference, created.map(drop))
    }

    /// Expects the event of an effect, unless the company's endpoint does not respond.
    fn expect(&self, reference: &str, step: Step, since: Instant) {
        if self.company().is_healthy {
            let recorder = self.recorder.clone();
            self.target.receiver.expect(reference, Expected { step, since, recorder });
        }
    }

    fn forget_after_failure(
        &self,
        reference: &str,
        result: Result<(), Failure>,
    ) -> Result<(), Failure> {
        if result.is_err() {
            self.target.receiver.forget(reference);
        }
        result
    }
}

fn unexpected(data: &Value) -> Failure {
    Failure::Unexpected(data.to_string().chars().take(200).collect())
}
