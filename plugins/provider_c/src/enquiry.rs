//! Names of the holders of bank accounts.

use serde::Deserialize;
use tollhouse_plugin::account_enquiry::{self, Bank};
use tollhouse_plugin::http;
use tollhouse_plugin::types::Fault;

use crate::{Monnify, api, naira};

#[derive(Deserialize)]
struct ListedBank {
    code: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Holder {
    account_name: String,
}

impl account_enquiry::Guest for Monnify {
    fn banks(currency: String) -> Result<Vec<Bank>, Fault> {
        if currency != naira::CURRENCY {
            return Ok(Vec::new());
        }
        let banks: Vec<ListedBank> = api::get("/api/v1/banks")?.read()?;
        Ok(banks.into_iter().map(|ListedBank { code, name }| Bank { code, name }).collect())
    }

    fn resolve(bank_code: String, account_number: String) -> Result<String, Fault> {
        let (bank, number) = (http::encode(&bank_code), http::encode(&account_number));
        let query = format!("accountNumber={number}&bankCode={bank}");
        let path = format!("/api/v1/disbursements/account/validate?{query}");
        let holder: Holder = api::get(&path)?.read()?;
        Ok(holder.account_name)
    }
}
