//! The effects of the outcomes of charges on a recollection. The loan's lock ensures that
//! each effect happens once.

use super::{
    CARD, CHECKOUT, Recollection, RecollectionId, Status, automatic,
    store::{self, Checkout},
};
use crate::{
    lending::{
        collections,
        loans::{self, Loan},
        mandates,
    },
    money::{
        cards,
        charges::{ChargeOwner, Failure, Order, Outcome, OwnerKind, Turn, choice::Routed},
        prelude::*,
        routing::{self, Payer},
    },
};

const NARRATION: &str = "Loan repayment";
const NOTHING_DUE: &str = "the installment has been paid";
const GONE: &str = "the card or direct debit is no longer available";

/// Returns why the loan cannot be repaid; `None` if it can.
pub fn obstacle(loan: &Loan) -> Option<&'static str> {
    match loan {
        loan if loan.is_paid() => Some("loan already been paid completely"),
        loan if !loan.disbursed => Some("loan has not been disbursed"),
        _ => None,
    }
}

/// The token of a card or mandate, and what the provider requires with it.
struct Instrument {
    token: String,
    email: String,
    /// The account that issued the token; `None` for a mandate of another system.
    account_id: Option<AccountId>,
}

impl ChargeOwner for Recollection {
    const KIND: OwnerKind = OwnerKind::Recollection;

    async fn lock(tx: &mut Tx, company_id: &CompanyId, id: &str) -> Result<Option<Recollection>> {
        let id = RecollectionId::from(id);
        loans::lock_of(tx, company_id, &id).await?;
        Ok(store::find(tx, company_id, &id).await?)
    }

    fn is_pending(&self) -> bool {
        self.status == Status::Pending
    }

    /// Caps the amount at the outstanding amount.
    async fn turn(&self, tx: &mut Tx, app: &App, charge: &Charge) -> Result<Turn> {
        let loan = self.lock_loan(tx).await?;
        let capped = charge.amount.min(loan.remaining());
        if self.payment_channel == CHECKOUT {
            return Ok(obstacle(&loan).map_or(Turn::Go(capped), Turn::Withdraw));
        }
        let instrument = self.instrument(tx, app).await?;
        let obstacle = obstacle(&loan).or(instrument.is_none().then_some(GONE));
        let moved = instrument.and_then(|instrument| instrument.account_id);
        let moved = moved.filter(|account_id| *account_id != charge.account_id);
        if charge.fence > 0 {
            // The provider may know the charge, with this amount and at this account.
            return Ok(match (charge.unsure, obstacle, moved) {
                (false, Some(reason), _) => Turn::Withdraw(reason),
                // A repeated request may take money that is no longer owed. Verification settles
                // it.
                (true, Some(_), _) | (_, _, Some(_)) => Turn::Wait,
                _ => Turn::Go(charge.amount),
            });
        }
        if let Some(reason) = obstacle {
            return Ok(Turn::Withdraw(reason));
        }
        let is_automatic = self.fee_key.is_some();
        let capped =
            match is_automatic && collections::is_attempt(tx, &self.company_id, &self.id).await? {
                // A repayment may have arrived since the attempt was decided.
                true => capped.min(loans::due_amount(tx, &loan, app.clock.now()).await?),
                false => capped,
            };
        if capped <= Minor(0) {
            return Ok(Turn::Withdraw(NOTHING_DUE));
        }
        if capped != self.amount {
            let updated_at = app.clock.now();
            let capped = Recollection { amount: capped, updated_at, ..self.clone() };
            store::update(tx, &capped, Some(charge)).await?;
        }
        let account = match moved {
            Some(account_id) => providers::find_by_id(tx, &account_id).await?,
            None => None,
        };
        Ok(account.map_or(Turn::Go(capped), |account| Turn::GoAt(capped, account)))
    }

    async fn order(&self, app: &App, charge: &Charge) -> Result<Order> {
        let (amount, service_ref) = (charge.money(), charge.service_ref.clone());
        let narration = NARRATION.to_owned();
        let metadata = json!({ METADATA_KEY: self.id, "event": "recollection" }).to_string();
        if self.payment_channel == CHECKOUT {
            let user = self.user(app).await?.ok_or_else(users::not_found)?;
            return Ok(Order::Checkout(CheckoutOrder {
                service_ref,
                amount,
                email: user.email.ok_or_else(users::missing_email)?,
                phone: user.phone,
                notification_url: String::new(),
                customer_name: None,
                narration,
                channels: Vec::new(),
                success_url: self.checkout.success_url.clone().unwrap_or_default(),
                cancel_url: self.checkout.cancel_url.clone(),
                metadata,
                save_instrument: false,
            }));
        }
        let read = async |tx: &mut Tx| self.instrument(tx, app).await;
        let Instrument { token, email, .. } =
            app.store.select(read).await?.ok_or_else(|| Error::invalid(GONE))?;
        Ok(match &*self.payment_channel {
            CARD => {
                Order::Card(CardOrder { token, email, amount, service_ref, narration, metadata })
            }
            _ => Order::Debit(DebitOrder {
                mandate: token,
                email,
                amount,
                service_ref,
                narration,
                metadata,
            }),
        })
    }

    async fn reroute(
        &self,
        app: &App,
        charge: &Charge,
        amount: Minor,
        tried: &[String],
    ) -> Result<Option<Routed>> {
        let phone = self.user(app).await?.and_then(|user| user.phone);
        let payer = Payer { user: Some(self.user_key.clone()), has_phone: phone.is_some() };
        routing::choose_other(app, charge, amount, payer, tried).await
    }

    fn return_urls(&self) -> (&str, Option<&str>) {
        let Checkout { success_url, cancel_url, .. } = &self.checkout;
        (success_url.as_deref().unwrap_or_default(), cancel_url.as_deref())
    }

    async fn apply(
        self,
        tx: &mut Tx,
        app: &App,
        charge: &Charge,
        outcome: Outcome<'_>,
    ) -> Result<Recollection> {
        let mut now = self;
        match outcome {
            Outcome::Session(_) => {
                now = Recollection { amount: charge.amount, ..now.at_account_of(charge) };
                now.checkout.url.clone_from(&charge.session_url);
            }
            Outcome::Pending(seen) => {
                if charge.session_url.is_none() {
                    return Ok(now);
                }
                now.checkout.url.clone_from(&charge.session_url);
                now.message.clone_from(&seen.message);
            }
            Outcome::Succeeded(seen) => {
                let loan = now.lock_loan(tx).await?;
                let repaid = now.with_provider_result(app, charge, seen);
                if repaid.fee_key.is_some() {
                    collections::wake(tx, app, &loan.company_id, &loan.id).await?;
                }
                return repay(tx, app, loan, repaid).await;
            }
            Outcome::Failed(failure) if now.is_pending() => {
                (now.message, now.decline) = match failure {
                    Failure::Seen(seen) => (seen.message.clone(), seen.decline),
                    Failure::Message(message) => (message.to_owned(), None),
                    Failure::Declined(message, decline) => (message.to_owned(), Some(decline)),
                };
                return fail(tx, app, charge, now).await;
            }
            Outcome::Mismatched(what) => now.message = what.to_owned(),
            Outcome::Reversed(seen) => {
                now.message.clone_from(&seen.message);
                return reverse(tx, app, charge, now, seen).await;
            }
            Outcome::Abandoned => {
                if let Some(key) = now.fee_key.as_ref().filter(|_| now.is_pending()) {
                    wallet::refund_fee(tx, app, &now.company_id, key).await?;
                }
                return Ok(now);
            }
            Outcome::Forgotten => {
                store::delete(tx, &now).await?;
                return Ok(now);
            }
            Outcome::Moved => now = now.at_account_of(charge),
            Outcome::Failed(_)
            | Outcome::Surplus
            | Outcome::Refunded
            | Outcome::PartlyRefunded
            | Outcome::RefundFailed => return Ok(now),
        }
        now.updated_at = app.clock.now();
        store::update(tx, &now, Some(charge)).await?;
        Ok(now)
    }
}

impl Recollection {
    async fn lock_loan(&self, tx: &mut Tx) -> Result<Loan> {
        let loan = loans::lock(tx, &self.company_id, &self.loan_id).await?;
        loan.ok_or_else(|| Error::internal("loan of a recollection not found"))
    }

    /// Returns the payment instrument; `None` if it no longer exists or is unusable.
    async fn instrument(&self, tx: &mut Tx, app: &App) -> Result<Option<Instrument>> {
        let Recollection { company_id, user_key, card_id, direct_debit_id, .. } = self;
        if self.payment_channel == CARD {
            let card = cards::find_for_user(tx, company_id, user_key, card_id.as_ref()).await?;
            let Some(card) = card.filter(|card| card.is_valid()) else { return Ok(None) };
            let (token, account_id) = (card.token(app)?, Some(card.account_id));
            return Ok(Some(Instrument { token, email: card.charge_email, account_id }));
        }
        let id = direct_debit_id.as_ref();
        let mandate = mandates::find_usable(tx, company_id, user_key, id).await?;
        let Some(mandate) = mandate else { return Ok(None) };
        let (token, account_id) = (mandate.token(app)?, mandate.issuer().cloned());
        Ok(Some(Instrument { token, email: mandate.email, account_id }))
    }

    /// Returns the recollection with the provider and the reference of a charge.
    fn at_account_of(self, charge: &Charge) -> Recollection {
        let (payment_service, service_ref) = (charge.provider.clone(), charge.service_ref.clone());
        Recollection { payment_service, service_ref, ..self }
    }

    /// Copies the provider fields of a success.
    fn with_provider_result(
        self,
        app: &App,
        charge: &Charge,
        seen: &ProviderPayment,
    ) -> Recollection {
        if self.status == Status::Failed {
            let id = self.id.as_str();
            tracing::warn!(
                recollection = id,
                "recollection succeeded after it was recorded as failed"
            );
        }
        Recollection {
            // A partial debit takes less: the rest stays due.
            amount: match charge.least() {
                Some(_) => charge.taken.unwrap_or(charge.amount),
                None => charge.amount,
            },
            fees: charges::fees(seen),
            message: seen.message.clone(),
            decline: None,
            repaid_at: Some(seen.paid_at.unwrap_or_else(|| app.clock.now())),
            charge_id: Some(charge.id.clone()),
            ..self.at_account_of(charge)
        }
    }
}

/// Repays the loan in the caller's transaction.
pub async fn repay(
    tx: &mut Tx,
    app: &App,
    loan: Loan,
    mut recollection: Recollection,
) -> Result<Recollection> {
    let now = app.clock.now();
    let repaid_at = recollection.repaid_at.unwrap_or(now);
    let parts = loans::apply_repayment(tx, app, loan, &recollection, repaid_at).await?;
    let applied: i64 = parts.iter().map(|part| part.amount.0).sum();
    let overpayment = Minor(recollection.amount.0 - applied);
    if overpayment > Minor(0) {
        let more = overpayment.to_major();
        recollection.message = format!("overpaid by {more} {}", recollection.currency);
    }
    recollection.status = Status::Success;
    recollection.updated_at = now;
    recollection.applied = Some(Json(parts));
    store::update(tx, &recollection, None).await?;
    emit(tx, app, &recollection, "recollection.success").await?;
    Ok(recollection)
}

async fn fail(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    mut recollection: Recollection,
) -> Result<Recollection> {
    recollection.status = Status::Failed;
    recollection.updated_at = app.clock.now();
    store::update(tx, &recollection, Some(charge)).await?;
    if let Some(key) = &recollection.fee_key {
        wallet::refund_fee(tx, app, &recollection.company_id, key).await?;
        collections::wake(tx, app, &recollection.company_id, &recollection.loan_id).await?;
    }
    emit(tx, app, &recollection, "recollection.failed").await?;
    Ok(recollection)
}

/// Reverts exactly what the recollection repaid; its status becomes `failed`.
async fn reverse(
    tx: &mut Tx,
    app: &App,
    charge: &Charge,
    mut recollection: Recollection,
    seen: &ProviderPayment,
) -> Result<Recollection> {
    let loan = recollection.lock_loan(tx).await?;
    automatic::continue_after_reversal(tx, app, &loan, &recollection).await?;
    loans::revert_repayment(tx, app, loan, &recollection).await?;
    charges::raise_exception(tx, app, charge, "repayment reversed", Some(seen)).await?;
    recollection.status = Status::Failed;
    recollection.updated_at = app.clock.now();
    store::update(tx, &recollection, Some(charge)).await?;
    emit(tx, app, &recollection, "recollection.reversed").await?;
    Ok(recollection)
}

async fn emit(
    tx: &mut Tx,
    app: &App,
    recollection: &Recollection,
    kind: &'static str,
) -> Result<()> {
    let user = users::find_by_id(tx, &recollection.company_id, &recollection.user_key).await?;
    let user = user.map(|user| user.view(app.clock.now()));
    let event = events::Event {
        kind,
        subject_id: recollection.id.to_string(),
        data: json!(recollection.clone().view(user)),
        callback_url: recollection.callback_url.clone(),
    };
    events::emit(tx, app, &recollection.company_id, event).await
}
