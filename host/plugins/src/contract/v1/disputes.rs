//! Conversions of disputes.

use super::{
    convert::{amount, converted, truncate, unexpected},
    exported, wit,
};
use crate::{
    DisputeAnswer, DisputeFilter, DisputeKey, DisputePage, DisputeStatus, Evidence, Fault,
    ProviderDispute,
};
use exported::disputes as v1;
use tollhouse_platform::clock::Timestamp;

const MAX_DISPUTES: usize = 100;
/// Maximum length of ids and references.
const MAX_ID_BYTES: usize = 200;
const MAX_REASON_BYTES: usize = 500;
const MAX_CURSOR_BYTES: usize = 1_000;

impl From<&DisputeKey> for v1::DisputeKey {
    fn from(key: &DisputeKey) -> v1::DisputeKey {
        let DisputeKey { id, service_ref, transaction_id } = key.clone();
        v1::DisputeKey { id, service_ref, transaction_id }
    }
}

impl From<&DisputeFilter> for v1::DisputeFilter {
    fn from(filter: &DisputeFilter) -> v1::DisputeFilter {
        match filter.clone() {
            DisputeFilter::Payment(service_ref, transaction_id) => {
                v1::DisputeFilter::Payment((service_ref, transaction_id))
            }
            DisputeFilter::Since(at) => v1::DisputeFilter::Since(at.to_string()),
        }
    }
}

impl From<&DisputeAnswer> for v1::DisputeAnswer {
    fn from(answer: &DisputeAnswer) -> v1::DisputeAnswer {
        let DisputeAnswer { key, amount, evidence, message } = answer;
        let action = match evidence.clone() {
            None => v1::DisputeAction::Accept,
            Some(Evidence {
                customer_name,
                customer_email,
                customer_phone,
                service,
                document_url,
            }) => v1::DisputeAction::Contest(v1::Evidence {
                customer_name,
                customer_email,
                customer_phone,
                service,
                document_url,
            }),
        };
        let (amount, message) = (amount.clone().into(), message.clone());
        v1::DisputeAnswer { key: key.into(), amount, action, message }
    }
}

impl TryFrom<v1::Dispute> for ProviderDispute {
    type Error = Fault;

    fn try_from(dispute: v1::Dispute) -> Result<ProviderDispute, Fault> {
        let v1::DisputeKey { id, service_ref, transaction_id } = dispute.key;
        let is_too_long = |text: &String| text.len() > MAX_ID_BYTES;
        if id.is_empty() || [&id, &service_ref, &transaction_id].into_iter().any(is_too_long) {
            return Err(unexpected("a dispute must be identified by 1 to 200 bytes"));
        }
        let text = |text| truncate(text, MAX_ID_BYTES);
        let time = |text: Option<String>| text.and_then(|text| Timestamp::parse(&text));
        Ok(ProviderDispute {
            key: DisputeKey {
                id: text(id),
                service_ref: text(service_ref),
                transaction_id: text(transaction_id),
            },
            status: match dispute.status {
                v1::DisputeStatus::Open => DisputeStatus::Open,
                v1::DisputeStatus::Answered => DisputeStatus::Answered,
                v1::DisputeStatus::Won => DisputeStatus::Won,
                v1::DisputeStatus::Lost => DisputeStatus::Lost,
            },
            amount: amount(dispute.amount)?,
            reason: truncate(dispute.reason, MAX_REASON_BYTES),
            due_at: time(dispute.due_at),
            opened_at: time(dispute.opened_at),
        })
    }
}

pub fn page(result: Result<v1::DisputePage, wit::Fault>) -> Result<DisputePage, Fault> {
    let v1::DisputePage { disputes, next } = result?;
    if disputes.len() > MAX_DISPUTES {
        return Err(unexpected("a page may have at most 100 disputes"));
    }
    if next.as_ref().is_some_and(|next| next.len() > MAX_CURSOR_BYTES) {
        return Err(unexpected("a cursor may have at most 1,000 bytes"));
    }
    let disputes = disputes.into_iter().map(ProviderDispute::try_from).collect::<Result<_, _>>()?;
    Ok(DisputePage { disputes, next })
}

pub fn dispute(result: Result<v1::Dispute, wit::Fault>) -> Result<ProviderDispute, Fault> {
    converted(result)
}
