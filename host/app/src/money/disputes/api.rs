//! The endpoints for disputes.

use super::{Dispute, DisputeState, record::record, store};
use crate::money::{
    charges::{DISPUTES_JOB, OwnerKind},
    prelude::*,
};
use tollhouse_plugins::{DisputeAnswer, DisputeKey, Evidence};

/// Lease of the request that answers a dispute, longer than any plugin call.
const ANSWER_SECONDS: i64 = 120;

choices! {
    StateFilter = &["open", "answered", "won", "lost"];
    Action = &["accept", "contest"];
}

fields! {
    /// Filter and cursor of disputes.
    Query DisputeList {
        /// Default: all.
        state: OneOf<StateFilter>,
        /// The `next` value of the previous response. Default: the oldest dispute.
        after: Cursor,
        /// Maximum number of disputes per response; more than 1,000 counts as 1,000.
        limit: Limit<100, 1_000>,
    }
}

/// A page of disputes.
#[derive(Serialize, JsonSchema)]
pub struct Disputes {
    /// Oldest first.
    disputes: Vec<Dispute>,
    /// Cursor of the next page; `null` at the end.
    next: Option<String>,
}

async fn page(
    app: &App,
    company: Option<&CompanyId>,
    filter: DisputeList,
) -> Result<DataResponse<Disputes>> {
    let DisputeList { state, after, limit } = filter;
    let read = async |tx: &mut Tx| store::list(tx, company, state.as_deref(), &after, limit).await;
    let disputes = app.store.select(read).await?;
    let next = next_cursor(&disputes, limit, |dispute| &dispute.id);
    DataResponse::data(Disputes { disputes, next }, "Disputes fetched successfully")
}

pub async fn list(
    State(app): State<App>,
    query: Query<DisputeList>,
) -> Result<DataResponse<Disputes>> {
    page(&app, None, query.read()?).await
}

pub async fn list_of_company(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    query: Query<DisputeList>,
) -> Result<DataResponse<Disputes>> {
    companies::find(&app, &company).await?;
    page(&app, Some(&company), query.read()?).await
}

fn not_found() -> Error {
    Error::not_found("dispute not found")
}

pub async fn fetch(
    State(app): State<App>,
    Path((company, dispute)): Path<(CompanyId, String)>,
) -> Result<DataResponse<Dispute>> {
    let find = async |tx: &mut Tx| store::find(tx, &company, &dispute).await;
    let found = app.store.select(find).await?.ok_or_else(not_found)?;
    DataResponse::data(found, "Dispute fetched successfully")
}

fields! {
    /// The answer to a dispute. The evidence is sent to the provider, and not stored.
    Body AnswerDispute {
        /// `accept`: the payer gets the disputed amount. `contest`: the bank decides based on the
        /// evidence; `customer_name`, `customer_email` and `service` are then required.
        action: OneOf<Action>,
        /// A message to the provider and the bank.
        message: Text<1_000>,
        customer_name: Option<Text<100>>,
        customer_email: Option<Email>,
        customer_phone: Option<Phone>,
        /// The goods or service that the payer received.
        service: Option<Text<2_000>>,
        /// A link to a document, such as a receipt or an agreement.
        document_url: Option<HttpUrl>,
    }
}

impl AnswerDispute {
    /// Returns the evidence of a contested dispute. 400 if a part of it is missing.
    fn evidence(&self) -> Result<Option<Evidence>> {
        if self.action == "accept" {
            return Ok(None);
        }
        let required = |value: &Option<String>, name: &str| {
            let missing = || Error::Invalid(format!("the {name} field is required"));
            value.clone().ok_or_else(missing)
        };
        Ok(Some(Evidence {
            customer_name: required(&self.customer_name, "customer_name")?,
            customer_email: required(&self.customer_email, "customer_email")?,
            customer_phone: self.customer_phone.clone(),
            service: required(&self.service, "service")?,
            document_url: self.document_url.clone(),
        }))
    }
}

/// Answers a dispute at the provider, and returns it as the provider then reports it.
pub async fn answer(
    State(app): State<App>,
    actor: Actor,
    Path((company, dispute)): Path<(CompanyId, String)>,
    body: Body<AnswerDispute>,
) -> Result<DataResponse<Dispute>> {
    let answer = body.read()?;
    let evidence = answer.evidence()?;
    let find = async |tx: &mut Tx| store::find(tx, &company, &dispute).await;
    let found = app.store.select(find).await?.ok_or_else(not_found)?;
    let verifier = ChargeVerifier::open(&app, &company, &found.provider, &found.account_id).await?;
    let ChargeVerifier { provider, credentials } = verifier;
    if !provider.has_disputes() {
        return Err(Error::Invalid(format!("{} does not support disputes", found.provider)));
    }
    let claimed = claim(&app, actor, &found, answer.action.clone()).await?;
    let order = DisputeAnswer {
        key: DisputeKey {
            id: claimed.provider_id.clone(),
            service_ref: claimed.service_ref.clone(),
            transaction_id: claimed.transaction_id.clone(),
        },
        amount: Money { minor: claimed.amount, currency: claimed.currency.clone() },
        evidence,
        message: answer.message,
    };
    match provider.answer_dispute(&credentials, &order).await {
        Ok(seen) => {
            let now = app.clock.now();
            record(&app, &company, &claimed.charge_id, now, seen).await?;
            let answered = release(&app, &claimed, false).await?;
            DataResponse::data(answered, "Dispute answered successfully")
        }
        Err(error) => {
            release(&app, &claimed, true).await?;
            if error.is_certain_rejection() {
                let (provider, code) = (&*claimed.provider, &*error.fault.code);
                tracing::warn!(provider, code, "the provider refused the answer to a dispute");
                return Err(Error::Invalid(format!("{provider} refused the answer")));
            }
            Err(error.into_error(&claimed.provider))
        }
    }
}

/// Acquires the lease of the answer and records the audit entry.
async fn claim(app: &App, actor: Actor, found: &Dispute, action: String) -> Result<Dispute> {
    let (db, app) = (app.store.clone(), app.clone());
    let (company, id, charge_id) =
        (found.company_id.clone(), found.id.clone(), found.charge_id.clone());
    db.write(async move |tx| {
        let now = app.clock.now();
        charges::lock_charge(tx, &company, &charge_id).await?.ok_or_else(not_found)?;
        let mut dispute = store::find(tx, &company, &id).await?.ok_or_else(not_found)?;
        if dispute.state != DisputeState::Open {
            return Err(Error::invalid("the dispute is not open"));
        }
        if dispute.answer_until.is_some_and(|until| until > now) {
            let message = "another request to answer this dispute is in progress";
            return Err(charges::conflict(dispute.answer_until, now, message));
        }
        dispute.answer_until = Some(now.plus_seconds(ANSWER_SECONDS));
        store::update(tx, &dispute).await?;
        let mut detail = json!({ "dispute": id, "action": action });
        if dispute.owner_kind == OwnerKind::Payment {
            detail["payment"] = json!(dispute.owner_id);
        }
        audit::record(tx, &app, &actor, &company, "dispute.answer", detail).await?;
        Ok(dispute)
    })
    .await
}

/// Releases the lease and returns the dispute. `is_unsure`: the answer may have arrived, so the
/// dispute is queried.
async fn release(app: &App, claimed: &Dispute, is_unsure: bool) -> Result<Dispute> {
    let (db, now, claimed) = (app.store.clone(), app.clock.now(), claimed.clone());
    db.write(async move |tx| {
        let Dispute { company_id, charge_id, id, answer_until, .. } = &claimed;
        charges::lock_charge(tx, company_id, charge_id).await?;
        let mut dispute = store::find(tx, company_id, id).await?.ok_or_else(not_found)?;
        if dispute.answer_until == *answer_until {
            dispute.answer_until = None;
            store::update(tx, &dispute).await?;
        }
        if is_unsure {
            jobs::enqueue(tx, company_id, DISPUTES_JOB, charge_id, now).await?;
        }
        Ok(dispute)
    })
    .await
}
