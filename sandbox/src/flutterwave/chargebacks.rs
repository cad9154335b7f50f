//! Chargebacks: disputes of payers. Only tests begin and decide them; the merchant answers them.
//! They do not change the status of the transaction.

use axum::{
    extract::{Path, Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Flutterwave,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Page, Params, Reply, is_within},
    transactions::{Status, Transaction},
};
use crate::{env::Env, money::major, server::error_response, settlements::Movement};

const PER_PAGE: usize = 20;
/// The merchant's time to respond.
const RESPONSE_SECONDS: i64 = 48 * 3_600;

/// The status of a chargeback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChargebackStatus {
    /// The merchant has not responded yet.
    Initiated,
    /// The merchant accepts the dispute: the payer gets the money.
    Accepted,
    /// The merchant contests the dispute.
    Declined,
    /// The merchant keeps the money.
    Won,
    /// The payer gets the money.
    #[default]
    Lost,
}

impl ChargebackStatus {
    fn name(self) -> &'static str {
        match self {
            ChargebackStatus::Initiated => "initiated",
            ChargebackStatus::Accepted => "accepted",
            ChargebackStatus::Declined => "declined",
            ChargebackStatus::Won => "won",
            ChargebackStatus::Lost => "lost",
        }
    }
}

pub(super) struct Chargeback {
    id: u64,
    /// Id of the transaction.
    transaction: u64,
    /// In minor units.
    amount: u64,
    status: ChargebackStatus,
    /// The merchant's link to a document.
    uploaded_proof: Option<String>,
    created_at: Timestamp,
}

impl Account {
    /// Changes the open chargeback of a successful transaction, or begins one. Without an amount,
    /// it is the whole amount.
    pub(super) fn charge_back(
        &mut self,
        env: &Env,
        tx_ref: &str,
        amount: Option<u64>,
        status: ChargebackStatus,
    ) -> bool {
        let transaction = self.by_reference(tx_ref).filter(|t| t.status == Status::Successful);
        let Some(transaction) = transaction else { return false };
        let (transaction, amount) = (transaction.id, amount.unwrap_or(transaction.amount));
        let is_open = |chargeback: &&mut Chargeback| {
            chargeback.transaction == transaction
                && chargeback.status == ChargebackStatus::Initiated
        };
        if let Some(open) = self.chargebacks.values_mut().find(is_open) {
            (open.amount, open.status) = (amount, status);
            return true;
        }
        let (id, created_at) = (env.next_id(), env.clock.now());
        let uploaded_proof = None;
        let chargeback = Chargeback { id, transaction, amount, status, uploaded_proof, created_at };
        self.chargebacks.insert(id, chargeback);
        true
    }

    pub(super) fn newest_chargeback(&self, tx_ref: &str) -> Option<u64> {
        let transaction = self.by_reference(tx_ref)?.id;
        let mut newest = self.chargebacks.values().rev();
        newest.find(|chargeback| chargeback.transaction == transaction).map(|found| found.id)
    }

    pub(super) fn decide_chargeback(&mut self, id: u64, won: bool) -> bool {
        use ChargebackStatus::{Declined, Initiated, Lost, Won};
        let undecided = self.chargebacks.get_mut(&id);
        let Some(undecided) = undecided.filter(|c| matches!(c.status, Initiated | Declined)) else {
            return false;
        };
        undecided.status = if won { Won } else { Lost };
        true
    }

    /// Returns the chargebacks whose amounts were returned to the payers.
    pub(super) fn lost_chargebacks(&self) -> Vec<Movement> {
        use ChargebackStatus::{Accepted, Lost};
        let lost = self.chargebacks.values().filter(|c| matches!(c.status, Accepted | Lost));
        let movement = |chargeback: &Chargeback| Movement {
            id: chargeback.id,
            currency: self.transactions[&chargeback.transaction].currency.clone(),
            amount: chargeback.amount,
            fees: 0,
        };
        lost.map(movement).collect()
    }

    fn answer_chargeback(&mut self, id: &str, params: &Params) -> ApiResult {
        let (status, message) = match params.required("action")?.as_str() {
            "accept" => (ChargebackStatus::Accepted, "Chargeback accepted"),
            "decline" => (ChargebackStatus::Declined, "Chargeback declined"),
            _ => return Err(ApiError::invalid("action must be accept or decline")),
        };
        params.required("comment")?;
        let uploaded_proof = proof(params)?;
        let found = id.parse().ok().and_then(|id: u64| self.chargebacks.get_mut(&id));
        let chargeback = found
            .ok_or_else(|| ApiError::new(StatusCode::NOT_FOUND, "Chargeback was not found"))?;
        if chargeback.status != ChargebackStatus::Initiated {
            return Err(ApiError::invalid("This chargeback can no longer be updated"));
        }
        (chargeback.status, chargeback.uploaded_proof) = (status, uploaded_proof);
        Ok(Reply::new(message, Value::Null))
    }
}

/// Returns the merchant's link to a document, if it is a URL.
fn proof(params: &Params) -> Result<Option<String>, ApiError> {
    let Some(value) = params.get("uploaded_proof") else { return Ok(None) };
    let url = value.as_str().filter(|url| url::Url::parse(url).is_ok());
    let url = url.ok_or_else(|| ApiError::invalid("uploaded_proof must be a valid uri"))?;
    Ok(Some(url.to_owned()))
}

fn chargeback_json(chargeback: &Chargeback, transaction: &Transaction) -> Value {
    let history = json!([{
        "action": chargeback.status.name(),
        "stage": "new",
        "date": chargeback.created_at,
        "description": "Debit and hold chargeback amount",
        "source": "availablebalance",
    }]);
    json!({
        "id": chargeback.id,
        "amount": major(chargeback.amount),
        "flw_ref": transaction.flw_ref,
        "status": chargeback.status.name(),
        "stage": "new",
        "comment": "Product/service not received",
        "meta": { "uploaded_proof": chargeback.uploaded_proof, "history": history },
        "due_date": chargeback.created_at.plus_seconds(RESPONSE_SECONDS),
        "settlement_id": "N/A",
        "created_at": chargeback.created_at,
        "transaction_id": transaction.id,
        "tx_ref": transaction.tx_ref,
    })
}

#[derive(Deserialize)]
pub(super) struct ListQuery {
    /// Id of the transaction.
    id: Option<String>,
    /// The `flw_ref` of the transaction.
    flw_ref: Option<String>,
    status: Option<String>,
    currency: Option<String>,
    /// First and last day: `YYYY-MM-DD`.
    from: Option<String>,
    to: Option<String>,
    page: Option<usize>,
}

pub(super) async fn list(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Query(query): Query<ListQuery>,
) -> ApiResult {
    let fits = |(chargeback, transaction): &(&Chargeback, &Transaction)| {
        let fits = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == value)
        };
        fits(&query.id, &transaction.id.to_string())
            && fits(&query.flw_ref, &transaction.flw_ref)
            && fits(&query.status, chargeback.status.name())
            && fits(&query.currency, &transaction.currency)
            && is_within(chargeback.created_at, query.from.as_deref(), query.to.as_deref())
    };
    flutterwave.with_account(&key, |account, _| {
        let all = account.chargebacks.values().rev();
        let all = all.filter_map(|c| Some((c, account.transactions.get(&c.transaction)?)));
        let rows = all.filter(fits).map(|(chargeback, t)| chargeback_json(chargeback, t)).collect();
        Ok(Reply::page("Chargebacks fetched", rows, Page::numbered(query.page, PER_PAGE)))
    })
}

pub(super) async fn answer(
    State(flutterwave): State<Flutterwave>,
    ApiKey(key): ApiKey,
    Path(id): Path<String>,
    params: Params,
) -> ApiResult {
    flutterwave.with_account(&key, |account, _| account.answer_chargeback(&id, &params))
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ControlRequest {
    /// Decides the newest chargeback of the transaction.
    Decide { reference: String, won: bool },
    Begin {
        reference: String,
        amount_minor: Option<u64>,
        #[serde(default)]
        status: ChargebackStatus,
    },
}

/// Control endpoint of the simulators: begins or decides a chargeback.
pub(super) async fn control(State(flutterwave): State<Flutterwave>, body: String) -> Response {
    let Ok(request) = serde_json::from_str::<ControlRequest>(&body) else {
        let wanted = "reference is required; amount_minor is a number; \
            status is initiated, accepted, declined, won or lost; won is a boolean";
        return error_response(StatusCode::BAD_REQUEST, wanted);
    };
    let (done, missing) = match request {
        ControlRequest::Decide { reference, won } => {
            let id = flutterwave.chargeback(&reference);
            let decided = id.is_some_and(|id| flutterwave.decide_chargeback(id, won));
            (decided, "no transaction with this reference has an undecided chargeback")
        }
        ControlRequest::Begin { reference, amount_minor, status } => {
            let begun = flutterwave.charge_back(&reference, amount_minor, status);
            (begun, "no successful transaction has this reference")
        }
    };
    match done {
        true => StatusCode::NO_CONTENT.into_response(),
        false => error_response(StatusCode::NOT_FOUND, missing),
    }
}
