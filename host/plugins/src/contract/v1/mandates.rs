//! Conversions of mandates.

use super::{
    convert::{data, instruction, truncate, truncate_text, unexpected, url},
    exported,
};
use crate::{
    Consent, DebitedAccount, Fault, KnownMandate, MandateOrder, MandateSession, MandateStatus,
    ProviderMandate,
};
use exported::mandates as v1;

/// Maximum length of references.
const MAX_REFERENCE_BYTES: usize = 200;
/// Maximum length of the last digits of an account number.
const MAX_LAST_DIGITS: usize = 4;
/// Maximum length of tokens.
const MAX_TOKEN_BYTES: usize = 4 << 10;

impl From<&DebitedAccount> for v1::DebitedAccount {
    fn from(account: &DebitedAccount) -> v1::DebitedAccount {
        let DebitedAccount { bank_code, account_number } = account.clone();
        v1::DebitedAccount { bank_code, account_number }
    }
}

impl From<&MandateOrder> for v1::MandateOrder {
    fn from(order: &MandateOrder) -> v1::MandateOrder {
        let MandateOrder { mandate_ref, currency, email, name, phone, address, .. } = order.clone();
        let MandateOrder { max_amount, narration, return_url, notification_url, .. } =
            order.clone();
        v1::MandateOrder {
            mandate_ref,
            currency,
            email,
            name,
            phone,
            address,
            account: order.account.as_ref().map(Into::into),
            max_amount: max_amount.map(Into::into),
            starts_at: order.starts_at.to_string(),
            ends_at: order.ends_at.map(|at| at.to_string()),
            narration,
            return_url,
            notification_url,
        }
    }
}

impl From<MandateStatus> for v1::MandateStatus {
    fn from(status: MandateStatus) -> v1::MandateStatus {
        match status {
            MandateStatus::Created => v1::MandateStatus::Created,
            MandateStatus::Approved => v1::MandateStatus::Approved,
            MandateStatus::Ready => v1::MandateStatus::Ready,
            MandateStatus::Cancelled => v1::MandateStatus::Cancelled,
        }
    }
}

impl From<v1::MandateStatus> for MandateStatus {
    fn from(status: v1::MandateStatus) -> MandateStatus {
        match status {
            v1::MandateStatus::Created => MandateStatus::Created,
            v1::MandateStatus::Approved => MandateStatus::Approved,
            v1::MandateStatus::Ready => MandateStatus::Ready,
            v1::MandateStatus::Cancelled => MandateStatus::Cancelled,
        }
    }
}

impl From<&KnownMandate> for v1::KnownMandate {
    fn from(mandate: &KnownMandate) -> v1::KnownMandate {
        let KnownMandate { service_ref, status, state } = mandate.clone();
        v1::KnownMandate { service_ref, status: status.into(), state: state.map(Into::into) }
    }
}

fn consent(consent: v1::Consent) -> Result<Consent, Fault> {
    let consent = match consent {
        v1::Consent::Page(page) => Consent::Page(url(page)?),
        v1::Consent::Instruction(text) => Consent::Instruction(instruction(text)),
    };
    match &consent {
        Consent::Page(text) | Consent::Instruction(text) if text.is_empty() => {
            Err(unexpected("a mandate has neither a page nor an instruction"))
        }
        _ => Ok(consent),
    }
}

impl TryFrom<v1::MandateSession> for MandateSession {
    type Error = Fault;

    fn try_from(session: v1::MandateSession) -> Result<MandateSession, Fault> {
        Ok(MandateSession {
            consent: consent(session.consent)?,
            service_ref: whole(session.service_ref, MAX_REFERENCE_BYTES)?,
            state: data(session.state)?,
        })
    }
}

impl TryFrom<v1::Mandate> for ProviderMandate {
    type Error = Fault;

    fn try_from(mandate: v1::Mandate) -> Result<ProviderMandate, Fault> {
        let status = MandateStatus::from(mandate.status);
        let token = match status {
            MandateStatus::Ready => whole(mandate.token, MAX_TOKEN_BYTES)?,
            _ => String::new(),
        };
        Ok(ProviderMandate {
            status,
            token,
            email: truncate_text(mandate.email),
            bank: truncate_text(mandate.bank),
            last4: truncate(mandate.last4, MAX_LAST_DIGITS),
            consent: mandate.consent.map(consent).transpose()?,
            message: truncate_text(mandate.message),
        })
    }
}

/// Rejects an empty or overlong reference or token: truncated, it could be another mandate's.
fn whole(text: String, max_bytes: usize) -> Result<String, Fault> {
    match (1..=max_bytes).contains(&text.len()) {
        true => Ok(truncate(text, max_bytes)),
        false => Err(unexpected("the reference or token of a mandate is absent or too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(status: v1::MandateStatus, token: &str, last4: &str) -> v1::Mandate {
        v1::Mandate {
            status,
            token: token.to_owned(),
            email: String::new(),
            bank: String::new(),
            last4: last4.to_owned(),
            consent: None,
            message: String::new(),
        }
    }

    #[test]
    fn only_a_ready_mandate_has_a_token() {
        let ready = ProviderMandate::try_from(reported(v1::MandateStatus::Ready, "t", "012345"));
        let ready = ready.ok().unwrap();
        assert_eq!((&*ready.token, &*ready.last4), ("t", "0123"));
        assert!(ProviderMandate::try_from(reported(v1::MandateStatus::Ready, "", "")).is_err());
        let approved = ProviderMandate::try_from(reported(v1::MandateStatus::Approved, "t", ""));
        assert_eq!(approved.ok().unwrap().token, "");
    }

    #[test]
    fn a_session_has_a_reference_and_a_next_step() {
        let session = |page: &str, reference: &str| {
            MandateSession::try_from(v1::MandateSession {
                consent: v1::Consent::Page(page.to_owned()),
                service_ref: reference.to_owned(),
                state: Vec::new(),
            })
        };
        assert!(session("https://provider.example", "m-1").is_ok());
        assert!(session("", "m-1").is_err());
        assert!(session("https://provider.example", "").is_err());
        assert!(session("https://provider.example", &"m".repeat(201)).is_err());
    }
}
