//! Every route of both listeners, in one table.

mod introduction;

use std::sync::LazyLock;

use axum::{Router, extract::FromRef};
use schemars::SchemaGenerator;
use serde_json::Value;

use self::introduction::{INTERNAL_INTRODUCTION, PUBLIC_INTRODUCTION, TAGS};
use crate::{
    customers as users, identity,
    lending::{collections, loans, mandates, recollections, virtual_accounts},
    messaging::{members, messages, otp},
    money::{
        cards, charges::sessions, disputes, enquiry, exceptions, payments, reconciliation, refunds,
        routing, totals,
    },
    operations::{
        jobs, master_key,
        monitor::{calls, hosts},
        operator_events,
        operators::{self, permissions},
        plugins, recordings, search,
    },
    state::App,
    tenants::{
        companies::{self, scopes},
        plans, providers, requests, wallet,
    },
    webhooks::{incoming as notifications, outgoing as events},
};
use tollhouse_console::{ConsoleOptions, Site};
use tollhouse_http::{
    self as http, Access, ErasedHandler, Interface, Server,
    openapi::{
        self, DocumentContents, Webhook,
        docs::{self, Document},
    },
    server::metrics,
};

/// The routes that receive components, which have their own size limit.
const COMPONENT_ROUTES: [&str; 2] = ["/internal/v1/plugins", "/internal/v1/plugins/examine"];
/// The routes that receive files, with the maximum body: user files, and 5 MiB images in base64.
const UPLOAD_ROUTES: [(&str, usize); 2] =
    [("/api/v1/user/bulk/create", 16 << 20), ("/api/v1/kyc/{country}/{*path}", 8 << 20)];

/// The handlers of audit logs, in the module that their operation ids name.
mod audit {
    pub use crate::operations::audit::{chain_of_service, of_service};
    pub use crate::tenants::companies::api::{
        audit_chain as chain_of_company, audit_log as of_company,
    };
}

/// The handlers of `/health` and the clock, in the module that their operation ids name.
mod health {
    pub use crate::operations::clock::advance_clock;
    pub use tollhouse_http::server::health::{live, ready};
}

pub type Route = http::Route<Shared>;

/// The state that all requests share. `State<App>` in a handler is the host for that one request.
#[derive(Clone)]
pub struct Shared(App);

impl FromRef<Shared> for App {
    fn from_ref(Shared(app): &Shared) -> App {
        app.for_operation()
    }
}

impl FromRef<Shared> for Server {
    fn from_ref(Shared(app): &Shared) -> Server {
        app.server.clone()
    }
}

macro_rules! routes {
    (in $names:ident; $($method:ident $path:literal $access:ident $(($permission:ident))? $($handler:ident)::+ $summary:literal [$($status:literal)*];)*) => {
        vec![$(Route {
            method: stringify!($method),
            path: $path,
            access: Access::$access$(($names::$permission))?,
            handled_by: stringify!($($handler)::+),
            summary: $summary,
            fails: &[$($status),*],
            describe: openapi::description(&$($handler)::+),
            handler: axum::routing::$method(ErasedHandler::new($($handler)::+)),
        }),*]
    };
}

/// The routes for companies and providers. Each row: method, path, access, handler, summary, and
/// failure statuses beyond those that these imply. In parentheses: the scope that an API key needs.
pub fn public_routes() -> Vec<Route> {
    routes! {
        in scopes;
        get  "/health/live" Unthrottled health::live "Check liveness" [];
        get  "/health/ready" Unthrottled health::ready "Check readiness" [503];
        get  "/openapi.json" Unauthenticated docs::openapi "Fetch this document" [];
        get  "/docs" Unauthenticated docs::page "Show this document in a viewer" [];
        get  "/docs/{file}" Unauthenticated docs::file "Fetch a file of the viewer" [];
        post "/api/v1/user/create" Company(USERS_WRITE) users::api::create "Create a user, or return the one with this e-mail address" [];
        post "/api/v1/otp/send" Company(OTP_SEND) otp::api::send "Send a one-time password" [503];
        post "/api/v1/otp/verify" Company(OTP_SEND) otp::api::verify "Verify a one-time password" [];
        get  "/api/v1/user/fetch/{email_or_id}" Company(USERS_READ) users::api::fetch "Fetch a user" [];
        post "/api/v1/user/bulk/create" Company(USERS_WRITE) users::api::bulk::create "Create users in bulk" [];
        get  "/api/v1/user/export" Company(USERS_READ) users::api::export::export "Export users to a file" [502];
        get  "/api/v1/user/sample-csv" Company(USERS_READ) users::api::export::sample "Create a sample CSV file" [];
        get  "/api/v1/user/file/{file}" Unauthenticated users::api::export::fetch "Download a file by its link" [400 403 502];
        get  "/api/v1/user/list" Company(USERS_READ) users::api::list "List users" [];
        put  "/api/v1/user/edit/{user_id}" Company(USERS_WRITE) users::api::edit "Edit a user" [];
        get  "/api/v1/user/email-verification/send/{user_id}" Company(USERS_WRITE) users::api::send_email "Send a code to a user's e-mail address" [503];
        post "/api/v1/user/email-verification/verify/{user_id}" Company(USERS_WRITE) users::api::verify_email "Verify a user's e-mail address" [];
        get  "/api/v1/user/phone-verification/send/{user_id}" Company(USERS_WRITE) users::api::send_phone "Send a code to a user's phone" [503];
        post "/api/v1/user/phone-verification/verify/{user_id}" Company(USERS_WRITE) users::api::verify_phone "Verify a user's phone number" [];
        post "/api/v1/kyc/{country}/{*path}" Company(IDENTITIES_WRITE) identity::api::look_up "Look up an identity" [502 504];
        get  "/api/v1/kyc/uid/send-verification/{uid_id}" Company(IDENTITIES_WRITE) identity::api::send "Send a verification code for an identity record" [503];
        post "/api/v1/kyc/uid/verify/{uid_id}" Company(IDENTITIES_WRITE) identity::api::verify "Verify an identity record with a code" [];
        get  "/api/v1/kyc/uid/list/{user_id}" Company(IDENTITIES_READ) identity::api::list "List a user's identity records" [];
        get  "/api/v1/kyc/identity/list" Company(IDENTITIES_READ) identity::api::identities "List identity types" [];
        post "/api/v1/card/create" Company(CARDS_WRITE) cards::api::create "Save a card through a checkout session" [404 502 504];
        post "/api/v1/card/verify/{card}" Company(CARDS_WRITE) cards::api::verify "Verify a card with the provider" [502 504];
        get  "/api/v1/card/list/{user_id}" Company(CARDS_READ) cards::api::list "List a user's cards" [];
        get  "/api/v1/card/fetch/{card}" Company(CARDS_READ) cards::api::fetch "Fetch a card" [];
        put  "/api/v1/card/default/set/{card}" Company(CARDS_WRITE) cards::api::set_default "Set the default card" [];
        delete "/api/v1/card/delete/{card}" Company(CARDS_WRITE) cards::api::delete "Delete a card" [];
        post "/api/v1/recollection/create" Company(RECOLLECTIONS_WRITE) recollections::api::create "Create a recollection: record or charge a repayment" [404 502 504];
        post "/api/v1/recollection/verify/{reference}" Company(RECOLLECTIONS_WRITE) recollections::api::verify "Verify a recollection with the provider" [502 504];
        get  "/api/v1/recollection/fetch/{recollection}" Company(RECOLLECTIONS_READ) recollections::api::fetch "Fetch a recollection" [];
        get  "/api/v1/recollection/fetch/reference/{reference}" Company(RECOLLECTIONS_READ) recollections::api::fetch_by_reference "Fetch a recollection with its loan by its reference" [];
        get  "/api/v1/recollection/list" Company(RECOLLECTIONS_READ) recollections::api::list "List recollections" [];
        post "/api/v1/payment/initialize" Company(PAYMENTS_WRITE) payments::api::initialize "Initialize a payment, or return the one with this reference" [404 502 504];
        post "/api/v1/payment/verify/{reference}" Company(PAYMENTS_WRITE) payments::api::verify "Verify a payment with the provider" [502 504];
        get  "/api/v1/payment/fetch/{id}" Company(PAYMENTS_READ) payments::api::fetch "Fetch a payment" [];
        get  "/api/v1/payment/fetch/reference/{reference}" Company(PAYMENTS_READ) payments::api::fetch_by_reference "Fetch a payment by its reference" [];
        get  "/api/v1/payment/list" Company(PAYMENTS_READ) payments::api::list "List payments" [];
        post "/api/v1/virtual-account/create" Company(ACCOUNTS_WRITE) virtual_accounts::api::create "Open a virtual account, or return the user's existing one" [404 502 504];
        get  "/api/v1/virtual-account/fetch/{virtual_account}" Company(ACCOUNTS_READ) virtual_accounts::api::fetch "Fetch a virtual account" [];
        get  "/api/v1/virtual-account/list/{user_id}" Company(ACCOUNTS_READ) virtual_accounts::api::list "List a user's virtual accounts" [];
        delete "/api/v1/virtual-account/delete/{virtual_account}" Company(ACCOUNTS_WRITE) virtual_accounts::api::delete "Close a virtual account" [502 504];
        post "/api/v1/direct-debit/create" Company(MANDATES_WRITE) mandates::api::create "Create a direct debit mandate for the user to authorize" [404 502 504];
        get  "/api/v1/direct-debit/fetch/{direct_debit}" Company(MANDATES_READ) mandates::api::fetch "Fetch a direct debit mandate" [];
        get  "/api/v1/direct-debit/list/{user_id}" Company(MANDATES_READ) mandates::api::list "List a user's direct debit mandates" [];
        delete "/api/v1/direct-debit/delete/{direct_debit}" Company(MANDATES_WRITE) mandates::api::delete "Cancel and delete a direct debit mandate" [];
        get  "/api/v1/account/banks/{provider}/{currency}" Company(ACCOUNTS_READ) enquiry::banks "List the banks whose accounts can be resolved" [502 504];
        post "/api/v1/account/resolve" Company(ACCOUNTS_READ) enquiry::resolve "Resolve the name of a bank account's holder" [404 502 504];
        get  "/api/v1/event/list" Company(EVENTS_READ) events::api::read "List events after a cursor, oldest first" [];
        post "/api/v1/event/trigger" Company(EVENTS_WRITE) events::api::trigger "Trigger an event with example data, for a test company" [];
        post "/api/v1/notifications/{provider}/{account}" Unauthenticated notifications::api::receive "Receive a provider webhook" [400 401 503];
        post "/api/v1/notifications/{provider}/{account}/{company}/{charge_or_refund}/{signature}" Unauthenticated sessions::api::receive "Receive a provider webhook of one charge or refund" [400 401 503];
        put  "/api/v1/notifications/{provider}/{account}/{company}/{charge_or_refund}/{signature}" Unauthenticated sessions::api::receive_put "Receive a provider webhook of one charge or refund" [400 401 503];
        get  "/pay/{company}/{charge}/{signature}" Unauthenticated sessions::page::show "Show a payer the status page of a charge" [];
    }
}

/// The routes for operators and internal consumers. In parentheses: the permission that a route
/// requires.
pub fn internal_routes() -> Vec<Route> {
    let mut routes = routes! {
        in permissions;
        get    "/health/live" Unthrottled health::live "Check liveness" [];
        get    "/health/ready" Unthrottled health::ready "Check readiness" [503];
        get    "/metrics" Unthrottled metrics::scrape "Fetch Prometheus metrics" [];
        get    "/openapi.json" Unauthenticated docs::openapi "Fetch this document" [];
        get    "/docs" Unauthenticated docs::page "Show this document in a viewer" [];
        get    "/docs/{file}" Unauthenticated docs::file "Fetch a file of the viewer" [];
        post   "/internal/v1/companies" Operator(COMPANIES_WRITE) companies::api::create "Create a company with its first API key" [];
        get    "/internal/v1/companies" Operator(COMPANIES_READ) companies::api::list "List companies" [];
        get    "/internal/v1/companies/{company}" Operator(COMPANIES_READ) companies::api::fetch "Fetch a company" [];
        patch  "/internal/v1/companies/{company}" Operator(COMPANIES_WRITE) companies::api::edit "Edit or suspend a company" [];
        post   "/internal/v1/companies/{company}/event-secret/rotate" Operator(KEYS_WRITE) companies::api::rotate_event_secret "Rotate a company's event secret" [];
        post   "/internal/v1/companies/{company}/keys" Operator(KEYS_WRITE) companies::api::create_key "Create an API key" [];
        get    "/internal/v1/companies/{company}/keys" Operator(COMPANIES_READ) companies::api::list_keys "List a company's API keys" [];
        post   "/internal/v1/companies/{company}/keys/{key}/rotate" Operator(KEYS_WRITE) companies::api::rotate_key "Rotate an API key" [];
        delete "/internal/v1/companies/{company}/keys/{key}" Operator(KEYS_WRITE) companies::api::revoke_key "Revoke an API key" [];
        put    "/internal/v1/companies/{company}/subscription" Operator(COMPANIES_WRITE) companies::api::subscribe "Change a company's subscription" [];
        put    "/internal/v1/companies/{company}/providers/{provider}" Operator(PROVIDERS_WRITE) providers::api::set_for_company "Configure a company's provider account" [];
        post   "/internal/v1/companies/{company}/providers/{provider}/test" Operator(PROVIDERS_WRITE) providers::api::test_for_company "Test a company's provider account with a call that has no effect" [];
        get    "/internal/v1/companies/{company}/providers" Operator(COMPANIES_READ) providers::api::list_for_company "List a company's provider accounts" [];
        put    "/internal/v1/providers/{provider}" Operator(PROVIDERS_WRITE) providers::api::set_for_service "Configure a service account at a provider" [];
        post   "/internal/v1/providers/{provider}/test" Operator(PROVIDERS_WRITE) providers::api::test_for_service "Test a service account at a provider with a call that has no effect" [];
        get    "/internal/v1/providers" Operator(COMPANIES_READ) providers::api::list_for_service "List service accounts at providers" [];
        put    "/internal/v1/companies/{company}/routing" Operator(COMPANIES_WRITE) routing::api::set "Set a company's routing policy" [];
        delete "/internal/v1/companies/{company}/routing" Operator(COMPANIES_WRITE) routing::api::remove "Remove a company's routing policy" [];
        get    "/internal/v1/companies/{company}/routing/preview" Operator(COMPANIES_READ) routing::api::preview "Preview the provider that the router chooses" [];
        get    "/internal/v1/companies/{company}/prices" Operator(COMPANIES_READ) plans::api::fetch_for_company "Fetch a company's prices" [];
        patch  "/internal/v1/companies/{company}/prices" Operator(PRICES_WRITE) plans::api::set_for_company "Set prices of a company's own plan" [];
        get    "/internal/v1/prices" Operator(COMPANIES_READ) plans::api::fetch_default "Fetch the prices of the default plan" [];
        patch  "/internal/v1/prices" Operator(PRICES_WRITE) plans::api::set_default "Set prices of the default plan" [];
        get    "/internal/v1/companies/{company}/wallet" Operator(WALLET_READ) wallet::api::fetch "Fetch a company's wallet" [];
        post   "/internal/v1/companies/{company}/wallet/credit" Operator(WALLET_WRITE) wallet::api::credit "Credit a wallet" [409];
        post   "/internal/v1/companies/{company}/wallet/debit" Operator(WALLET_WRITE) wallet::api::debit "Debit a wallet" [409];
        get    "/internal/v1/companies/{company}/wallet/entries" Operator(WALLET_READ) wallet::api::entries "List a company's ledger entries" [];
        get    "/internal/v1/companies/{company}/statement" Operator(WALLET_READ) wallet::statement::fetch "Fetch the statement of a company's wallet for a month" [];
        get    "/internal/v1/companies/{company}/totals" Operator(WALLET_READ) totals::of_company "Fetch totals of a company" [];
        get    "/internal/v1/overview" Operator(WALLET_READ) totals::overview "Fetch an overview of what needs attention" [];
        get    "/internal/v1/totals" Operator(WALLET_READ) totals::of_service "Fetch totals of all companies" [];
        get    "/internal/v1/events" Operator(FEEDS_READ) operator_events::api::read "List operator events" [];
        get    "/internal/v1/companies/{company}/events" Operator(EVENTS_READ) events::api::list "List a company's events and their deliveries" [];
        get    "/internal/v1/companies/{company}/events/{event}/attempts" Operator(EVENTS_READ) events::api::attempts "List the delivery attempts of an event" [];
        post   "/internal/v1/companies/{company}/events/{event}/redeliver" Operator(EVENTS_REDELIVER) events::api::redeliver "Redeliver an event" [];
        get    "/internal/v1/companies/{company}/messages" Operator(MESSAGES_READ) messages::api::list "List a company's e-mails and text messages" [];
        get    "/internal/v1/companies/{company}/requests" Operator(REQUESTS_READ) requests::api::list "List a company's API requests" [];
        get    "/internal/v1/transactions" Operator(FEEDS_READ) loans::api::transactions "List repayments" [];
        get    "/internal/v1/credit-events" Operator(FEEDS_READ) loans::api::credit_events "List credit-score events" [];
        get    "/internal/v1/search" Operator(PAYMENTS_READ) search::find "Search the records of all companies" [];
        get    "/internal/v1/identities" Operator(COMPANIES_READ) identity::api::operators::list "List identity types" [];
        put    "/internal/v1/identities/{country}/{identity}" Operator(IDENTITIES_WRITE) identity::api::operators::switch "Enable or disable an identity type" [];
        get    "/internal/v1/companies/{company}/identities" Operator(COMPANIES_READ) identity::api::operators::list_for_company "List the identity types of a company" [];
        put    "/internal/v1/companies/{company}/identities/{country}/{identity}" Operator(IDENTITIES_WRITE) identity::api::operators::switch_for_company "Enable or disable an identity type for a company" [];
        post   "/internal/v1/clock/advance" Operator(CLOCK_ADVANCE) health::advance_clock "Advance the clock (development only)" [403];
    };
    routes.extend(member_routes());
    routes.extend(aftermath_routes());
    routes.extend(customer_routes());
    routes.extend(platform_routes());
    routes.extend(operator_routes());
    routes
}

/// The routes for the team of a company, and its event endpoints.
fn member_routes() -> Vec<Route> {
    routes! {
        in permissions;
        get    "/internal/v1/companies/{company}/members" Operator(MEMBERS_READ) members::api::list "List the members of a company" [];
        post   "/internal/v1/companies/{company}/members" Operator(MEMBERS_WRITE) members::api::create "Invite a person to the team of a company" [409 503];
        patch  "/internal/v1/companies/{company}/members/{member}" Operator(MEMBERS_WRITE) members::api::edit "Change a member of a company" [409];
        post   "/internal/v1/companies/{company}/members/{member}/invite" Operator(MEMBERS_WRITE) members::api::invite "Invite a member to set a new password" [409 503];
        get    "/internal/v1/companies/{company}/event-endpoints" Operator(COMPANIES_READ) events::endpoints::api::list "List a company's event endpoints" [];
        post   "/internal/v1/companies/{company}/event-endpoints" Operator(EVENTS_WRITE) events::endpoints::api::create "Create an event endpoint" [];
        patch  "/internal/v1/companies/{company}/event-endpoints/{endpoint}" Operator(EVENTS_WRITE) events::endpoints::api::edit "Edit or deactivate an event endpoint" [];
        post   "/internal/v1/companies/{company}/event-endpoints/{endpoint}/secret/rotate" Operator(KEYS_WRITE) events::endpoints::api::rotate_secret "Rotate the secret of an event endpoint" [];
        delete "/internal/v1/companies/{company}/event-endpoints/{endpoint}" Operator(EVENTS_WRITE) events::endpoints::api::delete "Delete an event endpoint" [];
        post   "/internal/v1/companies/{company}/events/trigger" Operator(EVENTS_WRITE) events::api::trigger_of_company "Trigger an event with example data, for a test company" [];
    }
}

/// The routes for what follows a charge: refunds, disputes, exceptions and reconciliation.
fn aftermath_routes() -> Vec<Route> {
    routes! {
        in permissions;
        get    "/internal/v1/refunds" Operator(REFUNDS_READ) refunds::api::list "List refunds of payments and verification charges" [];
        get    "/internal/v1/disputes" Operator(REFUNDS_READ) disputes::api::list "List disputes of all companies" [];
        get    "/internal/v1/companies/{company}/disputes" Operator(REFUNDS_READ) disputes::api::list_of_company "List a company's disputes" [];
        get    "/internal/v1/companies/{company}/disputes/{dispute}" Operator(REFUNDS_READ) disputes::api::fetch "Fetch a dispute" [];
        post   "/internal/v1/companies/{company}/disputes/{dispute}/answer" Operator(DISPUTES_ANSWER) disputes::api::answer "Answer a dispute at the provider" [409 502 503 504];
        get    "/internal/v1/exceptions" Operator(REFUNDS_READ) exceptions::list "List exceptions of charges" [];
        get    "/internal/v1/exceptions/{service_exception}" Operator(EXCEPTIONS_RESOLVE) exceptions::service::fetch "Fetch an exception of the service" [];
        patch  "/internal/v1/exceptions/{service_exception}" Operator(EXCEPTIONS_RESOLVE) exceptions::service::edit "Assign an exception of the service to yourself, or add a note" [];
        post   "/internal/v1/exceptions/{service_exception}/resolve" Operator(EXCEPTIONS_RESOLVE) exceptions::service::resolve "Resolve an exception of the service" [409];
        get    "/internal/v1/accounts/{account}/days" Operator(REFUNDS_READ) reconciliation::api::list "List the reconciled days of a provider account" [];
        get    "/internal/v1/accounts/{account}/days/{day}" Operator(REFUNDS_READ) reconciliation::api::fetch "Fetch a reconciled day of a provider account" [];
        get    "/internal/v1/companies/{company}/accounts/{account}/days" Operator(REFUNDS_READ) reconciliation::api::list_of_company "List the reconciled days of a company's own provider account" [];
        get    "/internal/v1/companies/{company}/accounts/{account}/days/{day}" Operator(REFUNDS_READ) reconciliation::api::fetch_of_company "Fetch a reconciled day of a company's own provider account" [];
        post   "/internal/v1/accounts/{account}/days/{day}/close" Operator(EXCEPTIONS_RESOLVE) reconciliation::api::close "Close a day of a provider account" [];
        post   "/internal/v1/accounts/{account}/reconcile" Operator(EXCEPTIONS_RESOLVE) reconciliation::api::reconcile "Reconcile a provider account now" [];
        get    "/internal/v1/companies/{company}/exceptions/{exception}" Operator(EXCEPTIONS_RESOLVE) exceptions::fetch "Fetch an exception of a charge" [];
        patch  "/internal/v1/companies/{company}/exceptions/{exception}" Operator(EXCEPTIONS_RESOLVE) exceptions::edit "Assign an exception to yourself, or add a note" [];
        post   "/internal/v1/companies/{company}/exceptions/{exception}/resolve" Operator(EXCEPTIONS_RESOLVE) exceptions::resolve "Resolve an exception of a charge" [409];
        get    "/internal/v1/card-refunds" Operator(REFUNDS_READ) refunds::api::list_of_cards "List refunds of card verification charges" [];
        post   "/internal/v1/companies/{company}/card-refunds/{refund}/retry" Operator(REFUNDS_WRITE) refunds::api::retry_of_card "Retry the refund of a card verification charge" [];
    }
}

/// The routes for the customers of a company: payments, users, loans and their repayments.
fn customer_routes() -> Vec<Route> {
    routes! {
        in permissions;
        get    "/internal/v1/companies/{company}/payments" Operator(PAYMENTS_READ) payments::api::list "List a company's payments" [];
        get    "/internal/v1/companies/{company}/payments/{payment}" Operator(PAYMENTS_READ) payments::api::fetch "Fetch a company's payment" [];
        get    "/internal/v1/companies/{company}/payments/reference/{reference}" Operator(PAYMENTS_READ) payments::api::fetch_by_reference "Fetch a company's payment by its reference" [];
        get    "/internal/v1/companies/{company}/payments/{payment}/timeline" Operator(PAYMENTS_READ) payments::api::timeline "Fetch the timeline of a company's payment" [];
        get    "/internal/v1/companies/{company}/payments/{payment}/routing" Operator(PAYMENTS_READ) payments::api::routing "Fetch the routing decisions of a payment" [];
        post   "/internal/v1/companies/{company}/payments/{payment}/verify" Operator(PAYMENTS_VERIFY) payments::api::verify_of_company "Verify a company's payment with the provider" [502 504];
        post   "/internal/v1/companies/{company}/payments/{payment}/refund" Operator(REFUNDS_WRITE) payments::api::refund "Refund a payment" [409 502 504];
        get    "/internal/v1/companies/{company}/payments/{payment}/refund" Operator(REFUNDS_READ) payments::api::fetch_refund "Fetch the refund of a payment" [];
        get    "/internal/v1/companies/{company}/users" Operator(USERS_READ) users::api::list "List a company's users" [];
        get    "/internal/v1/companies/{company}/users/{email_or_id}" Operator(USERS_READ) users::api::fetch "Fetch a user of a company" [];
        get    "/internal/v1/companies/{company}/users/{user_id}/cards" Operator(USERS_READ) cards::api::list "List a user's cards" [];
        get    "/internal/v1/companies/{company}/users/{user_id}/direct-debits" Operator(LENDING_READ) mandates::api::list "List a user's direct debit mandates" [];
        get    "/internal/v1/companies/{company}/users/{user_id}/virtual-accounts" Operator(USERS_READ) virtual_accounts::api::list "List a user's virtual accounts" [];
        get    "/internal/v1/companies/{company}/users/{user_id}/identities" Operator(IDENTITIES_READ) identity::api::operators::list_of_user "List a user's identity records" [409];
        get    "/internal/v1/companies/{company}/users/{user_id}/loans" Operator(LENDING_READ) loans::api::list_of_user "List a user's loans" [];
        get    "/internal/v1/companies/{company}/recollections" Operator(LENDING_READ) recollections::api::list "List a company's recollections" [];
        get    "/internal/v1/companies/{company}/recollections/{recollection}" Operator(LENDING_READ) recollections::api::fetch "Fetch a recollection" [];
        get    "/internal/v1/companies/{company}/recollections/{recollection}/routing" Operator(LENDING_READ) recollections::api::routing "Fetch the routing decisions of a recollection" [];
        get    "/internal/v1/companies/{company}/recollections/reference/{reference}" Operator(LENDING_READ) recollections::api::fetch_by_reference "Fetch a recollection with its loan by its reference" [];
        put    "/internal/v1/companies/{company}/loans/{loan}" Operator(LENDING_WRITE) loans::api::put "Create or replace a loan" [];
        get    "/internal/v1/companies/{company}/loans/{loan}" Operator(LENDING_READ) loans::api::fetch "Fetch a loan" [];
        get    "/internal/v1/companies/{company}/loans/{loan}/attempts" Operator(LENDING_READ) collections::api::attempts "List the collection attempts of a loan" [];
        put    "/internal/v1/companies/{company}/collection-policy" Operator(LENDING_WRITE) collections::api::put "Set the collection policy of a company" [];
        get    "/internal/v1/companies/{company}/collection-policy" Operator(COMPANIES_READ) collections::api::fetch "Fetch the collection policy of a company" [];
        get    "/internal/v1/companies/{company}/collection-policy/versions" Operator(COMPANIES_READ) collections::api::versions "List the versions of a company's collection policy" [];
        post   "/internal/v1/companies/{company}/collection-policy/simulate" Operator(LENDING_WRITE) collections::api::simulate "Simulate a collection policy with past installments" [];
        put    "/internal/v1/companies/{company}/direct-debits/{direct_debit}" Operator(LENDING_WRITE) mandates::api::put "Create or replace a direct debit mandate" [];
        get    "/internal/v1/companies/{company}/direct-debits/{direct_debit}" Operator(LENDING_READ) mandates::api::fetch "Fetch a direct debit mandate" [];
    }
}

/// The routes for the platform: plugins, hosts, jobs and the master key.
fn platform_routes() -> Vec<Route> {
    routes! {
        in permissions;
        get    "/internal/v1/plugins" Operator(PLUGINS_READ) plugins::list "List plugins" [];
        post   "/internal/v1/plugins" Operator(PLUGINS_WRITE) plugins::install "Install a plugin" [409];
        post   "/internal/v1/plugins/examine" Operator(PLUGINS_READ) plugins::examine "Examine a plugin without installing it" [];
        get    "/internal/v1/plugins/{plugin}" Operator(PLUGINS_READ) plugins::fetch "List the versions of a plugin" [];
        post   "/internal/v1/plugins/{plugin}/activate" Operator(PLUGINS_WRITE) plugins::activate "Activate a version of a plugin" [409];
        post   "/internal/v1/plugins/{plugin}/canary" Operator(PLUGINS_WRITE) plugins::canary "Start a canary of a plugin" [409];
        post   "/internal/v1/plugins/{plugin}/rollback" Operator(PLUGINS_WRITE) plugins::roll_back "End a canary, or reactivate the previous version of a plugin" [409];
        post   "/internal/v1/plugins/{plugin}/deactivate" Operator(PLUGINS_WRITE) plugins::deactivate "Deactivate a plugin" [409];
        delete "/internal/v1/plugins/{plugin}/{digest}" Operator(PLUGINS_WRITE) plugins::uninstall "Uninstall an inactive version of a plugin" [409];
        get    "/internal/v1/plugins/{plugin}/recordings" Operator(RECORDINGS_READ) recordings::api::list "List recorded calls of a plugin" [];
        get    "/internal/v1/plugins/{plugin}/recordings/{recording}" Operator(RECORDINGS_READ) recordings::api::fetch "Fetch a recorded call" [];
        get    "/internal/v1/plugin-calls" Operator(PLUGINS_READ) calls::by_hour "Fetch plugin call counts by hour" [];
        get    "/internal/v1/publishers" Operator(PLUGINS_READ) plugins::publishers::list "List trusted plugin publishers" [];
        put    "/internal/v1/publishers/{publisher}" Operator(PUBLISHERS_WRITE) plugins::publishers::trust "Trust a plugin publisher with its keys" [409];
        delete "/internal/v1/publishers/{publisher}" Operator(PUBLISHERS_WRITE) plugins::publishers::distrust "Stop trusting a plugin publisher" [409];
        get    "/internal/v1/jobs" Operator(JOBS_READ) jobs::api::list "List failing jobs" [];
        post   "/internal/v1/jobs/retry" Operator(JOBS_RETRY) jobs::api::retry "Retry failing jobs" [];
        get    "/internal/v1/hosts" Operator(HOSTS_READ) hosts::list "List the hosts on this database" [];
        get    "/internal/v1/master-key" Operator(MASTER_KEY_READ) master_key::api::fetch "Count sealed values by master key" [];
        post   "/internal/v1/master-key/rotate" Operator(MASTER_KEY_ROTATE) master_key::api::rotate "Reseal values of former master keys" [];
    }
}

fn operator_routes() -> Vec<Route> {
    routes! {
        in permissions;
        get    "/internal/v1/operators" Operator(OPERATORS_READ) operators::api::list "List operators" [];
        post   "/internal/v1/operators" Operator(OPERATORS_WRITE) operators::api::create "Create an operator" [409];
        get    "/internal/v1/operators/{operator}" Operator(OPERATORS_READ) operators::api::fetch "Fetch an operator" [];
        patch  "/internal/v1/operators/{operator}" Operator(OPERATORS_WRITE) operators::api::edit "Edit or deactivate an operator" [409];
        get    "/internal/v1/operators/{operator}/tokens" Operator(OPERATORS_READ) operators::api::list_tokens "List the tokens of an operator" [];
        post   "/internal/v1/operators/{operator}/tokens" Operator(OPERATORS_WRITE) operators::api::create_token "Create a token of an operator" [409];
        delete "/internal/v1/operators/{operator}/tokens/{token}" Operator(OPERATORS_WRITE) operators::api::revoke_token "Revoke a token of an operator" [409];
        post   "/internal/v1/operators/{operator}/invite" Operator(OPERATORS_WRITE) operators::api::sessions::invite "Invite a person to set a password" [409];
        post   "/internal/v1/sign-in" Unauthenticated operators::api::sessions::sign_in "Sign in" [400 401 403 429];
        post   "/internal/v1/sign-in/enrol" Unauthenticated operators::api::sessions::enrol "Prepare the password of an invited person" [400 401 403 429];
        post   "/internal/v1/sign-in/confirm" Unauthenticated operators::api::sessions::confirm "Confirm the enrolment of an invited person" [400 401 403 429];
        post   "/internal/v1/sign-in/oidc/begin" Unauthenticated operators::api::sessions::begin_oidc "Begin a sign-in with the OpenID provider" [400 403 429];
        post   "/internal/v1/sign-in/oidc/finish" Unauthenticated operators::api::sessions::finish_oidc "Finish a sign-in with the OpenID provider" [400 401 403 429];
        post   "/internal/v1/sign-out" Operator(ANY_OPERATOR) operators::api::sessions::sign_out "Sign out" [];
        get    "/internal/v1/me" Operator(ANY_OPERATOR) operators::api::sessions::me "Fetch the operator of this token" [];
        get    "/internal/v1/me/views" Operator(ANY_OPERATOR) operators::views::list "List the saved views of the operator of this token" [];
        put    "/internal/v1/me/views/{list}/{view}" Operator(ANY_OPERATOR) operators::views::save "Save the filters of a list under a name" [409];
        delete "/internal/v1/me/views/{list}/{view}" Operator(ANY_OPERATOR) operators::views::delete "Delete a saved view" [];
        get    "/internal/v1/roles" Operator(OPERATORS_READ) operators::api::list_roles "List roles with their permissions" [];
        put    "/internal/v1/roles/{role}" Operator(OPERATORS_WRITE) operators::api::put_role "Create or replace a role" [409];
        delete "/internal/v1/roles/{role}" Operator(OPERATORS_WRITE) operators::api::delete_role "Delete a role" [409];
        get    "/internal/v1/approvals" Operator(APPROVALS_READ) operators::approvals::api::list "List actions that need an approval" [];
        post   "/internal/v1/approvals/{approval}/approve" Operator(APPROVALS_DECIDE) operators::approvals::api::approve "Approve an action of another operator" [409];
        post   "/internal/v1/approvals/{approval}/reject" Operator(APPROVALS_DECIDE) operators::approvals::api::reject "Reject an action of another operator" [409];
        get    "/internal/v1/audit" Operator(AUDIT_READ) audit::of_service "List the audit log of the service" [];
        get    "/internal/v1/audit/chain" Operator(AUDIT_READ) audit::chain_of_service "List the audit log of the service in chain order" [];
        get    "/internal/v1/companies/{company}/audit" Operator(AUDIT_READ) audit::of_company "List the audit log of a company" [];
        get    "/internal/v1/companies/{company}/audit/chain" Operator(AUDIT_READ) audit::chain_of_company "List the audit log of a company in chain order" [];
    }
}

macro_rules! webhooks {
    ($($kind:literal $data:ty: $summary:literal;)*) => {
        vec![$(Webhook {
            kind: $kind,
            summary: $summary,
            schema: SchemaGenerator::subschema_for::<events::Message<'static, $data>>,
        }),*]
    };
}

/// The webhooks that companies receive. Each row: kind, type of the data, summary.
pub fn webhooks() -> Vec<Webhook> {
    webhooks! {
        "card.validation.success" cards::EventData: "A card was verified and can be charged";
        "card.validation.failed" cards::EventData: "The verification charge of a card failed";
        "direct_debit.created" mandates::EventData: "A mandate was created, and the customer can authorize it";
        "direct_debit.approved" mandates::EventData: "A customer authorized a mandate, which the bank has yet to activate";
        "direct_debit.ready" mandates::EventData: "A mandate can be charged";
        "direct_debit.cancelled" mandates::EventData: "A mandate was declined, cancelled or revoked, or has expired";
        "payment.success" payments::EventData: "A customer was charged";
        "payment.failed" payments::EventData: "A payment failed: the customer was not charged, or was charged another amount, which has been refunded";
        "payment.refunded" payments::EventData: "A payment was refunded";
        "payment.partly_refunded" payments::EventData: "A part of a payment was refunded";
        "payment.disputed" disputes::EventData: "A payer disputes a payment";
        "payment.dispute_closed" disputes::EventData: "A dispute of a payment was won or lost";
        "recollection.success" recollections::EventData: "A repayment succeeded";
        "recollection.failed" recollections::EventData: "A repayment failed";
        "recollection.reversed" recollections::EventData: "The provider reversed a repayment";
        "recollection.disputed" disputes::EventData: "A payer disputes a repayment";
        "recollection.dispute_closed" disputes::EventData: "A dispute of a repayment was won or lost";
        "installment.upcoming" collections::EventData: "An installment will be due";
        "installment.due" collections::EventData: "An installment is due";
        "installment.overdue" collections::EventData: "An installment is overdue";
    }
}

const INTERNAL: &str = "internal";

/// Returns the name of these routes' listener in metrics.
pub fn listener_name(routes: &[Route]) -> &'static str {
    if is_internal(routes) { INTERNAL } else { "public" }
}

fn is_internal(routes: &[Route]) -> bool {
    routes.iter().any(|route| matches!(route.access, Access::Operator(_)))
}

/// The OpenAPI document of the public interface, without the lookups of country plugins.
pub static PUBLIC_DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let (title, introduction, webhooks) = ("Tollhouse", PUBLIC_INTRODUCTION, webhooks());
    let contents = DocumentContents { title, introduction, tags: TAGS, webhooks };
    openapi::document(&public_routes(), &contents)
});

/// The OpenAPI document of the internal interface.
pub static INTERNAL_DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let (title, introduction) = ("Tollhouse: internal interface", INTERNAL_INTRODUCTION);
    let contents = DocumentContents { title, introduction, tags: TAGS, webhooks: Vec::new() };
    openapi::document(&internal_routes(), &contents)
});

/// Builds the router of a listener, with the console or portal that it serves.
pub fn router(app: &App, routes: Vec<Route>) -> Router {
    let settings = &app.settings;
    let is_internal = is_internal(&routes);
    let router = interface(app, routes);
    let options = |site, url: &str, openid_provider| ConsoleOptions {
        site,
        secure: url.starts_with("https:"),
        openid_provider,
    };
    let (interface, options) = if is_internal {
        let provider = settings.openid_provider.as_ref();
        let provider = provider.map(|provider| provider.name.as_str().into());
        (router.clone(), options(Site::Console, &settings.console_url, provider))
    } else if settings.service.portal {
        let interface = interface(app, internal_routes());
        (interface, options(Site::Portal, &settings.public_url, None))
    } else {
        return router;
    };
    router.merge(tollhouse_console::router(&app.server, interface, options))
}

fn interface(app: &App, routes: Vec<Route>) -> Router {
    let plugins = app.plugins.clone();
    let max_body_size = move |path: &str| {
        let upload = UPLOAD_ROUTES.iter().find(|(uploads, _)| path == *uploads);
        let component = || COMPONENT_ROUTES.contains(&path).then(|| plugins.max_component_bytes());
        upload.map(|(_, most)| *most).or_else(component)
    };
    let document = if is_internal(&routes) { &*INTERNAL_DOCUMENT } else { &*PUBLIC_DOCUMENT };
    let interface = Interface {
        name: listener_name(&routes),
        document: Document::new(document, identity::lookups::Lookups(app.plugins.clone())),
        routes,
        state: Shared(app.clone()),
        principals: app.clone(),
        max_body_size: Box::new(max_body_size),
    };
    http::router(&app.server, interface)
}
