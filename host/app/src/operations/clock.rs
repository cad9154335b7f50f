//! Control of the clock in development mode.

use crate::state::prelude::*;

const MAX_SECONDS: i64 = 10 * 366 * 86_400;

fields! {
    /// Time by which the clock advances.
    Body Advance {
        seconds: Whole<0, MAX_SECONDS>,
    }
}

#[derive(Serialize, JsonSchema)]
pub struct Now {
    now: Timestamp,
}

/// Advances the clock, in development mode only, and runs all jobs and sweeps that become due.
pub async fn advance_clock(
    State(app): State<App>,
    body: Body<Advance>,
) -> Result<DataResponse<Now>> {
    if !app.settings.service.development {
        let message = "the clock can be advanced in development mode only";
        return Err(Error::Forbidden(message.to_owned()));
    }
    jobs::advance(&app, body.read()?.seconds).await?;
    for sweep in app.tables.sweeps {
        sweep(app.clone()).await?;
    }
    DataResponse::data(Now { now: app.clock.now() }, "Clock advanced successfully")
}
