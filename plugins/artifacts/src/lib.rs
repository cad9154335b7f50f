//! Every plugin of this repository as a component, for `cargo sandbox` and for tests.
//!
//! The build script finds them: a folder with a `manifest.json` is a built-in plugin in `plugins/`
//! and a test guest in `tests/guests/`. Each component has a constant with its bytes
//! ([`PROVIDER_A`]). [`foreach_component!`] lists them all, so that a test can require a test for
//! each:
//!
//! ```
//! fn africastalking() {}
//! fn atlantis() {}
//! fn ghana() {}
//! fn jenga() {}
//! fn mpesa() {}
//! fn nigeria() {}
//! fn provider_a() {}
//! fn provider_b() {}
//! fn provider_c() {}
//! fn sapling() {}
//! fn sprout() {}
//! fn termii() {}
//! fn twilio() {}
//! fn unruly() {}
//! macro_rules! has_a_test {
//!     ($name:ident) => {
//!         let _: fn() = $name;
//!     };
//! }
//! artifacts::foreach_component!(has_a_test);
//! ```

/// A compiled plugin.
#[derive(Clone, Copy)]
pub struct Component {
    /// Name of the package, the folder and the manifest.
    pub name: &'static str,
    /// The component's binary, including the manifest.
    pub wasm: &'static [u8],
}

impl std::fmt::Debug for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.name, self.wasm.len())
    }
}

include!(concat!(env!("OUT_DIR"), "/components.rs"));
