//! The SDK for Tollhouse plugins in Rust.
//!
//! A plugin is a type that implements one trait per interface, and one line that exports it
//! together with the `manifest.json` beside its `Cargo.toml`:
//!
//! ```text
//! struct Acme;
//! tollhouse_plugin::export!(Acme: checkout, verification, notifications);
//! ```
//!
//! Build it with `crate-type = ["cdylib", "rlib"]` for `wasm32-wasip2`. Test it natively, like any
//! Rust library, against [`testing::FakeHost`]:
//!
//! ```
//! use serde::Deserialize;
//! use serde_json::json;
//! use tollhouse_plugin::{
//!     checkout::{self, CheckoutOrder, CheckoutSession},
//!     http, settings,
//!     testing::FakeHost,
//!     types::{Fault, Money},
//!     vault,
//! };
//!
//! struct Acme;
//!
//! #[derive(Deserialize)]
//! struct Page {
//!     url: String,
//! }
//!
//! impl checkout::Guest for Acme {
//!     fn start(order: CheckoutOrder) -> Result<CheckoutSession, Fault> {
//!         let response = http::Request::post(settings::url("base_url", "/pages")?)
//!             .bearer(&vault::secret("token")?)
//!             .json(&json!({ "ref": order.service_ref, "amount": order.amount.minor }))
//!             .send()?;
//!         let page: Page = response.json()?;
//!         Ok(CheckoutSession {
//!             url: page.url,
//!             service_ref: order.service_ref,
//!             raw: response.text(),
//!         })
//!     }
//! }
//!
//! let host = FakeHost::new()
//!     .secret("token", "t0p")
//!     .setting("base_url", "https://acme.test/")
//!     .answer("POST", "/pages", 200, json!({ "url": "https://acme.test/p/1" }))
//!     .install();
//! let order = CheckoutOrder {
//!     service_ref: "A-1".into(),
//!     amount: Money { minor: 5000, currency: "NGN".into() },
//!     email: "ada@example.com".into(),
//!     customer_name: None,
//!     narration: String::new(),
//!     channels: vec![],
//!     success_url: "https://shop.test/done".into(),
//!     cancel_url: None,
//!     metadata: "{}".into(),
//!     save_instrument: false,
//! };
//! let session = <Acme as checkout::Guest>::start(order).unwrap();
//! assert_eq!(session.url, "https://acme.test/p/1");
//! assert_eq!(host.requests()[0].header("authorization"), Some("Bearer t0p"));
//! ```
//!
//! Two rules of the contract shape all code here:
//!
//! - A call is a deterministic function of its arguments and of the host's responses: the host may
//!   end the instance at [`http::Request::send`] and run the call again from its start.
//! - Secrets never enter the sandbox: [`vault::secret`] returns a placeholder, which egress
//!   replaces with the value.
//!
//! # How it works
//!
//! Each interface has a WIT world of its own. `pub_export_macro` keeps a world's *exports* out of
//! this library and generates them where `export!` is expanded, so that the component contains only
//! the named interfaces; wit-component merges the worlds.

pub mod amount;
pub mod cache;
pub mod card;
mod decline_words;
mod fault;
pub mod http;
pub mod log;
pub mod loose;
pub mod normal;
pub mod noted_refunds;
pub mod phases;
pub mod raw_json;
pub mod record;
mod refund_parts;
pub mod repeat;
pub mod settings;
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod text;
pub mod vault;

/// The former name of [`raw_json`].
pub mod told {
    /// The former name of [`RawJson`](crate::raw_json::RawJson).
    #[deprecated = "use `raw_json::RawJson`"]
    pub type Told = crate::raw_json::RawJson;
}

/// The host functions (http, vault, ...) and the types that interfaces share.
#[doc(hidden)]
pub mod shared {
    wit_bindgen::generate!({
        path: "../../../wit/v1",
        inline: "package tollhouse:sdk-shared; world shared {
            include tollhouse:plugin/host@1.0.0;
            import tollhouse:plugin/payments@1.0.0;
            import tollhouse:plugin/identity@1.0.0;
        }",
        generate_all,
        generate_unused_types: true,
        additional_derives: [PartialEq, Eq],
    });
}
pub use shared::tollhouse::plugin::{identity, payments, types};

/// The boundary between the SDK and the host: the imported functions in a component, the fake host
/// in a native test.
mod port {
    #[cfg(target_arch = "wasm32")]
    pub(crate) use crate::shared::tollhouse::plugin::{
        cache, http, log, settings, vault, vault_transform,
    };
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) use crate::testing::port::{cache, http, log, settings, vault, vault_transform};
}

macro_rules! interface {
    ($(#[$doc:meta])* $module:ident, $inline:literal $(, $shared:literal => $path:path)*) => {
        $(#[$doc])*
        pub mod $module {
            #[doc(hidden)]
            pub mod bindings {
                wit_bindgen::generate!({
                    path: "../../../wit/v1",
                    inline: $inline,
                    with: { $($shared: $path),* },
                    pub_export_macro: true,
                    default_bindings_module: "tollhouse_plugin",
                    generate_all,
                    disable_custom_section_link_helpers: true,
                    additional_derives: [PartialEq, Eq],
                });
            }
            pub use bindings::exports::tollhouse::plugin::$module::*;
            #[doc(hidden)]
            pub use bindings::export;
        }
    };
}

interface!(
    /// Hosted checkout: the customer pays on a page of the provider.
    checkout,
    "package tollhouse:sdk-checkout; world with-checkout { export tollhouse:plugin/checkout@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Verification: queries the status of a payment by its service reference.
    verification,
    "package tollhouse:sdk-verification; world with-verification { export tollhouse:plugin/verification@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Saved cards: charges an instrument that an earlier payment saved.
    saved_card,
    "package tollhouse:sdk-saved-card; world with-saved-card { export tollhouse:plugin/saved-card@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Direct debit: debits a bank account under a mandate.
    direct_debit,
    "package tollhouse:sdk-direct-debit; world with-direct-debit { export tollhouse:plugin/direct-debit@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Partial debits: charges of saved cards and mandates that may take only a part of the amount.
    partial_debits,
    "package tollhouse:sdk-partial-debits; world with-partial-debits { export tollhouse:plugin/partial-debits@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Reasons of declined charges.
    declines,
    "package tollhouse:sdk-declines; world with-declines { export tollhouse:plugin/declines@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Refunds: returns money to the payer.
    refunds,
    "package tollhouse:sdk-refunds; world with-refunds { export tollhouse:plugin/refunds@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Partial refunds, of which a payment can have several.
    partial_refunds,
    "package tollhouse:sdk-partial-refunds; world with-partial-refunds { export tollhouse:plugin/partial-refunds@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Payments with a state and a notification URL of their own, for example push payments.
    sessions,
    "package tollhouse:sdk-sessions; world with-sessions { export tollhouse:plugin/sessions@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Refunds with a state and a notification URL of their own.
    session_refunds,
    "package tollhouse:sdk-session-refunds; world with-session-refunds { export tollhouse:plugin/session-refunds@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Virtual accounts: bank accounts that receive transfers without an order.
    virtual_accounts,
    "package tollhouse:sdk-virtual-accounts; world with-virtual-accounts { export tollhouse:plugin/virtual-accounts@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Account enquiry: the names of the holders of bank accounts.
    account_enquiry,
    "package tollhouse:sdk-account-enquiry; world with-account-enquiry { export tollhouse:plugin/account-enquiry@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Disputes: lists claims of payers against payments, and answers them.
    disputes,
    "package tollhouse:sdk-disputes; world with-disputes { export tollhouse:plugin/disputes@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Settlements: lists the money that the provider took, returned and paid out.
    settlements,
    "package tollhouse:sdk-settlements; world with-settlements { export tollhouse:plugin/settlements@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Mandates: obtains authorizations of payers to debit bank accounts.
    mandates,
    "package tollhouse:sdk-mandates; world with-mandates { export tollhouse:plugin/mandates@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Provider webhooks: authenticates and parses them.
    notifications,
    "package tollhouse:sdk-notifications; world with-notifications { export tollhouse:plugin/notifications@1.0.0; }"
);
interface!(
    /// SMS: sends text messages through one gateway.
    sms,
    "package tollhouse:sdk-sms; world with-sms { export tollhouse:plugin/sms@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// Identity lookup by identifier.
    identity_lookup,
    "package tollhouse:sdk-identity-lookup; world with-identity-lookup { export tollhouse:plugin/identity-lookup@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/identity@1.0.0" => crate::identity
);
interface!(
    /// Identity lookup by identifier that compares the photo on record with a selfie.
    identity_face,
    "package tollhouse:sdk-identity-face; world with-identity-face { export tollhouse:plugin/identity-face@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/identity@1.0.0" => crate::identity
);
interface!(
    /// Identity lookup by a photo of a document.
    identity_document,
    "package tollhouse:sdk-identity-document; world with-identity-document { export tollhouse:plugin/identity-document@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/identity@1.0.0" => crate::identity
);

/// Exports a type as the named interfaces, and embeds `manifest.json` (beside `Cargo.toml`) in the
/// component.
///
/// A native build exports nothing and only requires the traits, so that tests use the plugin as an
/// ordinary library. Both builds define `MANIFEST`, the text of the manifest.
#[macro_export]
macro_rules! export {
    ($plugin:ident : $($interface:ident),+ $(,)?) => {
        $crate::manifest!("manifest.json");
        $(
            #[cfg(target_arch = "wasm32")]
            $crate::$interface::export!($plugin with_types_in $crate::$interface::bindings);
        )+
        $( const _: () = {
            const fn offers<T: $crate::$interface::Guest>() {}
            offers::<$plugin>();
        }; )+
    };
}

/// Embeds a manifest without exporting interfaces. The path is relative to the package.
///
/// The static in a custom section needs no `#[used]` and no memory at run time. Embed only one
/// manifest: the linker concatenates several, and the host rejects the result as malformed JSON.
#[macro_export]
macro_rules! manifest {
    ($path:literal) => {
        /// The manifest embedded in the component.
        pub const MANIFEST: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[unsafe(link_section = "tollhouse:manifest")]
            static SECTION: [u8; MANIFEST.len()] =
                *include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        };
    };
}
