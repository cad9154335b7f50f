//! Conversions of virtual accounts and of account enquiry.

use super::{
    convert::{truncate, unexpected},
    exported, wit,
};
use crate::{AccountName, AccountOrder, Bank, Fault, IncomingTransfer, VirtualAccount};

const MAX_BANKS: usize = 1_000;
/// Maximum length of a bank account's number, names and ids.
const MAX_ACCOUNT_BYTES: usize = 200;

impl From<&AccountOrder> for exported::virtual_accounts::AccountOrder {
    fn from(order: &AccountOrder) -> exported::virtual_accounts::AccountOrder {
        let AccountOrder { account_ref, currency, email, name, phone, identity } = order.clone();
        exported::virtual_accounts::AccountOrder {
            account_ref,
            currency,
            email,
            name,
            phone,
            identity,
        }
    }
}

impl TryFrom<exported::virtual_accounts::VirtualAccount> for VirtualAccount {
    type Error = Fault;

    fn try_from(
        account: exported::virtual_accounts::VirtualAccount,
    ) -> Result<VirtualAccount, Fault> {
        Ok(VirtualAccount {
            account_number: identifier(account.account_number)?,
            bank: truncate(account.bank, MAX_ACCOUNT_BYTES),
            holder: truncate(account.holder, MAX_ACCOUNT_BYTES),
            provider_id: identifier(account.provider_id)?,
        })
    }
}

/// Rejects a text that is empty, or so long that only a part of it would be compared.
fn identifier(text: String) -> Result<String, Fault> {
    match text.len() {
        1..=MAX_ACCOUNT_BYTES => Ok(truncate(text, MAX_ACCOUNT_BYTES)),
        _ => Err(unexpected("a virtual account must be identified by 1 to 200 bytes")),
    }
}

pub fn transfer(
    result: Result<Option<exported::virtual_accounts::IncomingTransfer>, wit::Fault>,
) -> Result<Option<IncomingTransfer>, Fault> {
    use exported::virtual_accounts::AccountId;
    let Some(transfer) = result? else { return Ok(None) };
    let account = match transfer.account {
        AccountId::Reference(text) => AccountName::Reference(identifier(text)?),
        AccountId::ProviderId(text) => AccountName::ProviderId(identifier(text)?),
        AccountId::Number(text) => AccountName::Number(identifier(text)?),
    };
    Ok(Some(IncomingTransfer { account, payment: transfer.payment.try_into()? }))
}

pub fn banks(
    result: Result<Vec<exported::account_enquiry::Bank>, wit::Fault>,
) -> Result<Vec<Bank>, Fault> {
    let bank = |bank: exported::account_enquiry::Bank| Bank {
        code: truncate(bank.code, MAX_ACCOUNT_BYTES),
        name: truncate(bank.name, MAX_ACCOUNT_BYTES),
    };
    Ok(result?.into_iter().take(MAX_BANKS).map(bank).collect())
}

pub fn holder(result: Result<String, wit::Fault>) -> Result<String, Fault> {
    Ok(truncate(result?, MAX_ACCOUNT_BYTES))
}
