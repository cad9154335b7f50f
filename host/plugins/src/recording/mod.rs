//! Recordings: calls with their transcript and effects, masked.
//!
//! A completed call hands over its arguments and transcript, and does not wait. Calls of registers
//! are never recorded. The recording is masked; then the same version is called with the masked
//! transcript, a fixed clock and seeded randomness. Other versions are compared with the result of
//! that call: it contains masked data only, and the same version always returns the same result.

pub mod field_names;
pub mod mask;
pub mod replay;

use crate::prelude::*;
use crate::recording::{
    mask::Mask,
    replay::{CallEffects, ResponseOrder, replay},
};
use crate::{
    CardOrder, CheckoutOrder, CompletedCall, DebitOrder, KnownRefund, KnownSession, PartialOrder,
    PartialRefundOrder, PluginData, RecordedResponse, RefundOrder, SessionRefundOrder, TextMessage,
    Transcript, Webhook,
};

/// A recorded call, which can be replayed.
#[derive(Serialize, Deserialize)]
pub struct Recording {
    pub plugin: String,
    pub version: String,
    /// SHA-256 of the component in hexadecimal.
    pub digest: String,
    /// Start of the call, in milliseconds since 1970.
    pub began_ms: i64,
    pub call: Call,
    pub settings: HashMap<String, String>,
    /// Names of the secrets that the account has.
    pub secrets: Vec<String>,
    pub heard: Transcript,
    /// Effects of a replay of the masked call by the recorded version.
    pub did: CallEffects,
    /// That replay had the same outcome and at least as many requests as the original call.
    pub faithful: bool,
}

impl Recording {
    /// Masks a call and replays it, so that later comparisons use masked data only.
    pub async fn of(recorded: CompletedCall, random: &Random) -> Recording {
        let CompletedCall { plugin, began, call, settings, secrets, transcript, .. } = recorded;
        let (requests, mut mask) = (transcript.answers.len(), Mask::new(random));
        // The first pass learns personal words, which may follow the texts that contain them.
        mask.call(call.clone());
        mask.transcript(transcript.clone(), &call);
        let transcript = mask.transcript(transcript, &call);
        let call = mask.call(call);
        let manifest = plugin.manifest();
        let mut recording = Recording {
            plugin: manifest.name.clone(),
            version: manifest.version.to_string(),
            digest: plugin.digest().to_owned(),
            began_ms: began.0,
            call,
            settings,
            secrets,
            heard: transcript,
            did: CallEffects::default(),
            faithful: false,
        };
        recording.did = replay(&plugin, &recording, ResponseOrder::InOrder).await;
        recording.faithful = recording.did.outcome_and_summary()
            == (recorded.outcome, recorded.summary)
            && recording.did.requests.len() >= requests;
        recording
    }

    pub fn began(&self) -> Timestamp {
        Timestamp(self.began_ms)
    }

    pub fn label(&self) -> String {
        format!("{}@{}+{:.8}", self.plugin, self.version, self.digest)
    }
}

impl Mask {
    fn transcript(&mut self, transcript: Transcript, call: &Call) -> Transcript {
        let responses = transcript.answers.into_iter().map(|response| {
            let RecordedResponse { status, headers, body } = response?;
            let body = self.body(&body);
            Ok(RecordedResponse { status, headers: self.headers(headers), body })
        });
        let responses = responses.collect();
        let cached = transcript.cached.into_iter().map(|(key, held)| {
            let key = self.mask_known_words(&key);
            (key, held.map(|held| self.body(&held)))
        });
        let cached = cached.collect();
        // Only results that authenticate a webhook: others could be valid credentials.
        let vouched = if call.is_notification() { transcript.vouched } else { Vec::new() };
        Transcript { answers: responses, cached, vouched }
    }

    /// Masks the arguments. References of the host and of the provider are kept in all texts.
    fn call(&mut self, call: Call) -> Call {
        match call {
            Call::StartCheckout(order) => Call::StartCheckout(self.order(order)),
            Call::StartSession(order) => Call::StartSession(self.order(order)),
            Call::VerifySession(session) => Call::VerifySession(self.session(session)),
            Call::ReceiveForSession(session, webhook) => {
                Call::ReceiveForSession(self.session(session), self.webhook(webhook))
            }
            Call::StartSessionRefund(order) => Call::StartSessionRefund(self.refund_order(order)),
            Call::CheckSessionRefund(refund) => Call::CheckSessionRefund(self.refund(refund)),
            Call::ReceiveForRefund(refund, webhook) => {
                Call::ReceiveForRefund(self.refund(refund), self.webhook(webhook))
            }
            Call::ChargeCard(order) => Call::ChargeCard(self.card_order(order)),
            Call::Debit(order) => Call::Debit(self.debit_order(order)),
            Call::ChargeCardInPart(order) => Call::ChargeCardInPart(self.partial_order(order)),
            Call::DebitInPart(order) => Call::DebitInPart(self.partial_order(order)),
            Call::Deauthorize(token) => Call::Deauthorize(self.text(&token)),
            Call::StartRefund(order) => Call::StartRefund(self.plain_refund_order(order)),
            Call::StartPartialRefund(PartialRefundOrder { order, earlier }) => {
                self.keep_references(&earlier.iter().map(String::as_str).collect::<Vec<_>>());
                let order = self.plain_refund_order(order);
                Call::StartPartialRefund(PartialRefundOrder { order, earlier })
            }
            Call::ParseNotification(webhook) => Call::ParseNotification(self.webhook(webhook)),
            Call::SendText(message) => {
                self.keep_references(&[&message.reference]);
                Call::SendText(TextMessage {
                    to: self.text(&message.to),
                    text: self.text(&message.text),
                    ..message
                })
            }
            Call::Verify(ref reference) | Call::CheckRefund(ref reference) => {
                self.keep_references(&[reference]);
                call
            }
            // Never recorded.
            Call::LookUp(_)
            | Call::Compare(..)
            | Call::Read(..)
            | Call::OpenAccount(_)
            | Call::CloseAccount(_)
            | Call::FindTransfer(_)
            | Call::DeclineReason(..)
            | Call::ListBanks(_)
            | Call::ListDisputes(..)
            | Call::FetchDispute(_)
            | Call::AnswerDispute(_)
            | Call::ListTransactions(..)
            | Call::ListSettlements(..)
            | Call::BeginMandate(_)
            | Call::QueryMandate(_)
            | Call::CancelMandate(_)
            | Call::ResolveAccount(..) => call,
        }
    }

    fn card_order(&mut self, order: CardOrder) -> CardOrder {
        self.keep_references(&[&order.service_ref]);
        CardOrder {
            token: self.text(&order.token),
            email: self.text(&order.email),
            narration: self.text(&order.narration),
            metadata: self.private_body(&order.metadata),
            ..order
        }
    }

    fn debit_order(&mut self, order: DebitOrder) -> DebitOrder {
        self.keep_references(&[&order.service_ref]);
        DebitOrder {
            mandate: self.text(&order.mandate),
            email: self.text(&order.email),
            narration: self.text(&order.narration),
            metadata: self.private_body(&order.metadata),
            ..order
        }
    }

    fn partial_order(&mut self, order: PartialOrder) -> PartialOrder {
        self.keep_references(&[&order.service_ref]);
        PartialOrder {
            token: self.text(&order.token),
            email: self.text(&order.email),
            narration: self.text(&order.narration),
            metadata: self.private_body(&order.metadata),
            ..order
        }
    }

    fn plain_refund_order(&mut self, order: RefundOrder) -> RefundOrder {
        self.keep_references(&[&order.service_ref, &order.transaction_id, &order.refund_ref]);
        RefundOrder { reason: self.text(&order.reason), ..order }
    }

    fn refund_order(&mut self, order: SessionRefundOrder) -> SessionRefundOrder {
        self.keep_references(&[&order.refund_ref]);
        SessionRefundOrder {
            session: self.session(order.session),
            reason: self.text(&order.reason),
            notification_url: self.url(&order.notification_url),
            ..order
        }
    }

    fn order(&mut self, order: CheckoutOrder) -> CheckoutOrder {
        self.keep_references(&[&order.service_ref]);
        CheckoutOrder {
            email: self.text(&order.email),
            phone: order.phone.map(|phone| self.text(&phone)),
            customer_name: order.customer_name.map(|name| self.text(&name)),
            narration: self.text(&order.narration),
            success_url: self.url(&order.success_url),
            cancel_url: order.cancel_url.map(|url| self.url(&url)),
            notification_url: self.url(&order.notification_url),
            metadata: self.private_body(&order.metadata),
            ..order
        }
    }

    fn session(&mut self, session: KnownSession) -> KnownSession {
        self.keep_references(&[&session.service_ref, &session.transaction_id]);
        KnownSession {
            state: session.state.map(|state| self.data(&state)),
            notified: session.notified.map(|notified| self.data(&notified)),
            ..session
        }
    }

    fn refund(&mut self, refund: KnownRefund) -> KnownRefund {
        self.keep_references(&[&refund.refund_ref, &refund.provider_id]);
        KnownRefund {
            session: self.session(refund.session),
            state: refund.state.map(|state| self.data(&state)),
            notified: refund.notified.map(|notified| self.data(&notified)),
            ..refund
        }
    }

    fn data(&mut self, data: &PluginData) -> PluginData {
        PluginData(self.body(&String::from_utf8_lossy(&data.0)).into())
    }

    fn webhook(&mut self, webhook: Webhook) -> Webhook {
        let body = self.body(&String::from_utf8_lossy(&webhook.body)).into();
        Webhook { headers: self.headers(webhook.headers), body }
    }
}
