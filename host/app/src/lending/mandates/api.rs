//! The operator API for mandates.

use super::{Mandate, MandateId, not_found, seal_context, store};
use crate::money::prelude::*;

choices! {
    MandateCurrency = &["NGN", "USD"];
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
) -> Result<DataResponse<Mandate>> {
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
        let now = app.clock.now();
        let mandate = Mandate {
            token: app.sealer.seal(&seal_context(&company, &id), &new.token),
            company_id: company.clone(),
            id,
            user_key: user.id,
            user_id: user.user_id,
            payment_service: new.payment_service,
            currency: new.currency.map_or_else(|| "NGN".into(), Currency::from),
            email: new.email,
            bank: new.bank.unwrap_or_default(),
            active,
            is_default,
            created_at: now,
            updated_at: now,
        };
        if is_default {
            store::clear_default(tx, &mandate).await?;
        }
        let mandate = store::upsert(tx, &mandate).await?;
        let detail = json!({ "direct_debit": mandate.id, "active": active, "default": is_default });
        audit::record(tx, &app, &actor, &company, "direct_debit.put", detail).await?;
        DataResponse::data(mandate, "Direct debit saved successfully")
    })
    .await
}

pub async fn fetch(
    State(app): State<App>,
    Path((company, id)): Path<(CompanyId, MandateId)>,
) -> Result<DataResponse<Mandate>> {
    let read = async |tx: &mut Tx| store::find(tx, &company, &id).await;
    let found = app.store.select(read).await?;
    let mandate = found.ok_or_else(not_found)?;
    DataResponse::data(mandate, "Direct debit fetched successfully")
}
