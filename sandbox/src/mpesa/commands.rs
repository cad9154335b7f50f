//! Commands of an initiator: reversals and the status of a transaction. Their results arrive later
//! at the `ResultURL`.

use axum::{Json, extract::State};
use serde_json::{Value, json};

use super::{
    Mpesa,
    accounts::Account,
    http::{ApiError, ApiResult, ConsumerKey, Params},
    merchant::TimerEvent,
    push::{Push, new_receipt, shillings},
    security, times,
};
use crate::{env::Env, outbox::Delivery, provider::PROCESSING_SECONDS};

const STATUS_SECONDS: i64 = 1;
const MAX_TEXT_CHARS: usize = 100;
/// Identifies an organization by its shortcode in reversals.
const REVERSAL_IDENTIFIER: &str = "11";

/// `ResultCode` and `ResultDesc` of a failure.
type Failure = (&'static str, &'static str);

const ALREADY_REVERSED: Failure = ("R000001", "The transaction has already been reversed.");
const UNKNOWN_RECEIPT: Failure = ("R000002", "The OriginalTransactionID is invalid.");
const INSUFFICIENT_BALANCE: Failure = ("1", "The balance is insufficient.");
const INVALID_ORGANIZATION: Failure = ("11", "The DebitParty is in an invalid state.");
const WRONG_INITIATOR: Failure = ("2001", "The initiator information is invalid.");
/// Only a whole payment can be reversed.
const OTHER_AMOUNT: Failure = ("2006", "Declined due to account rule.");

/// The transaction of a result, and its parameters.
type Success = (String, Vec<(&'static str, Value)>);

enum CommandKind {
    Reversal {
        /// In whole shillings.
        amount: u64,
    },
    Status,
}

/// An accepted command without a result.
pub(super) struct Command {
    kind: CommandKind,
    /// Receipt of the payment.
    receipt: String,
    /// A failure that does not depend on the payment.
    failure: Option<Failure>,
    conversation_id: String,
    originator_conversation_id: String,
    result_url: String,
    /// Key and value of the `ReferenceItem`.
    reference: (&'static str, String),
}

impl Account {
    /// Reads the common fields of a command.
    fn read_command(
        &self,
        env: &Env,
        params: &Params,
        kind: CommandKind,
        organization: &str,
    ) -> Result<Command, ApiError> {
        let initiator = params.required("Initiator")?;
        let credential = params.required("SecurityCredential")?;
        let receipt = params.required("TransactionID")?;
        let organization = params.required(organization)?;
        let result_url = params.url("ResultURL")?;
        let queue_timeout_url = params.url("QueueTimeOutURL")?;
        params.short("Remarks", MAX_TEXT_CHARS)?;
        let occasion = params.optional("Occasion", MAX_TEXT_CHARS)?;
        let own = &self.credentials;
        let is_initiator = initiator == own.initiator
            && security::is_password(&credential, &own.initiator_password);
        let failure = if !is_initiator {
            Some(WRONG_INITIATOR)
        } else if organization != own.shortcode {
            Some(INVALID_ORGANIZATION)
        } else {
            None
        };
        let number = env.next_id();
        Ok(Command {
            reference: match kind {
                CommandKind::Reversal { .. } => ("QueueTimeoutURL", queue_timeout_url),
                CommandKind::Status => ("Occasion", occasion),
            },
            kind,
            receipt,
            failure,
            conversation_id: format!("AG_{}_{number:020x}", times::day(env.clock.now())),
            originator_conversation_id: format!("{}-{number}-1", number % 100_000),
            result_url,
        })
    }

    fn accept(&mut self, env: &Env, command: Command) -> Json<Value> {
        let body = json!({
            "OriginatorConversationID": command.originator_conversation_id,
            "ConversationID": command.conversation_id,
            "ResponseCode": "0",
            "ResponseDescription": "Accept the service request successfully.",
        });
        let delay = match command.kind {
            CommandKind::Reversal { .. } => PROCESSING_SECONDS,
            CommandKind::Status => STATUS_SECONDS,
        };
        let event = TimerEvent::Command(command.conversation_id.clone());
        self.timers.schedule(env.clock.now().plus_seconds(delay), event);
        self.commands.insert(command.conversation_id.clone(), command);
        Json(body)
    }

    /// Executes a command and sends its result.
    pub(super) fn run_command(&mut self, env: &Env, conversation_id: &str) {
        let Some(command) = self.commands.remove(conversation_id) else { return };
        let result = match (command.failure, &command.kind) {
            (Some(failure), _) => Err(failure),
            (None, CommandKind::Reversal { amount }) => {
                self.reverse_payment(env, &command.receipt, *amount)
            }
            (None, CommandKind::Status) => self.payment_status(env, &command.receipt),
        };
        let delivery = Delivery {
            ordering_key: format!("mpesa {conversation_id}"),
            method: reqwest::Method::POST,
            url: command.result_url.clone(),
            body: result_json(env, &command, result).to_string(),
            signatures: Vec::new(),
            retry_ms: |_| None,
        };
        env.outbox.enqueue(delivery, env.clock.now());
    }

    fn reverse_payment(
        &mut self,
        env: &Env,
        receipt: &str,
        amount: u64,
    ) -> Result<Success, Failure> {
        let organization = self.organization();
        let payment = self.pushes.values_mut().find(|push| is_payment(push, receipt));
        let payment = payment.ok_or(UNKNOWN_RECEIPT)?;
        if payment.reversed {
            return Err(ALREADY_REVERSED);
        }
        if amount != payment.amount {
            return Err(OTHER_AMOUNT);
        }
        self.balance = self.balance.checked_sub(amount).ok_or(INSUFFICIENT_BALANCE)?;
        payment.reversed = true;
        let balance = self.balance;
        let parameters = vec![
            (
                "DebitAccountBalance",
                json!(format!("Utility Account|KES|{balance}.00|{balance}.00|0.00|0.00")),
            ),
            ("Amount", payment.amount_json()),
            ("TransCompletedTime", json!(times::number(env.clock.now()))),
            ("OriginalTransactionID", json!(receipt)),
            ("Charge", shillings(0)),
            ("CreditPartyPublicName", json!(subscriber(payment))),
            ("DebitPartyPublicName", json!(organization)),
        ];
        Ok((new_receipt(env), parameters))
    }

    fn payment_status(&self, env: &Env, receipt: &str) -> Result<Success, Failure> {
        let payment = self.pushes.values().find(|push| is_payment(push, receipt));
        let payment = payment.ok_or(UNKNOWN_RECEIPT)?;
        let completed_at = payment.completed_at.map(times::number);
        let parameters = vec![
            ("DebitPartyName", json!(subscriber(payment))),
            ("CreditPartyName", json!(self.organization())),
            ("InitiatedTime", json!(completed_at)),
            ("FinalisedTime", json!(completed_at)),
            ("ReasonType", json!("Pay Bill Online")),
            ("TransactionStatus", json!(if payment.reversed { "Reversed" } else { "Completed" })),
            ("Amount", payment.amount_json()),
            ("ReceiptNo", json!(receipt)),
        ];
        Ok((no_transaction(env), parameters))
    }

    fn organization(&self) -> String {
        format!("{} - {}", self.credentials.shortcode, self.merchant())
    }
}

fn is_payment(push: &Push, receipt: &str) -> bool {
    push.receipt.as_deref() == Some(receipt)
}

fn subscriber(payment: &Push) -> String {
    format!("{} - Test Subscriber", payment.phone)
}

/// Returns the `TransactionID` of a result without a transaction, such as `TLJ0000000`.
fn no_transaction(env: &Env) -> String {
    format!("{:.3}0000000", new_receipt(env))
}

fn result_json(env: &Env, command: &Command, result: Result<Success, Failure>) -> Value {
    let (code, description) = match &result {
        Ok(_) => (json!(0), "The service request is processed successfully."),
        Err((code, description)) => {
            // A number, unless it has a letter.
            (code.parse::<u64>().map_or_else(|_| json!(code), |code| json!(code)), *description)
        }
    };
    let (transaction, parameters) = match result {
        Ok((transaction, parameters)) => (transaction, Some(parameters)),
        Err(_) => (no_transaction(env), None),
    };
    let mut result = json!({
        "ResultType": 0,
        "ResultCode": code,
        "ResultDesc": description,
        "OriginatorConversationID": command.originator_conversation_id,
        "ConversationID": command.conversation_id,
        "TransactionID": transaction,
    });
    if let Some(parameters) = parameters {
        let parameter = |(key, value): (&str, Value)| json!({ "Key": key, "Value": value });
        let parameters: Vec<Value> = parameters.into_iter().map(parameter).collect();
        result["ResultParameters"] = json!({ "ResultParameter": parameters });
    }
    let (key, value) = &command.reference;
    result["ReferenceData"] = json!({ "ReferenceItem": { "Key": key, "Value": value } });
    json!({ "Result": result })
}

pub(super) async fn reverse(
    State(mpesa): State<Mpesa>,
    ConsumerKey(key): ConsumerKey,
    params: Params,
) -> ApiResult {
    params.valid("CommandID", |command| command == "TransactionReversal")?;
    params.valid("RecieverIdentifierType", |kind| kind == REVERSAL_IDENTIFIER)?;
    let kind = CommandKind::Reversal { amount: params.amount("Amount", u64::MAX)? };
    mpesa.0.with_account(&key, |account, env| {
        let command = account.read_command(env, &params, kind, "ReceiverParty")?;
        Ok(account.accept(env, command))
    })
}

pub(super) async fn status(
    State(mpesa): State<Mpesa>,
    ConsumerKey(key): ConsumerKey,
    params: Params,
) -> ApiResult {
    params.valid("CommandID", |command| command == "TransactionStatusQuery")?;
    params.valid("IdentifierType", |kind| kind == "4")?;
    mpesa.0.with_account(&key, |account, env| {
        let command = account.read_command(env, &params, CommandKind::Status, "PartyA")?;
        Ok(account.accept(env, command))
    })
}
