//! The event secret of a company.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};

use super::change;
use crate::{state::prelude::*, tenants::companies::SECRET_OVERLAP_SECONDS};
use tollhouse_platform::values::id::CompanyId;

pub fn new_event_secret(app: &App) -> String {
    format!("whsec_{}", BASE64.encode(app.random.bytes::<32>()))
}

/// A new event secret.
#[derive(Serialize, JsonSchema)]
pub struct NewEventSecret {
    event_secret: String,
}

/// Replaces the event secret. The previous secret also signs events for one more day.
pub async fn rotate_event_secret(
    State(app): State<App>,
    Path(company): Path<CompanyId>,
) -> Result<DataResponse<NewEventSecret>> {
    let secret = new_event_secret(&app);
    let new = secret.clone();
    change(app, company, "company.event_secret.rotate", async move |_, app, company| {
        company.rotate_event_secret(&app.sealer, &new);
        let until = app.clock.now().plus_seconds(SECRET_OVERLAP_SECONDS);
        company.previous_event_secret_until = Some(until);
        Ok(())
    })
    .await?;
    DataResponse::data(NewEventSecret { event_secret: secret }, "Event secret rotated successfully")
}
