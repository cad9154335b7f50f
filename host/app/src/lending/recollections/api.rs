//! The recollection endpoints of the specification.

use std::collections::BTreeSet;

use super::{
    CARD, CHECKOUT, DIRECT_DEBIT, FEATURE, Recollection, RecollectionId, Status, create as flow,
    not_found, store, view::View,
};
use crate::{
    lending::{
        loans::{self, LoanId},
        mandates::MandateId,
    },
    money::{
        cards::CardId,
        charges::{OwnerKind, choice::StoredChoice},
        prelude::*,
        routing,
    },
};

async fn respond_with_user(
    app: &App,
    recollection: Recollection,
    message: &str,
) -> Result<DataResponse<View<LoanId>>> {
    let user = recollection.user(app).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(recollection.view(user), message)
}

fields! {
    /// A repayment to record or to charge.
    Body NewRecollection(body, app: &App) {
        /// The loan's id.
        loan: Text<100> as LoanId => Ok(loan.into()),
        /// Default: the outstanding amount, which is also the maximum.
        #[schemars(extend("exclusiveMinimum" = 0))]
        amount: Option<Decimal> => match amount {
            Some(Minor(..=0)) => Err(body.must_be("amount", "greater than 0")),
            _ => Ok(amount),
        },
        /// `checkout`, `card` or `direct_debit`; for a manual recollection, any label (default:
        /// `cash`).
        payment_channel: Option<Text<40>>,
        /// `true` charges through a provider; `false` records money already received.
        with_provider: Flag
            => check_channel(body, with_provider, payment_channel.as_deref()),
        /// Required for the channel `checkout`.
        checkout: Option<Body<Pages>> where is_charged(CHECKOUT, with_provider, &payment_channel)
            => match &checkout {
                None if is_charged(CHECKOUT, with_provider, &payment_channel) => {
                    Err(Error::invalid("checkout details required"))
                }
                _ => Ok(checkout),
            },
        /// For the channel `card`: the card's id. Default: the customer's default card.
        card: Option<Text<100>> as Option<CardId>
            where is_charged(CARD, with_provider, &payment_channel)
            => Ok(card.map(CardId::from)),
        /// For the channel `direct_debit`: the mandate's id. Default: the customer's default
        /// mandate.
        direct_debit: Option<Text<100>> as Option<MandateId>
            where is_charged(DIRECT_DEBIT, with_provider, &payment_channel)
            => Ok(direct_debit.map(MandateId::from)),
        /// A unique reference of your choice, generated if omitted.
        reference: Option<Visible<100>>,
        /// Additional webhook endpoint for the recollection's events: https, except in development.
        callback_url: Option<HttpUrl>
            => check_event_url(app, body, "callback_url", callback_url),
        /// When the money was received; only for a manual recollection. Default: now.
        repaid_at: Option<Time> where !with_provider => match repaid_at {
            Some(at) if at > app.clock.now() => Err(body.must_be("repaid_at", "in the past")),
            _ => Ok(repaid_at),
        },
        metadata: Option<Object>,
    }
}

fields! {
    /// Return URLs of the checkout session.
    #[schemars(rename = "RecollectionPages")]
    Body Pages {
        success_url: ReturnUrl,
        cancel_url: Option<ReturnUrl>,
    }
}

impl NewRecollection {
    /// Returns whether a provider charges through this channel.
    pub fn is_by(&self, channel: &str) -> bool {
        is_charged(channel, self.with_provider, &self.payment_channel)
    }
}

fn is_charged(channel: &str, with_provider: bool, sent: &Option<String>) -> bool {
    with_provider && sent.as_deref() == Some(channel)
}

/// Checks the channel of a charge. A manual recollection may have any label.
fn check_channel(body: &Fields, with_provider: bool, channel: Option<&str>) -> Result<bool> {
    match channel {
        _ if !with_provider => Ok(with_provider),
        None => Err(body.required("payment_channel")),
        Some(CHECKOUT | CARD | DIRECT_DEBIT) => Ok(with_provider),
        Some(_) => Err(Error::invalid("invalid payment channel provided")),
    }
}

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewRecollection>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let mut order = NewRecollection::read(&body, &app)?;
    let run = run.name("rec");
    order.reference = order.reference.or_else(|| run.clone());
    let recollection = flow::create(&app, &company, order, run).await?;
    respond_with_user(&app, recollection, "Recollection created successfully").await
}

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(id): RecordId<RecollectionId>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let found = app.store.select(async |tx| store::find(tx, &company.id, &id).await).await?;
    let recollection = found.ok_or_else(not_found)?;
    respond_with_user(&app, recollection, "Recollection fetched successfully").await
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(reference): RecordId<String>,
) -> Result<DataResponse<View<loans::View>>> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| -> Result<_> {
        let found = store::find_by_reference(tx, &company.id, &reference).await?;
        let recollection = found.ok_or_else(not_found)?;
        let loan = loans::find(tx, &company.id, &recollection.loan_id).await?;
        let loan = loan.ok_or_else(|| Error::internal("loan of a recollection not found"))?;
        let entries = loans::list_installments(tx, &company.id, &loan.id).await?;
        let user = users::find_by_id(tx, &company.id, &recollection.user_key).await?;
        Ok((recollection, loan.view(entries), user))
    };
    let (recollection, loan, user) = app.store.read(read).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(recollection.view_with_loan(user, loan), "Recollection fetched successfully")
}

fields! {
    /// Filter and order of recollections. Default: newest first.
    Query RecollectionFilter {
        /// Page number, from 1.
        page: PageNumber,
        /// Maximum number of recollections per page; more than 1,000 counts as 1,000.
        limit: Limit<20, 1_000>,
        /// Returns up to `limit` records that follow the record with this id, in the order of
        /// `created_at`. No record is skipped or repeated if others are created meanwhile. Cannot
        /// be combined with `page` or with another order.
        after: Exactly,
        /// The `user_id` or internal id of the borrower.
        user_id: Exactly,
        /// The loan's id.
        loan: Exactly,
        /// A day in UTC, or the first and last day of a range.
        date_created_at as "date-created_at": Days,
        /// Takes precedence over `sort-updated_at`.
        sort_created_at as "sort-created_at": Direction,
        sort_updated_at as "sort-updated_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    query: Query<RecollectionFilter>,
) -> Result<DataResponse<ListPage<View<LoanId>>>> {
    company.check_feature(FEATURE)?;
    let filter = query.read()?;
    let page = PageRequest::new(filter.page, filter.limit, filter.after.as_deref())?;
    let read = async |tx: &mut Tx| -> Result<_> {
        let mut user_key = None;
        if let Some(user_id) = &filter.user_id {
            let user = users::find(tx, &company.id, user_id).await?;
            let Some(user) = user else {
                return Ok((page.to_list_page(0, Vec::new()), Vec::new()));
            };
            user_key = Some(user.id);
        }
        let found = store::list(tx, &company.id, user_key.as_ref(), &filter, page).await?;
        let borrowers = found.docs.iter().map(|found| found.user_key.clone());
        let borrowers = Vec::from_iter(BTreeSet::from_iter(borrowers));
        let users = users::find_by_ids(tx, &company.id, &borrowers).await?;
        Ok((found, users))
    };
    let (found, users) = app.store.read(read).await?;
    let now = app.clock.now();
    let listed = found.map(|found| {
        let user = users.iter().find(|user| user.id == found.user_key);
        found.view(user.cloned().map(|user| user.view(now)))
    });
    DataResponse::data(listed, "Recollections fetched successfully")
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| store::find_by_reference(tx, &company.id, &reference).await;
    let found = app.store.select(read).await?.ok_or_else(not_found)?;
    let recollection = match (found.with_provider, found.status) {
        (false, _) | (_, Status::Success) => found,
        (true, Status::Pending | Status::Failed) => {
            let verified =
                charges::verify_all::<Recollection>(&app, &company.id, &found.id).await?;
            if let Some(mismatch) = verified.mismatch {
                return Err(Error::Invalid(mismatch));
            }
            app.store.select(read).await?.ok_or_else(not_found)?
        }
    };
    if recollection.status == Status::Pending {
        return Err(Error::invalid("payment is still pending"));
    }
    respond_with_user(&app, recollection, "Recollection verified successfully").await
}

/// Returns why each provider of a recollection by checkout was chosen, oldest first. Empty if the
/// default provider was used. Members do not see estimates.
pub async fn routing(
    State(app): State<App>,
    actor: Actor,
    Path((company, recollection)): Path<(CompanyId, RecollectionId)>,
) -> Result<DataResponse<Vec<StoredChoice>>> {
    let find = async |tx: &mut Tx| store::find(tx, &company, &recollection).await;
    let found = app.store.select(find).await?.ok_or_else(not_found)?;
    routing::api::list_choices(&app, &actor, &company, OwnerKind::Recollection, &found.id).await
}
