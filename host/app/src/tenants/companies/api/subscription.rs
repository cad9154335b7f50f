//! The subscription of a company.

use super::change;
use crate::{
    state::prelude::*,
    tenants::{companies::View, plans},
};
use tollhouse_platform::values::id::CompanyId;

choices! {
    Feature = &plans::FEATURES;
}

fields! {
    /// Changes to a subscription.
    Body SubscriptionChange {
        active: Option<Flag>,
        /// Time at which the subscription ends; `null` for no end.
        expires_at: Clearable<Time>,
        /// Features of the plan; `null` for all.
        features: Clearable<ListOf<Feature>>,
    }
}

/// Changes the named fields only.
pub async fn subscribe(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
    body: Body<SubscriptionChange>,
) -> Result<DataResponse<View>> {
    let new = body.read()?;
    change(app, company, "company.subscription", async move |_, _, company| {
        company.subscription_active = new.active.unwrap_or(company.subscription_active);
        new.expires_at.apply(&mut company.subscription_expires_at);
        if let Change::To(features) = new.features {
            company.features = features.map(Json);
        }
        Ok(())
    })
    .await?
    .to_response("Subscription updated successfully")
}
