//! What the author of a plugin depends on.
//!
//! A plugin is a type that implements one trait per interface it offers, and one line that puts it in a component
//! together with the `manifest.json` beside its `Cargo.toml`:
//!
//! ```text
//! struct Acme;
//! tollhouse_plugin::export!(Acme: checkout, verification, notifications);
//! ```
//!
//! Build it with `crate-type = ["cdylib", "rlib"]` for `wasm32-wasip2`; test it as any Rust code, without a sandbox,
//! against [`testing::FakeHost`]:
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
//!         let answer = http::Request::post(settings::url("base_url", "/pages")?)
//!             .bearer(&vault::secret("token")?)
//!             .json(&json!({ "ref": order.service_ref, "amount": order.amount.minor }))
//!             .send()?;
//!         let page: Page = answer.json()?;
//!         Ok(CheckoutSession { url: page.url, service_ref: order.service_ref, raw: answer.text() })
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
//! Two rules of the contract shape all code here. A call is a function of its arguments and of what the host answers:
//! the host may end it at [`http::Request::send`] and run it again from its start. And secrets never enter the sandbox:
//! [`vault::secret`] gives a placeholder that egress fills in.
//!
//! # How it works
//!
//! Each interface has a tiny world of its own. `pub_export_macro` keeps a world's *exports* out of this library and
//! puts them where `export!` is expanded, so only what the author names ends up in the component; wit-component unites
//! the worlds it finds.

pub mod amount;
pub mod cache;
pub mod card;
mod fault;
pub mod http;
pub mod log;
pub mod loose;
pub mod normal;
pub mod record;
pub mod repeat;
pub mod settings;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
pub mod text;
pub mod told;
pub mod vault;

/// The host's side (http, vault, ...) and the types that interfaces share.
#[doc(hidden)]
pub mod shared {
    wit_bindgen::generate!({
        path: "../../wit/v1",
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

/// The one seam between the SDK and what is below it: the host's functions in a component, the fake host in a test.
mod port {
    #[cfg(target_arch = "wasm32")]
    pub(crate) use crate::shared::tollhouse::plugin::{cache, http, log, settings, vault};
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) use crate::testing::port::{cache, http, log, settings, vault};
}

macro_rules! interface {
    ($(#[$doc:meta])* $module:ident, $inline:literal $(, $shared:literal => $path:path)*) => {
        $(#[$doc])*
        pub mod $module {
            #[doc(hidden)]
            pub mod bindings {
                wit_bindgen::generate!({
                    path: "../../wit/v1",
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
    /// Hosted checkout: a page of the provider's on which the customer pays.
    checkout,
    "package tollhouse:sdk-checkout; world with-checkout { export tollhouse:plugin/checkout@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// How a payment stands, asked by our reference.
    verification,
    "package tollhouse:sdk-verification; world with-verification { export tollhouse:plugin/verification@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Charging an instrument that an earlier payment left behind.
    saved_card,
    "package tollhouse:sdk-saved-card; world with-saved-card { export tollhouse:plugin/saved-card@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Debiting a bank account by a mandate.
    direct_debit,
    "package tollhouse:sdk-direct-debit; world with-direct-debit { export tollhouse:plugin/direct-debit@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/payments@1.0.0" => crate::payments
);
interface!(
    /// Giving money back.
    refunds,
    "package tollhouse:sdk-refunds; world with-refunds { export tollhouse:plugin/refunds@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// What the provider sends of its own accord.
    notifications,
    "package tollhouse:sdk-notifications; world with-notifications { export tollhouse:plugin/notifications@1.0.0; }"
);
interface!(
    /// Text messages.
    sms,
    "package tollhouse:sdk-sms; world with-sms { export tollhouse:plugin/sms@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types
);
interface!(
    /// An entry of a country's register, by its number.
    identity_lookup,
    "package tollhouse:sdk-identity-lookup; world with-identity-lookup { export tollhouse:plugin/identity-lookup@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/identity@1.0.0" => crate::identity
);
interface!(
    /// The same, with the photo on record compared to a selfie.
    identity_face,
    "package tollhouse:sdk-identity-face; world with-identity-face { export tollhouse:plugin/identity-face@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/identity@1.0.0" => crate::identity
);
interface!(
    /// The same, by the photo of a document.
    identity_document,
    "package tollhouse:sdk-identity-document; world with-identity-document { export tollhouse:plugin/identity-document@1.0.0; }",
    "tollhouse:plugin/types@1.0.0" => crate::types,
    "tollhouse:plugin/identity@1.0.0" => crate::identity
);

/// Exports a type as the named interfaces, and puts `manifest.json` (beside `Cargo.toml`) into the component.
///
/// Natively it exports nothing and only demands the traits, so that a plugin is an ordinary library to its tests.
/// Either way it defines `MANIFEST`, the manifest's text.
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

/// The manifest alone; the path is relative to the package.
///
/// A static in a wasm custom section needs no `#[used]`, costs no memory at run time, and two of them would be
/// concatenated by the linker, which the host then refuses as malformed JSON.
#[macro_export]
macro_rules! manifest {
    ($path:literal) => {
        /// The manifest that the component carries.
        pub const MANIFEST: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        #[cfg(target_arch = "wasm32")]
        const _: () = {
            #[unsafe(link_section = "tollhouse:manifest")]
            static SECTION: [u8; MANIFEST.len()] =
                *include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        };
    };
}
