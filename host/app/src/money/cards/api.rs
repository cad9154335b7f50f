//! The card endpoints of the specification.

use super::{
    Card, CardId, FEATURE, Status, cleanup, create as flow, lock, not_found, store,
    view::{Created, View},
};
use crate::money::{prelude::*, routing::Selection};

async fn find_or_not_found(app: &App, company: &Company, id: &CardId) -> Result<Card> {
    let found = app.store.select(async |tx| store::find(tx, &company.id, id).await).await?;
    found.ok_or_else(not_found)
}

const SAVED_CARDS: providers::Feature = providers::Feature {
    provider: "a provider that saves cards",
    is_supported: providers::saves_cards,
};

choices! {
    CardCurrency = &["NGN", "USD"];
}

fields! {
    /// A card to save.
    Body NewCard(body, app: &App, company: &Company) {
        /// The `user_id` or internal id of the card's user.
        user_id: Text<100>,
        currency: OneOf<CardCurrency> as Currency => Ok(Currency::from(currency)),
        checkout: Body<Pages>,
        /// The provider. Default: the one that the company's routing policy chooses, else the
        /// company's provider, else the service's.
        #[schemars(extend("examples" = ["provider_a"]))]
        payment_service: Option<Text<100>> as Selection
            => select_provider(app, company, body, &currency, payment_service.as_deref()),
    }
}

fields! {
    /// Return URLs of the checkout session.
    #[schemars(rename = "CardPages")]
    Body Pages {
        success_url: ReturnUrl,
        cancel_url: Option<ReturnUrl>,
    }
}

fn select_provider(
    app: &App,
    company: &Company,
    body: &Fields,
    currency: &str,
    sent: Option<&str>,
) -> Result<Selection> {
    Selection::new(company, sent, || {
        providers::choose_provider_of(&SAVED_CARDS, app, company, body, currency, sent)
    })
}

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewCard>,
) -> Result<DataResponse<Created>> {
    company.check_feature(FEATURE)?;
    let order = NewCard::read(&body, &app, &company)?;
    let card = flow::create(&app, &company, order, run.name("card")).await?;
    DataResponse::data(card.created(), "Card created successfully")
}

pub async fn fetch(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let card = find_or_not_found(&app, &company, &card).await?;
    DataResponse::data(card.view(), "Card fetched successfully")
}

fields! {
    /// Filter and order of a user's cards. Default: newest first.
    Query CardFilter {
        /// `true`: only valid cards; `false`: only other cards.
        valid: Truth,
        sort_created_at as "sort-created_at": Direction,
    }
}

pub async fn list(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    RecordId(user_id): RecordId<String>,
    query: Query<CardFilter>,
) -> Result<DataResponse<Vec<View>>> {
    company.check_feature(FEATURE)?;
    let CardFilter { valid, sort_created_at } = query.read()?;
    let order = sort_created_at.unwrap_or(SortOrder::Descending);
    let read = async |tx: &mut Tx| -> Result<Vec<Card>> {
        let user = users::get_by_email_or_id(tx, &company.id, &user_id).await?;
        Ok(store::list_for_user(tx, &company.id, &user.id, valid, order).await?)
    };
    let cards = app.store.read(read).await?;
    DataResponse::data(cards.iter().map(Card::view).collect(), "Cards retrieved successfully")
}

pub async fn set_default(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let db = app.store.clone();
    db.write(async move |tx| {
        let mut card = lock(tx, &company.id, &card).await?;
        if !card.is_valid() {
            return Err(Error::invalid("only validated card can be set as default"));
        }
        let now = app.clock.now();
        let others = store::list_other_valid(tx, &card).await?;
        for other in others.into_iter().filter(|other| other.is_default) {
            store::update(tx, &Card { is_default: false, updated_at: now, ..other }).await?;
        }
        if !card.is_default {
            card.is_default = true;
            card.updated_at = now;
            store::update(tx, &card).await?;
        }
        DataResponse::data(card.view(), "Default card set successfully")
    })
    .await
}

fields! {
    /// Options for deleting a card.
    Query Deleting {
        /// `true` allows deleting the default card.
        delete_default: Truth,
    }
}

pub async fn delete(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
    query: Query<Deleting>,
) -> Result<MessageResponse> {
    company.check_feature(FEATURE)?;
    let default_too = query.read()?.delete_default.unwrap_or(false);
    let db = app.store.clone();
    db.write(async move |tx| cleanup::delete(tx, &app, &company.id, &card, default_too).await)
        .await?;
    Ok(MessageResponse("Card deleted successfully"))
}

pub async fn verify(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    Path(card): Path<CardId>,
) -> Result<DataResponse<View>> {
    company.check_feature(FEATURE)?;
    let card = find_or_not_found(&app, &company, &card).await?;
    match card.status {
        Status::Pending => {}
        Status::Valid => return Err(Error::invalid("card already verified")),
        Status::Failed | Status::Duplicate | Status::Unusable => return Err(not_verified(card)),
    }
    let verified = charges::verify_all::<Card>(&app, &company.id, &card.id).await?;
    let card = find_or_not_found(&app, &company, &card.id).await?;
    match (card.status, verified.mismatch) {
        (Status::Pending, Some(mismatch)) => Err(Error::Invalid(mismatch)),
        (Status::Pending, None) => Err(Error::invalid("payment still pending")),
        (Status::Valid, _) => DataResponse::data(card.view(), "Card verified successfully"),
        (Status::Failed | Status::Duplicate | Status::Unusable, _) => Err(not_verified(card)),
    }
}

/// The error for a verification that did not yield a valid card.
fn not_verified(card: Card) -> Error {
    let message = card.message.filter(|message| !message.is_empty());
    Error::Invalid(message.unwrap_or_else(|| "card verification failed".to_owned()))
}
