//! Charging a saved card or a mandate, repeatably: the provider accepts each reference once.

use super::{CARD, Recollection, create::metadata_of, settle};
use crate::{
    lending::mandates,
    money::{cards, prelude::*},
};
use tollhouse_plugins::{CardOrder, DebitOrder};

const NARRATION: &str = "Loan repayment";

/// Requests the charge and returns the current recollection. After an unknown outcome it stays
/// pending, and its job continues.
///
/// A repeated attempt never fails the recollection, because the first one may still succeed.
pub async fn attempt(
    app: &App,
    recollection: Recollection,
    attempt: Attempt,
) -> Result<Recollection> {
    let is_first = attempt == Attempt::First;
    let Some((token, email)) = open_instrument(app, &recollection).await? else {
        const GONE: &str = "the card or direct debit is no longer available";
        return match is_first {
            true => settle::fail(app, recollection, GONE).await,
            false => Ok(recollection),
        };
    };
    match charge(app, &recollection, token, email).await? {
        Ok(seen) => {
            // The charge is known by the requested reference, whatever the plugin returns.
            let service_ref = recollection.service_ref.clone();
            let seen = ProviderPayment { service_ref, ..seen };
            settle::record(app, &recollection, seen).await.map(|(recollection, _)| recollection)
        }
        Err(error) if is_first && is_final_rejection(&error) => {
            let message = format!("{} refused the charge", recollection.payment_service);
            settle::fail(app, recollection, &message).await
        }
        Err(error) => {
            let error = error.into_error(&recollection.payment_service);
            let (company, id) = (recollection.company_id.as_str(), recollection.id.as_str());
            let error = error.chain();
            tracing::warn!(company, recollection = id, error, "outcome of a charge is unknown");
            Ok(recollection)
        }
    }
}

/// Returns the token and the e-mail address of the payment instrument; `None` if it no longer
/// exists or is unusable.
async fn open_instrument(
    app: &App,
    recollection: &Recollection,
) -> Result<Option<(String, String)>> {
    let Recollection { company_id, user_key, card_id, direct_debit_id, .. } = recollection;
    let read = async |tx: &mut Tx| {
        if recollection.payment_channel == CARD {
            let card = cards::find_for_user(tx, company_id, user_key, card_id.as_ref()).await?;
            let card = card.filter(|card| card.is_valid());
            card.map(|card| Ok((card.token(app)?, card.charge_email))).transpose()
        } else {
            let id = direct_debit_id.as_ref();
            let mandate = mandates::find_usable(tx, company_id, user_key, id).await?;
            mandate.map(|mandate| Ok((mandate.token(app)?, mandate.email))).transpose()
        }
    };
    app.store.read(read).await
}

async fn charge(
    app: &App,
    recollection: &Recollection,
    token: String,
    email: String,
) -> Result<Result<ProviderPayment, CallError>> {
    let ChargeVerifier { provider, credentials } = recollection.verifier(app).await?;
    let (amount, service_ref) = (recollection.money(), recollection.service_ref.clone());
    let (narration, metadata) = (NARRATION.to_owned(), metadata_of(recollection));
    Ok(match &*recollection.payment_channel {
        CARD => {
            let order = CardOrder { token, email, amount, service_ref, narration, metadata };
            provider.charge_card(&credentials, &order).await
        }
        _ => {
            let mandate = token;
            let order = DebitOrder { mandate, email, amount, service_ref, narration, metadata };
            provider.debit(&credentials, &order).await
        }
    })
}

/// Returns whether the rejection is final. A duplicate reference is not: the charge exists.
fn is_final_rejection(error: &CallError) -> bool {
    use FaultCategory::{Invalid, NotFound, Refused};
    error.certainty == Certainty::NotDone
        && matches!(error.fault.category, Invalid | NotFound | Refused)
        && error.fault.code != "duplicate-reference"
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollhouse_plugins::Fault;

    #[test]
    fn only_final_errors_without_effect_are_refusals() {
        use Certainty::{NotDone, Unknown};
        use FaultCategory::{Invalid, Misconfigured, NotFound, Refused, Unavailable};
        for (category, code, certainty, refusal) in [
            (Refused, "", NotDone, true),
            (Invalid, "", NotDone, true),
            (NotFound, "", NotDone, true),
            (Refused, "", Unknown, false),
            (Unavailable, "", NotDone, false),
            (Misconfigured, "", NotDone, false),
            // The charge exists.
            (Refused, "duplicate-reference", NotDone, false),
        ] {
            let fault = Fault::new(category, code, "");
            let error = CallError { fault, certainty, timed_out: false, retry_after_s: None };
            assert_eq!(is_final_rejection(&error), refusal, "{error:?}");
        }
    }
}
