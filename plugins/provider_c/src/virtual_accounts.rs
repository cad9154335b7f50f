//! Virtual accounts: Monnify's reserved accounts, identified by the merchant's reference.

use serde::{Deserialize, Serialize};
use tollhouse_plugin::raw_json::RawJson;
use tollhouse_plugin::types::{Fault, FaultCategory};
use tollhouse_plugin::virtual_accounts::{
    self, AccountId, AccountOrder, IncomingTransfer, VirtualAccount,
};
use tollhouse_plugin::{http, loose, settings};

use crate::transaction::{self, Transaction};
use crate::{Monnify, api, naira};

/// The `product.type` of a transfer to a reserved account.
const RESERVED: &str = "RESERVED_ACCOUNT";
/// The products of other payments.
const OTHER_PRODUCTS: [&str; 5] =
    ["WEB_SDK", "MOBILE_SDK", "API_NOTIFICATION", "DIRECT_DEBIT", "INVOICE"];
/// The identity types that Monnify accepts, and the names of its fields for them.
const IDENTITIES: [&str; 2] = ["bvn", "nin"];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewAccount<'a> {
    account_reference: &'a str,
    account_name: &'a str,
    currency_code: &'a str,
    contract_code: String,
    customer_email: &'a str,
    customer_name: &'a str,
    get_all_available_banks: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    bvn: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nin: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReservedAccount {
    account_reference: String,
    accounts: Vec<BankAccount>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BankAccount {
    account_number: String,
    #[serde(default)]
    account_name: String,
    #[serde(default)]
    bank_name: String,
}

impl virtual_accounts::Guest for Monnify {
    fn open(order: AccountOrder) -> Result<VirtualAccount, Fault> {
        if order.currency != naira::CURRENCY {
            return Err(Fault::invalid("currency", "Monnify supports naira only"));
        }
        let identity = |kind: &str| {
            let own = order.identity.as_ref().filter(|(own, _)| own == kind);
            own.map(|(_, number)| number.as_str())
        };
        let known = |(kind, _): &(String, String)| IDENTITIES.contains(&kind.as_str());
        if !order.identity.as_ref().is_none_or(known) {
            return Err(Fault::invalid("identity", "Monnify takes a bvn or a nin"));
        }
        let new = NewAccount {
            account_reference: &order.account_ref,
            account_name: &order.name,
            currency_code: naira::CURRENCY,
            contract_code: settings::required("contract_code")?,
            customer_email: &order.email,
            customer_name: &order.name,
            get_all_available_banks: true,
            bvn: identity("bvn"),
            nin: identity("nin"),
        };
        let response = match api::post("/api/v2/bank-transfer/reserved-accounts", &new) {
            // An earlier request whose response was lost may have created the account.
            Err(fault) if fault.is_refusal() => {
                find(&order.account_ref)?.ok_or_else(|| account_fault(fault))
            }
            response => response,
        };
        let ReservedAccount { account_reference, accounts } = response?.read()?;
        let first = accounts.into_iter().next().ok_or_else(|| {
            Fault::unavailable("Monnify's reserved account has no number")
                .with_code("unexpected-answer")
        })?;
        Ok(VirtualAccount {
            account_number: first.account_number,
            bank: first.bank_name,
            holder: first.account_name,
            provider_id: account_reference,
        })
    }

    fn close(provider_id: String) -> Result<bool, Fault> {
        let account = http::encode(&provider_id);
        let path = format!("/api/v1/bank-transfer/reserved-accounts/reference/{account}");
        match api::delete(&path) {
            Ok(_) => Ok(true),
            Err(fault) if fault.category == FaultCategory::NotFound => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    fn find_transfer(service_ref: String) -> Result<Option<IncomingTransfer>, Fault> {
        let value = transaction::find(&service_ref)?;
        let found: Transaction = value.read()?;
        match loose::text(&found.product["type"]).as_str() {
            RESERVED => {}
            product if OTHER_PRODUCTS.contains(&product) => return Ok(None),
            _ => return Err(Fault::unavailable("Monnify's transaction is of an unknown product")),
        }
        Ok(Some(IncomingTransfer {
            account: AccountId::Reference(loose::text(&found.product["reference"])),
            payment: transaction::parse_payment(&value, &service_ref, None)?,
        }))
    }
}

/// Returns the response for an existing account. If Monnify refuses the query, the fault is
/// `unavailable`, because the account may exist.
fn find(account_ref: &str) -> Result<Option<RawJson>, Fault> {
    let path = format!("/api/v2/bank-transfer/reserved-accounts/{}", http::encode(account_ref));
    match api::get(&path) {
        Ok(value) => Ok(Some(value)),
        Err(fault) if fault.category == FaultCategory::NotFound => Ok(None),
        Err(fault) if fault.is_refusal() => Err(fault.into_unavailable()),
        Err(fault) => Err(fault),
    }
}

/// Names the field of a refusal that concerns the identity.
fn account_fault(fault: Fault) -> Fault {
    let words = fault.message.to_lowercase();
    let mut words = words.split(|c: char| !c.is_alphanumeric());
    match words.any(|word| IDENTITIES.contains(&word)) {
        true => Fault::invalid("identity", &fault.message).with_code(&fault.code),
        false => fault,
    }
}
