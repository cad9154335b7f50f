//! Reserved accounts: bank accounts of the merchant's customers, whose transfers have no checkout.

use axum::extract::{Path, State};
use serde_json::{Value, json};
use tollhouse_platform::clock::Timestamp;

use super::{
    Monnify,
    accounts::Account,
    http::{ApiError, ApiKey, ApiResult, Params, Reply},
    times::space_separated,
    transactions::{Order, Origin, Transaction},
};
use crate::env::Env;

const BANK_CODE: &str = "035";
const BANK: &str = "Wema bank";
const IDENTITY_DIGITS: usize = 11;

pub(super) struct ReservedAccount {
    reference: String,
    pub account_number: String,
    pub account_name: String,
    customer_email: String,
    customer_name: String,
    contract_code: String,
    created_at: Timestamp,
    closed: bool,
}

impl ReservedAccount {
    fn to_json(&self) -> Value {
        json!({
            "contractCode": self.contract_code,
            "accountReference": self.reference,
            "accountName": self.account_name,
            "currencyCode": "NGN",
            "customerEmail": self.customer_email,
            "customerName": self.customer_name,
            "accounts": [{
                "bankCode": BANK_CODE,
                "bankName": BANK,
                "accountNumber": self.account_number,
                "accountName": self.account_name,
            }],
            "collectionChannel": "RESERVED_ACCOUNT",
            "reservationReference": format!("R{}", self.account_number),
            "reservedAccountType": "GENERAL",
            "status": if self.closed { "CLOSED" } else { "ACTIVE" },
            "createdOn": space_separated(self.created_at),
        })
    }
}

impl Account {
    fn reserve(&mut self, env: &Env, params: &Params) -> ApiResult {
        let reference = params.required("accountReference")?;
        if self.reserved.contains_key(&reference) {
            return Err(ApiError::invalid("An account with this reference already exists"));
        }
        if params.required("currencyCode")? != "NGN" {
            return Err(ApiError::invalid("Currency is not supported"));
        }
        let identity = params.text("bvn").or_else(|| params.text("nin"));
        let identity = identity.ok_or_else(|| ApiError::invalid("BVN or NIN is required"))?;
        if identity.len() != IDENTITY_DIGITS || !identity.bytes().all(|b| b.is_ascii_digit()) {
            return Err(ApiError::invalid("BVN is not valid"));
        }
        let account = ReservedAccount {
            account_number: format!("70{:08}", env.random.below(100_000_000)),
            account_name: params.required("accountName")?,
            customer_email: params.email("customerEmail")?,
            customer_name: params.required("customerName")?,
            contract_code: self.check_contract(params)?,
            created_at: env.clock.now(),
            closed: false,
            reference: reference.clone(),
        };
        let body = account.to_json();
        self.reserved.insert(reference, account);
        Ok(Reply(body))
    }

    fn reserved_account(&mut self, reference: &str) -> Result<&mut ReservedAccount, ApiError> {
        let found = self.reserved.get_mut(reference).filter(|account| !account.closed);
        found.ok_or_else(|| ApiError::not_found("Reserved account not found"))
    }

    /// Returns the payment reference; `None` if no account has this number. A closed account accepts
    /// transfers that were sent before.
    pub(super) fn transfer_to_reserved(
        &mut self,
        env: &Env,
        account_number: &str,
        amount: u64,
    ) -> Option<String> {
        let mut all = self.reserved.values();
        let found = all.find(|account| account.account_number == account_number)?;
        let order =
            Order { payment_reference: String::new(), amount, email: found.customer_email.clone() };
        let mut transaction = Transaction {
            name: Some(found.customer_name.clone()),
            description: Some(found.account_name.clone()),
            method: "ACCOUNT_TRANSFER".to_owned(),
            ..Transaction::new(order, Origin::Reserved(found.reference.clone()), env)
        };
        // The merchant gave no reference, so Monnify's own takes its place.
        transaction.payment_reference.clone_from(&transaction.reference);
        let reference = transaction.payment_reference.clone();
        self.add(transaction);
        self.record_full_payment(env, &reference);
        Some(reference)
    }
}

pub(super) async fn create(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    params: Params,
) -> ApiResult {
    monnify.with_account(&key, |account, env| account.reserve(env, &params))
}

pub(super) async fn fetch(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
) -> ApiResult {
    monnify.with_account(&key, |account, _| {
        account.reserved_account(&reference).map(|found| Reply(found.to_json()))
    })
}

pub(super) async fn close(
    State(monnify): State<Monnify>,
    ApiKey(key): ApiKey,
    Path(reference): Path<String>,
) -> ApiResult {
    monnify.with_account(&key, |account, _| {
        let found = account.reserved_account(&reference)?;
        found.closed = true;
        Ok(Reply(found.to_json()))
    })
}
