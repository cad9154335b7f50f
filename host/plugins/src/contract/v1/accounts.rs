//! Conversions of virtual accounts and of account enquiry.

use super::{
    convert::{truncate, unexpected},
    exported, wit,
};
use crate::{AccountOrder, Bank, Fault, IncomingTransfer, VirtualAccount};

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
        if account.account_number.is_empty() {
            return Err(unexpected("the account has no number"));
        }
        Ok(VirtualAccount {
            account_number: truncate(account.account_number, MAX_ACCOUNT_BYTES),
            bank: truncate(account.bank, MAX_ACCOUNT_BYTES),
            holder: truncate(account.holder, MAX_ACCOUNT_BYTES),
            provider_id: truncate(account.provider_id, MAX_ACCOUNT_BYTES),
        })
    }
}

impl TryFrom<exported::virtual_accounts::IncomingTransfer> for IncomingTransfer {
    type Error = Fault;

    fn try_from(
        transfer: exported::virtual_accounts::IncomingTransfer,
    ) -> Result<IncomingTransfer, Fault> {
        Ok(IncomingTransfer {
            account: truncate(transfer.account, MAX_ACCOUNT_BYTES),
            payment: transfer.payment.try_into()?,
        })
    }
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
