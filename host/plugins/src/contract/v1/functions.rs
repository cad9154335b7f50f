//! The functions of the contract, listed once in the table at the end.
//!
//! The table generates [`Call`], the methods of [`Provider`], [`Gateway`] and [`CountryPlugin`],
//! and [`Offers`], with which the host and the baseline call a component.

use serde::{Deserialize, Serialize};
use wasmtime::{
    Store,
    component::{Instance, InstancePre},
};

use super::{
    accounts::{banks, holder, transfer},
    convert::{converted, message_id, notifications, received},
    disputes::{dispute, page},
    exported,
    settlements::{settlement_page, transaction_page},
    versioned_name,
};
use crate::{
    AccountOrder, Bank, CallError, CardOrder, CheckoutOrder, CheckoutSession, CountryPlugin,
    Credentials, DebitOrder, Decline, DisputeAnswer, DisputeFilter, DisputeKey, DisputePage,
    FaceComparison, Fault, FaultCategory, Gateway, IdentityQuery, Image, IncomingTransfer,
    KnownMandate, KnownRefund, KnownSession, MandateOrder, MandateSession, Notification,
    NotificationRefusal, PartialOrder, PartialRefundOrder, PluginData, PluginReply, Provider,
    ProviderDispute, ProviderMandate, ProviderPayment, ProviderRefund, RefundOrder, RegisterEntry,
    SessionRefundOrder, SettlementPage, TextMessage, TransactionFilter, TransactionPage,
    VirtualAccount, Webhook, runtime::engine::State,
};

use tollhouse_platform::values::listing::Period;

/// The result of an exported function. The outer error is a trap.
pub type GuestResult = wasmtime::Result<Result<PluginReply, Fault>>;

macro_rules! functions {
    ($(
        $interface:ident = $interface_name:literal of $callable:ident, personal: $personal:tt {
            $(
                $(#[$doc:meta])*
                $variant:ident($($argument:ident: $type:ty),+) = $function:literal,
                $method:ident -> $reply:ident($result:ty),
                $exported:ident($($passed:expr),+) as $convert:ident;
            )+
        }
    )+) => {
        /// A call with its arguments, serialized by function unless they are personal.
        #[derive(Clone, Serialize, Deserialize)]
        pub enum Call {
            $($(
                #[cfg_attr($personal, serde(skip))]
                #[serde(rename = $function)]
                $variant($(<$type as ToOwned>::Owned),+),
            )+)+
        }

        #[cfg(test)]
        const FUNCTIONS: &[&str] = &[$($($function),+),+];

        impl Call {
            /// Returns the function's name, for example `checkout.start`.
            #[must_use]
            pub fn function(&self) -> &'static str {
                match self { $($(Call::$variant(..) => $function,)+)+ }
            }

            pub(crate) fn interface(&self) -> &'static str {
                match self { $($(Call::$variant(..) => $interface_name,)+)+ }
            }

            /// Returns whether arguments and results are personal data, which is never recorded.
            pub(crate) fn is_personal(&self) -> bool {
                match self { $($(Call::$variant(..) => $personal,)+)+ }
            }
        }

        $(
            impl $callable {
                $(
                    $(#[$doc])*
                    pub async fn $method(
                        &self,
                        credentials: &Credentials,
                        $($argument: &$type),+
                    ) -> Result<$result, CallError> {
                        let call = Call::$variant($($argument.to_owned()),+);
                        match self.execute(credentials, &call).await? {
                            PluginReply::$reply(result) => Ok(result),
                            _ => unreachable!("the reply is that of the function"),
                        }
                    }
                )+
            }
        )+

        /// Interfaces exported by a component, looked up once when it is loaded.
        #[derive(Clone)]
        pub struct Offers {
            $($interface: Option<exported::$interface::GuestIndices>,)+
        }

        impl Offers {
            pub fn of<T: 'static>(pre: &InstancePre<T>) -> wasmtime::Result<Offers> {
                let export = |name| pre.component().get_export_index(None, &versioned_name(name));
                Ok(Offers {
                    $($interface: export($interface_name)
                        .map(|_| exported::$interface::GuestIndices::new(pre))
                        .transpose()?,)+
                })
            }

            /// Loads each interface, which checks its types.
            pub fn check(
                &self,
                store: &mut Store<State>,
                instance: &Instance,
            ) -> Result<(), String> {
                $(if let Some(indices) = &self.$interface {
                    indices.load(&mut *store, instance).map_err(|error| {
                        let name = $interface_name;
                        format!("the interface {name} differs from the contract: {error}")
                    })?;
                })+
                Ok(())
            }

            pub fn names(&self) -> Vec<&'static str> {
                [$(self.$interface.as_ref().map(|_| $interface_name)),+]
                    .into_iter()
                    .flatten()
                    .collect()
            }

            /// Calls the function in an instance, and converts its arguments and its result.
            pub async fn call<T: Send + 'static>(
                &self,
                store: &mut Store<T>,
                instance: &Instance,
                call: &Call,
            ) -> GuestResult {
                match call {
                    // The provider has no such function: the host only deletes the token.
                    Call::Deauthorize(_) if self.saved_card.is_none() => {
                        Ok(Ok(PluginReply::Deauthorized(false)))
                    }
                    $($(Call::$variant($($argument),+) => {
                        let Some(indices) = &self.$interface else {
                            return Ok(Err(not_supported($interface_name)));
                        };
                        let guest = indices.load(&mut *store, instance)?;
                        let result = guest.$exported(store, $($passed),+).await?;
                        Ok($convert(result).map(PluginReply::$reply))
                    })+)+
                }
            }
        }
    };
}

fn not_supported(interface: &str) -> Fault {
    let message = format!("the plugin has no interface {interface}");
    Fault::new(FaultCategory::Invalid, "not-supported", message)
}

// Each interface has its module in the bindings, its name, the type with its methods, and whether
// its calls are personal. Each function has its call, its name, its method with the reply, and the
// exported function with converted arguments and the conversion of its result.
functions! {
    checkout = "checkout" of Provider, personal: false {
        StartCheckout(order: CheckoutOrder) = "checkout.start",
        start_checkout -> Session(CheckoutSession),
        call_start(&order.into()) as converted;
    }
    verification = "verification" of Provider, personal: false {
        Verify(service_ref: str) = "verification.verify",
        verify -> Payment(ProviderPayment),
        call_verify(service_ref) as converted;
    }
    sessions = "sessions" of Provider, personal: false {
        StartSession(order: CheckoutOrder) = "sessions.start",
        start_session -> Session(CheckoutSession),
        call_start(&order.into()) as converted;

        VerifySession(session: KnownSession) = "sessions.verify",
        verify_session -> Payment(ProviderPayment),
        call_verify(&session.into()) as converted;

        /// Returns the data of a payment's notification. The faults `Invalid` and `Refused` concern
        /// the notification.
        ReceiveForSession(session: KnownSession, webhook: Webhook) = "sessions.receive",
        receive_for_session -> Received(PluginData),
        call_receive(&session.into(), &webhook.headers, &webhook.body) as received;
    }
    session_refunds = "session-refunds" of Provider, personal: false {
        StartSessionRefund(order: SessionRefundOrder) = "session-refunds.start",
        start_session_refund -> Refund(ProviderRefund),
        call_start(&order.into()) as converted;

        CheckSessionRefund(refund: KnownRefund) = "session-refunds.check",
        check_session_refund -> Refund(ProviderRefund),
        call_check(&refund.into()) as converted;

        /// Like `receive_for_session`, for a refund.
        ReceiveForRefund(refund: KnownRefund, webhook: Webhook) = "session-refunds.receive",
        receive_for_refund -> Received(PluginData),
        call_receive(&refund.into(), &webhook.headers, &webhook.body) as received;
    }
    saved_card = "saved-card" of Provider, personal: false {
        ChargeCard(order: CardOrder) = "saved-card.charge",
        charge_card -> Payment(ProviderPayment),
        call_charge(&order.into()) as converted;

        /// Returns `false` if the provider does not support deauthorization.
        Deauthorize(token: str) = "saved-card.deauthorize",
        deauthorize -> Deauthorized(bool),
        call_deauthorize(token) as converted;
    }
    direct_debit = "direct-debit" of Provider, personal: false {
        Debit(order: DebitOrder) = "direct-debit.debit",
        debit -> Payment(ProviderPayment),
        call_debit(&order.into()) as converted;
    }
    partial_debits = "partial-debits" of Provider, personal: false {
        ChargeCardInPart(order: PartialOrder) = "partial-debits.charge-card",
        charge_card_in_part -> Payment(ProviderPayment),
        call_charge_card(&order.into()) as converted;

        DebitInPart(order: PartialOrder) = "partial-debits.debit",
        debit_in_part -> Payment(ProviderPayment),
        call_debit(&order.into()) as converted;
    }
    declines = "declines" of Provider, personal: true {
        /// Returns why a failed charge was declined, from its message and response.
        DeclineReason(message: str, raw: str) = "declines.reason",
        decline_reason -> Declined(Decline),
        call_reason(message, raw) as converted;
    }
    refunds = "refunds" of Provider, personal: false {
        StartRefund(order: RefundOrder) = "refunds.start",
        start_refund -> Refund(ProviderRefund),
        call_start(&order.into()) as converted;

        CheckRefund(provider_id: str) = "refunds.check",
        check_refund -> Refund(ProviderRefund),
        call_check(provider_id) as converted;
    }
    partial_refunds = "partial-refunds" of Provider, personal: false {
        StartPartialRefund(order: PartialRefundOrder) = "partial-refunds.start",
        start_partial_refund -> Refund(ProviderRefund),
        call_start(&order.into()) as converted;
    }
    virtual_accounts = "virtual-accounts" of Provider, personal: true {
        OpenAccount(order: AccountOrder) = "virtual-accounts.open",
        open_account -> Account(VirtualAccount),
        call_open(&order.into()) as converted;

        /// Returns `false` if the provider cannot close accounts.
        CloseAccount(provider_id: str) = "virtual-accounts.close",
        close_account -> Closed(bool),
        call_close(provider_id) as converted;

        /// Returns a payment that has no order. `None`: not a transfer to a virtual account.
        FindTransfer(service_ref: str) = "virtual-accounts.find-transfer",
        find_transfer -> Transfer(Option<IncomingTransfer>),
        call_find_transfer(service_ref) as transfer;
    }
    account_enquiry = "account-enquiry" of Provider, personal: true {
        ListBanks(currency: str) = "account-enquiry.banks",
        list_banks -> Banks(Vec<Bank>),
        call_banks(currency) as banks;

        /// Returns the name of an account's holder.
        ResolveAccount(bank_code: str, account_number: str) = "account-enquiry.resolve",
        resolve_account -> Holder(String),
        call_resolve(bank_code, account_number) as holder;
    }
    disputes = "disputes" of Provider, personal: true {
        ListDisputes(filter: DisputeFilter, cursor: Option<String>) = "disputes.list",
        list_disputes -> Disputes(DisputePage),
        call_list(&filter.into(), cursor.as_deref()) as page;

        FetchDispute(key: DisputeKey) = "disputes.fetch",
        fetch_dispute -> Dispute(ProviderDispute),
        call_fetch(&key.into()) as dispute;

        /// Repeating it has no further effect.
        AnswerDispute(answer: DisputeAnswer) = "disputes.answer",
        answer_dispute -> Dispute(ProviderDispute),
        call_answer(&answer.into()) as dispute;
    }
    settlements = "settlements" of Provider, personal: true {
        ListTransactions(filter: TransactionFilter, cursor: Option<String>) = "settlements.transactions",
        list_transactions -> Transactions(TransactionPage),
        call_transactions(&filter.into(), cursor.as_deref()) as transaction_page;

        ListSettlements(period: Period, cursor: Option<String>) = "settlements.list",
        list_settlements -> Settlements(SettlementPage),
        call_list(&period.into(), cursor.as_deref()) as settlement_page;
    }
    mandates = "mandates" of Provider, personal: true {
        BeginMandate(order: MandateOrder) = "mandates.begin",
        begin_mandate -> MandateSession(MandateSession),
        call_begin(&order.into()) as converted;

        QueryMandate(mandate: KnownMandate) = "mandates.query",
        query_mandate -> Mandate(ProviderMandate),
        call_query(&mandate.into()) as converted;

        /// Returns `false` if the provider can cancel it only once the payer has authorized it.
        CancelMandate(mandate: KnownMandate) = "mandates.cancel",
        cancel_mandate -> Cancelled(bool),
        call_cancel(&mandate.into()) as converted;
    }
    notifications = "notifications" of Provider, personal: false {
        /// Authenticates a webhook and returns its subjects.
        ParseNotification(webhook: Webhook) = "notifications.parse",
        parse_notification -> Parsed(Result<Vec<Notification>, NotificationRefusal>),
        call_parse(&webhook.headers, &webhook.body) as notifications;
    }
    sms = "sms" of Gateway, personal: false {
        /// Returns the gateway's message id. The faults `Invalid`, `Refused` and `NotFound` concern
        /// the message; after any other one, another gateway may be tried.
        SendText(message: TextMessage) = "sms.send",
        send_text -> Accepted(String),
        call_send(&message.into()) as message_id;
    }
    identity_lookup = "identity-lookup" of CountryPlugin, personal: true {
        LookUp(question: IdentityQuery) = "identity-lookup.lookup",
        look_up -> Entry(RegisterEntry),
        call_lookup(&question.into()) as converted;
    }
    identity_face = "identity-face" of CountryPlugin, personal: true {
        /// Looks up an entry and compares its photo with a selfie.
        Compare(question: IdentityQuery, selfie: Image) = "identity-face.compare",
        compare -> Compared((RegisterEntry, FaceComparison)),
        call_compare(&question.into(), &selfie.into()) as converted;
    }
    identity_document = "identity-document" of CountryPlugin, personal: true {
        /// Looks up the entry for a document. Returns the identifier on the document and the entry.
        Read(identity: str, document: Image) = "identity-document.read",
        read -> Read((String, RegisterEntry)),
        call_read(identity, &document.into()) as converted;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;
    use crate::Manifest;

    #[test]
    fn every_function_has_an_example_and_is_recorded_by_name_unless_it_is_personal() {
        let mut seen = BTreeSet::new();
        for component in artifacts::BUILT_IN {
            for call in Call::all_examples(&Manifest::read(component.wasm).unwrap()) {
                let function = call.function();
                assert_eq!(function.split('.').next(), Some(call.interface()));
                seen.insert(function);
                let recorded = serde_json::to_value(&call);
                if call.is_personal() {
                    assert!(recorded.is_err(), "{function}");
                    continue;
                }
                let recorded = recorded.unwrap();
                assert!(!recorded[function].is_null(), "{function}");
                let read: Call = serde_json::from_value(recorded.clone()).unwrap();
                assert_eq!(serde_json::to_value(read).unwrap(), recorded, "{function}");
            }
        }
        assert_eq!(seen, FUNCTIONS.iter().copied().collect());
    }

    #[test]
    fn a_recorded_webhook_has_its_body_as_text() {
        let headers = vec![("x-signature".to_owned(), "1".to_owned())];
        let call = Call::ParseNotification(Webhook { headers, body: "{}".into() });
        let recorded = json!({
            "notifications.parse": { "headers": [["x-signature", "1"]], "body": "{}" }
        });
        assert_eq!(serde_json::to_value(call).unwrap(), recorded);
    }
}
