//! The endpoints of mandates, for companies and operators.

use super::{
    FEATURE, Mandate, MandateId, MandateState, create as flow, lock_any, not_found, record::cancel,
    state::Fact, store, view::View,
};
use crate::money::prelude::*;

const MANDATES: providers::Feature = providers::Feature {
    provider: "a provider with mandates",
    is_supported: Provider::has_mandates,
};

choices! {
    MandateCurrency = &["NGN", "USD"];
    StatusFilter = &["created", "approved", "ready", "cancelled"];
}

fields! {
    /// A mandate to obtain from a user.
    #[schemars(rename = "NewDirectDebit")]
    Body NewMandate(body, app: &App, company: &Company) {
        /// The `user_id` or internal id of the account holder.
        user_id: Text<100>,
        currency: OneOf<MandateCurrency> as Currency => Ok(Currency::from(currency)),
        /// The bank account to debit, if the provider requires it. It is sent to the provider and
        /// not stored. Default: the user chooses it on the provider's page.
        account: Option<Body<DebitAccount>>,
        /// The maximum amount of one debit. Some providers require it.
        max_amount: Option<Amount>,
        /// The end of the mandate. Some providers require it.
        ends_at: Option<Time> => match ends_at {
            Some(at) if at <= app.clock.now() => Err(body.must_be("ends_at", "in the future")),
            _ => Ok(ends_at),
        },
        checkout: Body<Pages>,
        /// The provider. Default: the company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_a"]))]
        payment_service: Option<Text<100>> as String
            => providers::choose_provider_of(
                &MANDATES, app, company, body, &currency, payment_service.as_deref()
            ),
    }
}

fields! {
    /// A bank account to debit.
    #[schemars(rename = "DebitAccount")]
    Body DebitAccount {
        /// The code of the bank, as `/api/v1/account/banks/…` lists it.
        bank_code: Text<20>,
        account_number: Text<34>,
    }
}

fields! {
    /// Return URL of the page on which the user authorizes the mandate.
    #[schemars(rename = "DirectDebitPages")]
    Body Pages {
        success_url: ReturnUrl,
    }
}

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewMandate>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let order = NewMandate::read(&body, &app, &company)?;
    let mandate = flow::create(&app, &company, order, run.name("direct_debit")).await?;
    DataResponse::data(mandate.view(), "Direct debit created successfully")
}

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(id): RecordId<MandateId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let read = async |tx: &mut Tx| store::find(tx, &company.id, &id).await;
    let mandate = app.store.select(read).await?.ok_or_else(not_found)?;
    DataResponse::data(mandate.view(), "Direct debit fetched successfully")
}

fields! {
    /// Filter and order of a user's mandates. Default: newest first.
    Query MandateFilter {
        /// Default: all.
        status: OneOf<StatusFilter>,
        sort_created_at as "sort-created_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(user_id): RecordId<String>,
    query: Query<MandateFilter>,
) -> Result<DataResponse<Vec<View>>> {
    company.check_feature(FEATURE)?;
    let MandateFilter { status, sort_created_at } = query.read()?;
    let order = sort_created_at.unwrap_or(SortOrder::Descending);
    let read = async |tx: &mut Tx| -> Result<Vec<Mandate>> {
        let user = users::get_by_email_or_id(tx, &company.id, &user_id).await?;
        let state = status.as_deref();
        Ok(store::list_for_user(tx, &company.id, &user.id, state, order).await?)
    };
    let mandates = app.store.read(read).await?;
    let mandates = mandates.iter().map(Mandate::view).collect();
    DataResponse::data(mandates, "Direct debits retrieved successfully")
}

fields! {
    /// Options for deleting a mandate.
    Query DeletingMandate {
        /// `true` allows deleting the default mandate.
        delete_default: Truth,
    }
}

/// Hides a mandate, and cancels it at the provider in a job.
pub async fn delete(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(id): Path<MandateId>,
    query: Query<DeletingMandate>,
) -> Result<MessageResponse> {
    company.check_feature(FEATURE)?;
    let default_too = query.read()?.delete_default.unwrap_or(false);
    let db = app.store.clone();
    db.write(async move |tx| {
        let found = store::find(tx, &company.id, &id).await?.ok_or_else(not_found)?;
        let mandate = lock_any(tx, &found).await?.ok_or_else(not_found)?;
        if mandate.removed_at.is_some() {
            return Err(not_found());
        }
        if mandate.is_default && !default_too {
            return Err(Error::invalid("default direct debit cannot be deleted"));
        }
        let mandate = cancel(tx, &app, mandate, Fact::Deleted).await?;
        let removed_at = Some(app.clock.now());
        Ok(store::update(tx, &Mandate { removed_at, ..mandate }).await?)
    })
    .await?;
    Ok(MessageResponse("Direct debit deleted successfully"))
}

fields! {
    /// A mandate to debit a bank account, created in another system.
    Body DirectDebitChange {
        /// The account holder, by `user_id` or internal id.
        user_id: Text<100>,
        /// The provider that issued the mandate.
        #[schemars(extend("examples" = ["provider_a"]))]
        payment_service: Text<100>,
        /// The provider's credential for debits. It is sealed and never returned.
        token: Text<500>,
        /// The e-mail address with which the mandate was created.
        email: Email,
        bank: Option<Text<100>>,
        currency: Option<OneOf<MandateCurrency>>,
        /// `false` blocks all debits. Default: `true`.
        active: Option<Flag>,
        /// `true` makes it the user's default mandate for collections.
        default: Option<Flag>,
    }
}

pub async fn put(
    State(app): State<App>,
    actor: Actor,
    Path((company, id)): Path<(CompanyId, MandateId)>,
    body: Body<DirectDebitChange>,
) -> Result<DataResponse<View>> {
    companies::find(&app, &company).await?;
    let new = body.read()?;
    let active = new.active.unwrap_or(true);
    let is_default = new.default.unwrap_or(false) && active;
    match app.plugins.provider(&new.payment_service, &company) {
        Ok(plugin) if plugin.exports("direct-debit") => {}
        Err(busy @ Error::RetryLater { .. }) => return Err(busy),
        _ => return Err(body.must_be("payment_service", "a provider that debits bank accounts")),
    }
    let db = app.store.clone();
    db.write(async move |tx| {
        let user = users::get(tx, &company, &new.user_id).await?;
        // Keeps the default unique.
        users::lock(tx, &company, &user.id).await?;
        let mut mandate = Mandate {
            state: MandateState::Ready,
            payment_service: new.payment_service,
            currency: new.currency.map_or_else(|| "NGN".into(), Currency::from),
            email: new.email,
            bank: new.bank.unwrap_or_default(),
            active,
            is_default,
            ..Mandate::blank(&company, id, &user, app.clock.now())
        };
        mandate.token = mandate.seal_token(&app, &new.token);
        if is_default {
            store::clear_default(tx, &mandate).await?;
        }
        let mandate = store::upsert(tx, &mandate).await?;
        let detail = json!({ "direct_debit": mandate.id, "active": active, "default": is_default });
        audit::record(tx, &app, &actor, &company, "direct_debit.put", detail).await?;
        DataResponse::data(mandate.view(), "Direct debit saved successfully")
    })
    .await
}
