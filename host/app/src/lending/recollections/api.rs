//! The recollection endpoints of the specification.

use axum::extract::State;

use super::{
    CARD, CHECKOUT, DIRECT_DEBIT, FEATURE, Recollection, Status,
    create::{self, RecollectionRequest, RepaymentMethod},
    not_found,
    settle::{self, RecollectionVerification, still_pending},
    store::{self, Filter},
    user_of,
    view::View,
};
use crate::{
    customers as users,
    lending::{loans, loans::LoanId, mandates::MandateId, recollections::RecollectionId},
    money::cards::CardId,
    state::App,
    tenants::{
        companies::{AuthenticatedCompany, Company, check_event_url},
        providers,
    },
};
use tollhouse_http::{
    IdempotentRequest,
    request::{
        body::Body,
        fields::{Decimal, Flag, HttpUrl, Object, ReturnUrl, Text, Time, Visible, fields},
        path::Path,
        query::{Days, Direction, Exactly, Limit, PageNumber, Query},
    },
    response::DataResponse,
};
use tollhouse_platform::{
    error::{Error, Result},
    store::Tx,
    values::{
        listing::{ListPage, PageRequest, TimeSort},
        money::Minor,
    },
};

/// The default channel of a manual recollection.
const CASH: &str = "cash";

fields! {
    /// A repayment to record or to charge.
    Body NewRecollection {
        /// The loan's id.
        loan: Text<100>,
        /// Default: the outstanding amount, which is also the maximum.
        #[schemars(extend("exclusiveMinimum" = 0))]
        amount: Option<Decimal>,
        /// `checkout`, `card` or `direct_debit`; for a manual recollection any label, else `cash`.
        payment_channel: Option<Text<40>>,
        /// `true` charges through a provider; `false` records money already received.
        with_provider: Flag,
        /// Required for the channel `checkout`.
        checkout: Option<Body<Pages>>,
        /// For the channel `card`: the card's id. Default: the customer's default card.
        card: Option<Text<100>>,
        /// For the channel `direct_debit`: its id. Default: the customer's default mandate.
        direct_debit: Option<Text<100>>,
        /// A unique reference of your choice, generated if omitted.
        reference: Option<Visible<100>>,
        /// Additional webhook endpoint for the recollection's events: https, except in development.
        callback_url: Option<HttpUrl>,
        /// When the money was received; only for a manual recollection. Default: now.
        repaid_at: Option<Time>,
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

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewRecollection>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let (loan, amount) = (body.loan()?, body.amount()?);
    if amount.is_some_and(|amount| amount <= Minor(0)) {
        return Err(body.must_be("amount", "greater than 0"));
    }
    let way = read_method(&app, &company, &body)?;
    let reference = body.reference()?;
    let callback_url = check_event_url(&app, &body, "callback_url", body.callback_url()?)?;
    let metadata = body.metadata()?.unwrap_or_default();
    let run = run.name("rec");
    let reference = reference.or_else(|| run.clone());
    let order = RecollectionRequest {
        loan: loan.into(),
        amount,
        method: way,
        reference,
        run,
        callback_url,
        metadata,
    };
    let recollection = create::create(&app, &company, order).await?;
    let user = user_of(&app, &recollection).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(recollection.view(user), "Recollection created successfully")
}

fn read_method(
    app: &App,
    company: &Company,
    body: &Body<NewRecollection>,
) -> Result<RepaymentMethod> {
    let channel = body.payment_channel()?;
    if !body.with_provider()? {
        let repaid_at = body.repaid_at()?;
        if repaid_at.is_some_and(|at| at > app.clock.now()) {
            return Err(body.must_be("repaid_at", "in the past"));
        }
        let channel = channel.unwrap_or_else(|| CASH.to_owned());
        return Ok(RepaymentMethod::Manual { channel, repaid_at });
    }
    match channel.as_deref() {
        None => Err(body.required("payment_channel")),
        Some(CHECKOUT) => {
            let details = || Error::invalid("checkout details required");
            let checkout = body.checkout()?;
            let checkout = checkout.ok_or_else(details)?;
            Ok(RepaymentMethod::Checkout {
                success_url: checkout.success_url()?,
                cancel_url: checkout.cancel_url()?,
                provider: providers::choose_provider(app, company, None, body)?,
            })
        }
        Some(CARD) => Ok(RepaymentMethod::Card(body.card()?.map(CardId::from))),
        Some(DIRECT_DEBIT) => {
            Ok(RepaymentMethod::DirectDebit(body.direct_debit()?.map(MandateId::from)))
        }
        Some(_) => Err(Error::invalid("invalid payment channel provided")),
    }
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let found = find_by_reference(&app, &company, &reference).await?;
    let recollection = match (found.with_provider, found.status) {
        (false, _) | (_, Status::Success) => found,
        (true, Status::Pending | Status::Failed) => match settle::verify(&app, found).await? {
            RecollectionVerification::Known(recollection) => *recollection,
            RecollectionVerification::Mismatch(_, what) => return Err(Error::invalid(what)),
        },
    };
    if recollection.status == Status::Pending {
        return Err(still_pending());
    }
    let user = user_of(&app, &recollection).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(recollection.view(user), "Recollection verified successfully")
}

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(id): Path<RecollectionId>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let found = app.store.select(async |tx| store::find(tx, &company.id, &id).await).await?;
    let recollection = found.ok_or_else(not_found)?;
    let user = user_of(&app, &recollection).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    DataResponse::data(recollection.view(user), "Recollection fetched successfully")
}

async fn find_by_reference(app: &App, company: &Company, reference: &str) -> Result<Recollection> {
    let read = async |tx: &mut Tx| store::find_by_reference(tx, &company.id, reference).await;
    app.store.select(read).await?.ok_or_else(not_found)
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(reference): Path<String>,
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
    Query Wanted {
        /// Page number, from 1.
        page: PageNumber,
        /// Maximum number of recollections per page; more than 1,000 counts as 1,000.
        limit: Limit<20, 1_000>,
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
    query: Query<Wanted>,
) -> Result<DataResponse<ListPage<View<LoanId>>>> {
    company.check_feature(FEATURE)?;
    let page = PageRequest { number: query.page()?, limit: query.limit()? };
    let user_id = query.user_id()?;
    let filter = Filter { user_key: None, loan: query.loan()?, created: query.date_created_at()? };
    let sort = TimeSort::new(query.sort_created_at()?, query.sort_updated_at()?);
    let read = async |tx: &mut Tx| -> Result<_> {
        let mut filter = filter;
        if let Some(user_id) = &user_id {
            let user = users::find(tx, &company.id, user_id).await?;
            let Some(user) = user else { return Ok((0, Vec::new(), Vec::new())) };
            filter.user_key = Some(user.id);
        }
        let (total, found) = store::list(tx, &company.id, &filter, sort, page).await?;
        let mut keys: Vec<_> = found.iter().map(|found| found.user_key.clone()).collect();
        keys.sort();
        keys.dedup();
        let users = users::find_by_ids(tx, &company.id, &keys).await?;
        Ok((total, found, users))
    };
    let (total, found, users) = app.store.read(read).await?;
    let now = app.clock.now();
    let docs = found.into_iter().map(|found| {
        let user = users.iter().find(|user| user.id == found.user_key);
        found.view(user.cloned().map(|user| user.view(now)))
    });
    DataResponse::data(
        page.to_list_page(total, docs.collect()),
        "Recollections fetched successfully",
    )
}
