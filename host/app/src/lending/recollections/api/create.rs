//! Creating a recollection.

use super::respond_with_user;
use crate::{
    lending::{
        loans::LoanId,
        mandates::MandateId,
        recollections::{CARD, CHECKOUT, DIRECT_DEBIT, FEATURE, create as flow, view::View},
    },
    money::cards::CardId,
    state::prelude::*,
    tenants::companies::{AuthenticatedCompany, check_event_url},
};
use tollhouse_platform::values::money::Minor;

fields! {
    /// A repayment to record or to charge.
    Body NewRecollection(body, app: &App) {
        /// The loan's id.
        loan: Text<100> as LoanId => Ok(loan.into()),
        /// Default: the outstanding amount, which is also the maximum.
        #[schemars(extend("exclusiveMinimum" = 0))]
        amount: Option<Decimal> => match amount {
            Some(Minor(..=0)) => Err(body.must_be("amount", "greater than 0")),
            _ => Ok(amount),
        },
        /// `checkout`, `card` or `direct_debit`; for a manual recollection any label, else `cash`.
        payment_channel: Option<Text<40>>,
        /// `true` charges through a provider; `false` records money already received.
        with_provider: Flag
            => check_channel(body, with_provider, payment_channel.as_deref()),
        /// Required for the channel `checkout`.
        checkout: Option<Body<Pages>> where is_charged(CHECKOUT, with_provider, &payment_channel)
            => match &checkout {
                None if is_charged(CHECKOUT, with_provider, &payment_channel) => {
                    Err(Error::invalid("checkout details required"))
                }
                _ => Ok(checkout),
            },
        /// For the channel `card`: the card's id. Default: the customer's default card.
        card: Option<Text<100>> as Option<CardId>
            where is_charged(CARD, with_provider, &payment_channel)
            => Ok(card.map(CardId::from)),
        /// For the channel `direct_debit`: its id. Default: the customer's default mandate.
        direct_debit: Option<Text<100>> as Option<MandateId>
            where is_charged(DIRECT_DEBIT, with_provider, &payment_channel)
            => Ok(direct_debit.map(MandateId::from)),
        /// A unique reference of your choice, generated if omitted.
        reference: Option<Visible<100>>,
        /// Additional webhook endpoint for the recollection's events: https, except in development.
        callback_url: Option<HttpUrl>
            => check_event_url(app, body, "callback_url", callback_url),
        /// When the money was received; only for a manual recollection. Default: now.
        repaid_at: Option<Time> where !with_provider => match repaid_at {
            Some(at) if at > app.clock.now() => Err(body.must_be("repaid_at", "in the past")),
            _ => Ok(repaid_at),
        },
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

impl NewRecollection {
    /// Returns whether a provider charges through this channel.
    pub fn is_by(&self, channel: &str) -> bool {
        is_charged(channel, self.with_provider, &self.payment_channel)
    }
}

fn is_charged(channel: &str, with_provider: bool, sent: &Option<String>) -> bool {
    with_provider && sent.as_deref() == Some(channel)
}

/// Checks the channel of a charge. That of a manual recollection is any label.
fn check_channel(body: &Fields, with_provider: bool, channel: Option<&str>) -> Result<bool> {
    match channel {
        _ if !with_provider => Ok(with_provider),
        None => Err(body.required("payment_channel")),
        Some(CHECKOUT | CARD | DIRECT_DEBIT) => Ok(with_provider),
        Some(_) => Err(Error::invalid("invalid payment channel provided")),
    }
}

pub async fn create(
    State(app): State<App>,
    AuthenticatedCompany(company): AuthenticatedCompany,
    run: IdempotentRequest,
    body: Body<NewRecollection>,
) -> Result<DataResponse<View<LoanId>>> {
    company.check_feature(FEATURE)?;
    let mut order = NewRecollection::read(&body, &app)?;
    let run = run.name("rec");
    order.reference = order.reference.or_else(|| run.clone());
    let recollection = flow::create(&app, &company, order, run).await?;
    respond_with_user(&app, recollection, "Recollection created successfully").await
}
