//! The requests of the recollections section of the specification.

use axum::extract::State;

use super::{
    CARD, CHECKOUT, DIRECT_DEBIT, FEATURE, Recollection, Status,
    create::{self, Order, Way},
    missing,
    settle::{self, Settled, still_pending},
    store::{self, Filter, Sort},
    user_of,
    view::{LoanId, View},
};
use crate::{
    app::App,
    companies::Company,
    error::{Error, Result},
    events,
    http::{
        Caller, Run,
        answer::Answer,
        body::Body,
        fields::{Decimal, Flag, HttpUrl, Object, ReturnUrl, Text, Time, Visible, fields},
        path::Path,
        query::{Days, Direction, Exactly, Limit, PageNumber, Query},
    },
    listing::{self, Listed, Page},
    loans,
    money::Minor,
    providers,
    store::Tx,
    users,
};

/// What a manual one says of how the money came, if nothing is said.
const CASH: &str = "cash";

fields! {
    /// A repayment to record, or to charge.
    Body NewRecollection {
        /// The loan's id.
        loan: Text<100>,
        /// If it is left out, all that is owed; never more.
        #[schemars(extend("exclusiveMinimum" = 0))]
        amount: Option<Decimal>,
        /// `checkout`, `card` or `direct_debit`; for a manual one any label, `cash` if it is left out.
        payment_channel: Option<Text<40>>,
        /// Whether it is charged through a provider; else the money is there already.
        with_provider: Flag,
        /// For the channel `checkout`.
        checkout: Option<Body<Pages>>,
        /// For the channel `card`: the card's id; if it is left out, the customer's default card.
        card: Option<Text<100>>,
        /// For the channel `direct_debit`: its id; if it is left out, the customer's default one.
        direct_debit: Option<Text<100>>,
        /// Of your making, and used once. If it is left out, one is made.
        reference: Option<Visible<100>>,
        /// Where events about this recollection go, too: an https URL, except in development.
        callback_url: Option<HttpUrl>,
        /// When the money came; for a manual one. If it is left out, now.
        repaid_at: Option<Time>,
        metadata: Option<Object>,
    }
}

fields! {
    /// Where the customer goes from the page on which they pay.
    #[schemars(rename = "RecollectionPages")]
    Body Pages {
        success_url: ReturnUrl,
        cancel_url: Option<ReturnUrl>,
    }
}

pub async fn create(
    State(app): State<App>,
    Caller(company): Caller,
    run: Run,
    body: Body<NewRecollection>,
) -> Result<Answer<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let (loan, amount) = (body.loan()?, body.amount()?);
    if amount.is_some_and(|amount| amount <= Minor(0)) {
        return Err(body.must_be("amount", "greater than 0"));
    }
    let way = way(&app, &company, &body)?;
    let reference = body.reference()?;
    let callback_url = events::destination(&app, &body, "callback_url", body.callback_url()?)?;
    let metadata = body.metadata()?.unwrap_or_default();
    let run = run.name("rec");
    let reference = reference.or_else(|| run.clone());
    let order = Order { loan, amount, way, reference, run, callback_url, metadata };
    let recollection = create::create(&app, &company, order).await?;
    let user = user_of(&app, &recollection).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    Answer::data(recollection.view(user), "Recollection created successfully")
}

fn way(app: &App, company: &Company, body: &Body<NewRecollection>) -> Result<Way> {
    let channel = body.payment_channel()?;
    if !body.with_provider()? {
        let repaid_at = body.repaid_at()?;
        if repaid_at.is_some_and(|at| at > app.clock.now()) {
            return Err(body.must_be("repaid_at", "in the past"));
        }
        let channel = channel.unwrap_or_else(|| CASH.to_owned());
        return Ok(Way::Manual { channel, repaid_at });
    }
    match channel.as_deref() {
        None => Err(body.required("payment_channel")),
        Some(CHECKOUT) => {
            let details = || Error::invalid("checkout details required");
            let checkout = body.checkout()?;
            let checkout = checkout.ok_or_else(details)?;
            Ok(Way::Checkout {
                success_url: checkout.success_url()?,
                cancel_url: checkout.cancel_url()?,
                provider: providers::chosen(app, company, None, body)?,
            })
        }
        Some(CARD) => Ok(Way::Card(body.card()?)),
        Some(DIRECT_DEBIT) => Ok(Way::DirectDebit(body.direct_debit()?)),
        Some(_) => Err(Error::invalid("invalid payment channel provided")),
    }
}

pub async fn verify(
    State(app): State<App>,
    Caller(company): Caller,
    Path(reference): Path<String>,
) -> Result<Answer<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let found = by_reference(&app, &company, &reference).await?;
    let recollection = match (found.with_provider, found.status) {
        (false, _) | (_, Status::Success) => found,
        (true, Status::Pending | Status::Failed) => match settle::verify(&app, found).await? {
            Settled::Known(recollection) => *recollection,
            Settled::Mismatch(_, what) => return Err(Error::invalid(what)),
        },
    };
    if recollection.status == Status::Pending {
        return Err(still_pending());
    }
    let user = user_of(&app, &recollection).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    Answer::data(recollection.view(user), "Recollection verified successfully")
}

pub async fn fetch(
    State(app): State<App>,
    Caller(company): Caller,
    Path(id): Path<String>,
) -> Result<Answer<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let found = app.store.select(async |tx| store::find(tx, &company.id, &id).await).await?;
    let recollection = found.ok_or_else(missing)?;
    let user = user_of(&app, &recollection).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    Answer::data(recollection.view(user), "Recollection fetched successfully")
}

async fn by_reference(app: &App, company: &Company, reference: &str) -> Result<Recollection> {
    let read = async |tx: &mut Tx| store::by_reference(tx, &company.id, reference).await;
    app.store.select(read).await?.ok_or_else(missing)
}

pub async fn fetch_by_reference(
    State(app): State<App>,
    Caller(company): Caller,
    Path(reference): Path<String>,
) -> Result<Answer<View<loans::View>>> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| -> Result<_> {
        let found = store::by_reference(tx, &company.id, &reference).await?;
        let recollection = found.ok_or_else(missing)?;
        let loan = loans::find(tx, &company.id, &recollection.loan_id).await?;
        let loan = loan.ok_or_else(|| Error::internal("a recollection has no loan"))?;
        let entries = loans::entries(tx, &company.id, &loan.id).await?;
        let user = users::find_by_id(tx, &company.id, &recollection.user_key).await?;
        Ok((recollection, loan.view(entries), user))
    };
    let (recollection, loan, user) = app.store.read(read).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    Answer::data(recollection.inline(user, loan), "Recollection fetched successfully")
}

fields! {
    /// Which recollections, and in which order: the newest first, unless something else is asked for.
    Query Wanted {
        /// Which page, counted from 1.
        page: PageNumber,
        /// How many a page holds; more than 1,000 counts as 1,000.
        limit: Limit<20, 1_000>,
        /// Of the user who owes, yours or the internal one.
        user_id: Exactly,
        /// The loan's id.
        loan: Exactly,
        /// A day in UTC, or the first and the last of several.
        date_created_at as "date-created_at": Days,
        /// Comes before `sort-updated_at`.
        sort_created_at as "sort-created_at": Direction,
        sort_updated_at as "sort-updated_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    Caller(company): Caller,
    query: Query<Wanted>,
) -> Result<Answer<Listed<View<LoanId>>>> {
    company.check_feature(FEATURE)?;
    let page = Page { number: query.page()?, limit: query.limit()? };
    let user_id = query.user_id()?;
    let filter = Filter { user_key: None, loan: query.loan()?, created: query.date_created_at()? };
    let sort = match (query.sort_created_at()?, query.sort_updated_at()?) {
        (None, Some(order)) => Sort::Updated(order),
        (Some(order), _) => Sort::Created(order),
        (None, None) => Sort::Created(listing::Order::Descending),
    };
    let read = async |tx: &mut Tx| -> Result<_> {
        let mut filter = filter;
        if let Some(user_id) = &user_id {
            let user = users::find(tx, &company.id, user_id).await?;
            let Some(user) = user else { return Ok((0, Vec::new(), Vec::new())) };
            filter.user_key = Some(user.id);
        }
        let (total, found) = store::list(tx, &company.id, &filter, sort, page).await?;
        let mut keys: Vec<String> = found.iter().map(|found| found.user_key.clone()).collect();
        keys.sort();
        keys.dedup();
        let users = users::find_all(tx, &company.id, &keys).await?;
        Ok((total, found, users))
    };
    let (total, found, users) = app.store.read(read).await?;
    let now = app.clock.now();
    let docs = found.into_iter().map(|found| {
        let user = users.iter().find(|user| user.id == found.user_key);
        found.view(user.cloned().map(|user| user.view(now)))
    });
    Answer::data(page.of(total, docs.collect()), "Recollections fetched successfully")
}
